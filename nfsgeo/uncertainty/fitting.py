"""Error bands of a run: fitted, calibrated anew, and scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Subset

from nfsgeo.data.meshes import MESH_KINDS, Mesh
from nfsgeo.data.windows import batches
from nfsgeo.evaluation.references import References
from nfsgeo.evaluation.scored_model import ScoredModel
from nfsgeo.evaluation.scores import with_given
from nfsgeo.models import MODELS
from nfsgeo.training.run_data import Observation, queried
from nfsgeo.uncertainty.bands import BandFeatures, Bands, Scale, conformal

__all__ = ["Errors", "LEVEL", "band_scores", "crps", "fit_bands", "interval_score"]

LEVEL = 0.9
CONDITIONS = "observed", "gaps", "unobserved", "unobserved with gaps", "unseen mesh"
# Windows, and points of each, that bands are fitted to or scored on in each condition.
WINDOWS, POINTS = 128, 128
# Share of the values that are removed; of points, one in so many is left out.
GAPS, PARTS = 0.2, 5
LEVELS = [(k + 0.5) / 20 for k in range(20)]


class Errors(NamedTuple):
    """Truth less prediction at values of some windows, under several conditions.

    Attributes:
        around: Features of the values.
        of: Errors ``[R, T, C]`` of the ``"model"`` and of references by name, in
            standard deviations, NaN where unknown.
        window: The window of each row ``[R]``.
        condition: The place of its condition in ``CONDITIONS`` ``[R]``.
    """

    around: BandFeatures
    of: Mapping[str, Tensor]
    window: Tensor
    condition: Tensor

    def bands(self, name: str, scale: Scale, gaps: float) -> Bands:
        """Bands of a scale, by errors on samples that it was not fitted to.

        Those that are ``"constant"``, of the model, have one factor for all time steps.
        """
        ratio = self.ratio(name, scale)
        found, steps = dict[int, Tensor](), 1
        if name == "constant":
            steps, ratio = ratio.size(1), ratio.flatten(0, 1)[:, None]
        # Seen and unseen meshes, the last condition, have factors in common.
        condition, window = (
            each.repeat_interleave(steps) for each in (self.condition % 4, self.window)
        )
        for number in condition.unique().tolist():
            here = condition == number
            factors = conformal(ratio[here], window[here])
            found[number] = factors.expand(steps * len(factors), -1, -1)
        found = {1: found[0], 2: found[0], **found}
        found.setdefault(3, found[1].maximum(found[2]))
        each = torch.stack([found[number] for number in range(4)])
        return Bands(scale, each, len(self.window.unique()), gaps)

    def ratio(self, name: str, scale: Scale) -> Tensor:
        """Absolute errors over a scale on their side ``[R, T, C]``."""
        error = self.of.get(name, self.of["model"])
        below, above = scale.sides(self.around.features)
        return torch.where(error < 0, -error / below, error / above)


@torch.no_grad()
def errors_of(
    scored: ScoredModel, part: str, references: References | None = None
) -> Errors:
    """Errors in a part of the data, in all conditions that a band is to hold in.

    Those of references are at observed points.
    """
    forecaster, rows = scored.forecaster, list[list[Tensor]]()
    num, draw = len(forecaster.task.components), torch.Generator().manual_seed(0)
    trivial = references.predictors if references else {}
    # What is fitted to the points of training tells nothing on another mesh.
    series = references.series.predictors() if references and references.series else {}
    tied = {"mean", *series}
    for mesh, gaps, conditions, every in _conditions(scored, part):
        forecaster, windows = scored.forecaster, scored.windows(part, mesh=mesh)
        chosen = np.linspace(0, len(windows) - 1, min(WINDOWS, len(windows)))
        numbers = chosen.round().astype(int)[every].tolist()
        some, left = Subset(windows, numbers), iter(numbers)
        if conditions[0] < 0 and isinstance(mesh, Mesh) and mesh.queries:
            places = torch.from_numpy(mesh.queries.pos)
            places = forecaster.task.domain.normalise(places, torch.float64)
            forecaster = scored.forecaster.unaware_of(places)
        for batch in batches(some, 4, forecaster.connect):  # type: ignore[arg-type]
            removed = torch.rand(batch.x.shape[:2], generator=draw) < gaps
            batch.x[..., :num][removed] = torch.nan
            graphs = (batch := batch.to(forecaster.device)).graphs
            u = forecaster.predict_batch(batch)
            around = BandFeatures.of(forecaster, u, forecaster.inputs_of(batch))
            predicted, given = [u.cpu()], with_given(scored, batch)
            for name, predict in trivial.items():
                field = torch.full_like(around.unit, torch.nan)
                if 0 <= conditions[0] < (4 if name in tied else 5):
                    field[around.observed] = predict(given).cpu().to(field)
                predicted.append(field)
            truth = (batch.y if graphs.query_pos is None else batch.query_y).cpu()
            errors = ((truth - each) / around.unit for each in predicted)
            sizes = graphs.query_sizes or graphs.sizes
            values = [v.split(sizes) for v in (*vars(around).values(), *errors)]
            for each in zip(*values, strict=True):
                window = next(left)
                for number, there in zip(conditions, (each[3], ~each[3]), strict=False):
                    at = there.nonzero()[:, 0]
                    at = at[torch.randperm(len(at), generator=draw)[:POINTS]]
                    facts = (torch.full_like(at, fact) for fact in (window, number))
                    if number >= 0:
                        rows.append([*(value[at] for value in each), *facts])
    found = [torch.cat(each) for each in zip(*rows, strict=True)]
    of = dict(zip(("model", *trivial), found[4:-2], strict=True))
    return Errors(BandFeatures(*found[:4]), of, *found[-2:])


def _conditions(scored: ScoredModel, part: str) -> Iterator[tuple[Any, ...]]:
    """Meshes, shares of values to remove, of what condition errors at observed and at
    unobserved points are, -1 for none, and the windows, as far as there are any.

    Training windows are each in one condition. Test windows are observed on another
    unseen mesh than those of validation, and held-out points are for them alone.
    """
    used, test = scored.used, part == "test"
    config, file, mesh = used.config, used.file, used.mesh
    info, data = MODELS[config.model.name], config.data
    sample = int(used.samples(part)[0])
    every = [slice(k, None, 3) if part == "train" else slice(None) for k in range(3)]
    anywhere = info.query_points and info.unseen_meshes
    seen = mesh
    if info.query_points and (test or not data.hold_out):
        seen = queried(mesh, file, POINTS, int(test))
    for k, share in enumerate((0.0, GAPS) if data.n_in else (0.0,)):
        yield seen, share, (k, k + 2), every[k]
    drawn = MESH_KINDS[data.mesh or "all"].drawn and not data.hold_out
    if drawn and info.unseen_meshes:
        seed = config.seed if data.mesh_seed is None else data.mesh_seed
        yield used.observation(seed + 1 + test), 0.0, (4,), every[2]
    others = seen(sample).queries
    if anywhere and not (others and len(others)) and len(mesh(sample)) >= 2 * PARTS:
        for k in range(PARTS):  # each leaves out points in every fifth window
            yield _left_out(mesh, k), 0.0, (-1, 2), slice(k, None, PARTS)


def _left_out(mesh: Observation, part: int) -> Observation:
    """With a fifth of the observed points as unobserved query points."""

    def of(sample: int) -> Mesh:
        whole = mesh(sample)
        there = np.random.default_rng(0).permutation(len(whole)) % PARTS != part
        index = np.arange(len(whole)) if whole.index is None else whole.index
        some = [Mesh(whole.pos[k], index[k]) for k in (there, ~there)]
        return replace(some[0], queries=some[1])

    return of(0) if isinstance(mesh, Mesh) else of


def fit_bands(
    scored: ScoredModel,
    references: References,
    known: Mapping[str, Bands] | None = None,
) -> dict[str, Bands]:
    """Bands of the model and of references.

    Scales are fitted to training samples, factors to those of validation. Of bands that
    are ``known`` the scale stays; factors are of the samples to score. The references
    are ``"constant"``, the model with one width for each component, and the best of the
    ``references`` on validation samples, with one for each time step and component.
    """
    errors = errors_of(scored, "test" if known else "valid", references)
    if known:
        there = {name: of for name, of in known.items() if name in _names(errors)}
        return {k: errors.bands(k, of.scale, of.gaps) for k, of in there.items()}
    plain = errors.condition == 0
    maes = {name: e[plain].abs().nanmean() for name, e in errors.of.items()}
    best = min((name for name in maes if name != "model"), key=maes.__getitem__)
    fitted = errors_of(scored, "train")
    constant = Scale.constant(errors.of["model"].shape[1:])
    scales = {"model": Scale.fit(fitted.around.features, fitted.of["model"])}
    scales |= {"constant": constant, best: constant}
    gaps = float(errors.around.gaps[plain].mean()) + GAPS / 2
    return {name: errors.bands(name, scale, gaps) for name, scale in scales.items()}


def _names(errors: Errors) -> list[str]:
    return ["constant", *errors.of]


def band_scores(
    scored: ScoredModel, bands: Mapping[str, Bands], references: References
) -> dict[str, Any]:
    """How good bands of the level 0.9 are on the samples that are scored.

    In the units of the data, of several components in standard deviations: ``level``,
    ``samples`` that they were fitted to, ``coverage``, ``width``, ``crps``,
    ``interval_score``, the coverage ``by_time_step``, all of these ``by_condition``,
    ``reliability`` with ``levels`` and ``coverage``, and ``references`` by their name.
    """
    errors, found = errors_of(scored, "test", references), dict[str, Any]()
    where, features = errors.condition, errors.around.features
    for name in (name for name in bands if name in _names(errors)):
        e, of = errors.of.get(name, errors.of["model"]), bands[name]
        unit = errors.around.unit if e.size(-1) == 1 else torch.ones_like(e)
        ratio, sides = errors.ratio(name, of.scale), of.scale.sides(features) * unit
        factor, *factors = (of.factor(errors.around, x) for x in (LEVEL, *LEVELS))
        inside = [torch.where(e.isnan(), e, ratio <= f) for f in (factor, *factors)]
        values = {"coverage": inside[0]}
        values["width"] = (factor * sides.sum(0)).where(~e.isnan(), torch.nan)
        values["crps"] = crps(e * unit, [f * sides for f in factors], LEVELS)
        values["interval_score"] = interval_score(e * unit, factor * sides, LEVEL)
        scores: dict[str, dict[str, Any]] = {}
        for k in where[~e.isnan().all((1, 2))].unique().tolist():
            here = {key: each[where == k] for key, each in values.items()}
            steps = here["coverage"].nanmean((0, 2)).tolist()
            scores[CONDITIONS[k]] = {k: float(v.nanmean()) for k, v in here.items()}
            scores[CONDITIONS[k]] |= {"by_time_step": steps}
        shares = [float(each[where == 0].nanmean()) for each in inside[1:]]
        found[name] = scores["observed"] | {
            "by_condition": scores,
            "reliability": {"levels": LEVELS, "coverage": shares},
        }
    about = {"level": LEVEL, "samples": bands["model"].samples}
    return about | found.pop("model") | {"references": found}


def interval_score(error: Tensor, ends: Tensor, level: float) -> Tensor:
    """The interval score of Gneiting and Raftery (2007, equation 43), of an ``error``,
    and a band whose ``ends [2, ...]`` are so far below and above zero.
    """
    beyond = (torch.stack([-error, error]) - ends).clamp_min(0)
    return (ends + 2 / (1 - level) * beyond).sum(0)


def crps(error: Tensor, ends: Sequence[Tensor], levels: Sequence[float]) -> Tensor:
    """The continuous ranked probability score of a distribution around zero.

    Of the ``error`` and the ends of intervals of ``levels``, the midpoints of equal
    parts of 0 to 1: the mean of their interval scores, each times half of one less its
    level.
    """
    each = zip(levels, ends, strict=True)
    parts = [(1 - of) / 2 * interval_score(error, h, of) for of, h in each]
    return torch.stack(parts).mean(0)
