"""Samples as PyTorch Geometric graphs of inputs, targets and points; their batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial

import numpy as np
import pandas
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torch_geometric.data import Batch, Data

from nfsgeo.data.cache import Cache
from nfsgeo.data.conventions import Doubles, Indices
from nfsgeo.data.fields import Fields
from nfsgeo.data.meshes import Mesh, MeshBySample, Observation
from nfsgeo.data.samples import Sample, read_sample
from nfsgeo.data.streams import derived_seed
from nfsgeo.errors import UserError
from nfsgeo.geometry import Graphs
from nfsgeo.geometry.cells import cell_edges

__all__ = ["Connect", "ConnectedBatches", "WindowDataset", "batches"]

# Connects one sample: called with its positions, ``pos [n, d]``, and the keywords
# ``query_pos [m, d]``, ``numbers``, ``edge_index`` and ``edge_weight`` where it has
# query points, numbers of points, edges and their weights.
Connect = Callable[..., Graphs]
EDGES = "edge_index", "edge_weight"


class WindowDataset(Dataset[Data]):
    """Windows of time in samples: ``n_in`` observed time steps, ``n_out`` to predict.

    An item is a window of a sample. It holds

    - ``x`` ``[n, n_in, F]``: the observed time steps; ``F`` is ``C`` plus the inputs
      that do not change in time, repeated over time steps and points. For a problem
      without time ``n_in`` is 0 and ``x`` is these inputs alone, ``[n, 1, C_a]``
    - ``y`` ``[n, n_out, C]``: the time steps that follow
    - with forcings in the file, ``forcing`` ``[n, n_in + n_out, C_f]``
    - ``pos`` float64 ``[n, d]``, ``point`` ``[n]``, their numbers in the mesh, and
      ``mesh``, a number that is the same for the same positions
    - ``numbers`` of all points in the file, unless they lie between its points
    - ``sample``, its number in the file, and ``times`` float64 ``[n_in + n_out]``
    - with ``cells``, ``edge_index`` ``[2, E]``: edges of the cells of the sample, where
      it has any and is observed at all of its points
    - with ``graph``, where the file has one, ``edge_index`` ``[2, E]``, those of its
      edges of which both ends are observed, and ``edge_weight`` float64 ``[E]``
    - with ``volumes``, ``volume`` float32 ``[n]``: quadrature weights of mean 1
    - where the mesh has unobserved query points, ``query_pos`` float64 ``[n + m, d]``,
      ``query_point`` and ``query_y`` ``[n + m, n_out, C]``, the observed points first,
      and with static inputs in the file, ``query_static`` ``[n + m, C_s]``;
      ``volume`` is ``[n + m]`` then, 1 at the others

    A field is NaN where it has no value. Values have the precision of the file, float32
    or float64. Samples are read when asked for, and cached: all windows of a sample
    together or, where not all samples would fit, each by itself.

    Args:
        file: The fields.
        samples: Numbers of the samples, for example ``file.split["train"]``; a sample
            comes once for each of its windows.
        n_in: Number of observed time steps.
        n_out: Number of time steps to predict; 0 for inputs alone.
        mesh: Points that all samples share, a function from a sample to its own, or
            point sets that samples cycle through.
        first_step: First time step of the windows, or one for each of ``samples``.
        numbers: Time steps of a window, counted from its first one, increasing; 0, 1,
            ... when None.
        volumes: Whether items have quadrature weights.
        cells: Whether items have the edges of cells; ``mesh`` is a number that is the
            same for the same positions and cells then.
        graph: Whether items have the edges of the graph of the file, likewise.
        drop_absent: Whether points without any value in a window are left out of it,
            unless none would be left.

    Raises:
        UserError: The file has too few time steps or no coefficient for ``n_in`` 0, or
            forcings then; on access, as :func:`~nfsgeo.data.samples.read_sample`.

    Attributes:
        epoch: How far samples have cycled through the point sets of ``mesh``.
        noise: Standard deviation of Gaussian noise on each component of ``x``, ``[F]``
            in the units of the data; None for no noise. It depends on the number of
            the sample, that of the window in it and ``epoch`` alone.
        pairs: Whether an item is a pair within its window, drawn anew in every epoch
            from the same numbers: one target, ``y [n, 1, C]``, and ``n_in`` time steps
            in a row before it. It is equally likely to be 1 to ``n_out`` of them ahead.
    """

    def __init__(
        self,
        file: Fields,
        samples: Sequence[int] | NDArray[np.int64],
        n_in: int,
        n_out: int,
        mesh: Observation | Callable[[int], Mesh],
        *,
        first_step: int | NDArray[np.int64] = 0,
        numbers: Indices | None = None,
        volumes: bool = False,
        cells: bool = False,
        graph: bool = False,
        drop_absent: bool = False,
    ) -> None:
        self._numbers = np.arange(n_in + n_out) if numbers is None else numbers
        last = int(np.max(first_step) + self._numbers.max(initial=-1))
        if last >= len(file.times):
            given = f"{n_in} input and {n_out} output time steps, to number {last}"
            expected = f"at most the {len(file.times)} time steps of {file.path}"
            todo = "ask for fewer time steps or use a longer file"
            raise UserError(given, expected, todo)
        if n_in == 0 and (file.forcing_names or not file.input_names):
            given = " with ".join([str(file.path), *file.forcing_names])
            given = f"no input time steps of {given}"
            expected = "a coefficient to predict from, and nothing known ahead"
            raise UserError(given, expected, "ask for at least one input time step")
        self.file = file
        self.mesh = mesh if isinstance(mesh, Observation) else MeshBySample(mesh)
        self.samples = [int(sample) for sample in samples]
        self.n_in, self.n_out = n_in, n_out
        self.epoch = 0
        self.noise: Tensor | None = None
        self.pairs = False
        self.volumes, self.drop_absent = volumes, drop_absent
        self.cells, self.graph = cells, graph and file.has_graph
        self.cache = Cache(2**30)
        # Numbers of the meshes that are left where points are absent.
        self._left: dict[tuple[int, bytes], int] = {}
        self._starts = np.broadcast_to(np.asarray(first_step, np.int64), len(samples))
        series = pandas.Series(self.samples, dtype=np.int64)
        self._ranks = series.groupby(series).cumcount().to_list()  # in their samples

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
        sample, n_in = self.samples[number], self.n_in
        mesh = self.mesh_number(number, self.epoch)
        numbers = self._pair(number) if self.pairs else self._numbers
        numbers = self._starts[number] + numbers
        read = self._read(number, mesh)
        at = np.searchsorted(read.steps, numbers)
        u, f = np.take(read.u, at, axis=1), np.take(read.f, at, axis=1)
        pos, volume, a, num = read.pos, read.volume, read.a, read.num_observed
        point, index = np.arange(len(pos)), read.numbers
        if self.drop_absent and n_in:
            mask = ~np.isnan(u).all(axis=(1, 2))
            if mask[:num].any() and not mask.all():
                key = mesh, np.packbits(mask).tobytes()
                mesh = self._left.setdefault(key, -1 - len(self._left))
                arrays = (u, a, pos, volume, point)
                u, a, pos, volume, point = (values[mask] for values in arrays)
                f = f[mask[:num]]
                index = None if index is None else index[mask]
                num = len(f)
        # Copies, so that nothing done to an item reaches the cache.
        everywhere, places = torch.from_numpy(u), torch.tensor(pos)
        x, static = everywhere[:num, :n_in], torch.from_numpy(a[:num])[:, None]
        if static.numel() or not n_in:
            x = torch.cat([x, static.expand(-1, n_in, -1)], -1) if n_in else static
        if self.noise is not None:
            x = x + (self.noise * self._drawn(number, x.shape)).to(x)
        item = Data(
            x=x.clone(memory_format=torch.contiguous_format),
            y=everywhere[:num, n_in:].clone(memory_format=torch.contiguous_format),
            pos=places[:num].clone(),
            point=torch.from_numpy(point[:num]),
            mesh=mesh,
            sample=sample,
            times=torch.from_numpy(self.file.times[numbers]),
        )
        if index is not None:
            item.numbers = torch.from_numpy(index)
        if self.file.forcing_names:
            item.forcing = torch.from_numpy(f)
        if self.graph and index is not None:
            item.update(self._graph(sample, item))
        elif (edges := self._edges(sample, item)) is not None:
            item.edge_index = edges
        if self.volumes:
            item.volume = torch.tensor(volume)
        if read.has_queries:
            item.query_pos, item.query_point = places, torch.from_numpy(point)
            item.query_y = everywhere[:, n_in:].clone()
            if names := self.file.static_names:
                item.query_static = torch.tensor(a[:, : len(names)])
        return item

    def _edges(self, sample: int, item: Data) -> Tensor | None:
        """Edges of the cells of a sample; None without any, or if points are left out,
        so that cells do not tell all neighbours.
        """
        if not self.cells or "numbers" not in item:
            return None
        whole = torch.arange(self.file.num_points(sample))
        if not torch.equal(item.numbers[: len(item.pos)], whole):
            return None
        key = "edges", int(self.file.sample_geometry[sample])
        edges = self.cache.get(key, lambda: cell_edges(self.file.cells(sample)))
        return torch.tensor(edges) if edges.size else None

    def _graph(self, sample: int, item: Data) -> dict[str, Tensor]:
        """Edges of the graph of a sample between the observed points, and weights."""
        place = torch.full((self.file.num_points(sample),), -1)
        place[item.numbers[: len(item.pos)]] = torch.arange(len(item.pos))
        edges, weights = self.file.graph(sample)
        index = place[torch.from_numpy(edges)]
        observed = (index >= 0).all(dim=0)
        graph = {EDGES[0]: index[:, observed]}
        if weights is not None:
            graph[EDGES[1]] = torch.from_numpy(weights)[observed]
        return graph

    def _drawn(self, number: int, shape: Sequence[int]) -> Tensor:
        """Standard normal noise on the inputs of a window, none on static ones."""
        sample, rank = self.samples[number], self._ranks[number]
        seed = derived_seed(sample, self.epoch, *[rank] * (rank > 0))
        drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
        if self.n_in:
            drawn[..., self.file.components :] = 0  # static inputs are not measured
        return drawn

    def _pair(self, number: int) -> Indices:
        """Return the time steps of inputs and target of a window in this epoch."""
        words = self.samples[number], self.epoch, self._ranks[number]
        random = np.random.default_rng(words)
        ahead = int(random.integers(1, self.n_out + 1))
        end = self.n_in + int(random.integers(self.n_out - ahead + 1))
        return self._numbers[[*range(end - self.n_in, end), end + ahead - 1]]

    def _read(self, number: int, mesh: int) -> Sample:
        """Read the sample of a window in all of its windows, or in this one alone."""
        sample, start = self.samples[number], int(self._starts[number])
        key = sample, mesh, -1 if self.whole else start
        read: Sample = self.cache.get(key, partial(self._load, number))
        return read

    def _load(self, number: int) -> Sample:
        sample = self.samples[number]
        alike = np.array(self.samples) == sample if self.whole else [number]
        steps = np.unique(self._starts[alike][:, None] + self._numbers)
        mesh = self._mesh_of(number)
        return read_sample(self.file, sample, mesh, steps, volumes=self.volumes)

    @cached_property
    def whole(self) -> bool:
        """Return whether windows of all samples on all meshes fit into the cache."""
        points = len(self._mesh_of(0).with_queries_joined())
        steps = len(np.unique(self._starts[:, None] + self._numbers))
        values = points * steps * (self.file.components + len(self.file.forcing_names))
        samples = self.mesh.period * len(set(self.samples))
        return samples * values * self.file.dtype.itemsize <= self.cache.max_bytes

    def _mesh_of(self, number: int) -> Mesh:
        return self.mesh(self.samples[number], self.epoch + self._ranks[number])

    def mesh_number(self, number: int, epoch: int) -> int:
        """Return a number that only equal points, and edges if any, share.

        Args:
            number: Number of the window.
            epoch: The epoch.
        """
        sample, epoch = self.samples[number], epoch + self._ranks[number]
        mesh, edges = self.mesh.number(sample, epoch), self.file.sample_geometry
        if not (self.cells or self.graph):
            return mesh
        return mesh * int(edges.max() + 1) + int(edges[sample])


class ConnectedBatches:
    """Collates items of a :class:`WindowDataset`, and joins the graphs of their meshes.

    A batch holds them as ``graphs``. Those of a mesh, ``item.mesh``, are made once by
    ``connect``, and cached in ``max_bytes`` of memory.
    """

    def __init__(self, connect: Connect, *, max_bytes: int = 2**30) -> None:
        self.connect, self.cache = connect, Cache(max_bytes)

    def __call__(self, items: Sequence[Data]) -> Batch:
        """The batch of some items."""
        # Edges are in the graphs.
        batch = Batch.from_data_list(list(items), exclude_keys=[*EDGES])
        batch.graphs = Graphs.join(
            [self.cache.get(item.mesh, partial(self._graphs, item)) for item in items]
        )
        return batch

    def _graphs(self, item: Data) -> Graphs:
        keys = ("query_pos", "numbers", *EDGES)
        return self.connect(item.pos, **{key: item[key] for key in keys if key in item})


def batches(windows: WindowDataset, size: int, connect: Connect) -> Iterator[Batch]:
    """All windows in order, in batches of a size that carry their graphs."""
    collate = ConnectedBatches(connect)
    yield from DataLoader(windows, batch_size=size, collate_fn=collate)
