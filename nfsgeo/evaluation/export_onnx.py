"""An exported program in ONNX, where ONNX has its operators."""

from __future__ import annotations

import importlib.util
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.export import ExportedProgram

from nfsgeo.errors import UserError

__all__ = ["to_onnx"]


def to_onnx(program: ExportedProgram, name: str) -> bytes:
    """The content of an ``.onnx`` file; sizes that may change stay so.

    Inputs have the names of the program's arguments.

    Args:
        program: From ``torch.export``.
        name: What to call its model in a message.

    Raises:
        UserError: onnxscript is not installed, or ONNX lacks an operator.
    """
    if importlib.util.find_spec("onnxscript") is None:
        raise UserError(
            "--format onnx",
            "the package onnxscript, which makes ONNX files",
            "pip install 'nfsgeo[onnx]'",
        )
    try:
        with _quiet(), torch.no_grad():
            made = torch.onnx.export(program, (), dynamo=True, verbose=False)
    except torch.onnx.OnnxExporterError as error:
        raise UserError(
            f"{name}, which needs {_lacking(error)}",
            "operators that ONNX has, as nfs and all of its kin but nfs-fnet",
            "leave out --format onnx",
        ) from error
    assert made is not None
    return made.model_proto.SerializeToString()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's warnings, of packages that it does not need here."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _lacking(error: BaseException) -> str:
    """The operator at which the conversion stopped."""
    found = re.search(r"op='([\w.]+)'.*?(complex)?-valued|op='([\w.]+)'", str(error))
    if found is None:
        return "an operator that it does not name"
    operator = found[1] or found[3]
    return f"{operator} of complex numbers" if found[2] else operator
