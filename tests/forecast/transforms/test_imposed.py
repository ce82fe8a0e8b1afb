"""Known values take the place of predictions at points of some types."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo
from nfsgeo.errors import UserError
from nfsgeo.forecast import rollout
from nfsgeo.forecast.transforms import (
    Forcings,
    ImposedValues,
    Residual,
    imposed_values,
)


@settings(max_examples=15, deadline=None)
@given(
    types=st.lists(st.integers(0, 6), min_size=1, max_size=3, unique=True),
    steps=st.integers(1, 7),
    forced=st.booleans(),
    seed=st.integers(0, 99),
)
def test_in_every_step_of_a_rollout(forecaster_of, types, steps, forced, seed):
    """Elsewhere each component grows by one in every time step."""
    torch.manual_seed(seed)
    pos, kinds = torch.rand(9, 2), torch.randint(0, 7, (9,))
    components = [[0, 1], [1], [0]][: len(types)]
    settings = {"column": 2, "types": types, "components": components}
    imposed = ImposedValues(**settings, forcings=[-1, 1 if forced else -1])
    add = Residual(form="residual", mean=[0.0, 0.0], std=[1.0, 1.0])
    scale = [Forcings(mean=[0.0, 0.0], std=[1.0, 1.0])] if forced else []
    forecaster = forecaster_of(
        lambda x, graphs: torch.ones(9, 2, 2) * torch.tensor([[1.0], [2.0]]),
        imposed,
        *scale,
        add,
        components=("u", "v"),
        static=("node_type",),
        forcings=("f", "forcing_v")[: 2 * forced],
        n_in=1,
    )
    x = torch.cat([torch.randn(9, 1, 2), kinds[:, None, None].float()], -1)
    known = {"forcing": torch.randn(9, 1 + steps, 2)} if forced else {}
    found = rollout(forecaster, x, pos, steps, **known)
    free = x[..., :2] + torch.arange(1.0, steps + 1)[:, None]
    for point in range(9):
        for c in range(2):
            at = [t for t, of in zip(types, components, strict=True) if c in of]
            wanted = free[point, :, c]
            if int(kinds[point]) in at:
                wanted = x[point, :, c].expand(steps)
                if forced and c == 1:
                    wanted = known["forcing"][point, 1:, 1]
            torch.testing.assert_close(found[point, :, c], wanted)


def test_queries_and_missing_values(forecaster_of):
    """Query points that coincide with an observed one of the type have its value."""
    imposed = ImposedValues(column=1, types=[6], components=[[0]], forcings=[-1])
    forecaster = forecaster_of(
        lambda x, graphs: torch.full((len(graphs.queries), 2, 1), 7.0),
        imposed,
        static=("node_type",),
    )
    pos = torch.tensor([[0.2, 0.2], [0.7, 0.3], [0.5, 0.9]])
    x = torch.tensor([[[1.0, 6.0]], [[2.0, 0.0]], [[torch.nan, 6.0]]])
    queries = torch.cat([pos, torch.tensor([[0.2, 0.21]])])
    found = forecaster(x, pos, query_pos=queries)
    assert found[:, 0, 0].tolist() == [1, 7, 7, 7]
    assert forecaster(x, pos)[:, 1, 0].tolist() == [1, 7, 7]


def test_what_can_be_imposed(around_bodies):
    fields = around_bodies(2)
    found = imposed_values(fields, ["wall", 4], 3)
    assert found == {
        "column": 2,
        "types": [6, 4],
        "components": [[0, 1], [0, 1]],
        "forcings": [-1, -1],
    }
    found = imposed_values(fields, {"6": ["v"]}, 3)
    assert found is not None and found["components"] == [[1]]
    assert imposed_values(fields, [], 3) is None
    for impose, n_in, file, words in (
        (["lid"], 3, fields, "type lid: expected one of normal, in, out, wall"),
        ([9], 3, fields, "type 9: expected one of normal, in, out, wall"),
        ({"wall": ["w"]}, 3, fields, "component w: expected one of u, v"),
        (["wall"], 0, fields, "without input time steps"),
        ([6], 3, around_bodies(2, types=False), "which has no node_type"),
    ):
        with pytest.raises(UserError, match=words) as caught:
            imposed_values(file, impose, n_in)
        assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_run_with_values_that_are_imposed(around_bodies, tiny, tmp_path):
    """They stay as they are in evaluation, prediction and programs."""
    fields = around_bodies()
    chosen = tiny | {"data.n_in": 3, "data.n_out": 2, "trainer.epochs": 1}
    chosen |= {"data.impose": {"wall": ["u"], "in": ["u", "v"]}}
    experiment = nfsgeo.prepare(fields.write(tmp_path / "a.nc"), chosen)
    run = nfsgeo.fit(experiment, tmp_path / "run")
    found = nfsgeo.predict(run, fields, tmp_path / "p.nc", steps=5)
    for sample in range(2):
        u, last = found.read(sample, slice(None)), fields.read(sample, slice(7, 8))
        kinds = fields.read_static(sample)[:, 0]
        for c, fixed in enumerate(((4, 6), (4,))):
            there = np.isin(kinds, fixed)
            expected = np.broadcast_to(last[there, :, c], u[there, :, c].shape)
            np.testing.assert_allclose(u[there, :, c], expected, rtol=1e-6)
            assert (np.abs(u[~there, :, c] - last[~there, :, c]) > 1e-6).any()
    program = torch.export.load(nfsgeo.export(run, tmp_path / "a.pt2")).module()
    forecaster = nfsgeo.load(run)
    types = torch.from_numpy(fields.read_static(1))[:, None].expand(-1, 3, -1)
    x = torch.cat([torch.from_numpy(fields.read(1, slice(3))), types], -1).float()
    pos = torch.from_numpy(fields.coordinates(1))
    given_ = nfsgeo.evaluation.export.program_inputs(forecaster, x, pos)
    torch.testing.assert_close(
        program(*given_), forecaster.predict(x, pos), rtol=1e-3, atol=1e-4
    )
