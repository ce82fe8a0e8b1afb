"""Points in an order that memory is quick in: the same results, for any work."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable

import pytest
import torch

from nfsgeo.geometry import BipartiteGraph, Domain, batch_graphs, bipartite_graph
from nfsgeo.geometry import ordering as ordering_module
from nfsgeo.nn import KernelInterpolation, interpolate
from nfsgeo.nn.arrangement import in_arrangement
from nfsgeo.testing import assert_same


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are put in order however few, and however near, they are."""
    monkeypatch.setattr(ordering_module, "MANY", 1)
    monkeypatch.setattr(ordering_module, "SCATTERED", 0)


@pytest.fixture
def ordered(few_are_many, case) -> BipartiteGraph:
    graph = bipartite_graph(
        case.source,
        case.target,
        0.3,
        case.domain,
        quadrature_weights=torch.rand(len(case.source)),
    )
    assert graph.source_order is not None and graph.target_order is not None
    assert graph.arranged is not graph
    return graph


def without_order(graph: BipartiteGraph) -> BipartiteGraph:
    plain = copy.copy(graph)
    plain.__dict__.pop("_renumbered", None)
    plain.source_order = plain.target_order = None
    plain._offsets = {}
    return plain


@pytest.mark.parametrize("fused", [True, False])
def test_changes_no_result_and_no_gradient(case, kernel, ordered, fused) -> None:
    layer = KernelInterpolation(kernel, fused=fused).double()
    plain = without_order(ordered)
    assert_same(
        lambda x, a: layer(x, case.source, ordered, a),
        lambda x, a: layer(x, case.source, plain, a),
        (case.x, case.features),
        layer.parameters(),
    )


@pytest.mark.parametrize("end", ["source", "target"])
def test_one_end_may_be_in_order_already(case, kernel, ordered, end) -> None:
    layer, half = KernelInterpolation(kernel).double(), without_order(ordered)
    setattr(half, f"{end}_order", getattr(ordered, f"{end}_order"))
    torch.testing.assert_close(
        layer(case.x, case.source, half, case.features),
        layer(case.x, case.source, ordered, case.features),
    )


def test_graphs_of_a_batch_keep_their_orders(case, kernel, ordered) -> None:
    """Those without one, too."""
    layer = KernelInterpolation(kernel).double()
    joined = batch_graphs([without_order(ordered), ordered, ordered])
    assert joined.source_order is not None and joined.target_order is not None
    out = layer(
        case.x.repeat(3, 1, 1),
        case.source.repeat(3, 1),
        joined,
        case.features.repeat(3, 1),
    )
    one = layer(case.x, case.source, without_order(ordered), case.features)
    torch.testing.assert_close(out, one.repeat(3, 1, 1))


def test_arranged_graph_is_sorted_and_whole(ordered) -> None:
    arranged = ordered.arranged
    place = arranged.edge_index[1] * arranged.num_source + arranged.edge_index[0]
    assert (place.diff() > 0).all()
    assert arranged.arranged is arranged
    back = torch.stack(
        [
            ordered.source_order[arranged.edge_index[0]],
            ordered.target_order[arranged.edge_index[1]],
        ]
    )
    assert sorted(back.t().tolist()) == sorted(ordered.edge_index.t().tolist())
    counts = ordered.degree()[ordered.target_order]
    assert torch.equal(arranged.degree(), counts)


def test_graphs_are_freed_when_nothing_holds_them(case, kernel) -> None:
    """At once, not when the collector of cycles comes round."""
    layer = KernelInterpolation(kernel).double()
    graph = bipartite_graph(case.source, case.target, 0.3, case.domain)
    layer(case.x, case.source, graph, case.features)
    known = weakref.ref(graph)
    gc.disable()
    try:
        del graph
        assert known() is None
    finally:
        gc.enable()


def test_base_interpolation_is_the_same(
    few_are_many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With samples that have their own points."""
    domain = Domain.unit(2)
    pos, query = torch.rand(60, 2), torch.rand(40, 2)
    batch, query_batch = torch.arange(60) // 30, torch.arange(40) // 20
    x = torch.randn(60, 2, 3)

    def result() -> torch.Tensor:
        return interpolate(x, pos, query, domain, batch=batch, query_batch=query_batch)

    arranged = result()
    monkeypatch.setattr(ordering_module, "MANY", 100)
    torch.testing.assert_close(result(), arranged)


def test_gradients_have_gradients(ordered, case) -> None:
    along = torch.rand(ordered.num_target, ordered.num_source, dtype=torch.float64)
    assert torch.autograd.gradgradcheck(
        lambda x: in_arrangement(ordered, lambda _, x: along @ x.flatten(1) ** 2, x),
        (case.x.requires_grad_(),),
    )


def test_moves_with_the_graph(ordered, device: torch.device) -> None:
    moved = ordered.to(device)
    for order in (moved.source_order, moved.target_order, moved.arranged.ptr):
        assert order.device.type == device.type


@pytest.mark.slow
@pytest.mark.parametrize("case", [2], ids="{}d".format, indirect=True)
@pytest.mark.parametrize("kernel", ["grouped"], indirect=True)
def test_compiled_layers_leave_the_order_alone(case, kernel, ordered) -> None:
    layer = KernelInterpolation(kernel).double()
    compiled: Callable = torch.compile(layer, backend="eager")
    torch.testing.assert_close(
        compiled(case.x, case.source, ordered, case.features),
        layer(case.x, case.source, ordered, case.features),
    )
