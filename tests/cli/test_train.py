"""`nfsgeo train` from end to end."""

from pathlib import Path

import pytest

from nfsgeo.training.trainer import read_history


def test_a_run_folder_is_complete(trained):
    names = "config.yaml environment.json metrics.csv summary.json evaluation.npz"
    names += " checkpoints/best.ckpt checkpoints/last.ckpt report.html"
    for name in names.split():
        assert (trained / name).stat().st_size > 0, name
    assert list((trained / "figures").glob("*.png"))
    assert list((trained / "tensorboard").glob("events.*"))
    assert not list(trained.rglob("*.partial"))


def test_samples_are_told_before_and_errors_beside_baselines_after(training):
    assert "10 train + 2 valid + 4 test samples" in training.stderr
    for name in ("nfs", "persistence", "linear extrapolation", "training mean"):
        assert name in training.stdout
    assert "runs/nfs-waves-1/report.html" in training.stdout
    assert max(map(len, training.output.splitlines())) <= 80
    assert len(training.stderr.splitlines()) == 4 + 2  # about the run, and each epoch


@pytest.mark.slow
def test_a_saved_configuration_makes_the_same_run_again(nfsgeo, trained):
    result = nfsgeo("train", "--config", trained / "config.yaml", "--out", "again")
    assert result.exit_code == 0, result.output
    losses = [
        [row["train_loss"] for row in read_history(run / "metrics.csv")]
        for run in (trained, Path("again"))
    ]
    assert losses[0] == losses[1]
