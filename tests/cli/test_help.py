"""What the commands say about themselves."""

import inspect
import re
import shlex
import subprocess
import sys
from operator import attrgetter
from typing import get_type_hints

import click
import pytest
from click.testing import CliRunner

import nfsgeo.data
from nfsgeo.data.generation import generate
from nfsgeo.data.meshes import MESH_KINDS
from nfsgeo.errors import columns_text
from nfsgeo.evaluation import evaluate_run, export_run, predict
from nfsgeo.training import RunConfig, load_config
from nfsgeo_cli import main
from nfsgeo_cli.settings import OPTIONS
from nfsgeo_cli.terminal import COLUMNS

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


def test_many_options_are_in_groups():
    for verb in VERBS:
        command, groups = main.commands[verb], dict[str, list[str]]()
        lines = CliRunner().invoke(main, [verb, "--help"]).output.splitlines()
        for line in lines:
            if re.fullmatch(r"\w.*:", line):
                groups[head := line] = []
            elif groups and (option := re.match(r"  (?:-\w, )?--([\w-]+)", line)):
                groups[head].append(option[1])
        shown = sorted(name for group in groups.values() for name in group)
        options = command.get_params(click.Context(command))
        own = [o for o in options if o.param_type_name == "option"]
        assert len(shown) == len({*shown}) and len(shown) >= len(own)
        assert len(own) < 9 or len(groups) > 1, verb
        if verb == "train":
            assert {"Data:", "Model:", "Training:"} < {*groups}


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
        unset = default is None or default == () or default is False
        assert unset or f"[default: {default}]" in of
    command = main.commands["train"]
    for option in command.get_params(click.Context(command)):
        choices = option.type.choices if isinstance(option.type, click.Choice) else ()
        for choice in choices:
            key = OPTIONS[str(option.name)]
            assert attrgetter(key)(load_config(overrides={key: choice})) == choice
    assert all(name in text for name in (*MESH_KINDS, "bf16-mixed"))


@pytest.mark.parametrize(
    ("verb", "function"),
    [
        ("evaluate", evaluate_run),
        ("predict", predict),
        ("export", export_run),
        ("generate", generate),
        ("info", nfsgeo.data.open),
    ],
)
def test_options_are_arguments_of_the_library_with_their_defaults(verb, function):
    """Only generation has more workers, and options by their names and values."""
    arguments = inspect.signature(function).parameters
    shared = {p.name: p for p in main.commands[verb].params if p.name in arguments}
    assert shared
    for name in shared.keys() - {"workers", "options"}:
        parameter, argument = shared[name], arguments[name]
        kind = get_type_hints(function)[name]
        if isinstance(parameter, click.Option) and not parameter.required:
            default = parameter.to_info_dict()["default"]
            assert (default or None) == (argument.default or None), name
        if isinstance(parameter.type, click.Choice) and "Literal" in str(kind):
            assert all(choice in str(kind) for choice in parameter.type.choices), name


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
        "slow = {'torch', 'lightning', 'numpy', 'h5py', 'rich'}\n"
        f"slow |= {set() if {'train', 'tune'} & {*arguments} else {'pydantic'}}\n"
        "slow &= set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("train --model nfs-v", ["nfs-vit"]),
        ("train --mesh gr", ["grid"]),
        ("bench unseen", ["unseen-meshes"]),
    ],
)
def test_the_shell_completes_names(words, names):
    line = {"COMP_WORDS": f"nfsgeo {words}", "COMP_CWORD": str(len(words.split()))}
    env = {"_NFSGEO_COMPLETE": "bash_complete"} | line
    shown = CliRunner().invoke(main, [], prog_name="nfsgeo", env=env).output
    assert shown.splitlines() == [f"plain,{name}" for name in names]


@pytest.mark.parametrize(
    "columns",
    [{"static": ["elevation", "b c"], "time": "date+hour"}, {"field": ["u:ntp"]}],
)
def test_columns_are_written_as_they_are_read(columns):
    text = columns_text(columns)
    assert COLUMNS.read("--columns", text) == columns
    assert columns_text({"static": ["a,b"]}) is None
