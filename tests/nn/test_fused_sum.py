"""Weights and sums of the learned interpolation in one kernel.

Without a GPU, Triton's interpreter runs it, which must be chosen before anything
imports Triton: ``TRITON_INTERPRET=1 pytest tests/nn/test_fused_sum.py``.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import BipartiteGraph, Domain, bipartite_graph
from nfsgeo.nn import ChannelKernel, EdgeNetwork, KernelInterpolation
from nfsgeo.nn import fused_sum as module
from nfsgeo.nn.fused_sum import fused_sum, fused_sum_reference, fused_sum_runs
from nfsgeo.testing import assert_same

DOMAIN, SOURCES, TARGETS, HIDDEN = Domain.unit(2), 14, 11, 5


@pytest.fixture
def device() -> torch.device:
    """Where the kernel runs."""
    pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET") == "1":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        pytest.skip("neither a CUDA device nor TRITON_INTERPRET=1")
    return torch.device("cuda")


def graph_on(device: torch.device) -> BipartiteGraph:
    torch.manual_seed(0)
    source, target = torch.rand(SOURCES, 2), torch.rand(TARGETS, 2)
    graph = bipartite_graph(source, target, 0.2, DOMAIN)
    assert not graph.transpose.ptr.diff().all(), "a source without an edge"
    return graph.to(device)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("node", [True, False])
@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize(
    ("groups", "of_group", "records", "features"),
    [(2, 4, 2, 3), (3, 1, 5, 2), (1, 1, 1, 4)],
)
def test_equals_weights_and_sums_one_after_the_other(
    device, groups, of_group, records, features, channels_last, node, dtype
):
    graph = graph_on(device)

    def draw(*size: int) -> Tensor:
        return torch.randn(*size, dtype=dtype, device=device)

    base, mean = draw(graph.num_edges), draw(graph.num_edges)
    relative = draw(graph.num_edges, features)
    x = draw(SOURCES, records, groups * of_group)
    network = [draw(HIDDEN, features), draw(HIDDEN), draw(groups, HIDDEN), draw(groups)]
    nodes = [draw(SOURCES, HIDDEN)] if node else []

    def call(function: Any, x: Tensor, *given: Tensor) -> Tensor:
        z, others = (given[0], given[1:]) if node else (None, given)
        if not channels_last:
            # As fields lie on a grid.
            x = x.permute(2, 0, 1).contiguous().permute(1, 2, 0)
        return function(x, relative, z, *others, base, mean, graph)

    assert_same(
        lambda *given: call(fused_sum, *given),
        lambda *given: call(fused_sum_reference, *given),
        [x, *nodes, *network],
    )


def test_gradients_are_those_of_finite_differences(device):
    graph = graph_on(device)

    def draw(*size: int) -> Tensor:
        return torch.randn(*size, dtype=torch.float64, device=device)

    relative, base, mean = draw(graph.num_edges, 3), *draw(2, graph.num_edges)
    leaves = [
        draw(SOURCES, 2, 2),
        draw(SOURCES, HIDDEN),
        draw(HIDDEN, 3),
        draw(HIDDEN),
        draw(1, HIDDEN),
        draw(1),
    ]
    assert torch.autograd.gradcheck(
        lambda x, z, *network: fused_sum(x, relative, z, *network, base, mean, graph),
        [leaf.requires_grad_() for leaf in leaves],
        fast_mode=True,
    )


@pytest.mark.parametrize("bias", [True, False])
def test_the_layer_takes_it(device, monkeypatch, bias):
    calls = []
    runs = "nfsgeo.nn.kernels.fused_sum_runs"
    graph, pos = graph_on(device), torch.rand(SOURCES, 2, device=device)
    network = EdgeNetwork(2, 3, HIDDEN, scale=0.25)
    layer = KernelInterpolation(ChannelKernel(4, network, groups=2), bias=bias)
    layer.to(device)
    inputs = [torch.randn(SOURCES, size, device=device) for size in (8, 3)]

    def interpolated(x: Tensor, features: Tensor) -> Tensor:
        return layer(x.unflatten(1, (2, 4)), pos, graph, features)

    def fused(*given: Tensor) -> Tensor:
        with monkeypatch.context() as patch:
            patch.setattr(runs, lambda *shape: calls.append(shape) or True)
            return interpolated(*given)

    def plain(*given: Tensor) -> Tensor:
        with monkeypatch.context() as patch:
            patch.setattr(runs, lambda *shape: False)
            return interpolated(*given)

    assert_same(fused, plain, inputs, layer.parameters())
    assert len(calls) == 1 and calls[0][1] == 2


def test_low_precision_comes_back_as_from_sparse_products(device, monkeypatch):
    graph, pos = graph_on(device), torch.rand(SOURCES, 2, device=device)
    kernel = ChannelKernel(4, EdgeNetwork(2, 0, HIDDEN, scale=0.25))
    layer = KernelInterpolation(kernel).to(device)
    x = torch.randn(SOURCES, 2, 4, device=device)
    results = []
    for runs in (True, False):
        monkeypatch.setattr("nfsgeo.nn.kernels.fused_sum_runs", lambda *_, on=runs: on)
        with torch.autocast(device.type, torch.bfloat16):
            results.append(layer(x.bfloat16(), pos, graph))
    assert results[0].dtype == results[1].dtype
    torch.testing.assert_close(*results, rtol=2e-2, atol=2e-2)


def test_the_kernel_checks_itself(device):
    module._check_kernel(device)


@pytest.mark.parametrize("factor", [1.01, float("nan")])
def test_a_wrong_kernel_is_found_out(monkeypatch, factor):
    """In its values, and in its gradients alone."""
    plain = fused_sum_reference

    class WrongGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return factor * grad

    cpu = torch.device("cpu")
    monkeypatch.setattr(module, "fused_sum", plain)
    module._check_kernel(cpu)
    monkeypatch.setattr(module, "fused_sum", lambda *given: factor * plain(*given))
    with pytest.raises(ArithmeticError, match=r"differs from the reference"):
        module._check_kernel(cpu)
    monkeypatch.setattr(
        module,
        "fused_sum",
        lambda x, *given: plain(WrongGradient.apply(x), *given),
    )
    with pytest.raises(ArithmeticError, match=r"differs from the reference"):
        module._check_kernel(cpu)


COMPILE = """
import sys
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from nfsgeo.nn.triton_kernels import sum_backward, sum_forward

sizes = dict(FEATURES=3, HIDDEN=16, GROUPS=8, OF_GROUP=4, STEPS=10, K=4, H=16, R=8)
sizes |= dict(Q=64, HAS_NODE=True, STEPS_LAST=True)
integers = dict(ptr="*i32", column="*i32", order="*i64", num_source="i32")
for kernel in (sum_forward, sum_backward):
    jitted = kernel.fn
    types = dict.fromkeys(jitted.arg_names, "*fp32") | dict.fromkeys(sizes, "constexpr")
    types |= {n: "i32" for n in jitted.arg_names if n.endswith(("_n", "_t", "_c"))}
    types |= {n: t for n, t in integers.items() if n in types}
    for config in kernel.configs:
        target = GPUTarget("cuda", int(sys.argv[1]), 32)
        options = {"num_warps": config.num_warps}
        binary = compile(ASTSource(jitted, types, sizes), target, options).asm["cubin"]
        print(jitted.__name__, config.num_warps, len(binary))
"""


@pytest.mark.parametrize("capability", [80, 90])
def test_compiles_for_gpus(capability, tmp_path, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    lines = subprocess.run(
        [sys.executable, "-c", COMPILE, str(capability)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert len(lines) == 8 and all(int(line.split()[2]) > 1000 for line in lines)


class OnCuda:
    """A field that says it is on a GPU."""

    is_cuda = True
    device = torch.device("cuda", 0)

    def __init__(self, *shape: int) -> None:
        self.size = shape.__getitem__


def test_where_it_runs(monkeypatch, caplog):
    def fails(device: torch.device) -> None:
        raise RuntimeError("no assembler")

    graph = graph_on(torch.device("cpu"))

    def runs(*shape: int, graph: BipartiteGraph = graph) -> bool:
        return fused_sum_runs(OnCuda(*shape), 8, graph)

    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: object())
    monkeypatch.delenv("NFSGEO_TRITON", raising=False)
    monkeypatch.setattr(module, "_check_kernel", lambda device: None)
    module._triton_works.cache_clear()
    try:
        assert not fused_sum_runs(torch.empty(9, 10, 32), 8, graph)
        assert runs(9, 10, 32)
        # More than registers hold, and more than 32 bits count.
        assert not runs(9, 1000, 32)
        assert not runs(9, 10, 32, graph=replace(graph, num_target=2**24))
        monkeypatch.setenv("NFSGEO_TRITON", "0")
        assert not runs(9, 10, 32)
        monkeypatch.delenv("NFSGEO_TRITON")

        module._triton_works.cache_clear()
        monkeypatch.setattr(module, "_check_kernel", fails)
        with caplog.at_level(logging.WARNING, logger="nfsgeo"):
            assert not runs(9, 10, 32)
            assert not runs(9, 10, 32)
        assert caplog.text.count("no assembler") == 1

        module._triton_works.cache_clear()
        monkeypatch.setenv("NFSGEO_TRITON", "1")  # unchecked
        assert runs(9, 10, 32)
        monkeypatch.delenv("NFSGEO_TRITON")

        module._triton_works.cache_clear()
        monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
        assert not runs(9, 10, 32)
    finally:
        module._triton_works.cache_clear()
