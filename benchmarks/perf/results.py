"""Measurements as a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from nfsgeo.report.style import COLOURS, WIDTH, Picture, styled
from nfsgeo.training.artifacts import write_bytes, write_rows
from nfsgeo_benchmarks.perf.entry import Measurement


def as_row(measured: Measurement) -> dict[str, object]:
    """A measurement by column; None where there is no bound or nothing counted."""
    entry, shares = measured.entry, measured.shares
    return {
        "name": entry.name,
        "ratio": measured.ratio,
        "held": entry.bound,
        "memory_ratio": measured.memory_ratio,
        "held_memory": entry.memory_bound,
        "difference": measured.difference,
        "held_difference": entry.agreement,
        "variant_seconds": measured.variant_seconds,
        "reference_seconds": measured.reference_seconds,
        "variant_peak_memory_bytes": measured.variant_memory,
        "reference_peak_memory_bytes": measured.reference_memory,
        "flops": measured.amount.flops,
        "bytes": measured.amount.nbytes,
        "flops_per_second_of_a_product": measured.rates.flops,
        "bytes_per_second_of_a_copy": measured.rates.nbytes,
        "share_of_flops": shares and shares.flops,
        "share_of_bytes": shares and shares.nbytes,
        "clock": entry.clock,
        "repeats": entry.repeats,
        "status": "missed" if measured.missed else "ok",
    }


def write_results(measured: Sequence[Measurement], folder: Path) -> list[Path]:
    """Writes ``results.csv``, ``ratios.png`` and ``roofline.png``.

    Args:
        measured: What was measured, one entry or more.
        folder: Where to; it is made when it does not exist.

    Returns:
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "results.csv"]
    rows = [as_row(each) for each in measured]
    write_rows(written[0], list(rows[0]), rows)
    with styled():
        figures = {"ratios": _ratios(measured)}
        if any(each.shares for each in measured):
            figures["roofline"] = _roofline(measured)
        for name, figure in figures.items():
            written.append(folder / f"{name}.png")
            write_bytes(written[-1], Picture(name, "training", "", figure).png())
    return written


def _ratios(measured: Sequence[Measurement]) -> Figure:
    """A bar for each ratio, and a mark at its bound."""
    figure = Figure((WIDTH, 0.28 * len(measured) + 0.8), layout="constrained")
    ax = figure.subplots()
    rows = np.arange(len(measured))
    ratios = [each.ratio for each in measured]
    bounds = [each.entry.bound or np.nan for each in measured]
    memory = [
        np.nan if each.entry.memory_bound is None else each.memory_ratio
        for each in measured
    ]
    colours = [COLOURS["second" if each.missed else "model"] for each in measured]
    low = 0.5 * np.nanmin([*ratios, *bounds, *memory])
    ax.barh(rows, np.array(ratios) - low, left=low, height=0.55, color=colours)
    ax.plot(bounds, rows, "|", ms=14, mew=2, c=COLOURS["ink"], label="bound")
    ax.plot(memory, rows, "o", ms=4, c=COLOURS["ink"], label="peak memory")
    beside = ax.get_yaxis_transform()
    for row, ratio in enumerate(ratios):
        ax.text(1.02, row, f"{ratio:.2g}", va="center", transform=beside)
    ax.set_xscale("log")
    ax.set_xlim(low, 2 * np.nanmax([*ratios, *bounds, *memory]))
    ax.set_yticks(rows, [each.entry.name for each in measured])
    ax.invert_yaxis()
    ax.set_xlabel("cost of the variant over its reference")
    ax.grid(True, axis="x")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper right")
    return figure


def _roofline(measured: Sequence[Measurement]) -> Figure:
    """Operations per second against operations per byte, under the machine's limits."""
    figure = Figure((WIDTH, 0.7 * WIDTH), layout="constrained")
    ax = figure.subplots()
    counted = [each for each in measured if each.shares]
    intensity = np.array([each.amount.flops / each.amount.nbytes for each in counted])
    reached = np.array([each.amount.flops / each.variant_seconds for each in counted])
    flops = max(each.rates.flops for each in counted)
    nbytes = max(each.rates.nbytes for each in counted)
    ridge = flops / nbytes
    x = np.geomspace(0.5 * intensity.min(), 2 * max(ridge, intensity.max()), 100)
    ax.plot(x, np.minimum(flops, nbytes * x) / 1e9, c=COLOURS["ink"])
    ax.plot(intensity, reached / 1e9, "o", ms=4, c=COLOURS["model"])
    for each, at, height in zip(counted, intensity, reached / 1e9, strict=True):
        ax.annotate(
            each.entry.name,
            (at, height),
            xytext=(4, -3),
            textcoords="offset points",
            fontsize=6,
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("floating-point operations per byte")
    ax.set_ylabel("$10^9$ operations per second")
    ax.grid(True)
    return figure
