"""Training that starts from the weights of another run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nfsgeo.data.build import numbered
from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import Normalise, Residual
from nfsgeo.setting_errors import unknown
from nfsgeo.training.checkpoints import restore
from nfsgeo.training.loading import read_config
from nfsgeo.training.run_paths import find_run

__all__ = ["start_from"]


def start_from(
    forecaster: Forecaster, run: Path | None, freeze: Sequence[str] = ()
) -> tuple[str, ...]:
    """Takes weights and fitted scales from another run, and freezes parts.

    Meshes, numbers of points and of samples may differ. A tensor is taken if the other
    model has one of the same name and shape; the others keep their initial values. The
    scales of the fields are taken if the components are the same, so that weights see
    the numbers that they were trained on.

    Args:
        forecaster: Fresh, changed in place.
        run: The folder of a run, or the name of a model that comes with nfsgeo.
        freeze: Names of modules of the network whose weights stay as they are.

    Returns:
        Lines that say which tensors were taken, which are new and which are frozen.

    Raises:
        UserError: There is no such run, it is of another model or shares no tensor with
            this one, or a part to be frozen does not exist.
    """
    lines = [] if run is None else _take(run, forecaster)
    return (*lines, *_freeze(freeze, forecaster))


def _take(run: Path, forecaster: Forecaster) -> list[str]:
    paths = find_run(run)
    other = restore(paths.best, read_config(paths.config))
    theirs, mine = other.model.state_dict(), forecaster.model.state_dict()
    taken = {
        name: value
        for name, value in theirs.items()
        if name in mine and mine[name].shape == value.shape
    }
    if other.name != forecaster.name or not taken:
        raise UserError(
            f"{run} of {other.name} to start {forecaster.name} from",
            "a run of the same model, with tensors of the same shapes",
            "start from a run of the same model with the same model.settings",
        )
    forecaster.model.load_state_dict(mine | taken)
    new = [name for name in mine if name not in taken]
    lines = [f"{len(taken)} of {len(mine)} tensors taken from {run}"]
    lines += [f"new: {', '.join(new)}"] if new else []
    return [*lines, _take_scales(forecaster, other)]


def _take_scales(forecaster: Forecaster, other: Forecaster) -> str:
    """The scales of the fields, where both have the same components and inputs."""
    kinds = {"components": "u", "static": "a", "scalars": "", "forcings": ""}
    for kind, stem in kinds.items():
        theirs, mine = (list(getattr(f.task, kind)) for f in (other, forecaster))
        # Names that are made up do not count.
        unnamed = len(theirs) == len(mine) and numbered(stem, len(mine))
        if theirs != mine and unnamed not in (theirs, mine):
            return f"scales of the fields fitted to these data, whose {kind} differ"
    for number, here in enumerate(forecaster.stack):
        there = other.find(type(here))
        if there is None or not isinstance(here, Normalise | Residual):
            continue
        own = dict(here.settings)
        if own.get("form") == there.settings.get("form"):
            # Kriging is fitted to these data.
            kept = {"covariance": own["covariance"]} if "covariance" in own else {}
            made = type(here)(**{**there.settings, **kept})
            made.sizes(forecaster.model.problem)
            forecaster.transforms[number] = made
    return "scales of the fields taken as well"


def _freeze(parts: Sequence[str], forecaster: Forecaster) -> list[str]:
    known, frozen = dict(forecaster.model.named_children()), 0
    for part in dict.fromkeys(parts):
        if part not in known:
            raise unknown(f"--freeze {part}", "a part of the model", part, known)
        weights = list(known[part].requires_grad_(False).parameters())
        frozen += sum(weight.numel() for weight in weights)
    return [f"frozen: {', '.join(parts)} ({frozen} numbers)"] if parts else []
