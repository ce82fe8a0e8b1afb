"""What the commands say about themselves."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from nfsgeo.data.meshes import MESH_KINDS
from nfsgeo_cli import main

VERBS = sorted(main.commands)


def test_the_verbs() -> None:
    assert set(VERBS) >= {
        "train",
        "evaluate",
        "predict",
        "generate",
        "convert",
        "info",
        "models",
        "datasets",
        "plot",
    }


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_shows_an_example_within_80_columns(verb: str) -> None:
    result = CliRunner().invoke(main, [verb, "--help"])
    assert result.exit_code == 0
    example = result.output.partition("Example")[2]
    assert f"nfsgeo {verb} " in example
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_explained(verb: str) -> None:
    command = main.commands[verb]
    for parameter in command.get_params(click.Context(command)):
        if parameter.param_type_name == "option":
            assert parameter.help, parameter.name


def test_help_does_not_wait_for_torch() -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from nfsgeo_cli import main\n"
        "result = CliRunner().invoke(main, ['--help'])\n"
        "assert result.exit_code == 0, result.output\n"
        "slow = {'torch', 'lightning', 'numpy', 'h5py', 'rich'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_kind_of_mesh_is_named() -> None:
    text = CliRunner().invoke(main, ["train", "--help"]).output
    assert all(name in text for name in MESH_KINDS)
