"""Batches that carry their graphs, made once for each mesh."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence

from torch.utils.data import DataLoader
from torch_geometric.data import Batch, Data

from nfsgeo.data.datasets import WindowDataset
from nfsgeo.geometry import Graphs

__all__ = ["Connect", "ConnectedBatches", "batches"]

# From the positions of one sample, ``pos [n, d]`` and where it has queries the keyword
# ``query_pos [m, d]``, to what a model needs to know of them.
Connect = Callable[..., Graphs]


class ConnectedBatches:
    """Collates items of a :class:`WindowDataset`, and joins the graphs of their meshes.

    A batch holds them as ``graphs``. A mesh is known by its number, ``item.mesh``; its
    graphs are made when it first comes and kept while they fit into memory, those
    unused for longest going first. Where processes read the data, each keeps its own.

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
        if "query_pos" in item:
            graphs = self.connect(item.pos, query_pos=item.query_pos)
        else:
            graphs = self.connect(item.pos)
        size = graphs.nbytes
        self._known[item.mesh] = graphs, size
        while sum(size for _, size in self._known.values()) > self.max_bytes:
            self._known.popitem(last=False)
        return graphs


def batches(
    windows: WindowDataset, batch_size: int, connect: Connect
) -> Iterator[Batch]:
    """All samples of ``windows`` in order, in batches that carry their graphs.

    Args:
        windows: The samples.
        batch_size: Of them in a batch.
        connect: As :class:`ConnectedBatches` has it.
    """
    collate = ConnectedBatches(connect)
    yield from DataLoader(windows, batch_size=batch_size, collate_fn=collate)
