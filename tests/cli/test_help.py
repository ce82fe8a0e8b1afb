"""What the commands say about themselves."""

import ast
import inspect
import re
import shlex
import subprocess
import sys
from importlib import import_module
from operator import attrgetter
from typing import Literal, get_type_hints

import click
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from nfsgeo.data.meshes import MESH_KINDS
from nfsgeo.training import RunConfig, load_config
from nfsgeo_cli import main
from nfsgeo_cli.generated import facts, keys
from nfsgeo_cli.train import OPTIONS

VERBS = sorted(main.commands)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_shows_an_example_within_80_columns(verb):
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
def test_every_option_is_explained(verb):
    command = main.commands[verb]
    for parameter in command.get_params(click.Context(command)):
        if parameter.param_type_name == "option":
            assert parameter.help, parameter.name


def test_options_of_train_are_settings_with_their_defaults():
    text = " ".join(CliRunner().invoke(main, ["train", "--help"]).output.split())
    for name, key in OPTIONS.items():
        default = attrgetter(key)(RunConfig())
        of = text.partition(f"--{name.replace('_', '-')} ")[2].partition(" --")[0]
        assert default in (None, ()) or f"[{default}]" in of
    command = main.commands["train"]
    for option in command.get_params(click.Context(command)):
        choices = option.type.choices if isinstance(option.type, click.Choice) else ()
        for choice in choices:
            key = OPTIONS[str(option.name)]
            assert attrgetter(key)(load_config(overrides={key: choice})) == choice
    assert all(name in text for name in (*MESH_KINDS, "bf16-mixed"))


GENERATED = [
    verb for verb in VERBS if "generated" in vars(main.commands[verb].callback)
]


@pytest.mark.parametrize("verb", GENERATED)
def test_options_are_what_the_library_says_once_it_is_imported(verb):
    source, names, chosen = vars(main.commands[verb].callback)["generated"]
    module, _, name = source.rpartition(".")
    for option, key in keys(names).items():
        of, (section, _, key) = (
            getattr(import_module(module), name),
            key.rpartition("."),
        )
        types, default, _ = facts(source, f"{section}.{key}".lstrip("."))
        if name == "RunConfig":
            of = of.model_fields[section].annotation if section else of
            assert default == of.model_fields[key].default
        else:
            assert default == inspect.signature(of).parameters[key].default
        if option in chosen:
            continue
        known = vars(sys.modules[of.__module__]) | {
            "Literal": Literal,
            "NDArray": NDArray,
        }

        class Read:
            it: eval(" | ".join(map(ast.unparse, types)), known)  # noqa: F821

        assert get_type_hints(Read)["it"] == get_type_hints(of)[key]


@pytest.mark.parametrize(
    "arguments",
    [[], *([verb, "--help"] for verb in VERBS), ["train", "--modle", "nfs"]],
)
def test_help_does_not_wait_for_torch(arguments):
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from nfsgeo_cli import main\n"
        f"result = CliRunner().invoke(main, {arguments or ['--help']})\n"
        f"assert result.exit_code == {2 * ('--modle' in arguments)}, result.output\n"
        "slow = {'torch', 'lightning', 'numpy', 'h5py', 'rich'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
