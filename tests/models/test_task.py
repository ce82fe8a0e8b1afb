"""What a model maps, as a checkpoint stores it."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from nfsgeo.geometry import Domain, Region
from nfsgeo.models import Task

SQUARE = Region.polygons([[[0.3, 0.3], [0.4, 0.3], [0.4, 0.4], [0.3, 0.4]]])


def task(**changes: Any) -> Task:
    chosen: dict[str, Any] = {"domain": Domain((0, -1), (2, 1), (True, False), SQUARE)}
    chosen |= {"components": ("T", "p"), "units": {"T": "K"}}
    chosen |= {"static": ("height",), "scalars": ("nu",), "forcings": ("sun",)}
    chosen |= {"mean": (1 / 3, 1013.0), "std": (1.0, 0.0)}
    chosen |= {"n_in": 2, "n_out": 3, "times": (-0.1, 0.0, 0.1, 0.2, 0.3)}
    return Task(**(chosen | {"num_points": 7, "fingerprint": "abc"} | changes))


def test_the_same_facts_are_the_same_task_also_from_a_checkpoint():
    stored = json.loads(json.dumps(task().model_dump(mode="json")))
    assert Task.model_validate(stored) == task()


@pytest.mark.parametrize(
    "change",
    [{"domain": Domain((0, -1), (2, 1), (True, False))}, {"components": ("p", "T")}]
    + [{"units": {"T": "°C"}}, {"times": (-0.1, 0.0, 0.1, 0.2, 0.4)}, {"n_out": 2}]
    + [{"forcings": ()}, {"any_time": True}, {"fingerprint": "abd"}],
)
def test_another_fact_makes_another_task(change):
    assert task(**change) != task()


def test_facts_have_no_other_names():
    with pytest.raises(ValidationError, match="n_inputs"):
        task(n_inputs=3)


def test_inputs_are_fields_static_inputs_and_scalars():
    assert task().num_inputs == 4 and task().problem().in_components == 4
    steady = task(n_in=0, n_out=1, times=(0.0,))
    assert steady.num_inputs == 2 and not steady.has_time
    assert steady.problem().n_in == 1 and steady.step == 0
    assert task().step == pytest.approx(0.1)
    assert task().statistics == {"mean": (1 / 3, 1013.0), "std": (1.0, 0.0)}
    assert task(components=("T",)).statistics == {}
