"""Checkpoints of plain types, and runs that start from one."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import shlex
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch import Tensor

from nfsgeo.config import RunConfig
from nfsgeo.config.errors import unknown
from nfsgeo.data.other_files import check_source
from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.matching import same_names
from nfsgeo.training.artifacts import read_json, write_tensors
from nfsgeo.training.loading import read_config
from nfsgeo.training.run_paths import RunPaths, find_run

__all__ = ["BestAndLast", "PlainCheckpoints", "own_checkpoint", "read_checkpoint"]
__all__ += ["restore", "start_from", "weights_digest"]

logger = logging.getLogger(__name__)
UNTRAINED = "the validation RMSE was lowest before the first epoch: the run keeps the "
UNTRAINED += "linear forecast that training starts from, without a network's correction"


def read_checkpoint(path: Path, *, check_model: bool = True) -> dict[str, Any]:
    """Load a checkpoint without running any code that it may hold.

    Args:
        path: The file.
        check_model: Whether it has to describe a model, unlike those by which processes
            of Lightning exchange weights.

    Raises:
        UserError: There is no file, it is damaged, holds more than plain types, or does
            not describe a model.
    """
    if not path.is_file():
        raise UserError(
            f"{path}", "a file of nfsgeo", "put it back, or remove what is there"
        )
    raw = io.BytesIO(path.read_bytes())
    try:
        check_source(path)
        # torch.load takes weights with a wrong checksum for whole.
        if zipfile.ZipFile(raw).testzip() is not None:
            raise ValueError("a wrong checksum")
        raw.seek(0)
        content = torch.load(raw, map_location="cpu", weights_only=True)
        if check_model:
            dict(content["nfsgeo"])
            if not all(isinstance(v, Tensor) for v in content["state_dict"].values()):
                raise ValueError("weights that are no tensors")
            if "run" in content:  # a whole one, not a model that comes with nfsgeo
                content["epoch"] + 1, content["callbacks"]["History"].items()
        return dict(content)
    except Exception:  # whatever breaks in a damaged file
        raise UserError(
            f"{path}",
            "a whole checkpoint of nfsgeo, of plain tensors",
            "use an undamaged copy or train again",
        ) from None


def own_checkpoint(paths: RunPaths, path: Path) -> dict[str, Any]:
    """Load ``paths.best`` or ``paths.last`` of a run.

    Raises:
        UserError: There is no such file, it is damaged or of another run.
    """
    if content := _matching_checkpoint(paths, path):
        return content
    run = shlex.quote(str(paths.root))
    if not (path.exists() or paths.trained()):
        todo = f"go on with the run: nfsgeo train --resume {run}"
        raise UserError(f"{path}, which is not there yet", "a checkpoint", todo)
    todo = f"put it back, or train again: nfsgeo train --config {run}/config.yaml"
    todo += " --out NEW"
    if path == paths.best and _matching_checkpoint(paths, paths.last):
        names = " ".join(shlex.quote(str(name)) for name in (paths.last, path))
        todo = f"put it back, or take the last epoch for the best: cp {names}"
    what = "is of another run" if path.exists() else "is gone"
    raise UserError(f"{path}, which {what}", "the checkpoint of this run", todo)


def _matching_checkpoint(paths: RunPaths, path: Path) -> dict[str, Any]:
    """A checkpoint, empty where there is none or one that another run has named."""
    content = read_checkpoint(path) if path.exists() else {}
    names = {
        str(entry.get("run", "")) for entry in (read_json(paths.belongings), content)
    }
    names -= {""}
    return content if len(names) < 2 else {}  # earlier versions gave no names


def weights_digest(checkpoint: dict[str, Any]) -> str:
    """Return a digest of the weights of a checkpoint and of the transforms."""
    about = json.dumps(checkpoint["nfsgeo"], sort_keys=True, default=str)
    digest = hashlib.blake2b(about.encode(), digest_size=16)
    for name, value in sorted(checkpoint["state_dict"].items()):
        digest.update(f"{name} {value.dtype} {[*value.shape]}".encode())
        digest.update(value.contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


class PlainCheckpoints(TorchCheckpointIO):
    """Lets Lightning write whole checkpoints and read them with weights only."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None
    ) -> None:
        # Lightning's own callbacks rely on this to make their folders.
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_tensors(Path(path), checkpoint)

    def load_checkpoint(self, path: Any, *_: Any, **__: Any) -> dict[str, Any]:
        return read_checkpoint(Path(path), check_model=False)


class BestAndLast(ModelCheckpoint):
    """Keeps ``best.ckpt``, of the lowest validation RMSE, and ``last.ckpt``.

    If the trainer checks the whole validation part before the first epoch, as its
    "sanity check", the initial weights may be the best ones; a warning says so.

    The best is written before the last: if the process is killed in between, the epoch
    is trained again and arrives at the same best.

    Args:
        folder: Folder of the checkpoints; that of a run may have been moved.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(
            folder,
            filename="best",
            monitor="valid_rmse",
            enable_version_counter=False,
            save_on_train_epoch_end=True,
        )

    def on_sanity_check_end(self, trainer: Trainer, module: LightningModule) -> None:
        self._save_topk_checkpoint(trainer, self._monitor_candidates(trainer))

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        super().on_train_epoch_end(trainer, module)
        # Lightning's own save_last leaves out epochs that are not the best so far.
        trainer.save_checkpoint(Path(str(self.dirpath)) / "last.ckpt")

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        super().on_train_end(trainer, module)
        best, checked = Path(self.best_model_path), trainer.num_sanity_val_steps
        if not (checked and trainer.is_global_zero and best.is_file()):
            return
        if not read_checkpoint(best)["global_step"]:
            logger.warning(UNTRAINED)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        best, score = f"{self.dirpath}/best.ckpt", state_dict["best_model_score"]
        moved: dict[str, Any] = {"dirpath": self.dirpath, "best_model_path": best}
        moved["best_k_models"] = {} if score is None else {best: score}
        super().load_state_dict(state_dict | moved | {"kth_best_model_path": best})


def restore(
    path: Path, config: RunConfig, checkpoint: dict[str, Any] | None = None
) -> Forecaster:
    """Load the forecaster of a checkpoint on the CPU, without its data.

    Args:
        path: The file, such as ``RunPaths(folder).best``.
        config: Configuration of its run.
        checkpoint: Its content, if that has been read already.

    Raises:
        UserError: There is no checkpoint yet, or it is of another model than the
            configuration or of another version of nfsgeo.
    """
    checkpoint = checkpoint or read_checkpoint(path)
    saved, model = checkpoint["nfsgeo"], config.model
    asked = {"model": model.name, "prediction": model.prediction}
    wrong = [key for key, value in asked.items() if saved.get(key) != value]
    # Checkpoints lack settings that were added later.
    settings = model.settings | saved.get("settings", {})
    if any(settings[key] != value for key, value in model.settings.items()):
        wrong.append("settings")
    steps = (("n_in", config.data.n_in), ("n_out", config.data.n_out))
    wrong += [k for k, v in steps if saved.get("task", {}).get(k, v) != v]
    if wrong and "transforms" in saved:
        raise UserError(
            f"{path} of {saved.get('model', 'an unknown model')}",
            f"a checkpoint of {model.name} with the same {', '.join(wrong)}",
            "put back the checkpoint or the config.yaml that the run had",
        )
    weights = checkpoint["state_dict"].items()
    try:
        forecaster = Forecaster.from_description(saved)
        forecaster.load_state_dict(
            {name.removeprefix("forecaster."): value for name, value in weights}
        )
    except UserError:
        raise
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise UserError(
            f"{path} from another version of nfsgeo",
            "a checkpoint of this version",
            "train again, or use the version that made it",
        ) from error
    forecaster.digest = weights_digest(checkpoint)
    return forecaster


def start_from(
    forecaster: Forecaster, run: Path | None, freeze: Sequence[str] = ()
) -> tuple[str, ...]:
    """Take weights and fitted scales from another run, and freeze parts.

    Meshes and the numbers of points and samples may differ. A tensor is taken if the
    other model has one of the same name and shape; the others keep their initial
    values. The scales of the fields are taken if the components are the same, so that
    the network sees fields in the scale of its training.

    Args:
        forecaster: A fresh forecaster, which is changed in place.
        run: The folder of a run, or the name of a model that comes with nfsgeo.
        freeze: Names of modules of the network whose weights stay as they are.

    Returns:
        Lines that say which tensors were taken, which are new and which are frozen.

    Raises:
        UserError: There is no such run, it is of another model or shares no tensor with
            this one, or a part to be frozen does not exist.
    """
    lines = [] if run is None else _taken(forecaster, run)
    parts, frozen = dict(forecaster.model.named_children()), 0
    for part in dict.fromkeys(freeze):
        if part not in parts:
            raise unknown(f"--freeze {part}", "a part of the model", part, parts)
        weights = list(parts[part].requires_grad_(False).parameters())
        frozen += sum(weight.numel() for weight in weights)
    if freeze:
        lines.append(f"frozen: {', '.join(freeze)} ({frozen} numbers)")
    return tuple(lines)


def _taken(forecaster: Forecaster, run: Path) -> list[str]:
    paths = find_run(run)
    saved = own_checkpoint(paths, paths.best)
    other = restore(paths.best, read_config(paths.config), saved)
    weights, state = other.model.state_dict(), forecaster.model.state_dict()
    new = [n for n in state if n not in weights or weights[n].shape != state[n].shape]
    if other.name != forecaster.name or len(new) == len(state):
        raise UserError(
            f"{run} of {other.name} to start {forecaster.name} from",
            "a run of the same model, with tensors of the same shapes",
            "start from a run of the same model with the same model.settings",
        )
    taken = {name: weights[name] for name in state if name not in new}
    forecaster.model.load_state_dict(state | taken)
    lines = [f"{len(taken)} of {len(state)} tensors taken from {run}"]
    lines += [f"new: {', '.join(new)}"] if new else []
    kinds = {"components": "u", "static": "a", "scalars": "", "forcings": ""}
    for kind, stem in kinds.items():
        theirs, mine = getattr(other.task, kind), getattr(forecaster.task, kind)
        if not same_names(theirs, mine, stem):
            line = f"scales of the fields fitted to these data, whose {kind} differ"
            return [*lines, line]
    _take_scales(forecaster, other)
    return [*lines, "scales of the fields taken as well"]


def _take_scales(forecaster: Forecaster, other: Forecaster) -> None:
    """Scale fields as another forecaster of the same components does.

    Factors that a transform learned are taken with its scales.
    """
    for number, transform in enumerate(forecaster.transforms):
        theirs, settings = other.find(type(transform)), dict(transform.settings)
        form = settings.get("form")
        if not transform.fitted or not theirs or theirs.settings.get("form") != form:
            continue
        settings |= {key: theirs.settings[key] for key in transform.fitted}
        for key in settings.keys() & {"std", "out_std"}:
            # Their standard deviation is 0 of a component that is constant there.
            pairs = zip(settings[key], transform.settings[key], strict=True)
            settings[key] = [std or here for std, here in pairs]
        forecaster.transforms[number] = made = type(transform)(**settings)
        made.sizes(forecaster.model.problem)
        learned = dict(theirs.named_parameters())
        for name, weight in made.named_parameters():
            if name in learned and learned[name].shape == weight.shape:
                weight.data.copy_(learned[name].data)
