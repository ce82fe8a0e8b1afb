"""Steady fields in memory, whose arrays have no axis of time."""

from typing import Any

import numpy as np
import pytest

import nfsgeo


@pytest.mark.parametrize("ragged", [False, True])
def test_columns_of_steady_arrays_are_components_if_they_have_names(ragged, one_line):
    random, names = np.random.default_rng(0), ["p", "T"]
    pos = [random.random((5 + k * ragged, 2)) for k in range(3)]
    u, ahead = ([random.random((len(xy), 2)) for xy in pos] for _ in range(2))
    given = (u, pos) if ragged else (np.array(u), pos[0])
    forcing: Any = {"forcing": ahead, "forcing_names": ["f", "g"]}
    for t in (None, [2.0]):
        fields = nfsgeo.from_arrays(*given, t, component_names=names, **forcing)
        assert fields.component_names == names and len(fields.times) == 1
        both = fields.read_all(2, slice(None))[:, 0]
        np.testing.assert_array_equal(both, np.concatenate([u[2], ahead[2]], axis=1))
    for wrong in (None, ["p", "T", "k"]):
        text = one_line(nfsgeo.from_arrays, *given, component_names=wrong)
        assert "[points, 2]" in text
        assert "2 component_names for components, or 2 times t for time steps" in text
    series = nfsgeo.from_arrays(*given, [0.0, 1.0], component_names=["p"])
    assert len(series.times) == 2
