"""Samples as PyTorch Geometric graphs: inputs, targets and points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset
from torch_geometric.data import Data

from nfsgeo.data.fields import Doubles, Fields, Indices
from nfsgeo.data.meshes import Mesh, MeshesInTurn, MeshOfFile
from nfsgeo.data.samples import Sample, SampleReader, as_slice
from nfsgeo.data.streams import derived_seed
from nfsgeo.errors import UserError

__all__ = ["WindowDataset"]


class WindowDataset(Dataset[Data]):
    """Windows of time in samples: ``n_in`` observed time steps, ``n_out`` to predict.

    An item is a window of a sample. It holds

    - ``x`` ``[n, n_in, F]``: the observed time steps; ``F`` is ``C`` plus what
      does not change in time, if there is any: the components of the coefficient and
      the scalars of the sample that are inputs, repeated over time steps and points.
      For a problem without time ``n_in`` is 0 and ``x`` is these, ``[n, 1, C_a]``
    - ``y`` ``[n, n_out, C]``: the time steps that follow
    - with forcings in the file, ``forcing`` ``[n, n_in + n_out, C_f]``
    - ``pos`` float64 ``[n, d]``, and ``mesh``, a number that is the same for the same
      positions
    - ``sample``, its number in the file, and ``times`` float64 ``[n_in + n_out]``
    - with ``volumes``, ``volume`` float32 ``[n]``: quadrature weights of mean 1
    - where the mesh has unobserved query points, ``query_pos`` float64 ``[n + m, d]``
      and ``query_y`` ``[n + m, n_out, C]``, the observed points first;
      ``volume`` is ``[n + m]`` then, 1 at the others

    Missing values of the field are NaN in ``x``, ``y`` and ``query_y``. Values have the
    precision of the file, float32 or float64.

    Samples are read when asked for, and cached while they fit into ``cache_bytes``.
    Windows of a sample share its cached time steps, or are read one by one where all
    samples together would not fit. Each worker process has a cache of its own.

    Args:
        file: Where the samples come from.
        samples: Their numbers, for example ``file.split["train"]``; a sample comes once
            for each of its windows.
        n_in: Number of observed time steps.
        n_out: Number of time steps to predict; 0 for inputs alone.
        mesh: Points that all samples share, a function from a sample to its own, or
            point sets that samples cycle through.
        first_step: Where the window begins; for windows that differ, a number for each
            of ``samples``.
        time_stride: Time steps of the file from one in the window to the next.
        numbers: Numbers of the window's time steps in the file, increasing, in place of
            ``first_step`` and ``time_stride``.
        volumes: Whether items have quadrature weights.
        drop_absent: Whether points at which all values of a window are missing are left
            out of it, unless none would be left.
        cache_bytes: Memory for decoded samples, in bytes.

    Raises:
        UserError: The file has too few time steps or no coefficient for ``n_in`` 0, or
            forcings then; on access, a sample is damaged or infinite, or lacks values
            of the coefficient, of a forcing, or between which others are to be
            interpolated.
        ValueError: A number of time steps is negative.

    Attributes:
        turn: How far samples have cycled through the point sets of ``mesh``.
        noise: Standard deviation of Gaussian noise on each component of ``x``, ``[F]``
            in the units of the data; None for no noise. It depends on the number of
            the sample, that of the window in it and ``turn`` alone.
        pairs: Whether an item is a pair within its window, drawn anew in every turn
            from the same numbers: one target, ``y [n, 1, C]``, and ``n_in`` time steps
            in a row before it. It is equally likely to be 1 to ``n_out`` of them ahead.
    """

    def __init__(
        self,
        file: Fields,
        samples: Sequence[int] | NDArray[np.int64],
        n_in: int,
        n_out: int,
        mesh: Mesh | Callable[[int], Mesh],
        *,
        first_step: int | NDArray[np.int64] = 0,
        time_stride: int = 1,
        numbers: Sequence[int] | NDArray[np.int64] | None = None,
        volumes: bool = False,
        drop_absent: bool = False,
        cache_bytes: int = 2**30,
    ) -> None:
        starts = np.broadcast_to(np.asarray(first_step, np.int64), len(samples))
        first, last = int(np.min(first_step)), int(np.max(first_step))
        if n_in < 0 or n_out < 0 or first < 0 or time_stride < 1:
            raise ValueError(
                f"n_in={n_in}, n_out={n_out}, first_step={first}, "
                f"time_stride={time_stride}: expected at least 0, 0, 0 and 1"
            )
        if numbers is None:
            numbers = time_stride * np.arange(n_in + n_out)
        numbers = np.asarray(numbers, np.int64)
        end = last + int(numbers[-1]) + 1 if len(numbers) else 0
        if end > len(file.times):
            raise UserError(
                f"{n_in} input and {n_out} output time steps, {time_stride} apart, "
                f"from time step {last}",
                f"at most the {len(file.times)} time steps of {file.path}",
                "ask for fewer time steps or use a longer file",
            )
        inputs = file.input_names
        if n_in == 0 and (file.forcing_names or not inputs):
            known = f" with forcings {', '.join(file.forcing_names)}"
            raise UserError(
                f"no input time steps of {file.path}{known * bool(file.forcing_names)}",
                "a coefficient in the file to predict from, and no forcing",
                "ask for at least one input time step",
            )
        self.file = file
        self.samples = [int(sample) for sample in samples]
        self.n_in, self.n_out = n_in, n_out
        self.mesh = mesh
        self.turn = 0
        self.noise: Tensor | None = None
        self.pairs = False
        self.volumes = volumes
        self.drop_absent = drop_absent
        # Numbers of the meshes that are left where points are absent.
        self._left: dict[tuple[int, bytes], int] = {}
        self._starts, self._numbers = starts.tolist(), numbers
        self._starts_of: dict[int, list[int]] = {}
        self._ranks: list[int] = []  # of each window among those of its sample
        for sample, start in zip(self.samples, self._starts, strict=True):
            begun = self._starts_of.setdefault(sample, [])
            self._ranks.append(len(begun))
            begun.append(start)
        self.reader = SampleReader(
            file, inputs=bool(inputs), volumes=volumes, cache_bytes=cache_bytes
        )
        self._whole: bool | None = None

    @property
    def times(self) -> Doubles:
        """Times of the first window, float64 ``[n_in + n_out]``."""
        return self.file.times[self._starts[0] + self._numbers]

    def by_rank(self) -> list[int]:
        """Numbers of all windows: the first one of every sample, then the second ..."""
        return sorted(range(len(self)), key=self._ranks.__getitem__)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, number: int) -> Data:
        sample, start = self.samples[number], self._starts[number]
        numbers = start + (self._pair(number) if self.pairs else self._numbers)
        found, mesh = self._read(number), self._mesh_number(number)
        inside = as_slice(np.searchsorted(found.steps, numbers))
        found = found._replace(u=found.u[:, inside], f=found.f[:, inside])
        if self.drop_absent and self.n_in:
            found, mesh = self._without_absent(found, mesh)
        observed = slice(found.num_observed)
        everywhere = torch.from_numpy(found.u)
        u, a = everywhere[observed], torch.from_numpy(found.a)
        x = u[:, : self.n_in] if self.n_in else a[:, None]
        if self.n_in and self.reader.inputs:
            x = torch.cat([x, a[:, None].expand(-1, self.n_in, -1)], dim=-1)
        if self.noise is not None:
            rank = self._ranks[number]
            seed = derived_seed(sample, self.turn, *[rank] * (rank > 0))
            drawn = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
            if self.n_in:
                drawn[..., u.shape[-1] :] = 0  # static inputs are not measured
            x = x + (self.noise * drawn).to(x)
        # Copies, so that nothing done to an item reaches the cache.
        item = Data(
            x=x.clone(memory_format=torch.contiguous_format),
            y=u[:, self.n_in :].clone(memory_format=torch.contiguous_format),
            pos=torch.from_numpy(found.pos)[observed].clone(),
            mesh=mesh,
            sample=sample,
            times=torch.from_numpy(self.file.times[numbers]),
        )
        if self.file.forcing_names:
            forcing = torch.from_numpy(found.f)
            item.forcing = forcing.clone(memory_format=torch.contiguous_format)
        if self.volumes:
            item.volume = torch.from_numpy(found.volume).clone()
        if found.has_queries:
            item.query_pos = torch.from_numpy(found.pos).clone()
            item.query_y = everywhere[:, self.n_in :].clone()
        return item

    def _pair(self, number: int) -> Indices:
        """Which time steps of a window are a pair of inputs and target in this turn."""
        words = self.samples[number], self.turn, self._ranks[number]
        random = np.random.default_rng(words)
        ahead = int(random.integers(1, self.n_out + 1))
        end = self.n_in + int(random.integers(self.n_out - ahead + 1))
        return self._numbers[[*range(end - self.n_in, end), end + ahead - 1]]

    def _read(self, number: int) -> Sample:
        """What is read for a window: its sample in all windows, or it alone."""
        sample, start = self.samples[number], self._starts[number]
        if self._whole is None:
            self._whole = self._all_fit(number)

        def where() -> tuple[Mesh, Indices]:
            starts = np.array(self._starts_of[sample] if self._whole else [start])
            return self._mesh_of(number), np.unique(starts[:, None] + self._numbers)

        key = sample, self._mesh_number(number), -1 if self._whole else start
        return self.reader.read(sample, key, where)

    def _without_absent(self, found: Sample, mesh: int) -> tuple[Sample, int]:
        """A window without the points that have no value in it, and its mesh."""
        left = found.without_absent()
        if left is found:
            return found, mesh
        there = ~np.isnan(found.u).all(axis=(1, 2))
        key = mesh, np.packbits(there).tobytes()
        return left, self._left.setdefault(key, -1 - len(self._left))

    def _all_fit(self, number: int) -> bool:
        """Whether the windows of all samples fit into the cache, on every mesh."""
        mesh = self._mesh_of(number).with_queries_joined()
        turns = len(self.mesh.meshes) if isinstance(self.mesh, MeshesInTurn) else 1
        spans = (max(starts) - min(starts) for starts in self._starts_of.values())
        steps = sum(spans) + len(self._starts_of) * len(self._numbers)
        components = self.file.components + len(self.file.forcing_names)
        size = self.file.dtype.itemsize * len(mesh) * components
        return turns * steps * size <= self.reader.cache_bytes

    def _mesh_of(self, number: int) -> Mesh:
        sample = self.samples[number]
        if isinstance(self.mesh, MeshesInTurn):
            return self.mesh(sample + self._ranks[number], self.turn)
        return self.mesh if isinstance(self.mesh, Mesh) else self.mesh(sample)

    def _mesh_number(self, number: int) -> int:
        sample = self.samples[number]
        if isinstance(self.mesh, Mesh):
            return 0
        if isinstance(self.mesh, MeshesInTurn):
            return self.mesh.number(sample + self._ranks[number], self.turn)
        if isinstance(self.mesh, MeshOfFile):
            return self.file.mesh_id(sample)
        return sample
