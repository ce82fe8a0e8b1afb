"""Samples staged on the disk batch by batch, so that a kill loses none of them."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable

from nfsgeo.data.disk import writing
from nfsgeo.data.lazy import Key, deferred, stacked
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
            if folder.is_dir() and header.exists():
                same = header.read_text() == text
            else:
                same = not folder.exists() or not any(folder.iterdir())
                if same:
                    folder.mkdir(exist_ok=True)
                    self._replace(header, lambda part: part.write_text(text))
        if not same:
            raise UserError(
                f"{folder}",
                "samples staged with the same settings",
                "repeat the settings it was begun with or remove it",
            )

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
        target = self.folder / f"samples-{start}-{stop}"
        with writing(self.folder):
            part = target.with_name(f"{target.name}.{os.getpid()}.partial")
            part.mkdir(exist_ok=True)
            for name, values in arrays.items():
                with (part / f"{name}.npy").open("wb") as stream:
                    buffer = io.BytesIO()  # numpy does not tell that a disk is full
                    np.save(buffer, values)
                    stream.write(buffer.getbuffer())
                    stream.flush()
                    os.fsync(stream.fileno())
            if target.exists():  # from another process, which made the same
                shutil.rmtree(part)
            else:
                os.replace(part, target)

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
        arrays = [np.load(path, mmap_mode="r", allow_pickle=False) for path in paths]
        return [
            deferred(dims, array.shape, array.dtype, _Stored(path))
            for path, array in zip(paths, arrays, strict=True)
        ]

    def _files(self) -> list[tuple[int, int, Path]]:
        found = []
        for path in self.folder.iterdir():
            if match := re.fullmatch(r"samples-(\d+)-(\d+)", path.name):
                found.append((int(match[1]), int(match[2]), path))
        return sorted(found)

    @staticmethod
    def _replace(path: Path, write: Any) -> None:
        part = path.with_name(f"{path.name}.{os.getpid()}.partial")
        write(part)
        os.replace(part, path)


class _Stored:
    """Reads from an array in a file of numpy."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, key: Key) -> NDArray[Any]:
        whole = np.load(self.path, mmap_mode="r", allow_pickle=False)
        return np.array(whole[key])
