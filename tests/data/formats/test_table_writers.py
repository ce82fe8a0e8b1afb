"""Tables that are written are read back as what they were."""

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data.build import Array, build
from nfsgeo.data.fields import KNOWN, STATIC, Fields
from nfsgeo.errors import UserError


def cloud(sizes: list[int], steps: int, dim: int, seed: int, **names: Any) -> Fields:
    """Samples on meshes of these sizes, with two fields, a forcing and a static one."""
    random = np.random.default_rng(seed)
    called = {"p": ["p", "q"], "k": ["k"], "sun": ["sun"]} | names

    def drawn(*shape: int) -> list[np.ndarray]:
        return [random.normal(size=(n, *shape)) for n in sizes]

    arrays = [
        Array(drawn(steps, len(called["p"])), "ptc", called["p"]),
        Array(drawn(steps, len(called["sun"])), "ptc", called["sun"], KNOWN),
        Array(drawn(len(called["k"])), "pc", called["k"], STATIC),
    ]
    points = [random.random((n, dim)) for n in sizes]
    times = np.cumsum(random.random(steps) + 0.1)
    return build(Path("cloud"), arrays, points=points, times=times)


@settings(max_examples=25)
@given(
    ending=st.sampled_from([".csv", ".parquet"]),
    sizes=st.lists(st.integers(2, 7), min_size=1, max_size=4),
    steps=st.integers(1, 3),
    dim=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_out_and_in_again(tmp_path, ending, sizes, steps, dim, seed):
    first, out = cloud(sizes, steps, dim, seed), tmp_path / f"a{ending}"
    out.unlink(missing_ok=True)
    with nfsgeo.data.open(first.write(out)) as last:
        assert last.component_names == ["p", "q"] and last.static_names == ["k"]
        assert last.forcing_names == ["sun"]
        np.testing.assert_array_equal(last.times, first.times)
        for sample in range(len(sizes)):
            order = np.lexsort(first.coordinates(sample).T[::-1])
            for read in (
                lambda f, s=sample: f.coordinates(s),
                lambda f, s=sample: f.read_static(s),
                lambda f, s=sample: f.read_all(s, slice(None)),
            ):
                np.testing.assert_array_equal(read(first)[order], read(last))
    assert not list(tmp_path.glob("*partial*"))


TRICKY = "a a_ a_k a_a_k forcing_ forcing_sun T lat a/b p,q a;b;c;d;e # 1 p_0 k nan"
NAMES = st.sampled_from([*TRICKY.split(), " p", "", "'p\"", "p\nq", "p [m/s]"])
NAMES |= st.text("aà_ p0,;#\"'<&\t\n[](", min_size=1, max_size=4)


@settings(max_examples=100)
@given(
    ending=st.sampled_from([".csv", ".parquet"]),
    names=st.lists(NAMES, min_size=1, max_size=3, unique=True),
    kinds=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    steps=st.integers(1, 2),
)
def test_names_come_back_or_are_refused(tmp_path, ending, names, kinds, steps):
    """Whatever they are: no file is written that is refused or misread later."""
    out = tmp_path / f"a{ending}"
    out.unlink(missing_ok=True)
    fields = names[: max(1, len(names) - sum(kinds))]
    rest = names[len(fields) :]
    k, sun = rest[: kinds[0]], rest[kinds[0] :]
    try:
        first = cloud([3], steps, 2, 0, p=fields, k=k, sun=sun)
    except UserError:
        return  # no names of fields anywhere
    try:
        first.write(out)
    except UserError as error:
        assert "\n" not in str(error) and not out.exists()
        return
    with nfsgeo.data.open(out) as last:
        assert last.component_names == first.component_names
        assert (last.static_names, last.forcing_names) == (k, first.forcing_names)
