"""Normalisers: the statistics of all values, one for each component."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nfsgeo.data.normalisers import FieldNormaliser


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1e4]),
)
def test_fit_equals_numpy(sizes: list[int], seed: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    fields = [
        (offset + rng.normal(size=(n, 3, 2)) * [1, 5]).astype(np.float32)
        for n in [*sizes, 7]
    ]
    normaliser = FieldNormaliser.fit(torch.from_numpy(field) for field in fields)
    values = np.concatenate([f.reshape(-1, 2) for f in fields]).astype(np.float64)
    np.testing.assert_allclose(normaliser.mean, values.mean(0), rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(normaliser.std, values.std(0), rtol=2e-6)


def test_normalised_fields_have_unit_scale_on_any_mesh() -> None:
    field = 3 + 0.1 * torch.randn(50, 4, 2, dtype=torch.float64)
    normaliser = FieldNormaliser.fit([field])
    x = normaliser.normalise(field[::2].float())
    assert x.shape == (25, 4, 2) and x.std() < 2
    back = normaliser.denormalise(x)
    torch.testing.assert_close(back.float(), field[::2].float())


def test_a_constant_component_is_only_shifted() -> None:
    field = torch.full((10, 1, 1), 12.0)
    normaliser = FieldNormaliser.fit([field, field])
    assert normaliser.std.item() == 1.0
    assert normaliser.normalise(field).abs().max() == 0
