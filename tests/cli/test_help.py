"""What the commands say about themselves."""

import re
import shlex
import subprocess
import sys
from operator import attrgetter

import click
import pytest
from click.testing import CliRunner

from nfsgeo.data.meshes import MESH_KINDS
from nfsgeo.training import RunConfig
from nfsgeo_cli import main
from nfsgeo_cli.train import OPTIONS

VERBS = sorted(main.commands)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_shows_an_example_within_80_columns(verb: str) -> None:
    result = CliRunner().invoke(main, [verb, "--help"])
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80
    examples = re.findall(
        r"^ +nfsgeo (.*)$", result.output.partition("Example")[2], re.M
    )
    assert examples
    for example in examples:
        named, *arguments = shlex.split(example)
        assert named == verb
        # Parses and checks every option without running the command.
        with main.commands[verb].make_context(verb, arguments) as context:
            assert context.params is not None


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_explained(verb: str) -> None:
    command = main.commands[verb]
    for parameter in command.get_params(click.Context(command)):
        if parameter.param_type_name == "option":
            assert parameter.help, parameter.name


def test_options_of_train_are_settings_with_their_defaults() -> None:
    text = " ".join(CliRunner().invoke(main, ["train", "--help"]).output.split())
    for name, key in OPTIONS.items():
        default = attrgetter(key)(RunConfig())
        of = text.partition(f"--{name.replace('_', '-')} ")[2].partition(" --")[0]
        assert default in (None, ()) or f"[{default}]" in of
    assert all(name in text for name in (*MESH_KINDS, "bf16-mixed"))


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
