"""From any format that nfsgeo reads to its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from nfsgeo.data.disk import check_room
from nfsgeo.data.fields import Doubles, FieldFile, check_axes
from nfsgeo.data.grid_writer import GridWriter
from nfsgeo.data.layout import NATIVE, check_ending
from nfsgeo.data.opening import open_sources
from nfsgeo.data.point_writer import PointWriter
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["convert"]

BATCH_BYTES = 2**26


def convert(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    series: str | None = None,
    times: ArrayLike | None = None,
    columns: Mapping[str, str] | None = None,
    domain: Domain | None = None,
    pad: float = 0.05,
    equation: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Path:
    """Writes the samples of foreign files into a native file, one by one.

    A conversion of gridded data that was interrupted goes on where it stopped.

    Args:
        sources: A file, several of one kind, or a folder of them, which are taken in
            the order of the numbers in their names.
        out: The native file to make.
        series: Whether several files are ``"samples"``, or ``"time-steps"`` of one; has
            to be said where each holds one time step on the same points.
        times: Time of each time step, ``[T]``, in place of what the files tell.
        columns: Columns of a table by what they are, see
            :func:`~nfsgeo.data.readers.table.table_with`.
        domain: The box and its periodic axes, in place of what the format implies.
            Points are wrapped into it along its periodic axes.
        pad: Room that the box leaves around point clouds on each side, as a fraction
            of their extent, where neither the file nor the caller gives a domain.
        equation: Name of the equation, in place of what the format implies.
        progress: Called with what is being done, how many samples are through with
            it, and of how many.

    Returns:
        Path of the native file.

    Raises:
        UserError: A source cannot be read or does not fit the domain, ``out`` exists,
            or the disk is full.
    """
    out = Path(out)
    check_ending(out, *NATIVE)
    with open_sources(sources, series=series, times=times, columns=columns) as file:
        options: dict[str, Any] = {
            "equation": file.equation if equation is None else equation,
            "times": file.times,
            "component_names": file.component_names,
            "static_names": file.static_names,
            "static_role": file.static_role,
            "provenance": {"source": file.path.name} | file.provenance,
            "split": file.split,
        }
        tick = progress or (lambda what, done, total: None)
        if file.axes is not None:
            options["domain"] = domain or file.domain
            _write_grid(file, out, options, tick)
        else:
            known = file.domain if file.domain_is_known else None
            options["domain"] = domain or known or _box(file, pad)
            _write_points(file, out, options, tick)
    return out


def _write_grid(
    file: FieldFile, out: Path, options: dict[str, Any], tick: Callable[..., None]
) -> None:
    assert file.axes is not None and file.shape is not None
    check_axes(file.path, file.axes, options["domain"])
    scalars = {k: v for k, v in file.parameters.items() if np.ndim(v) == 1}
    total, shape = file.num_samples, file.shape
    size = 4 * len(file.times) * int(np.prod(shape)) * file.components
    step = max(1, BATCH_BYTES // size)
    with GridWriter(
        out,
        axes=file.axes,
        num_samples=total,
        parameter_names=sorted(scalars),
        packing=partial(tick, "packing samples"),
        **options,
    ) as writer:
        done = writer.done
        for start in range(0, total, step):
            samples = range(start, min(start + step, total))
            if not done[samples].all():
                u = [file.read(sample, slice(None)) for sample in samples]
                u = [v.swapaxes(0, 1).reshape(-1, *shape, file.components) for v in u]
                a = [file.read_static(sample) for sample in samples]
                a = [values.reshape(*shape, -1) for values in a]
                some = {name: values[samples] for name, values in scalars.items()}
                writer.write(start, u, a if file.static_names else None, some)
            tick("converting samples", samples.stop, total)


def _write_points(
    file: FieldFile, out: Path, options: dict[str, Any], tick: Callable[..., None]
) -> None:
    domain: Domain = options["domain"]
    step_bytes = 4 * file.components * file.num_points(0)
    check_room(out, file.num_samples * len(file.times) * step_bytes)
    meshes: dict[int, int] = {}
    with PointWriter(out, **options) as writer:
        for sample in range(file.num_samples):
            mesh = file.mesh_id(sample)
            if mesh not in meshes:
                points = torch.tensor(file.coordinates(sample))
                if points.shape[1] != domain.dim:
                    raise UserError(
                        f"a domain of {domain.dim} axes",
                        f"{points.shape[1]}, as the points of {file.path} have",
                        "give a lower and an upper end for each axis",
                    )
                wrapped = domain.wrap(points).numpy()
                meshes[mesh] = writer.add_mesh(wrapped, file.cells(sample))
            a = file.read_static(sample) if file.static_names else None
            some = {name: values[sample] for name, values in file.parameters.items()}
            writer.write(file.read(sample, slice(None)), meshes[mesh], a, some)
            tick("converting samples", sample + 1, file.num_samples)


def _box(file: FieldFile, pad: float) -> Domain:
    """The padded box around the points of every mesh."""
    seen: set[int] = set()
    ends: list[Doubles] = []
    for sample in range(file.num_samples):
        mesh = file.mesh_id(sample)
        if mesh not in seen:
            seen.add(mesh)
            points = file.coordinates(sample)
            ends += [points.min(axis=0), points.max(axis=0)]
    return Domain.bounding(np.stack(ends), pad)
