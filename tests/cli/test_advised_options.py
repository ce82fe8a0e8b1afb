"""Messages name options that the command at hand has, or a command with its options."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray
from torch_geometric.data import Data

import nfsgeo as library
from nfsgeo.errors import READING, UserError, option
from nfsgeo_cli import main
from nfsgeo_cli.terminal import options_of

RNG = np.random.default_rng(0)
XY = RNG.random((9, 2)).round(3)
COMMANDS = {
    "info": "info {}",
    "plot": "plot {}",
    "convert": "convert {} --out new.nc",
    "train": "train --data {}",
    "tune": "tune --data {} --out tuned",
    "predict": "predict RUN --input {} --output new.nc",
    "evaluate": "evaluate RUN --data {}",
    "calibrate": "calibrate RUN --data {}",
}


def csv(name: str, header: str, *columns: np.ndarray) -> str:
    rows = zip(*columns, strict=True)
    text = "\n".join([header, *(",".join(map(str, row)) for row in rows), ""])
    Path(name).write_text(text)
    return name


def arrays() -> str:
    np.savez("a.npz", u=RNG.random((4, 9)), coords=XY)
    return "a.npz"


def without_times() -> str:
    torch.save([Data(pos=torch.from_numpy(XY), x=torch.rand(9, 5, 1))], "t.pt")
    return "t.pt"


def graphs() -> str:
    points = torch.from_numpy(XY)
    torch.save([Data(pos=points, x=torch.rand(9, 3), y=torch.rand(9, 3))], "g.pt")
    return "g.pt"


def folder() -> str:
    Path("steps").mkdir()
    for k in range(3):
        csv(f"steps/s{k}.csv", "x,y,u", *XY.T, RNG.random(9))
    return "steps"


def times_twice() -> str:
    x, y = np.tile(XY, (3, 1)).T
    days = np.repeat(["2026-01-01", "2026-01-02", "2026-01-03"], 9)
    rows = days, np.repeat([*"789"], 9), x, y, RNG.random(27), np.tile(XY[:, 0], 3)
    return csv("d.csv", "date,hour,x,y,u,height", *rows)


def longitudes() -> str:
    lon, t = np.arange(0, 350, 10.0), np.arange(3.0)
    x, y, times = (v.ravel() for v in np.meshgrid(lon, [0.0, 5.0], t))
    return csv("l.csv", "lon,lat,time,u", x, y, times, RNG.random(x.size))


def no_coordinates() -> str:
    return csv("n.csv", "time,a,b", *RNG.random((3, 9)))


QUESTIONS = (
    *(arrays, without_times, graphs, folder, times_twice, longitudes, no_coordinates),
)


def named(line: str, verb: str) -> dict[str, str]:
    """The command of each option in a message, the last one named or that at hand."""
    found, command = dict[str, str](), verb
    for word in re.findall(r"nfsgeo [a-z]+|(?<![\w-])--[a-z][a-z-]*", line):
        if word.startswith("--"):
            found[word] = command
        else:
            command = word.removeprefix("nfsgeo ")
    return found


@pytest.mark.parametrize("question", QUESTIONS)
def test_commands_name_options_that_they_have(nfsgeo, trained, question):
    source = question()
    for verb, words in COMMANDS.items():
        words = words.replace("RUN", str(trained)).format(source)
        result = nfsgeo(*words.split())
        assert result.exit_code == 2, result.output
        options = named(result.stderr, verb)
        assert options, result.stderr
        for flag, command in options.items():
            of_it = options_of(main.commands[command]).values()
            assert flag in of_it, (verb, result.stderr)
        if verb == "convert":
            assert "nfsgeo convert" not in result.stderr
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", result.stderr)


def test_an_answer_is_said_as_each_reader_gives_it():
    advice = (
        f"say it: {option('columns', 'x=a b,y=c', 'x=c')}, or {option('at', 'cells')}"
    )
    error = UserError("f", "g", advice, source="'a b.csv'")
    own = {"columns": "--columns"}
    other = "nfsgeo convert 'a b.csv' --out NAME.nc --at cells"
    answers = "--columns 'x=a b,y=c', or x=c"
    assert error.told(own).endswith(f"say it: {answers}, or {other}")
    convert = f"nfsgeo convert 'a b.csv' --out NAME.nc {answers}, or --at cells"
    assert error.line.endswith(f"say it: {convert}")
    python = "columns={'x': 'a b', 'y': 'c'}, or {'x': 'c'}, or at='cells'"
    assert str(error).endswith(f"say it: {python}")
    setting = UserError("f", "g", f"try {option('data.split', '[0.8,0.2]')}")
    assert setting.told({"set": "--set"}).endswith("try --set 'data.split=[0.8,0.2]'")
    assert setting.line.endswith("try nfsgeo train --set 'data.split=[0.8,0.2]'")
    assert str(setting).endswith("try data.split=[0.8,0.2]")


def flags() -> str:
    axes = {"x": ("n", XY[:, 0]), "y": ("n", XY[:, 1]), "depth": ("n", XY[:, 0])}
    fields = {"u": (("time", "n"), RNG.random((12, 9)))}
    fields["u_qc"] = ("time", "n"), np.zeros((12, 9), np.int8)
    coordinates = {"coordinates": "x y depth"}
    dataset = xarray.Dataset(fields, {**axes, "time": np.arange(12.0)})
    dataset["u"].encoding = coordinates
    dataset.to_netcdf("f.nc", engine="h5netcdf")
    return "f.nc"


def counts() -> str:
    rows = np.tile(XY, (4, 1)).T
    times = np.repeat(np.arange(4.0), 9)
    return csv("c.csv", "t,x,y,u,code", times, *rows, RNG.random(36), np.full(36, 7.0))


def heights() -> str:
    rows = [
        [k, *xy, xy[0] * 99, t, RNG.random()] for k, xy in enumerate(XY) for t in "123"
    ]
    return csv("h.csv", "station,lon,lat,z,t,u", *np.array(rows).T)


def swapped() -> str:
    points = torch.from_numpy(XY)
    graph = Data(pos=points, x=torch.rand(9, 5, 5), t=torch.arange(5.0))
    torch.save([graph], "s.pt")
    return "s.pt"


@pytest.mark.parametrize("source", [flags, counts, heights, swapped])
def test_lines_of_the_log_name_options_as_errors_do(nfsgeo, trained, source, caplog):
    path = source()
    library.open(path)
    lines = [line for line in caplog.messages if "=" in line]
    assert lines and "--" not in "".join(lines)
    for verb in ("info", "convert", "predict", "evaluate"):
        caplog.clear()
        words = COMMANDS[verb].replace("RUN", str(trained)).format(path)
        nfsgeo(*words.replace("new.nc", f"{verb}.nc").split())
        told = [line for line in caplog.messages if "--" in line]
        assert told
        for line in told:
            for flag, command in named(line, verb).items():
                of_it = options_of(main.commands[command]).values()
                assert flag in of_it, (verb, line)
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", "".join([*lines, *told]))
    with pytest.raises(UserError, match="columns={'x': 'a'}"):  # no command runs
        raise UserError("f", "g", option("columns", "x=a"))


def test_files_are_named_as_the_user_named_them(one_line):
    folder()
    several = [f"steps/s{k}.csv" for k in range(3)]
    for sources in ("steps", several):
        words = shlex.join([sources] if isinstance(sources, str) else sources)
        assert f"nfsgeo convert {words} --out" in one_line(library.open, sources)


def test_columns_may_be_named_by_several_options(nfsgeo):
    rows = np.arange(4.0), XY[:4, 0], XY[:4, 1], RNG.random(4), RNG.random(4)
    source = csv("several.csv", "time,x,y,u,w", *rows)
    first = nfsgeo("info", source, "--columns", "field=u,ignore=w", "--json")
    second = ("--columns", "field=u", "--columns", "ignore=w")
    assert first.stdout == nfsgeo("info", source, *second, "--json").stdout
    twice = nfsgeo("info", source, "--columns", "x=x", "--columns", "x=y")
    assert twice.exit_code == 2 and "x=x,x=y" in twice.stderr


def test_options_that_messages_advise_are_options():
    """Also where no test provokes the message."""
    convert, train, evaluate = (
        options_of(main.commands[verb]) for verb in ("convert", "train", "evaluate")
    )
    assert {*READING} <= convert.keys()
    from nfsgeo.config import RunConfig

    names = set[str]()
    for path in Path(library.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "option":
                assert isinstance(node.args[0], ast.Constant), path
                names.add(node.args[0].value)
    assert len(names) > 9
    for name in names:
        section, _, key = name.rpartition(".")
        if section:
            kind = RunConfig.model_fields[section].annotation
            assert key in kind.model_fields, name
        else:
            assert name in {*convert, *train, *evaluate}, name


def advice_in(code: str) -> Iterator[str]:
    """The source of what messages advise, the last argument of each user error."""
    for node in ast.walk(ast.parse(code)):
        parts = list[ast.AST]()
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "UserError":
            parts = [*node.args[2:]]
        elif isinstance(node, ast.Assign | ast.AugAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            advises = getattr(target, "id", "") in ("todo", "advice", "say")
            parts = [node.value] * advises
        yield from (ast.get_source_segment(code, part) or "" for part in parts)


def test_no_advice_of_shared_code_names_an_option_as_text():
    """Some of the commands that run it may lack the option."""
    package = Path(library.__file__).parent
    own = "(?:--import|nfsgeo [a-z]+ )"  # that all commands have, or of the one named
    raw = re.compile(rf"^(?!.*{own}).*(?<![\w-])--[a-z]", re.S)
    folders = ("data/io", "data/meshes", "forecast", "geometry", "models", "nn")
    paths = (path for name in folders for path in (package / name).rglob("*.py"))
    found = [(p, text) for p in paths for text in advice_in(p.read_text())]
    assert len(found) > 99
    assert not [(path.name, text) for path, text in found if raw.search(text)]


def test_no_line_of_a_reader_names_an_option_as_text():
    """These are lines of logs, too; what was given may be quoted as it was."""
    raw = re.compile(f"--({'|'.join(READING)})".replace("_", "-") + r"\b")
    for path in (Path(library.__file__).parent / "data").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            text = str(node.value) if isinstance(node, ast.Constant) else ""
            if not re.search("\n|``", text) and raw.search(text):
                assert path.name == "graph_times.py" and text == ", --time-axis "
