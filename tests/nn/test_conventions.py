"""The table of PyTorch Geometric's conventions in the tutorial on pipelines."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.utils import to_torch_csr_tensor

from nfsgeo.nn import BipartiteMessages, ChebConvGRU, DiffusionGRU, KernelInterpolation

POS, X = torch.rand(30, 2), torch.randn(30, 3)
EDGES = torch.randint(30, (2, 90)).unique(dim=1)
WAY = ("a", "to", "a")


def kernel(fused: bool = True) -> nn.Module:
    return KernelInterpolation(3, 8, dim=2, scale=0.3, fused=fused)


def messages(fused: bool = True) -> nn.Module:
    return BipartiteMessages((3, 3), 8, 2, fused=fused)


def chebyshev(fused: bool = True) -> nn.Module:
    return ChebConvGRU(3, 8)


def diffusion(fused: bool = True) -> nn.Module:
    return DiffusionGRU(3, 8)


class Model(nn.Module):
    """A layer in a model of nodes and edges, as PyTorch Geometric's tools take one."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.out = layer, nn.Linear(8, 1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.out(called(self.layer, edge_index, x))


def called(layer: nn.Module, edges: Any, x: Tensor = X) -> Any:
    if isinstance(layer, KernelInterpolation):
        return layer(x, (POS, POS), edges)
    if isinstance(layer, BipartiteMessages):
        return layer((x, x), (POS, POS), edges)
    return layer(x, edges)


def reset(layer: nn.Module) -> None:
    before = [p.detach().clone() for p in layer.parameters()]
    layer.reset_parameters()
    changed = [(p != q).any() for p, q in zip(layer.parameters(), before, strict=True)]
    assert any(changed)


def shown(layer: nn.Module) -> None:
    assert "8" in repr(layer)


def adj_t(layer: nn.Module) -> None:
    matrix = to_torch_csr_tensor(EDGES, size=(30, 30)).t().to_sparse_csr()
    torch.testing.assert_close(called(layer, matrix), called(layer, EDGES))


def hetero(layer: nn.Module) -> None:
    convs = pyg.HeteroConv({WAY: layer})
    takes_positions = isinstance(layer, KernelInterpolation | BipartiteMessages)
    places = [{"a": POS}] * takes_positions
    out = convs({"a": X}, *places, {WAY: EDGES})["a"]
    torch.testing.assert_close(out, called(layer, EDGES))


def sequential(layer: nn.Module) -> None:
    if isinstance(layer, KernelInterpolation | BipartiteMessages):
        model = pyg.Sequential("x, pos, e", [(layer, "x, pos, e -> x"), nn.ReLU()])
        x = (X, X) if isinstance(layer, BipartiteMessages) else X
        assert model(x, (POS, POS), EDGES).shape == (30, 8)
    else:
        model = pyg.Sequential("x, e", [(layer, "x, e -> x"), nn.ReLU()])
        assert model(X, EDGES).shape == (30, 8)


def to_hetero(layer: nn.Module) -> None:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Tensor, pos: Tensor, edge_index: Tensor) -> Tensor:
            if isinstance(self.layer, KernelInterpolation | BipartiteMessages):
                return self.layer(x, pos, edge_index)
            return self.layer(x, edge_index)

    model = pyg.to_hetero(Inner(), (["a"], [WAY]))
    out = model({"a": X}, {"a": POS}, {WAY: EDGES})["a"]
    assert out.shape == (30, 8)


def compiled(layer: nn.Module) -> None:
    model = torch.compile(Model(layer), backend="eager")
    torch.testing.assert_close(model(X, EDGES), Model.forward(model, X, EDGES))


def explain(layer: nn.Module) -> None:
    explainer = Explainer(
        Model(layer),
        GNNExplainer(epochs=2),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={
            "mode": "regression",
            "task_level": "node",
            "return_type": "raw",
        },
    )
    assert explainer(X, EDGES).edge_mask.shape == (EDGES.size(1),)


CHECKS = {
    "reset_parameters": reset,
    "repr": shown,
    "adj_t": adj_t,
    "HeteroConv": hetero,
    "to_hetero": to_hetero,
    "Sequential": sequential,
    "compile": compiled,
    "Explainer": explain,
}
LAYERS = [[kernel], [messages], [chebyshev, diffusion]]
TABLE = Path(__file__).parents[2] / "docs/tutorials/pipelines.md"


def cells() -> list[Any]:
    text = TABLE.read_text()
    table = text[text.index("| convention |") :].partition("\n\n")[0]
    found = []
    for row in table.splitlines()[2:]:
        name, *answers = (cell.strip() for cell in row.strip("|").split("|"))
        (check,) = [key for key in CHECKS if key in name]
        for layers, answer in zip(LAYERS, answers, strict=True):
            marks = [pytest.mark.slow] if check == "compile" else []
            made = [pytest.param(check, each, answer, marks=marks) for each in layers]
            found += made
    assert len(found) == 4 * len(CHECKS)
    return found


@pytest.mark.parametrize(("check", "layer", "answer"), cells())
def test_cells_of_the_table_are_true(check, layer, answer):
    assert re.match("yes|no: ", answer)
    made = layer(fused="fused=False" not in answer)
    if answer.startswith("yes"):
        CHECKS[check](made)
    else:
        with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
            CHECKS[check](made)
    if answer.endswith("`fused=False`"):
        with pytest.raises(ValueError, match="gradients for edges"):
            CHECKS[check](layer())
