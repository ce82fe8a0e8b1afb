"""Samples that are in two parts of the data, and points that share their place."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas

from nfsgeo.data.conventions import Indices
from nfsgeo.data.fields import Fields
from nfsgeo.geometry.box import ROUNDING

__all__ = ["warn_of_copies", "warn_of_shared_places"]

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
            text = "%s: %d of the %d samples of %s are samples of %s as well, so that "
            text += "errors on them say little of new ones; leave out the copies"
            logger.warning(text, fields.path, num, len(parts[other]), other, one)


def warn_of_shared_places(fields: Fields, sample: int) -> None:
    """Warn of points at one place whose values differ.

    Both ends of a periodic axis are one place.

    Args:
        fields: The fields.
        sample: Number of the sample whose points and values are compared.
    """
    if fields.axes is not None:  # whose coordinates increase along each axis
        return
    points, domain = fields.coordinates(sample), fields.domain
    places, lower, lengths = points.copy(), domain.lower, np.array(domain.lengths)
    from_end = (points - lower + lengths / 2) % lengths - lengths / 2
    at_end = np.array(domain.periodic) & (np.abs(from_end) <= ROUNDING * lengths)
    places[at_end] = np.broadcast_to(lower, places.shape)[at_end]
    shared = np.flatnonzero(pandas.DataFrame(places).duplicated(keep=False))
    if not len(shared):
        return
    values = fields.read(sample, slice(None), shared).reshape(len(shared), -1)
    by_place = pandas.DataFrame(values).groupby([*places[shared].T])
    differ = ((by_place.max() - by_place.min()) > 0).any(axis=1)
    odd = [*differ.index[differ]]
    if odd:
        ends = ", with both ends of a periodic axis as one place" * bool(at_end.any())
        text = "%s: %d places have several points with different values%s, such as %s; "
        text += "models interpolate the mean; leave points out that should be one"
        place = [float(x) for x in np.atleast_1d(odd[0])]
        logger.warning(text, fields.path, len(odd), ends, place)


def _digest(fields: Fields, sample: int, steps: slice) -> bytes:
    """Return a digest of the fields, and with all time steps of the inputs as well."""
    digest = hashlib.blake2b(fields.read_all(sample, steps).tobytes(), digest_size=16)
    if steps == slice(None):
        digest.update(fields.read_inputs(sample).tobytes())
    return digest.digest()
