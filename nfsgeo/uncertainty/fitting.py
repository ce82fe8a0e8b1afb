"""Error bands of a run: fitted, calibrated anew, and scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Subset

from nfsgeo.data.meshes import MESH_KINDS, Mesh, MeshBySample, Observation
from nfsgeo.data.windows import batches
from nfsgeo.evaluation.not_finite import NotFinite
from nfsgeo.evaluation.references import References
from nfsgeo.evaluation.scored_model import ScoredModel
from nfsgeo.evaluation.scores import with_given
from nfsgeo.models import MODELS
from nfsgeo.training.run_data import queried
from nfsgeo.uncertainty.band_features import BandFeatures
from nfsgeo.uncertainty.bands import Bands, Scale, conformal

__all__ = ["Errors", "LEVEL", "band_scores", "crps", "fit_bands", "interval_score"]

LEVEL = 0.9
CONDITIONS = "observed", "gaps", "unobserved", "unobserved with gaps", "unseen mesh"
UNSEEN_MESH = CONDITIONS.index("unseen mesh")
# Windows, and points of each, that bands are fitted to or scored on in each condition.
WINDOWS, POINTS = 128, 128
# Fraction of the values that are removed; points are left out in so many parts.
GAPS, PARTS = 0.2, 5
LEVELS = [(k + 0.5) / 20 for k in range(20)]


class Errors(NamedTuple):
    """Truth less prediction at values of some windows, under several conditions.

    Attributes:
        features: Features of the values.
        errors: Errors ``[R, T, C]`` of the ``"model"`` and of references by name, in
            standard deviations, NaN where unknown.
        window: The window of each row ``[R]``.
        condition: The index of its condition in ``CONDITIONS`` ``[R]``.
    """

    features: BandFeatures
    errors: Mapping[str, Tensor]
    window: Tensor
    condition: Tensor

    def get(self, name: str) -> Tensor:
        """Errors that bands of this name are about; those of the model by default."""
        return self.errors.get(name, self.errors["model"])

    def bands(self, name: str, scale: Scale, gaps: float) -> Bands:
        """Return bands of a scale, by errors on samples that it was not fitted to.

        Args:
            name: Name of the bands; ``"constant"`` ones have one factor for all time
                steps.
            scale: The scale.
            gaps: Fraction of gaps above which factors are those with gaps.
        """
        ratio, steps = self.ratio(name, scale), 1
        if name == "constant":
            steps, ratio = ratio.size(1), ratio.flatten(0, 1)[:, None]
        # Seen and unseen meshes, the last condition, have factors in common.
        condition = (self.condition % 4).repeat_interleave(steps)
        window = self.window.repeat_interleave(steps)
        factors = dict[int, Tensor]()
        for number in condition.unique().tolist():
            rows = condition == number
            fitted = conformal(ratio[rows], window[rows])
            factors[number] = fitted.expand(steps * len(fitted), -1, -1)
        factors = {1: factors[0], 2: factors[0], **factors}
        factors.setdefault(3, factors[1].maximum(factors[2]))
        stacked = torch.stack([factors[number] for number in range(4)])
        return Bands(scale, stacked, len(self.window.unique()), gaps)

    def ratio(self, name: str, scale: Scale) -> Tensor:
        """Return absolute errors over a scale on their side ``[R, T, C]``."""
        error = self.get(name)
        below, above = scale.sides(self.features.features)
        return torch.where(error < 0, -error / below, error / above)


class Condition(NamedTuple):
    """Windows that errors are computed on, and the conditions that these count for."""

    mesh: Observation
    gaps: float  # fraction of input values to remove
    observed: int | None  # index of the condition of errors at observed points
    unobserved: int | None  # likewise at unobserved points
    windows: slice  # of the chosen ones


@torch.no_grad()
def errors_of(
    scored: ScoredModel, part: str, references: References | None = None
) -> Errors:
    """Compute errors in a part of the data, in all conditions of bands.

    Errors of references are at observed points.

    Args:
        scored: The model and its data.
        part: ``"train"``, ``"valid"`` or ``"test"``.
        references: References on these data; None for the model alone.
    """
    rows, draw = list[list[Tensor]](), torch.Generator().manual_seed(0)
    num, odd = len(scored.forecaster.task.components), NotFinite()
    predictors = references.predictors if references else {}
    # References fitted to the points of training tell nothing on another mesh.
    tied = references.tied if references else set[str]()
    for mesh, gaps, observed, unobserved, some in _conditions(scored, part):
        forecaster, windows = scored.forecaster, scored.windows(part, mesh=mesh)
        chosen = np.linspace(0, len(windows) - 1, min(WINDOWS, len(windows)))
        numbers = chosen.round().astype(int)[some].tolist()
        subset, left = Subset(windows, numbers), iter(numbers)
        if observed is None and isinstance(mesh, Mesh) and mesh.queries:
            places = torch.from_numpy(mesh.queries.pos)
            places = forecaster.task.domain.normalise(places, torch.float64)
            forecaster = forecaster.unaware_of(places)
        for batch in batches(subset, 4, forecaster.connect):  # type: ignore[arg-type]
            removed = torch.rand(batch.x.shape[:2], generator=draw) < gaps
            batch.x[..., :num][removed] = torch.nan
            graphs = (batch := batch.to(forecaster.device)).graphs
            u = forecaster.predict_batch(batch)
            # No band holds a prediction that is not finite.
            inputs, finite = forecaster.inputs_of(batch), u.isfinite()
            features = BandFeatures.of(forecaster, u.where(finite, 0), inputs)
            predicted = [u.where(finite, torch.inf).cpu()]
            filled = with_given(scored, batch)
            for name, predict in predictors.items():
                field = torch.full_like(features.unit, torch.nan)
                unseen = observed == UNSEEN_MESH and name in tied
                if observed is not None and not unseen:
                    field[features.observed] = predict(filled).cpu().to(field)
                predicted.append(field)
            truth = (batch.y if graphs.query_pos is None else batch.query_y).cpu()
            errors = ((truth - field) / features.unit for field in predicted)
            sizes = graphs.predicted_sizes
            columns = [v.split(sizes) for v in (*vars(features).values(), *errors)]
            for whole in zip(batch.sample.tolist(), u.split(sizes), strict=True):
                odd.add(*whole)
            for sample in zip(*columns, strict=True):
                window, seen = next(left), sample[3]
                for number, mask in ((observed, seen), (unobserved, ~seen)):
                    at = mask.nonzero()[:, 0]
                    at = at[torch.randperm(len(at), generator=draw)[:POINTS]]
                    if number is not None:
                        facts = (torch.full_like(at, fact) for fact in (window, number))
                        rows.append([*(value[at] for value in sample), *facts])
    odd.report(f"predictions of {part} samples, on which bands are tried")
    table = [torch.cat(column) for column in zip(*rows, strict=True)]
    by_name = dict(zip(("model", *predictors), table[4:-2], strict=True))
    return Errors(BandFeatures(*table[:4]), by_name, *table[-2:])


def _conditions(scored: ScoredModel, part: str) -> Iterator[Condition]:
    """The conditions under which a part of the data has errors.

    Each training window is in one condition. Test windows are observed on another
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
    for k, gaps in enumerate((0.0, GAPS) if data.n_in else (0.0,)):
        yield Condition(seen, gaps, k, k + 2, every[k])
    drawn = MESH_KINDS[data.mesh or "all"].drawn and not data.hold_out
    if drawn and info.unseen_meshes:
        seed = config.seed if data.mesh_seed is None else data.mesh_seed
        other = used.observation(seed + 1 + test)
        yield Condition(other, 0.0, UNSEEN_MESH, None, every[2])
    others = seen(sample).queries
    if anywhere and not (others and len(others)) and len(mesh(sample)) >= 2 * PARTS:
        for k in range(PARTS):  # each leaves out points in every fifth window
            yield Condition(_left_out(mesh, k), 0.0, None, 2, slice(k, None, PARTS))


def _left_out(mesh: Observation, part: int) -> Observation:
    """Return meshes with a fifth of the observed points as unobserved query points."""

    def sample_mesh(sample: int) -> Mesh:
        whole = mesh(sample)
        mask = np.random.default_rng(0).permutation(len(whole)) % PARTS != part
        index = np.arange(len(whole)) if whole.index is None else whole.index
        observed, queries = (Mesh(whole.pos[at], index[at]) for at in (mask, ~mask))
        return replace(observed, queries=queries)

    return sample_mesh(0) if isinstance(mesh, Mesh) else MeshBySample(sample_mesh)


def fit_bands(
    scored: ScoredModel,
    references: References,
    bands: Mapping[str, Bands] | None = None,
) -> dict[str, Bands]:
    """Fit bands of the model and of references.

    Scales are fitted to training samples, factors to those of validation. The
    references are ``"constant"``, the model with one width for each component, and the
    best of the ``references`` on validation samples, with one for each time step and
    component.

    Args:
        scored: The model and its data.
        references: References on these data.
        bands: Bands whose scales stay, and whose factors are fitted to the samples
            that are scored.
    """
    errors = errors_of(scored, "test" if bands else "valid", references)
    if bands:
        names = [name for name in bands if name in ("constant", *errors.errors)]
        return {n: errors.bands(n, bands[n].scale, bands[n].gaps) for n in names}
    plain = errors.condition == 0
    maes = {name: e[plain].abs().nanmean() for name, e in errors.errors.items()}
    best = min((name for name in maes if name != "model"), key=maes.__getitem__)
    train = errors_of(scored, "train")
    constant = Scale.constant(errors.get("model").shape[1:])
    scales = {"model": Scale.fit(train.features.features, train.get("model"))}
    scales |= {"constant": constant, best: constant}
    gaps = float(errors.features.gaps[plain].mean()) + GAPS / 2
    return {name: errors.bands(name, scale, gaps) for name, scale in scales.items()}


def band_scores(
    scored: ScoredModel, bands: Mapping[str, Bands], references: References
) -> dict[str, Any]:
    """Score bands of the level 0.9 on the test samples.

    Args:
        scored: The model and its data.
        bands: Bands of the model and of references by name.
        references: References on these data.

    Returns:
        In the units of the data, or in standard deviations of several components:
        ``level``, ``samples`` that the bands were fitted to, ``coverage``, ``width``,
        ``crps``, ``interval_score``, the coverage ``by_time_step``, all of these
        ``by_condition``, ``reliability`` with ``levels`` and ``coverage``, and
        ``references`` by their name.
    """
    errors, scores = errors_of(scored, "test", references), dict[str, Any]()
    for name, band in bands.items():
        if name in ("constant", *errors.errors):
            scores[name] = _scores(errors, name, band)
    about = {"level": LEVEL, "samples": bands["model"].samples}
    return about | scores.pop("model") | {"references": scores}


def _scores(errors: Errors, name: str, bands: Bands) -> dict[str, Any]:
    """Scores of the bands of one name."""
    error, features, where = errors.get(name), errors.features, errors.condition
    unit = features.unit if error.size(-1) == 1 else torch.ones_like(error)
    ratio = errors.ratio(name, bands.scale)
    sides = bands.scale.sides(features.features) * unit
    factor, *factors = (bands.factor(features, level) for level in (LEVEL, *LEVELS))
    inside = [error.where(error.isnan(), ratio <= f) for f in (factor, *factors)]
    values = {
        "coverage": inside[0],
        "width": (factor * sides.sum(0)).where(~error.isnan(), torch.nan),
        "crps": crps(error * unit, [f * sides for f in factors], LEVELS),
        "interval_score": interval_score(error * unit, factor * sides, LEVEL),
    }
    scores: dict[str, dict[str, Any]] = {}
    for number in where[~error.isnan().all((1, 2))].unique().tolist():
        rows = {key: value[where == number] for key, value in values.items()}
        scores[CONDITIONS[number]] = {
            **{key: float(value.nanmean()) for key, value in rows.items()},
            "by_time_step": rows["coverage"].nanmean((0, 2)).tolist(),
        }
    coverage = [float(share[where == 0].nanmean()) for share in inside[1:]]
    return scores["observed"] | {
        "by_condition": scores,
        "reliability": {"levels": LEVELS, "coverage": coverage},
    }


def interval_score(error: Tensor, ends: Tensor, level: float) -> Tensor:
    """Interval score of Gneiting and Raftery (2007, equation 43).

    Args:
        error: Truth less prediction ``[...]``.
        ends: Distances of the ends below and above the prediction ``[2, ...]``.
        level: Level of the band.
    """
    beyond = (torch.stack([-error, error]) - ends).clamp_min(0)
    return (ends + 2 / (1 - level) * beyond).sum(0)


def crps(error: Tensor, ends: Sequence[Tensor], levels: Sequence[float]) -> Tensor:
    """Continuous ranked probability score of a distribution around the prediction.

    It is the mean of the interval scores, each times half of one less its level.

    Args:
        error: Truth less prediction ``[...]``.
        ends: Ends ``[2, ...]`` of the intervals of each level.
        levels: The midpoints of equal parts of 0 to 1.
    """
    parts = [
        (1 - level) / 2 * interval_score(error, ends_at, level)
        for level, ends_at in zip(levels, ends, strict=True)
    ]
    return torch.stack(parts).mean(0)
