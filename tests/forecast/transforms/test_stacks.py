"""Random stacks of transforms: targets that went in come out as they were."""

from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nfsgeo.forecast import transforms
from nfsgeo.forecast.transforms import (
    MissingValues,
    ModelInputs,
    Normalise,
    Residual,
    TrainingNoise,
    Transform,
)
from nfsgeo.stations import LinearForecast

C, N_IN, N_OUT, POINTS, QUERIES = 2, 3, 2, 12, 5


def each(low: float, high: float) -> st.SearchStrategy[list[float]]:
    """A number of each component."""
    return st.lists(st.floats(low, high), min_size=C, max_size=C)


@st.composite
def scales(draw: st.DrawFn) -> Transform:
    names = {"mean": each(-1e3, 1e3), "std": each(1e-2, 1e2)}
    names |= {f"out_{name}": values for name, values in names.items()}
    return transforms.Normalise(**{name: draw(of) for name, of in names.items()})


@st.composite
def residuals(draw: st.DrawFn) -> Transform:
    form: Any = draw(st.sampled_from(["residual", "damped", "linear"]))
    std = draw(each(1e-2, 1e2))
    if draw(st.booleans()):
        std[0] = 0.0  # of a component that never changes
    if form == "linear":
        weights = torch.randn(2, N_OUT, N_IN, C).tolist()
        level = draw(st.booleans())
        return LinearForecast(std=std, own=weights[0], regional=weights[1], level=level)
    return transforms.Residual(form=form, mean=draw(each(-9, 9)), std=std)


GAPS = st.builds(
    transforms.MissingValues,
    trend=each(0, 1),
    indicators=st.just(C),
    gaps=st.booleans(),
)
NOISE = st.builds(transforms.TrainingNoise, std=st.floats(0, 1), components=st.just(C))
KINDS = (Normalise, Residual, MissingValues, TrainingNoise)
STACKS = st.lists(
    scales() | residuals() | GAPS | NOISE,
    max_size=5,
    unique_by=lambda made: next(kind for kind in KINDS if isinstance(made, kind)),
)


@settings(deadline=None)
@given(stack=STACKS, gaps=st.booleans(), queries=st.booleans())
def test_outputs_of_targets_are_the_fields(forecaster_of, stack, gaps, queries):
    names = {"components": ("u", "v"), "n_in": N_IN, "n_out": N_OUT}
    forecaster = forecaster_of(lambda x, graphs: x, *stack, **names)
    x, pos = torch.randn(POINTS, N_IN, C).double(), torch.rand(POINTS, 2).double()
    if gaps:
        x[0, 1], x[3] = torch.nan, torch.nan
    query_pos = torch.rand(QUERIES, 2).double() if queries else None
    graphs = forecaster.connect(pos, query_pos=query_pos)
    times = torch.arange(float(N_IN + N_OUT))[None]
    batch, handed_on = ModelInputs(x, graphs, times=times), []
    for transform in stack:
        batch = transform.inputs(batch)
        handed_on.append((transform, batch))
    truth = 100 * torch.randn(QUERIES if queries else POINTS, N_OUT, C).double()
    field = truth
    for transform, batch in handed_on:
        field = transform.targets(field, batch)
    for transform, batch in reversed(handed_on):
        field = transform.outputs(field, batch)
    torch.testing.assert_close(field, truth, rtol=1e-9, atol=1e-7)
