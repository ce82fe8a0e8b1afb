"""Named arrays in files of numpy, MATLAB, HDF5, PyTorch and pickle."""

from __future__ import annotations

import math
import os
import pickle
import re
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.io import loadmat
from xarray import Variable
from xarray.conventions import decode_cf_variable

from nfsgeo.data.checks import on_cpu
from nfsgeo.data.io.matlab_files import (
    BLOCK_BYTES,
    Header,
    Reversed,
    first_bytes,
    headers_of,
    holds_numbers,
    is_matlab,
    is_matlab_5,
    no_numbers,
    struct_arrays,
)
from nfsgeo.data.io.pickled_arrays import arrays_of_pickle
from nfsgeo.data.lazy import Key, deferred, hdf5_arrays, opened_hdf5, read_hdf5
from nfsgeo.data.other_files import check_size
from nfsgeo.errors import UserError

__all__ = ["arrays_of", "as_text", "attributes", "check_filters", "decoded"]
__all__ += ["default_fill", "marked", "npy_header", "npz_headers", "unit_of"]
__all__ += ["units_of", "with_default_fill", "within_range"]

NUMPY = b"\x93NUMPY"
TORCH = bytes.fromhex("80028a0a6cfc9c46f920")  # how files of old PyTorch begin
# PROTO, then (from protocol 4) FRAME, then an empty dictionary.
PICKLE = rb"\x80[\2-\5](\x95.{8})?}"
OTHER_PICKLE = rb"\x80[\2-\5]"
SAVE = "give each a name, as by torch.save({'u': u, 'points': points}, 'NAME.pt')"
SAVEZ = "arrays, numpy.savez('NAME.npz', u=u, points=points)"
FILTERS = {4: "szip", 307: "bzip2", 32000: "lzf", 32001: "blosc", 32004: "lz4"}
FILTERS |= {32008: "bitshuffle", 32013: "zfp", 32015: "zstd", 32026: "blosc2"}
NUMBERS = "biufc"  # kinds of types; complex fields are refused by name
LOOKED_AT = 2**20  # integers, in search of a fill value
FILLS = ("_FillValue", "missing_value")
UNITS = ("units", "unit")
RANGE = ("valid_min", "valid_max", "valid_range")


def arrays_of(path: Path, *, numbers: bool = False) -> dict[str, Variable]:
    """Arrays of numbers by name, along dimensions ``0``, ``1``, ..., of known files.

    Single numbers without dimension are among them where ``numbers`` are wanted.

    Those in groups of HDF5 have their paths, and those in structs of MATLAB names such
    as ``data.u``. NaN stands instead of fill values of HDF5, and of what is outside of
    their valid range. Values are read when they are asked for, but those of PyTorch,
    pickle and structs of MATLAB 5, whose shapes cannot be told without.

    Raises:
        UserError: A file of MATLAB has no arrays of numbers.
    """
    matlab = is_matlab(path)
    arrays: dict[str, Variable] = {}
    if h5py.is_hdf5(path):
        opened = opened_hdf5(path)
        with h5py.File(path, "r") as file:
            for name, item in hdf5_arrays(file).items():
                numeric = item.dtype.kind in NUMBERS
                if numeric and (not matlab or holds_numbers(name, item)):
                    known = name.replace("/", ".") if matlab else name
                    arrays[known] = _hdf5_variable(path, opened, item)
    else:
        headers = headers_of(path) if is_matlab_5(path) else npz_headers(path)
        for name, (shape, dtype) in headers.items():
            if dtype.kind in f"{NUMBERS}M":
                read_part = _Whole(path, name, dtype)
                arrays[name] = deferred(_dims(len(shape)), shape, dtype, read_part)
        held: Mapping[str, NDArray[Any]] = {}
        if matlab:
            held = struct_arrays(path)
        elif not headers:
            held = _loaded(path)
        held = {n: v for n, v in held.items() if v.dtype.kind in f"{NUMBERS}M"}
        arrays |= {name: Variable(_dims(v.ndim), v) for name, v in held.items()}
    if matlab and not arrays and (error := no_numbers(path)):
        raise error
    return {name: array for name, array in arrays.items() if array.ndim or numbers}


def npz_headers(path: Path) -> dict[str, Header]:
    """Shape and type of each array of ``.npz``; none of other files."""
    headers = {}
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as member:
                        headers[name.removesuffix(".npy")] = npy_header(member)
    return headers


def npy_header(member: Any) -> Header:
    """Read the shape and the type of an array of numpy from its open file."""
    form = np.lib.format
    first = form.read_magic(member) == (1, 0)
    read = form.read_array_header_1_0 if first else form.read_array_header_2_0
    shape, _, dtype = read(member)
    return shape, dtype


def _loaded(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of numpy, or of a dictionary that PyTorch or pickle saved."""
    head = first_bytes(path)
    if head.startswith(NUMPY):
        return {path.stem: np.load(path, mmap_mode="r", allow_pickle=False)}
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            saved = any(n.endswith("/data.pkl") for n in archive.namelist())
        return _torch_arrays(path, mmap=True) if saved else {}
    if head.startswith(TORCH):
        return _torch_arrays(path, mmap=False)
    if re.match(OTHER_PICKLE, head) and not re.match(PICKLE, head, re.S):
        given = f"{path}, a pickle of another object than a dictionary"
        todo = "if you trust it, write a table, pandas.read_pickle"
        todo += f"({str(path)!r}).to_csv('NAME.csv'), or {SAVEZ}"
        raise UserError(given, "a dictionary of arrays of numpy", todo)
    return arrays_of_pickle(path) if re.match(PICKLE, head, re.S) else {}


def _torch_arrays(path: Path, mmap: bool) -> dict[str, NDArray[Any]]:
    """The tensors of a dictionary that PyTorch saved."""
    try:
        held = torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except pickle.UnpicklingError as error:
        names = " ".join(re.findall(r"GLOBAL (\S+)", str(error)))
        if not names:
            raise ValueError("no tensors that can be loaded") from None
        given = f"{path} with objects of {names}"
        raise UserError(given, "a dictionary of tensors alone", SAVE) from None
    if torch.is_tensor(held):
        held = {path.stem: held}  # as in a file of numpy
    if not isinstance(held, dict):
        given = f"{path} with a {type(held).__name__} in place of a dict of tensors"
        raise UserError(given, "tensors by name", SAVE)
    tensors = {str(k): on_cpu(v) for k, v in held.items() if torch.is_tensor(v)}
    check_size(path, sum(tensor.nbytes for tensor in tensors.values()))
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def attributes(path: Path, name: str = "/") -> dict[str, Any]:
    """Attributes of a group or an array of HDF5, text as ``str``."""
    with h5py.File(path, "r") as file:
        return {k: as_text(v) for k, v in file[name].attrs.items()}


def as_text(value: Any) -> Any:
    """Decode bytes, also those in arrays; return anything else as it is."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray) and value.dtype.kind in "SO":
        return [as_text(item) for item in value.tolist()]
    return value


def unit_of(attrs: Mapping[Any, Any]) -> str:
    """The unit in attributes of an array; "" if none.

    It is that of ``units``, as in CF, or else of ``unit`` or of these words in other
    capitals, all of them where they differ.
    """
    units = dict[str, str]()
    for name in (name for name in attrs if str(name).lower() in UNITS):
        texts = np.ravel(as_text(attrs[name]))  # IDL and others write a list of one
        if texts.size == 1 and isinstance(texts[0], str):
            units[name] = texts[0].strip("\0 ")
    several = dict.fromkeys(filter(None, units.values()))
    return units.get(UNITS[0]) or " or ".join(several)


def units_of(values: Any) -> dict[str, str]:
    """The attribute of the units of an array by xarray or h5py, if it has any."""
    unit = unit_of(values.attrs)
    return {"units": unit} if unit else {}


def within_range(variable: Variable) -> Variable:
    """Replace values outside of the valid range by NaN.

    The range is one of stored values, or if its ends are floats, of unpacked ones.
    """
    variable = _without_sign(variable)
    about, done = variable.attrs, variable.encoding  # by xarray
    apart = [about.get("valid_min", -np.inf), about.get("valid_max", np.inf)]
    ends: Any = np.hstack(about.get("valid_range", apart))
    kinds = [np.asarray(about[key]).dtype.kind for key in RANGE if key in about]
    numbers = {*kinds, variable.dtype.kind} <= {*"iuf"}
    if not (kinds and numbers):
        return variable
    packing = {"scale_factor": 1.0, "add_offset": 0.0, **done, **about}
    scale, offset = packing["scale_factor"], packing["add_offset"]
    packed = np.dtype(done.get("dtype") or variable.dtype).kind in "iu"
    unpacked = not done.keys().isdisjoint(("scale_factor", "add_offset"))
    if packed and "f" in kinds and not unpacked:
        ends = np.sort((ends - offset) / scale)
    elif unpacked and not (packed and "f" in kinds):
        rounding = abs(scale) / 2
        ends = np.sort(ends * scale + offset) + [-rounding, rounding]
    if variable.dtype.kind == "f":
        ends = ends.astype(variable.dtype)
    read, kind = partial(_within, variable, *ends), np.result_type(variable.dtype, "f4")
    masked = deferred([*variable.dims], variable.shape, kind, read)
    masked.attrs, masked.encoding = dict(about), variable.encoding
    return masked


def _without_sign(variable: Variable) -> Variable:
    """Integers of the attribute ``_Unsigned`` in a type without a sign, lazily."""
    about = dict(variable.attrs)
    if variable.dtype.kind != "i" or str(about.pop("_Unsigned", "")).lower() != "true":
        return variable
    kind = np.dtype(f"u{variable.dtype.itemsize}")
    for key in about.keys() & {*FILLS, *RANGE}:
        if np.asarray(about[key]).dtype.kind == "i":
            about[key] = np.asarray(about[key]).astype(kind)[()]
    read = partial(_viewed, variable, kind)
    return deferred([*variable.dims], variable.shape, kind, read, about)


def _viewed(variable: Variable, kind: np.dtype[Any], key: Key) -> NDArray[Any]:
    return np.asarray(variable[key].values).astype(kind)


def _within(variable: Variable, low: Any, high: Any, key: Key) -> NDArray[Any]:
    values = variable[key].values
    return np.where((values < low) | (values > high), np.float32(np.nan), values)


def default_fill(dtype: np.dtype[Any]) -> Any:
    """The value that netCDF fills arrays of a type of numbers with, unless told."""
    if dtype.kind == "f":
        return dtype.type(9.969209968386869e36)
    info, last = np.iinfo(dtype), int(dtype.itemsize == 8)
    return dtype.type(info.max - last if dtype.kind == "u" else info.min + 1 + last)


def with_default_fill(variable: Variable) -> Variable:
    """Mark the default fill value where no attribute tells another, as netCDF does.

    Bytes have none, and integers stay integers where they can be looked at in advance.
    """
    about, done = variable.attrs, variable.encoding  # by xarray
    stored, kind = np.dtype(done.get("dtype") or variable.dtype), variable.dtype.kind
    fills = {*about, *done} & {"_FillValue", "_Unsigned"}
    if fills or stored.kind not in "iuf" or kind not in "iuf" or stored.itemsize == 1:
        return variable
    fill, unpacked = default_fill(stored), {*done} & {"scale_factor", "add_offset"}
    if unpacked:
        fill = fill * done.get("scale_factor", 1.0) + done.get("add_offset", 0.0)
        rounding = abs(done.get("scale_factor", 1.0)) / 2
        read = partial(_without, variable, fill, rounding)
        masked = deferred([*variable.dims], variable.shape, variable.dtype, read)
        masked.attrs, masked.encoding = dict(about), done
        return masked
    return marked(variable, fill)


def marked(variable: Variable, fill: Any) -> Variable:
    """A variable with a fill value, but for small arrays of integers without any."""
    look = variable.size <= LOOKED_AT or "flag_values" in variable.attrs
    if variable.dtype.kind in "iu" and look and not (variable.values == fill).any():
        return variable
    copy = variable.copy(deep=False)
    copy.attrs = {**variable.attrs, "_FillValue": fill}
    return copy


def _without(
    variable: Variable, fill: float, rounding: float, key: Key
) -> NDArray[Any]:
    values = variable[key].values
    return np.where(abs(values - fill) <= rounding, np.float32(np.nan), values)


def decoded(variable: Variable) -> Variable:
    """Apply CF masking and scaling, whether or not xarray has done so."""
    copy = variable.copy(deep=False)
    for key in copy.attrs.keys() & {*FILLS}:
        mark = np.asarray(copy.attrs.pop(key))
        if mark.dtype.kind in "biuf":  # 1e20 in double precision marks single 1e20
            kind = copy.dtype if copy.dtype.kind == "f" else mark.dtype
            with np.errstate(over="ignore"):
                copy.attrs[key] = mark.astype(kind)[()]
    copy.encoding = {k: v for k, v in copy.encoding.items() if k not in copy.attrs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return decode_cf_variable("", copy, decode_times=False, concat_characters=False)


def check_filters(path: Path, arrays: Sequence[h5py.Dataset]) -> None:
    """Load the package hdf5plugin where filters of arrays take it.

    Raises:
        UserError: It is not installed, or lacks one of them.
    """
    for array in arrays:
        plan = array.id.get_create_plist()
        for code, *_, name in map(plan.get_filter, range(plan.get_nfilters())):
            if h5py.h5z.filter_avail(code):
                continue
            if find_spec("hdf5plugin"):
                import hdf5plugin

                os.environ.setdefault("HDF5_PLUGIN_PATH", hdf5plugin.PLUGIN_PATH)
                if h5py.h5z.filter_avail(code):
                    continue
            called = FILTERS.get(code) or as_text(name) or "a filter"
            given = f"{path} with {array.name} compressed by {called} (filter {code})"
            todo = "pip install hdf5plugin"
            todo += f", or convert it: nccopy -F none {path} NAME.nc"
            raise UserError(given, "the package hdf5plugin, which reads it", todo)


def _hdf5_variable(path: Path, opened: Any, source: h5py.Dataset) -> Variable:
    check_filters(path, [source])
    about = {k: source.attrs[k] for k in (*FILLS, *RANGE) if k in source.attrs}
    if source.dtype.kind in "iuf" and source.fillvalue == default_fill(source.dtype):
        about.setdefault("_FillValue", source.fillvalue)  # a group of NetCDF-4
    dims, shape = _dims(source.ndim), source.shape or ()
    read = partial(read_hdf5, opened, source.name)
    held = deferred(dims, shape, source.dtype, read, about)
    stored = decoded(within_range(held))
    stored.attrs |= units_of(source)
    if not is_matlab(path):
        return stored
    row = stored.dtype.itemsize * math.prod(shape[:-1])
    reversed_ = Reversed(stored, BLOCK_BYTES // (row or 1))
    return deferred(dims, shape[::-1], stored.dtype, reversed_, stored.attrs)


class _Whole:
    """Read from an array of MATLAB 5 or ``.npz``, loaded when first asked for."""

    def __init__(self, path: Path, name: str, dtype: Any) -> None:
        self.path, self.name, self.dtype = path, name, dtype

    def __call__(self, key: Key) -> NDArray[Any]:
        return np.asarray(self._values[key])

    @cached_property
    def _values(self) -> NDArray[Any]:
        if zipfile.is_zipfile(self.path):
            with np.load(self.path, allow_pickle=False) as archive:
                values = archive[self.name]
        else:
            values = loadmat(self.path, variable_names=[self.name])[self.name]
        if values.dtype.kind == "c":
            raise ValueError(f"{self.name} of complex numbers")
        return values.astype(self.dtype, copy=False)


def _dims(num: int) -> list[str]:
    return [str(i) for i in range(num)]
