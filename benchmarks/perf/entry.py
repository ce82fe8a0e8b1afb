"""What a benchmark compares, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

__all__ = ["Entry", "Measurement", "Times", "Work"]

# Prepares in a folder that variant and reference share, and returns what is timed.
# It goes to another process: a function of a module, with functools.partial.
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
        held: Largest ratio that is accepted; None to only report it.
        clock: ``wall`` gives the median of paired ratios of wall time. ``cpu``, for
            work of one thread, gives the ratio of the smallest CPU times, which other
            work on the machine disturbs least.
        repeats: Pairs that are timed, after one that is not.
    """

    name: str
    title: str
    variant: Work
    reference: Work
    held: float | None = None
    clock: Literal["wall", "cpu"] = "wall"
    repeats: int = 7

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
        variant_memory, reference_memory: Peak of the process, in bytes.
    """

    entry: Entry
    ratio: float
    variant_seconds: float
    reference_seconds: float
    variant_memory: int
    reference_memory: int

    @property
    def missed(self) -> bool:
        """Whether the ratio is larger than the one held."""
        return self.entry.held is not None and not self.ratio <= self.entry.held
