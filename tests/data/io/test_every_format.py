"""Every format is recognised, read, converted, and refused in one line when damaged."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo
import nfsgeo.data
from nfsgeo.data.io import FORMATS, FileProbe, Format
from nfsgeo.errors import UserError


def format_of(path: Path) -> Format:
    return next(each for each in FORMATS if each.recognises(FileProbe(path)))


def test_every_format_has_an_example(tmp_path, examples):
    found = set()
    for name, make in examples.items():
        path = tmp_path / f"{len(found)}-{name}" / name
        path.parent.mkdir(exist_ok=True)
        make(path)
        found.add(format_of(path).name)
    read = {each.name for each in FORMATS if each.read and "older" not in each.name}
    assert not read - found, "add an example of each format to conftest.py"


def test_values_are_in_their_places(grid_format, sent):
    path, expected = grid_format
    opened = nfsgeo.data.open(path)
    for file in (opened, sent(opened)):
        assert file.num_samples == len(expected.u)
        np.testing.assert_allclose(file.times, expected.times, rtol=1e-6)
        for found, axis in zip(file.axes, expected.axes, strict=True):
            np.testing.assert_allclose(found, axis, rtol=1e-6, atol=1e-7)
        assert file.domain.periodic == expected.periodic
        dim = len(expected.axes)
        lower, upper = expected.lower or (0.0,) * dim, expected.upper or (1.0,) * dim
        np.testing.assert_allclose(file.domain.lower, lower, atol=1e-7)
        np.testing.assert_allclose(file.domain.upper, upper, rtol=1e-6)
        for sample in (0, 3, 4):
            values = file.read(sample, slice(None)).swapaxes(0, 1)
            whole = values.reshape(expected.u.shape[1:])
            np.testing.assert_array_equal(whole, expected.u[sample])
            last = np.array([file.num_points() - 1, 1])
            some = file.read(sample, slice(0, 1), last)
            width = expected.u.shape[-1]
            flat = expected.u[sample, :1].reshape(-1, width)[last]
            np.testing.assert_array_equal(some[:, 0], flat)
            held = file.read_static(sample).shape[1] > 0
            assert held == (expected.role == "static")
            if expected.a is not None:
                roles = {n: v.attrs.get("role") for n, v in file.dataset.items()}
                names = [name for name, role in roles.items() if role == expected.role]
                found = file.read_values(names, sample)
                found = found.reshape(expected.a.shape[1:])
                np.testing.assert_array_equal(found, expected.a[sample])
        for name, values in expected.parameters.items():
            np.testing.assert_array_equal(file.parameters[name], values)


def test_conversion_keeps_everything(example, contents, tmp_path):
    out = nfsgeo.data.convert(example, tmp_path / "out.nc")
    assert format_of(out) is FORMATS[0]
    with nfsgeo.data.open(example) as a, nfsgeo.data.open(out) as b:
        assert a.domain_is_known == b.domain_is_known
        domain = b.domain if a.domain_is_known else a.domain
        assert contents(a) == contents(b.with_domain(domain))


# Formats whose libraries may crash on bytes that are no longer theirs.
FRAGILE = (b"\x89HDF", b"MATLAB 5.0")


@pytest.mark.slow
@settings(max_examples=30)
@given(data=st.data())
def test_damage_gives_one_line(example, data):
    """A file that is cut off, or in which other bytes are."""
    victims = sorted(each for each in example.parent.rglob("*") if each.is_file())
    victim = data.draw(st.sampled_from(victims))
    raw = victim.read_bytes()
    place = data.draw(st.integers(0, max(0, len(raw) - 1)))
    noise = b"" if raw.startswith(FRAGILE) else data.draw(st.binary(max_size=16))
    rest = raw[place + len(noise) :] if noise else b""
    victim.write_bytes(raw[:place] + noise + rest)
    try:
        read_or_refuse(example)
    finally:
        victim.write_bytes(raw)


def read_or_refuse(path: Path) -> None:
    with suppress(UserError), nfsgeo.data.open(path) as file:
        for sample in range(min(file.num_samples, 5)):
            file.read(sample, slice(None))
            file.read_static(sample)
