"""Samples of one part of the data that are in another one as well."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from itertools import combinations

from nfsgeo.data.conventions import Indices
from nfsgeo.data.fields import Fields

__all__ = ["warn_of_copies"]

logger = logging.getLogger(__name__)


def warn_of_copies(fields: Fields, parts: Mapping[str, Indices]) -> None:
    """Warn of samples whose fields and inputs are those of a sample of another part.

    Samples are compared by a digest of one time step, and those that agree, such as
    flows in a steady state, by one of all time steps.

    Args:
        fields: The fields.
        parts: Numbers of the samples of each part by its name.
    """
    half = len(fields.times) // 2
    rough = {
        int(sample): _digest(fields, int(sample), slice(half, half + 1))
        for numbers in parts.values()
        for sample in numbers
    }
    seen, twice = set[bytes](), set[bytes]()
    for digest in rough.values():
        (twice if digest in seen else seen).add(digest)
    whole = {
        sample: _digest(fields, sample, slice(None))
        for sample, digest in rough.items()
        if digest in twice
    }
    for one, other in combinations(parts, 2):
        first = {whole[int(sample)] for sample in parts[one] if int(sample) in whole}
        num = sum(whole.get(int(sample)) in first for sample in parts[other])
        if num:
            logger.warning(
                "%s: %d of the %d samples of %s are samples of %s as well, so that "
                "errors on them say little of new ones; leave out the copies",
                fields.path,
                num,
                len(parts[other]),
                other,
                one,
            )


def _digest(fields: Fields, sample: int, steps: slice) -> bytes:
    """Return a digest of the fields, and with all time steps of the inputs as well."""
    digest = hashlib.blake2b(fields.read_all(sample, steps).tobytes(), digest_size=16)
    if steps == slice(None):
        digest.update(fields.read_inputs(sample).tobytes())
    return digest.digest()
