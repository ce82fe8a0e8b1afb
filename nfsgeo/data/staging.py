"""Samples staged on the disk batch by batch, so that a kill loses none of them."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable

from nfsgeo.data.disk import writing
from nfsgeo.data.lazy import stacked
from nfsgeo.errors import UserError

__all__ = ["Staging"]


class Staging:
    """A folder with the arrays of samples, a few samples in each file.

    Every file appears whole or not at all. Made again with the same ``about``, it holds
    the samples that were staged before.

    Args:
        folder: Where to; it is made when it does not exist.
        about: What the samples are, plain JSON types.

    Raises:
        UserError: The folder holds samples of something else.
    """

    def __init__(self, folder: Path, about: Any) -> None:
        self.folder = folder
        header, text = folder / "about.json", json.dumps(about, sort_keys=True)
        with writing(folder):
            folder.mkdir(exist_ok=True)
            if not any(folder.iterdir()):
                with self._whole(header) as part:
                    part.write_text(text)
            if not header.exists() or header.read_text() != text:
                same = "samples staged with the same settings"
                todo = "repeat the settings it was begun with or remove it"
                raise UserError(f"{folder}", same, todo)

    def done(self, num: int) -> NDArray[np.bool_]:
        """Which of ``num`` samples are staged."""
        found = np.zeros(num, bool)
        for start, stop, _ in self._files():
            found[start:stop] = True
        return found

    def put(self, start: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Stages samples from number ``start``, ``[B, ...]`` of each array.

        Raises:
            UserError: The disk is full.
        """
        stop = start + len(next(iter(arrays.values())))
        path = self.folder / f"samples-{start}-{stop}"
        with writing(self.folder), self._whole(path) as part:
            part.mkdir(exist_ok=True)
            for name, values in arrays.items():
                with (part / f"{name}.npy").open("wb") as stream:
                    buffer = io.BytesIO()  # numpy does not tell that a disk is full
                    np.save(buffer, values)
                    stream.write(buffer.getbuffer())
                    stream.flush()
                    os.fsync(stream.fileno())

    def variable(self, name: str, dims: tuple[str, ...]) -> Variable:
        """An array of all staged samples, read when its values are asked for."""
        return stacked(self._parts(name, dims), dims[0])

    def each(self, name: str, dims: tuple[str, ...]) -> list[Variable]:
        """An array of each staged sample, without the first of its dimensions."""
        parts = self._parts(name, dims)
        return [part[i] for part in parts for i in range(len(part))]

    def remove(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _parts(self, name: str, dims: tuple[str, ...]) -> list[Variable]:
        paths = [folder / f"{name}.npy" for _, _, folder in self._files()]
        arrays = (np.load(p, mmap_mode="r", allow_pickle=False) for p in paths)
        return [Variable(dims, values) for values in arrays]

    def _files(self) -> list[tuple[int, int, Path]]:
        names = [each.name.split("-") for each in self.folder.glob("samples-*[0-9]")]
        ends = sorted((int(start), int(stop)) for _, start, stop in names)
        return [(a, b, self.folder / f"samples-{a}-{b}") for a, b in ends]

    @staticmethod
    @contextmanager
    def _whole(path: Path) -> Iterator[Path]:
        part = path.with_name(f"{path.name}.{os.getpid()}.partial")
        yield part
        if path.is_dir():  # from another process, which made the same
            shutil.rmtree(part)
        else:
            os.replace(part, path)
