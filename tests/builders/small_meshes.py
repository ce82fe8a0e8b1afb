"""Small meshes in files."""

import numpy as np

import nfsgeo.data

TRIANGLES = np.array([[0, 1, 2], [1, 3, 2]])
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], float)
P = np.arange(4.0)


def values(fields: nfsgeo.data.Fields, sample: int = 0) -> np.ndarray:
    """Return the first component of a sample, ``[n, T]``."""
    return fields.read(sample, slice(None))[..., 0]
