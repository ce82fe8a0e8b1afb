"""Exported programs against the models that they come from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import nfsgeo
from nfsgeo.errors import UserError
from nfsgeo.evaluation import export_run, program_inputs
from nfsgeo.training import Forecaster


@pytest.fixture(scope="module")
def exported(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("exported") / "waves.pt2"
    assert nfsgeo.export(trained, target) == target
    return target


@pytest.fixture(scope="module")
def forecaster(trained: Path) -> Forecaster:
    return nfsgeo.load(trained)


@pytest.mark.slow
@pytest.mark.parametrize("num_points", [64, 40, 333])
@pytest.mark.parametrize("num_queries", [None, 51])
def test_equals_the_model_on_meshes_of_any_size(
    exported: Path, forecaster: Forecaster, num_points: int, num_queries: int | None
) -> None:
    torch.manual_seed(0)
    program = torch.export.load(exported).module()
    x, pos = torch.randn(num_points, 10, 1), torch.rand(num_points, 2)
    query_pos = None if num_queries is None else torch.rand(num_queries, 2)
    with torch.no_grad():
        found = program(*program_inputs(forecaster, x, pos, query_pos))
        expected = forecaster(x, pos, query_pos=query_pos)
    assert expected.shape == (num_queries or num_points, 10, 1)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert (expected - expected.mean(0)).abs().mean() > 1e-3


@pytest.mark.slow
def test_never_writes_over_a_file(trained: Path, exported: Path) -> None:
    before = exported.read_bytes()
    with pytest.raises(UserError, match="a file that does not exist"):
        export_run(trained, exported)
    assert exported.read_bytes() == before


def test_names_the_models_that_export(tmp_path: Path, waves: Path):
    settings = {"model.name": "gcgru", "model.settings.width": 4, "trainer.epochs": 1}
    settings |= {"data.n_in": 2, "data.n_out": 2, "trainer.device": "cpu"}
    other = nfsgeo.fit(nfsgeo.prepare(waves, settings), tmp_path / "gcgru")
    with pytest.raises(UserError, match="a run of gcgru.*nfs"):
        export_run(other.root, tmp_path / "no.pt2")
    assert not (tmp_path / "no.pt2").exists()
