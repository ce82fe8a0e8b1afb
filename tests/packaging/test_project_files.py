"""What pyproject.toml, environment.yml and constraints.txt promise each other."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from nfsgeo import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONDA_NAMES = {
    "torch": "pytorch",
    "torch-geometric": "pytorch_geometric",
    "torch-cluster": "pytorch_cluster",
    "torch-scatter": "pytorch_scatter",
    "matplotlib": "matplotlib-base",
}


def requirements(*extras: str) -> dict[str, Requirement]:
    project = PROJECT["project"]
    lines = list(project["dependencies"])
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return {str(canonicalize_name(r.name)): r for r in map(Requirement, lines)}


def test_every_folder_of_modules_is_listed_as_a_package():
    setuptools, found = PROJECT["tool"]["setuptools"], set()
    for package, folder in setuptools["package-dir"].items():
        for module in (ROOT / folder).rglob("*.py"):
            assert (module.parent / "__init__.py").exists(), module
            below = module.parent.relative_to(ROOT / folder).parts
            found.add(".".join((package, *below)))
    assert sorted(setuptools["packages"]) == sorted(found)


def test_environment_yml_is_in_step_with_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    listed = {}
    *packages, from_pip = environment["dependencies"]
    for entry in packages + from_pip["pip"]:
        if entry != "-e .":
            parts = re.split(r"(?=[<>=])", entry, maxsplit=1)
            listed[parts[0]] = "".join(parts[1:])
    assert listed.pop("python") == PROJECT["project"]["requires-python"]
    assert listed.pop("pip") == ""
    wanted = {
        CONDA_NAMES.get(name, name): str(requirement.specifier)
        for name, requirement in requirements("cluster", "dev").items()
    }
    assert listed == wanted
    assert environment["channels"][0] == "conda-forge"


def test_what_the_readers_need_is_there_when_they_are_tested():
    assert set(requirements("formats")) <= set(requirements("dev"))


@pytest.mark.parametrize("name", sorted(requirements("dev", "docs")))
def test_constraints_pin_what_pyproject_asks_for(name):
    pins: dict[str, str] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if not line.startswith("#"):
            pinned, version = line.split("==")
            pins[str(canonicalize_name(pinned))] = version
    assert pins["torch"] == "2.13.0"
    assert not [pin for pin in pins if pin.startswith(("nvidia", "triton"))]
    assert not [version for version in pins.values() if "+" in version]
    assert requirements("dev", "docs")[name].specifier.contains(pins[name])


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    required = {"cff-version", "message", "title", "authors"}  # of its schema
    assert required <= set(citation) and citation["cff-version"] == "1.2.0"
    assert citation["version"] == __version__ and citation["type"] == "software"
    assert citation["authors"] == PROJECT["project"]["authors"]
    assert citation["license"] == PROJECT["project"]["license"]["text"]
    assert citation["keywords"] == PROJECT["project"]["keywords"]
