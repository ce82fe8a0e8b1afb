"""Splits in order, never empty where there are samples enough."""

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

import nfsgeo
from nfsgeo.data.splits import split_in_order


def test_the_papers_counts():
    split = split_in_order(1200)
    assert [len(part) for part in split.values()] == [840, 120, 240]
    assert split["valid"][0] == 840 and split["test"][-1] == 1199


@given(
    st.integers(0, 300),
    st.sampled_from([(0.7, 0.1, 0.2), (0.01, 0.495, 0.495), (0.98, 0.01, 0.01)]),
)
def test_every_sample_once_in_order(num, shares):
    split = split_in_order(num, shares)
    joined = np.concatenate([split["train"], split["valid"], split["test"]])
    np.testing.assert_array_equal(joined, np.arange(num))
    if num >= 3:
        assert all(len(part) for part in split.values())
    else:
        assert len(split["train"]) == num


CODES = {"flag_values": [3, 1, 7, 9], "flag_meanings": "train valid test unused"}


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(
    ("parts", "about"),
    [
        (["test", "train", "valid", "train", "unused"], {}),
        (np.array([2, 0, 1, 0, 3]), {}),
        (np.array([7.0, 3.0, 1.0, 3.0, 9.0]), CODES),
        (np.array([7, 3, 1, 3, 2]), CODES),
        (np.array([2, 0, 1, 0, 4]), {}),
        (["testing", "train", "valid", "train", "train"], {}),
    ],
)
def test_parts_are_read_in_words_and_numbers(tmp_path, one_line, parts, about, own):
    u, pos = np.random.default_rng(0).random((5, 6, 2)), np.arange(12.0).reshape(6, 2)
    fields = nfsgeo.from_arrays(u, pos, [0.0, 1.0])
    dataset = xarray.open_dataset(fields.write(tmp_path / "a.nc")).drop_encoding()
    dataset = dataset.assign(part=("sample", parts, about))
    if not own:
        del dataset.attrs["nfsgeo_layout"]
    path = tmp_path / "b.nc"
    dataset.to_netcdf(path, engine="h5netcdf")
    if "testing" in parts or parts[-1] in (2, 4):
        one_line(nfsgeo.open, path)
        return
    for found in (nfsgeo.open(path), nfsgeo.from_xarray(dataset)):
        split = {name: numbers.tolist() for name, numbers in found.split.items()}
        assert split == {"train": [1, 3], "valid": [2], "test": [0]}
