"""What a benchmark compares, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

import torch

from nfsgeo.errors import UserError
from nfsgeo_benchmarks.perf.roofline import Amount, Rates

CUDA = "a CUDA device"
# How to install what `pip install NAME` alone does not.
INSTALL = {
    CUDA: "measure where there is one",
    # What it depends on must be compiled, and is not needed here.
    "torch-geometric-temporal": "pip install --no-deps torch-geometric-temporal",
}

# Prepares in a folder that variant and reference share, and returns what is timed. It
# is sent to another process: a function of a module, with functools.partial.
Work = Callable[[Path], Callable[[], object]]


class Times(NamedTuple):
    """Seconds that one repetition took."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Entry:
    """A variant and the reference that its cost is given in.

    Attributes:
        name: Unique; lower case, words joined by hyphens.
        title: What is compared, one line.
        variant: Prepares the variant.
        reference: Prepares the reference, after the variant.
        bound: Largest ratio that is accepted; None to only report the ratio.
        memory_bound: The same for the ratio of peak memory.
        most_memory: Largest peak memory of the variant that is accepted, in bytes.
        agreement: Largest relative difference that is accepted between what a
            repetition of the variant returns, a number, and one of the reference;
            None where they do different things.
        clock: ``wall`` gives the median of paired ratios of wall time. ``cpu``, for
            work of one thread, gives the ratio of the smallest CPU times, which other
            work on the machine disturbs least.
        repeats: Pairs that are timed, after one that is not.
        requires: Packages that it needs besides nfsgeo's own, as they are installed.
        device: Where both create their tensors. On CUDA, memory is that of the device.
    """

    name: str
    title: str
    variant: Work
    reference: Work
    bound: float | None = None
    memory_bound: float | None = None
    most_memory: int | None = None
    agreement: float | None = None
    clock: Literal["wall", "cpu"] = "wall"
    repeats: int = 7
    requires: tuple[str, ...] = ()
    device: Literal["cpu", "cuda"] = "cpu"

    def missing(self) -> list[str]:
        """The packages among ``requires`` that are not installed, and the device."""
        missing = [name for name in self.requires if not _installed(name)]
        if self.device == "cuda" and not torch.cuda.is_available():
            missing.append(CUDA)
        return missing

    def check(self) -> None:
        """Make sure that packages and device are there.

        Raises:
            UserError: One is missing.
        """
        if missing := self.missing():
            raise UserError(
                f"benchmark {self.name} without {' and '.join(missing)}",
                "what it compares, and compares with",
                " && ".join(
                    INSTALL.get(name, f"pip install {name}") for name in missing
                ),
            )

    def ratio(self, variant: Sequence[Times], reference: Sequence[Times]) -> float:
        """Cost of the variant over that of the reference, from paired repetitions."""
        if self.clock == "cpu":
            return min(t.cpu for t in variant) / min(t.cpu for t in reference)
        pairs = zip(variant, reference, strict=True)
        return median(v.wall / r.wall for v, r in pairs)

    def seconds(self, times: Sequence[Times]) -> float:
        """Time of a repetition, as the clock takes it."""
        if self.clock == "cpu":
            return min(t.cpu for t in times)
        return median(t.wall for t in times)


@dataclass(frozen=True)
class Measurement:
    """What an entry measured.

    Attributes:
        entry: What was measured.
        ratio: Cost of the variant over that of the reference.
        variant_seconds, reference_seconds: Of a repetition.
        variant_memory, reference_memory: Peak memory in bytes of the process, or of
            PyTorch on the device, less what was held before the first repetition.
        amount: Work of a repetition of the variant.
        rates: Those of the machine, measured right afterwards in its process.
        difference: Largest relative difference of the returned numbers; None where the
            entry has no bound for it.
    """

    entry: Entry
    ratio: float
    variant_seconds: float
    reference_seconds: float
    variant_memory: int
    reference_memory: int
    amount: Amount
    rates: Rates
    difference: float | None = None

    @property
    def memory_ratio(self) -> float:
        """Peak memory of the variant over that of the reference."""
        return self.variant_memory / max(self.reference_memory, 1)

    @property
    def shares(self) -> Rates | None:
        """Parts of the machine's rates that the variant reaches.

        None where it spends its time on other things than are counted.
        """
        if not self.amount.flops:
            return None
        flops, nbytes = (each / self.variant_seconds for each in self.amount)
        return Rates(flops / self.rates.flops, nbytes / self.rates.nbytes)

    @property
    def missed(self) -> bool:
        """Whether a ratio, the memory or the difference exceeds its bound."""
        entry = self.entry
        pairs = (
            (self.ratio, entry.bound),
            (self.memory_ratio, entry.memory_bound),
            (self.variant_memory, entry.most_memory),
            (self.difference, entry.agreement),
        )
        return any(
            bound is not None and not (value is not None and value <= bound)
            for value, bound in pairs
        )


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
