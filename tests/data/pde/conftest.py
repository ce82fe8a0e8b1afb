"""What the tests of several equations need."""

import math
from collections.abc import Callable, Sequence

import pytest


@pytest.fixture(scope="session")
def orders() -> Callable[[Sequence[float]], list[float]]:
    """Orders of convergence of errors, each with half the spacing of the one before."""

    def found(errors: Sequence[float]) -> list[float]:
        pairs = zip(errors, errors[1:], strict=False)
        return [math.log2(coarse / fine) for coarse, fine in pairs]

    return found
