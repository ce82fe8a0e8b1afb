"""Kernels in Triton that interpolate in one go: edge weights, gather and sum.

A program has one target, or in the backward pass one source, and walks over its edges.
The weights of an edge are made in registers and used there, so that nothing of the
size of the edges is written. No sum depends on the order in which programs run.
"""

from __future__ import annotations

import os

import triton
import triton.language as tl

__all__ = ["PROGRAMS", "sum_backward", "sum_forward"]

# Programs of the backward pass, each with partial gradients of its own: what keeps a
# large GPU busy.
PROGRAMS = 4096


def _tuned(function):
    """The kernel with as many warps as are quickest on the GPU it runs on."""
    jitted = triton.jit(function)
    # The interpreter has none.
    warps = (1,) if os.environ.get("TRITON_INTERPRET") == "1" else (1, 2, 4, 8)
    configs = [triton.Config({}, num_warps=num) for num in warps]
    return triton.autotune(configs, key=["STEPS", "OF_GROUP", "GROUPS", "HIDDEN"])(
        jitted
    )


@triton.jit
def _network(
    edge_weight,
    edge_bias,
    mix_weight,
    mix_bias,
    k,
    h,
    r,
    FEATURES: tl.constexpr,
    HIDDEN: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """The network's weights, 0 beyond their sizes."""
    part = (h < HIDDEN)[:, None] & (k < FEATURES)[None, :]
    weight = tl.load(edge_weight + h[:, None] * FEATURES + k[None, :], part, other=0.0)
    bias = tl.load(edge_bias + h, mask=h < HIDDEN, other=0.0)
    mixed = (r < GROUPS)[:, None] & (h < HIDDEN)[None, :]
    mix = tl.load(mix_weight + r[:, None] * HIDDEN + h[None, :], mixed, other=0.0)
    mean = tl.load(mix_bias + r, mask=r < GROUPS, other=0.0)
    return weight, bias, mix, mean


@triton.jit
def _of_edge(
    relative,
    node,
    base_weight,
    mean_weight,
    edge,
    source,
    weight,
    bias,
    mix,
    mean,
    k,
    h,
    FEATURES: tl.constexpr,
    HIDDEN: tl.constexpr,
    HAS_NODE: tl.constexpr,
):
    """Weights of an edge, and what their gradients need."""
    known = tl.load(relative + edge * FEATURES + k, mask=k < FEATURES, other=0.0)
    activation = bias + tl.sum(weight * known[None, :], axis=1)
    if HAS_NODE:
        activation += tl.load(node + source * HIDDEN + h, mask=h < HIDDEN, other=0.0)
    # The distribution function of the normal distribution.
    normal = 0.5 * (1.0 + tl.math.erf(activation * 0.7071067811865476))
    learned = mean + tl.sum(mix * (activation * normal)[None, :], axis=1)
    counts = tl.load(mean_weight + edge)
    return (
        tl.load(base_weight + edge) + counts * learned,
        counts,
        known,
        activation,
        normal,
    )


@triton.jit
def _offsets(
    r,
    q,
    stride_t,
    stride_c,
    STEPS: tl.constexpr,
    OF_GROUP: tl.constexpr,
    STEPS_LAST: tl.constexpr,
):
    """Where the numbers of a point lie, a row for each group of channels."""
    if STEPS_LAST:
        step, channel = q % STEPS, q // STEPS
    else:
        step, channel = q // OF_GROUP, q % OF_GROUP
    channels = r[:, None] * OF_GROUP + channel[None, :]
    return channels * stride_c + step[None, :] * stride_t


@_tuned
def sum_forward(
    x,
    x_n,
    x_t,
    x_c,
    out,
    out_n,
    out_t,
    out_c,
    ptr,
    column,
    relative,
    node,
    edge_weight,
    edge_bias,
    mix_weight,
    mix_bias,
    base_weight,
    mean_weight,
    FEATURES: tl.constexpr,
    HIDDEN: tl.constexpr,
    GROUPS: tl.constexpr,
    OF_GROUP: tl.constexpr,
    STEPS: tl.constexpr,
    K: tl.constexpr,
    H: tl.constexpr,
    R: tl.constexpr,
    Q: tl.constexpr,
    HAS_NODE: tl.constexpr,
    STEPS_LAST: tl.constexpr,
):
    """Sums the neighbours of one target; see :func:`~nfsgeo.nn.fused_sum.fused_sum`.

    Args:
        x, out: Fields at sources and targets, with their strides for points, time
            steps and channels: ``x_n``, ``x_t``, ``x_c``, ``out_n``, ...
        ptr, column: The graph's rows of targets.
        relative: Features of every edge.
        node: What every source adds to the hidden layer; not read unless ``HAS_NODE``.
        edge_weight, edge_bias, mix_weight, mix_bias: The network.
        base_weight, mean_weight: Of every edge.
        FEATURES, HIDDEN, GROUPS, OF_GROUP, STEPS: Sizes of these, channels as groups
            times those of a group.
        K, H, R, Q: The powers of 2 that hold features, hidden units, groups, and the
            numbers of a group.
        HAS_NODE: Whether sources add to the hidden layer.
        STEPS_LAST: Whether the time steps of a channel lie closer together in memory
            than the channels of a time step.
    """
    target = tl.program_id(0).to(tl.int64)
    k, h, r, q = tl.arange(0, K), tl.arange(0, H), tl.arange(0, R), tl.arange(0, Q)
    inside = (r < GROUPS)[:, None] & (q < OF_GROUP * STEPS)[None, :]
    network = (edge_weight, edge_bias, mix_weight, mix_bias)
    weight, bias, mix, mean = _network(*network, k, h, r, FEATURES, HIDDEN, GROUPS)
    at = _offsets(r, q, x_t, x_c, STEPS, OF_GROUP, STEPS_LAST)
    total = tl.zeros((R, Q), dtype=weight.dtype)
    for edge in range(tl.load(ptr + target), tl.load(ptr + target + 1)):
        source = tl.load(column + edge).to(tl.int64)
        each, _, _, _, _ = _of_edge(
            relative,
            node,
            base_weight,
            mean_weight,
            tl.cast(edge, tl.int64),
            source,
            weight,
            bias,
            mix,
            mean,
            k,
            h,
            FEATURES,
            HIDDEN,
            HAS_NODE,
        )
        field = tl.load(x + source * x_n + at, mask=inside, other=0.0)
        total += each[:, None] * field.to(weight.dtype)
    at = _offsets(r, q, out_t, out_c, STEPS, OF_GROUP, STEPS_LAST)
    tl.store(out + target * out_n + at, total, mask=inside)


@_tuned
def sum_backward(
    x,
    x_n,
    x_t,
    x_c,
    grad,
    grad_n,
    grad_t,
    grad_c,
    grad_x,
    grad_x_n,
    grad_x_t,
    grad_x_c,
    ptr,
    column,
    order,
    relative,
    node,
    edge_weight,
    edge_bias,
    mix_weight,
    mix_bias,
    base_weight,
    mean_weight,
    grad_node,
    grad_edge_weight,
    grad_edge_bias,
    grad_mix_weight,
    grad_mix_bias,
    num_source,
    FEATURES: tl.constexpr,
    HIDDEN: tl.constexpr,
    GROUPS: tl.constexpr,
    OF_GROUP: tl.constexpr,
    STEPS: tl.constexpr,
    K: tl.constexpr,
    H: tl.constexpr,
    R: tl.constexpr,
    Q: tl.constexpr,
    HAS_NODE: tl.constexpr,
    STEPS_LAST: tl.constexpr,
):
    """All gradients, from the edges of some sources.

    Args:
        x, grad, grad_x: Field at the sources, gradients at the targets and at the
            sources, with their strides: ``x_n``, ``x_t``, ``x_c``, ``grad_n``,
            ``grad_t``, ``grad_c``, ``grad_x_n``, ``grad_x_t``, ``grad_x_c``.
        ptr, column, order: The graph's rows of sources, and the edges in this order.
        relative, ..., mean_weight: As for :func:`sum_forward`.
        grad_node: Written for every source; not without ``HAS_NODE``.
        grad_edge_weight, grad_edge_bias, grad_mix_weight, grad_mix_bias: Partial sums
            are written, one for each program.
        num_source: Number of sources.
        FEATURES, ..., STEPS_LAST: As for :func:`sum_forward`.
    """
    program = tl.program_id(0)
    k, h, r, q = tl.arange(0, K), tl.arange(0, H), tl.arange(0, R), tl.arange(0, Q)
    inside = (r < GROUPS)[:, None] & (q < OF_GROUP * STEPS)[None, :]
    network = (edge_weight, edge_bias, mix_weight, mix_bias)
    weight, bias, mix, mean = _network(*network, k, h, r, FEATURES, HIDDEN, GROUPS)
    at = _offsets(r, q, x_t, x_c, STEPS, OF_GROUP, STEPS_LAST)
    at_grad = _offsets(r, q, grad_t, grad_c, STEPS, OF_GROUP, STEPS_LAST)
    at_grad_x = _offsets(r, q, grad_x_t, grad_x_c, STEPS, OF_GROUP, STEPS_LAST)

    of_weight = tl.zeros((H, K), dtype=weight.dtype)
    of_bias = tl.zeros((H,), dtype=weight.dtype)
    of_mix = tl.zeros((R, H), dtype=weight.dtype)
    of_mean = tl.zeros((R,), dtype=weight.dtype)
    for number in range(program, num_source, tl.num_programs(0)):
        source = tl.cast(number, tl.int64)
        field = tl.load(x + source * x_n + at, mask=inside, other=0.0)
        field = field.to(weight.dtype)
        of_field = tl.zeros((R, Q), dtype=weight.dtype)
        of_source = tl.zeros((H,), dtype=weight.dtype)
        for entry in range(tl.load(ptr + source), tl.load(ptr + source + 1)):
            edge = tl.load(order + entry).to(tl.int64)
            target = tl.load(column + entry).to(tl.int64)
            each, counts, known, activation, normal = _of_edge(
                relative,
                node,
                base_weight,
                mean_weight,
                edge,
                source,
                weight,
                bias,
                mix,
                mean,
                k,
                h,
                FEATURES,
                HIDDEN,
                HAS_NODE,
            )
            given = tl.load(grad + target * grad_n + at_grad, mask=inside, other=0.0)
            given = given.to(weight.dtype)
            of_field += each[:, None] * given
            of_learned = counts * tl.sum(given * field, axis=1)
            of_mean += of_learned
            of_mix += of_learned[:, None] * (activation * normal)[None, :]
            slope = tl.exp(-0.5 * activation * activation) * 0.3989422804014327
            of_activation = tl.sum(mix * of_learned[:, None], axis=0)
            of_activation *= normal + activation * slope
            of_source += of_activation
            of_weight += of_activation[:, None] * known[None, :]
        tl.store(grad_x + source * grad_x_n + at_grad_x, of_field, mask=inside)
        if HAS_NODE:
            tl.store(grad_node + source * HIDDEN + h, of_source, mask=h < HIDDEN)
        of_bias += of_source
    part = (h < HIDDEN)[:, None] & (k < FEATURES)[None, :]
    mixed = (r < GROUPS)[:, None] & (h < HIDDEN)[None, :]
    start = program * HIDDEN * FEATURES
    tl.store(
        grad_edge_weight + start + h[:, None] * FEATURES + k[None, :], of_weight, part
    )
    tl.store(grad_edge_bias + program * HIDDEN + h, of_bias, mask=h < HIDDEN)
    start = program * GROUPS * HIDDEN
    tl.store(grad_mix_weight + start + r[:, None] * HIDDEN + h[None, :], of_mix, mixed)
    tl.store(grad_mix_bias + program * GROUPS + r, of_mean, mask=r < GROUPS)
