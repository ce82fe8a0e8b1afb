"""Runs on meshes with types of points: a wall, an inflow, an outflow."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nfsgeo
from nfsgeo.data.fields import NODE_TYPE
from nfsgeo.errors import UserError
from nfsgeo.evaluation.export import program_inputs
from nfsgeo.forecast import rollout
from nfsgeo.forecast.transforms import Categories
from nfsgeo.training import RunPaths

SIZES = {"data.n_in": 3, "data.n_out": 2, "trainer.epochs": 1}


@pytest.fixture(scope="module")
def run(around_bodies: Any, tiny: Any, tmp_path_factory: Any) -> RunPaths:
    folder = tmp_path_factory.mktemp("bodies")
    data = around_bodies().write(folder / "a.nc")
    return nfsgeo.fit(nfsgeo.prepare(data, tiny | SIZES), folder / "run")


def with_types(fields: nfsgeo.Fields, old: int, new: int) -> nfsgeo.Fields:
    """The fields with another number of a type."""
    types = fields.dataset[NODE_TYPE]
    values = np.where(types.values == old, new, types.values)
    return fields._changed(fields.dataset.assign({NODE_TYPE: types.copy(data=values)}))


def test_types_are_indicators_of_a_run(run, around_bodies):
    forecaster = nfsgeo.load(run)
    kinds = forecaster.find(Categories)
    assert kinds is not None and kinds.settings["values"] == [[0, 4, 5, 6]]
    assert forecaster.task.static == (NODE_TYPE,)
    # Two fields, and four indicators in place of one number.
    assert forecaster.model.problem.in_components == 6
    assert nfsgeo.evaluate(run)["test"]["mae"] > 0
    predicted = nfsgeo.predict(run, around_bodies(3), Path("p.nc"), steps=5)
    assert len(predicted.times) == 5 and predicted.num_samples == 3


def test_types_that_training_has_not_seen_are_refused_in_a_line(run, around_bodies):
    other = with_types(around_bodies(3), 5, 7)
    with pytest.raises(UserError, match="node_type of 7, which .* one of 0, 4, 5, 6"):
        nfsgeo.predict(run, other, Path("p.nc"))
    assert not Path("p.nc").exists()
    with pytest.raises(UserError, match="no static input.*1 static input .node_type"):
        nfsgeo.predict(run, around_bodies(3, types=False), Path("p.nc"))


def test_types_in_memory_in_rollouts_and_in_programs(run, around_bodies):
    """The program predicts the same, and the first window of a rollout, too."""
    forecaster, fields = nfsgeo.load(run), around_bodies(2)
    types = torch.from_numpy(fields.read_static(1))[:, None].expand(-1, 3, -1)
    x = torch.cat([torch.from_numpy(fields.read(1, slice(3))), types], -1).float()
    pos = torch.from_numpy(fields.coordinates(1))
    expected = torch.from_numpy(forecaster.predict(x.numpy(), pos.numpy()))
    ahead = rollout(forecaster, x, pos, 5)
    torch.testing.assert_close(ahead[:, :2], expected)
    path = nfsgeo.export(run, Path("program.pt2"))
    program = torch.export.load(path).module()
    found = program(*program_inputs(forecaster, x, pos))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
