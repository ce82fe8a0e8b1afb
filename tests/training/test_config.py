"""Configurations: layers, presets, and errors that say what to do."""

from pathlib import Path

import pytest

from nfsgeo.training import load_config, parse_settings, read_config
from nfsgeo.training.artifacts import write_yaml
from nfsgeo.training.loading import paper_learning_rate


def test_single_values_win_over_the_file_and_the_file_over_the_preset():
    file = Path("c.yaml")
    file.write_text("preset: paper\ntrainer: {epochs: 7, patience: 3}\nseed: 1\n")
    config = load_config(file, {"trainer.patience": 5, "optimiser.eps": "1e-6"})
    assert (config.trainer.epochs, config.trainer.patience) == (7, 5)
    assert config.seed == 1
    assert config.optimiser.eps == 1e-6
    assert config.optimiser.schedule == "step"  # of the preset


@pytest.mark.parametrize("section", ["", " 3"])
def test_a_section_beside_a_preset_that_is_no_section(refuses, section):
    (file := Path("c.yaml")).write_text(f"preset: paper\ntrainer:{section}\n")
    refuses("trainer=", load_config, file)


@pytest.mark.parametrize(
    ("model", "equation", "rate"),
    [
        ("nfs", "navier-stokes", 1e-3),
        ("nfs", "burgers", 5e-4),
        ("gcgru", "kdv", 1e-3),
        ("mppde", "burgers", 1e-3),
        # Mixers on points: dse is fno, gino has its blocks.
        ("dse", "kdv", 5e-4),
        ("gino", "burgers", 5e-4),
    ],
)
def test_paper_learning_rates(model, equation, rate):
    assert paper_learning_rate(model, equation) == rate


NEAREST = [
    ("trainer.epoch", 3, "trainer.epochs"),
    ("epochs", 3, "trainer.epochs"),
    ("loss.name", "mes", "mse"),
    ("optimizer.lr", 1e-3, "optimiser.lr"),
    ("model.settings.wdith", 16, "model.settings.width"),
    ("model.name", "nsf", "nfs"),
    ("model.width", 8, "model.settings.width"),
]
WRONG = [
    ("trainer.epochs", "many"),
    ("trainer.epochs", 0),
    ("data.batch_size", -1),
    ("trainer.device", "tpu"),
    ("trainer.precision", "8"),
    ("optimiser.betas", [0.9]),
    ("optimiser.betas", [0.9, 1.0]),
    ("optimiser.one_cycle_rise", -1.0),
    ("optimiser.lr", float("inf")),
    ("optimiser.lr", float("nan")),
    ("model.settings.radius_factor", float("inf")),
    ("seed", 2**63),
    ("model.settings.width", "wide"),
    ("trainer", 3),
]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [(key, value, f"the nearest is {name}$") for key, value, name in NEAREST]
    + [(key, value, key.replace(".", r"\.")) for key, value in WRONG]
    + [
        ("data.zzz", 1, r"none of the \d\d names is similar$"),
        ("loss.zzz", 1, r"one of loss\.name, loss\.weighting$"),
        ("optimiser.betas", [0.9], r"betas=\[0\.9\]: expected optimiser\.betas\.1 as"),
    ],
)
def test_a_wrong_key_or_value_is_named(key, value, message, refuses):
    refuses(message, load_config, overrides={key: value})


def test_settings_are_yaml():
    parsed = parse_settings(["a.b=1", "c=[1, 2]", "d=null", "e=text", "f=a=b"])
    assert parsed == {"a.b": 1, "c": [1, 2], "d": None, "e": "text", "f": "a=b"}


@pytest.mark.parametrize("setting", ["a.b", "=3", "a={"])
def test_a_setting_needs_key_and_value(setting, refuses):
    refuses("KEY=VALUE", parse_settings, [setting])


@pytest.mark.parametrize(
    "content",
    ["a: [", "- 1\n- 2\n", "3", "seed: !!python/object/apply:os.getpid []\n"]
    + ["[" * 5000, "{a: " * 5000, "a: &a [*a]", "\0"],
)
def test_a_file_that_is_no_configuration(content, refuses):
    Path("c.yaml").write_text(content)
    refuses(r"^[^\n]+$", load_config, Path("c.yaml"))


def test_the_configuration_of_another_model(refuses):
    write_yaml(Path("nfs.yaml"), load_config().model_dump(mode="json"))
    chosen = Path("nfs.yaml"), {"model.name": "fno"}
    refuses("model fno with the settings of nfs in nfs.yaml", load_config, *chosen)


def test_a_saved_configuration_reads_back_the_same():
    config = load_config(overrides={"preset": "paper", "optimiser.lr": 3e-4})
    write_yaml(Path("config.yaml"), config.model_dump(mode="json"))
    assert read_config(Path("config.yaml")) == config


@pytest.mark.parametrize("end", ["preset:", "optimiser:", "trainer:"])
def test_a_saved_configuration_that_is_cut_off(refuses, end):
    """What is lost would be the defaults, and other data than those of the run."""
    write_yaml(path := Path("config.yaml"), load_config().model_dump(mode="json"))
    path.write_text(path.read_text().partition(end)[0])
    refuses("config.yaml without .*trainer.*: expected all", read_config, path)
