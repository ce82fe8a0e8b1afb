"""Batches that carry their graphs, made once for each mesh."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence

from torch.utils.data import DataLoader
from torch_geometric.data import Batch, Data

from nfsgeo.data.windows import WindowDataset
from nfsgeo.geometry import Graphs

__all__ = ["Connect", "ConnectedBatches", "batches"]

# Makes the graphs of one sample from its positions, ``pos [n, d]``, and the keyword
# ``query_pos [m, d]`` where it has query points.
Connect = Callable[..., Graphs]


class ConnectedBatches:
    """Collates items of a :class:`WindowDataset`, and joins the graphs of their meshes.

    A batch holds them as ``graphs``. Those of a mesh, ``item.mesh``, are made once and
    cached while they fit into memory; each process that reads data has its own cache.

    Args:
        connect: Makes the graphs of one sample from its positions.
        max_bytes: Memory for the graphs of single meshes, in bytes.
    """

    def __init__(self, connect: Connect, *, max_bytes: int = 2**30) -> None:
        self.connect, self.max_bytes = connect, max_bytes
        self._known: OrderedDict[Hashable, tuple[Graphs, int]] = OrderedDict()

    def __call__(self, items: Sequence[Data]) -> Batch:
        """The batch of some items."""
        batch = Batch.from_data_list(list(items))
        batch.graphs = Graphs.join([self._graphs(item) for item in items])
        return batch

    def _graphs(self, item: Data) -> Graphs:
        if item.mesh in self._known:
            self._known.move_to_end(item.mesh)
            return self._known[item.mesh][0]
        queries = {"query_pos": item.query_pos} if "query_pos" in item else {}
        graphs = self.connect(item.pos, **queries)
        self._known[item.mesh] = graphs, graphs.nbytes
        while sum(size for _, size in self._known.values()) > self.max_bytes:
            self._known.popitem(last=False)
        return graphs


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
