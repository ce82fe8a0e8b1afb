"""Digests by which a run recognises its data."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from nfsgeo.data.conventions import DERIVED

if TYPE_CHECKING:
    from nfsgeo.data.fields import Fields

__all__ = ["fingerprint_of", "former_fingerprint_of", "is_fingerprint_of"]

AT_ONCE = 1 << 22  # values that are read at once
FORMER = 16  # digits of the fingerprints of earlier versions


def fingerprint_of(fields: Fields) -> str:
    """Return a digest of parts, times, points, cells, edges, fields and inputs.

    It is of all values, and the same for the same values in any format. Inputs that
    were computed from the mesh do not count, since the source does not hold them.
    """
    return _digest(_source_of(fields))


def is_fingerprint_of(fields: Fields, fingerprint: str) -> bool:
    """Return whether a fingerprint, be it an earlier one, is that of the fields."""
    if len(fingerprint) == FORMER:
        return former_fingerprint_of(fields) == fingerprint
    source = _source_of(fields)
    if _digest(source) == fingerprint:
        return True
    # Earlier versions also counted the inputs that they had computed.
    return source is not fields and _digest(fields) == fingerprint


def _source_of(fields: Fields) -> Fields:
    """The fields without inputs that were computed from the mesh."""
    dataset = fields.dataset
    made = [name for name in fields.static_names if DERIVED in dataset[name].attrs]
    return fields.with_dataset(dataset.drop_vars(made)) if made else fields


def _digest(fields: Fields) -> str:
    """The digest of all values."""
    digest = hashlib.blake2b(fields.times.tobytes(), digest_size=16)
    for part, samples in sorted(fields.split.items()):
        digest.update(part.encode() + samples.astype(np.int64).tobytes())
    digest.update(fields.sample_geometry.tobytes())
    first = set(np.unique(fields.sample_geometry, return_index=True)[1].tolist())
    for sample in range(fields.num_samples):
        if sample in first:
            digest.update(fields.coordinates(sample).tobytes())
            for kind, nodes in sorted(fields.cells(sample).items()):
                digest.update(kind.encode() + nodes.tobytes())
            for array in fields.graph(sample) if fields.has_graph else ():
                digest.update(b"" if array is None else array.tobytes())
        size = fields.num_points(sample) * fields.components
        at_once = max(1, AT_ONCE // size)
        for step in range(0, len(fields.times), at_once):
            values = fields.read_all(sample, slice(step, step + at_once))
            digest.update(values.tobytes())
        digest.update(fields.read_inputs(sample).tobytes())
    return digest.hexdigest()


def former_fingerprint_of(fields: Fields) -> str:
    """Return the fingerprint of earlier versions, of 16 digits.

    It is of the times and of the ends of the first and the last sample.
    """
    digest = hashlib.blake2b(fields.times.tobytes(), digest_size=FORMER // 2)
    for sample in (0, fields.num_samples - 1):
        digest.update(fields.coordinates(sample).tobytes())
        for step in (0, len(fields.times) - 1):
            digest.update(fields.read_all(sample, slice(step, step + 1)).tobytes())
        digest.update(fields.read_inputs(sample).tobytes())
    return digest.hexdigest()
