"""Batches that carry their graphs, made once for each mesh."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from torch.utils.data import DataLoader
from torch_geometric.data import Batch, Data

from nfsgeo.data.cache import Cache
from nfsgeo.data.windows import WindowDataset
from nfsgeo.geometry import Graphs

__all__ = ["Connect", "ConnectedBatches", "batches"]

# Makes the graphs of one sample from its positions, ``pos [n, d]``, and the keyword
# ``query_pos [m, d]`` where it has query points.
Connect = Callable[..., Graphs]


class ConnectedBatches:
    """Collates items of a :class:`WindowDataset`, and joins the graphs of their meshes.

    A batch holds them as ``graphs``. Those of a mesh, ``item.mesh``, are made once and
    cached.

    Args:
        connect: Makes the graphs of one sample from its positions.
        max_bytes: Memory for the graphs of single meshes, in bytes.
    """

    def __init__(self, connect: Connect, *, max_bytes: int = 2**30) -> None:
        self.connect, self.cache = connect, Cache(max_bytes)

    def __call__(self, items: Sequence[Data]) -> Batch:
        """The batch of some items."""
        batch = Batch.from_data_list(list(items))
        each = [
            self.cache.get(item.mesh, partial(self._graphs, item)) for item in items
        ]
        batch.graphs = Graphs.join(each)
        return batch

    def _graphs(self, item: Data) -> Graphs:
        queries = {"query_pos": item.query_pos} if "query_pos" in item else {}
        return self.connect(item.pos, **queries)


def batches(
    windows: WindowDataset, batch_size: int, connect: Connect
) -> Iterator[Batch]:
    """All samples of ``windows`` in order, in batches that carry their graphs.

    Args:
        windows: The samples.
        batch_size: Number of samples in a batch.
        connect: Makes the graphs of one sample, see :class:`ConnectedBatches`.
    """
    collate = ConnectedBatches(connect)
    yield from DataLoader(windows, batch_size=batch_size, collate_fn=collate)
