"""MODELS, the exported classes and their signatures agree."""

import inspect

import pytest
import torch

import nfsgeo.models
from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.models import MODELS, NFS, Model, Problem, build_model
from nfsgeo.models.settings import RETIRED

PROBLEM = Problem(Domain.unit(2), 1, 1, 2, 2, 64, (8, 8), True)


def test_every_entry_is_an_exported_class_and_every_class_an_entry():
    each = [getattr(nfsgeo.models, name) for name in nfsgeo.models.__all__]
    classes = [one for one in each if inspect.isclass(one) and issubclass(one, Model)]
    exported = {one for one in classes if not inspect.isabstract(one)}
    assert exported == {*MODELS.values()} and len(exported) == len(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_signatures_show_the_settings(name):
    fields = MODELS[name].Settings.model_fields.items()
    problem, *rest = inspect.signature(MODELS[name]).parameters.values()
    assert problem.name == "problem"
    shown = {each.name: each.default for each in rest}
    assert shown == {key: field.default for key, field in fields}
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in rest)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "gino"])
def test_keywords_an_instance_and_a_name_build_the_same(name):
    model, kind = MODELS[name], MODELS[name].Settings
    small = {"width": 32, "grid": 8, "patch": 2, "depth": 1}
    small = {key: value for key, value in small.items() if key in kind.model_fields}
    made = []
    for make in (
        lambda: model(PROBLEM, **small),
        lambda: build_model(name, PROBLEM, small),
        lambda: build_model(name, PROBLEM, kind(**small)),
    ):
        torch.manual_seed(0)
        made.append(make().eval())
    assert all(type(each) is model for each in made)
    assert all(each.settings == kind(**small).completed(PROBLEM) for each in made)
    pos = equispaced_grid(PROBLEM.domain, (8, 8))
    x = torch.randn(64, 2, 1)
    first, *others = [each(x, pos) for each in made]
    assert all(torch.equal(first, other) for other in others)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [({"widht": 3}, r"NFS\.widht: expected a known key; the nearest is width$")]
    + [({"width": -1}, r"NFS\.width=-1: expected greater than 0; change it$")]
    + [({"grid": 1}, r"NFS\.grid=1: expected greater than or equal to 2; change it$")],
)
def test_a_wrong_keyword_is_one_line(keywords, message, refuses):
    refuses(f"^{message}", NFS, PROBLEM, **keywords)


def test_settings_of_older_versions_may_have_their_defaults(refuses):
    assert NFS(PROBLEM, **RETIRED).settings == NFS(PROBLEM).settings
    refuses(r"NFS\.quadrature: expected a known key", NFS, PROBLEM, quadrature=True)
