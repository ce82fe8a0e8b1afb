"""Normalisers: the same scale for each component at every point."""

import torch

from nfsgeo.data.normalisers import FieldNormaliser, Moments


def test_normalised_fields_have_unit_scale_on_any_mesh():
    field, moments = 3 + 0.1 * torch.randn(50, 4, 2, dtype=torch.float64), Moments()
    moments.add(field)
    normaliser = FieldNormaliser(moments.mean, moments.scale)
    x = normaliser.normalise(field[::2].float())
    assert x.shape == (25, 4, 2) and 0.5 < x.std() < 2
    back = normaliser.denormalise(x)
    torch.testing.assert_close(back.float(), field[::2].float())


def test_a_constant_component_is_only_shifted():
    moments = Moments()
    moments.add(torch.full((10, 1, 1), 12.0))
    normaliser = FieldNormaliser(moments.mean, moments.scale)
    assert normaliser.std.item() == 1.0
    assert normaliser.normalise(torch.full((3, 1, 1), 12.0)).abs().max() == 0
