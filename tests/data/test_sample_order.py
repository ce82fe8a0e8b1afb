"""Inputs that only rise or fall with the number of the sample."""

import numpy as np
import pytest

import nfsgeo
from nfsgeo.data.sample_order import warn_of_order

TRAIN = np.arange(14)  # of 20
RISING = np.repeat(np.arange(10.0), 2)  # equal values may follow each other


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("role", ["scalar", "static"])
@pytest.mark.parametrize(
    ("values", "words"),
    [
        (RISING, "rises with the sample number, and training sees only 0 to 6 of"),
        (
            -RISING,
            "falls with the sample number, and training sees only -6 to",
        ),
        (RISING[::-1] * (RISING > 2), None),
        (np.ones(20), None),
        (np.minimum(RISING, 3.0), None),  # training sees all of it
    ],
)
def test_a_line_names_the_input(values, words, role, ragged, caplog):
    random = np.random.default_rng(0)
    pos = [random.random((4 + k * ragged, 2)) for k in range(20)]
    pos = pos if ragged else [pos[0]] * 20
    u, varies = ([random.random(len(xy)) for xy in pos] for _ in range(2))
    inputs = {"varies": varies}
    if role == "static":
        pairs = zip(pos, values, strict=True)
        inputs["speed"] = [np.full(len(xy), v) for xy, v in pairs]
    scalars = {"speed": values} if role == "scalar" else {}
    fields = nfsgeo.from_arrays(u, pos, static=inputs, scalars=scalars)
    warn_of_order(fields, TRAIN)
    assert ("speed " in caplog.text) == (words is not None)
    assert (words or "") in caplog.text and "varies" not in caplog.text
    caplog.clear()
    warn_of_order(fields[random.permutation(20)], TRAIN)
    warn_of_order(fields[:5], TRAIN[:3])  # by chance, perhaps
    assert not caplog.text


@pytest.mark.parametrize("split", [None, [0.7, 0.1, 0.2]])
def test_training_warns_of_the_default_split_alone(split, tiny, caplog):
    u, pos = np.random.default_rng(0).random((20, 9)), np.eye(9, 2)
    pos = pos + np.arange(9.0)[:, None]
    fields = nfsgeo.from_arrays(u, pos, scalars={"speed": RISING})
    settings = {k: v for k, v in tiny.items() if k.startswith("model")}
    nfsgeo.prepare(fields, settings | {"data.split": split})
    assert ("speed rises" in caplog.text) == (split is None)
