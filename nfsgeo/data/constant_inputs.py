"""Inputs of one value in each sample, as scalars or as static inputs."""

from __future__ import annotations

import numpy as np
from xarray import Variable

from nfsgeo.data.conventions import KNOWN, STATIC
from nfsgeo.data.fields import Fields
from nfsgeo.data.lazy import spread

__all__ = ["as_scalar", "as_static", "constant_of"]


def constant_of(fields: Fields, name: str, sample: int) -> float:
    """Return the value of an input in a sample, NaN where it differs between points."""
    if name in fields.scalar_names:
        return float(fields.parameters[name][sample])
    values = fields.read_values([name], sample)
    return float(values.flat[0]) if (values == values.flat[0]).all() else np.nan


def as_scalar(fields: Fields, name: str) -> Fields | None:
    """Return fields whose static input ``name`` is one number for each sample.

    None where it differs between the points of a sample.
    """
    stored = fields.dataset[name].variable
    values = np.empty(fields.num_samples)
    for sample in range(fields.num_samples):
        values[sample] = constant_of(fields, name, sample)
        if np.isnan(values[sample]):
            return None
    about = stored.attrs | {"role": KNOWN}
    scalar = Variable("sample", values.astype(stored.dtype), about)
    return fields.with_dataset(fields.dataset.assign({name: scalar}))


def as_static(fields: Fields, name: str) -> Fields:
    """Return fields whose number ``name`` of each sample is a static input."""
    values, sizes = fields.dataset[name].variable, fields.dataset.sizes
    if "obs" in fields.places:
        numbers = np.repeat(values.values, fields.dataset["row_size"].values)
        static = Variable("obs", numbers)
    else:
        whole = {dim: sizes[dim] for dim in ("sample", *fields.places)}
        static = spread(values, whole)
    static.attrs = values.attrs | {"role": STATIC}
    return fields.with_dataset(fields.dataset.assign({name: static}))
