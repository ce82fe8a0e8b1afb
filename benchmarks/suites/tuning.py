"""Settings of a model for one's own data, chosen by short trials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import Any

from pandas import json_normalize

from nfsgeo.config import RunConfig
from nfsgeo.config.errors import unknown
from nfsgeo.data.io.opening import matches
from nfsgeo.errors import UserError
from nfsgeo.training import load_config, read_config
from nfsgeo_benchmarks.suites.data import DataFiles, Settings
from nfsgeo_benchmarks.suites.runs import Run
from nfsgeo_benchmarks.suites.tables import result_of

# Multiples of a model's own values to try, the most important setting first.
FACTORS = {"optimiser.lr": [2, 0.5, 4]}
FACTORS |= {f"model.settings.{size}": [1.5, 0.5] for size in ("width", "depth")}
# Settings of the data that leave validation samples as they are.
OF_TRAINING = ["data.batch_size", "data.training_noise", "data.query_points"]


@dataclass
class Tuning:
    """A search for the settings of a model with the smallest validation RMSE."""

    settings: Settings  # of all trials
    values: Settings  # lists to try, instead of FACTORS or besides
    num: int  # most trials
    out: Path
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        load_config(overrides=self.settings)
        fixed: Settings = {key: [] for key in FACTORS if key in self.settings}
        for key, values in self.values.items():
            if key.startswith("data.") and key not in OF_TRAINING:
                raise unknown(f"--space {key}", "one of training", "", OF_TRAINING)
            made = (load_config(overrides=self.settings | {key: v}) for v in values)
            fixed[key] = [by_key(config)[key] for config in made]
        self.values, file = fixed, Path(self.settings["data.file"])
        if not (found := matches(file)):
            raise UserError(f"{file}", "an existing file", "check the name")
        newest = max(path.stat().st_mtime for path in found)
        self.problem = f"{file.stem}-{newest:.0f}"  # of this version

    def batches(self) -> Iterator[list[Run]]:
        """Yield trials: the defaults, then changes of one setting of the best one."""
        yield [self._begun({})]
        for key in [*self.space] * self.num:
            tried = [{name: row[name] for name in self.space} for row in self.rows()]
            new = [
                p for v in self.space[key] if (p := tried[0] | {key: v}) not in tried
            ]
            if new := new[: self.num - len(self.runs)]:
                yield [self._begun(point) for point in new]

    def _begun(self, point: Settings) -> Run:
        names = (f"{key.rpartition('.')[2]}={point[key]}" for key in point)
        trial = ",".join(names) or "default"
        model, data = self.settings["model.name"], DataFiles(files=())
        run = Run(self.problem, model, 0, data, self.settings | point, trial=trial)
        self.runs.append(run)
        return run

    @cached_property
    def space(self) -> Settings:
        """The values of each setting to try, none where the first trial failed."""
        path = self.out / "runs" / self.runs[0].name / "config.yaml"
        return search_space(read_config(path), self.values) if path.is_file() else {}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each trial, the best one first."""
        rows, space = list[dict[str, Any]](), self.space
        for run in self.runs:
            row = {"model": run.variant, "valid_rmse": inf, "status": "stopped"}
            row |= {key: run.settings.get(key, space[key][0]) for key in space}
            row |= result_of(run, self.out)["row"] | {"folder": f"runs/{run.name}"}
            rows.append(row)
        return sorted(rows, key=itemgetter("valid_rmse"))


def search_space(config: RunConfig, asked: Settings) -> Settings:
    """Return the values of each setting to try, first that of the configuration."""
    settings, space = by_key(config), dict[str, Any]()
    for key in FACTORS | asked:
        now = settings.get(key)
        near = [type(now)(f * now) or now for f in FACTORS.get(key, []) if now]
        space[key] = [now, *(value for value in asked.get(key, near) if value != now)]
    return {key: values for key, values in space.items() if len(values) > 1}


def by_key(config: RunConfig) -> Settings:
    """Return the settings of a configuration by dotted key."""
    return json_normalize(config.model_dump(mode="json")).to_dict("records")[0]
