"""Error bands of a run: fitted to validation samples, calibrated anew, and scored."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Subset

from nfsgeo.data.meshes import MESH_KINDS, Mesh
from nfsgeo.data.windows import batches
from nfsgeo.errors import UserError
from nfsgeo.evaluation.scored_model import ScoredModel, read_bands
from nfsgeo.forecast.bands import QUANTILES, Bands, Scale, Surroundings, needed
from nfsgeo.forecast.transforms import Climatology
from nfsgeo.models import MODELS
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_bytes
from nfsgeo.training.run_data import Observation, RunData, queried

__all__ = ["Errors", "band_scores", "bands_of", "crps", "fit_bands"]
__all__ += ["interval_score"]

LEVEL = 0.9
CONDITIONS = "observed", "gaps", "unobserved", "unobserved with gaps", "unseen mesh"
# Windows, and points of each, that bands are fitted to or scored on in each condition.
WINDOWS, POINTS = 128, 128
# Share of the values that are removed; of points, one in so many is left out.
GAPS, PARTS = 0.2, 5
# Penalties of weights, times the samples, and whether features are multiplied.
FORMS = ((0.0, False), (30.0, False), (1.0, False), (30.0, True), (1.0, True))
FOLDS = 4
LEVELS = [(k + 0.5) / 20 for k in range(20)]


class Errors(NamedTuple):
    """Errors of predicted values and of persistence ``[R, T, C]``, in standard
    deviations, NaN where unknown; windows, and places in CONDITIONS, ``[R]``.
    """

    around: Surroundings
    model: Tensor
    persistence: Tensor
    window: Tensor
    condition: Tensor

    def bands(self, error: Tensor, scale: Scale, sigma: Tensor, gaps: float) -> Bands:
        """Bands of a scale, by errors on samples that ``sigma`` was not fitted to."""
        levels, found = np.linspace(0, 1, QUANTILES + 1), dict[int, Tensor]()
        for number in self.condition.unique().tolist():
            ratio = (error.abs() / sigma)[self.condition == number]
            ratio[:, ratio.isnan().all(0)] = torch.inf  # nothing is known
            quantiles = np.nanquantile(ratio, levels, axis=0, method="higher")
            found[number] = torch.from_numpy(quantiles).movedim(0, -1)
        found[0] = found[0].maximum(found.get(4, found[0]))  # on seen and unseen meshes
        found = {1: found[0], 2: found[0], **found}
        found.setdefault(3, found[1].maximum(found[2]))
        each = torch.stack([found[number] for number in range(4)])
        return Bands(scale, each, len(self.window.unique()), gaps)


@torch.no_grad()
def errors_of(scored: ScoredModel, part: str) -> Errors:
    """Errors in a part of the data, in all conditions that a band is to hold in."""
    forecaster, rows = scored.forecaster, list[list[Tensor]]()
    num, draw = len(forecaster.task.components), torch.Generator().manual_seed(0)
    stack = forecaster.transforms
    for mesh, gaps, conditions, every in _conditions(scored):
        windows = scored.windows(part, mesh=mesh)
        chosen = np.linspace(0, len(windows) - 1, min(WINDOWS, len(windows)))
        numbers = chosen.round().astype(int)[every].tolist()
        some, left = Subset(windows, numbers), iter(numbers)
        if every != slice(None) and isinstance(mesh, Mesh) and mesh.queries:
            places = torch.from_numpy(mesh.queries.pos)
            places = forecaster.task.domain.normalise(places, torch.float64)
            changed = [_elsewhere(transform, places) for transform in stack]
            forecaster.transforms = torch.nn.ModuleList(changed)
        for batch in batches(some, 4, forecaster.connect):  # type: ignore[arg-type]
            removed = torch.rand(batch.x.shape[:2], generator=draw) < gaps
            batch.x[..., :num][removed] = torch.nan
            x, graphs = (batch := batch.to(forecaster.device)).x, batch.graphs
            known = forecaster.known_ahead(batch)
            u = forecaster(x, graphs=graphs, **known)
            around = Surroundings.of(forecaster, u, x, graphs, *known.values())
            last = torch.full_like(around.unit, torch.nan)
            if forecaster.task.has_time:
                filled = forecaster.filled(x, graphs)[:, -1:, :num].cpu()
                last[around.observed] = filled.expand(-1, u.size(1), -1)
            truth = (batch.y if graphs.query_pos is None else batch.query_y).cpu()
            errors = ((each - truth) / around.unit for each in (u.cpu(), last))
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
        forecaster.transforms = stack
    found = [torch.cat(each) for each in zip(*rows, strict=True)]
    return Errors(Surroundings(*found[:4]), *found[4:])


def _conditions(scored: ScoredModel) -> Iterator[tuple[Any, ...]]:
    """Meshes, shares of values to remove, of what condition errors at observed and at
    unobserved points are, -1 for none, and the windows, as far as there are any.
    """
    used = scored.used
    config, file, mesh = used.config, used.file, used.mesh
    info, data = MODELS[config.model.name], config.data
    every, sample = slice(None), int(used.samples("test")[0])
    anywhere = info.query_points and info.unseen_meshes
    seen = mesh
    if info.query_points and not data.hold_out:
        seen = queried(mesh, file, POINTS, 0)
    for k, share in enumerate((0.0, GAPS) if data.n_in else (0.0,)):
        yield seen, share, (k, k + 2), every
    drawn = MESH_KINDS[data.mesh or "all"].drawn and not data.hold_out
    if drawn and info.unseen_meshes:
        seed = config.seed if data.mesh_seed is None else data.mesh_seed
        other = config.changed(data=data.changed(mesh_seed=seed + 1))
        yield RunData(other, file).mesh, 0.0, (4,), every
    others = seen(sample).queries
    if anywhere and not (others and len(others)) and len(mesh(sample)) >= 2 * PARTS:
        for part in range(PARTS):  # each leaves out points in every fifth window
            yield _left_out(mesh, part), 0.0, (-1, 2), slice(part, None, PARTS)


def _left_out(mesh: Observation, part: int) -> Observation:
    """With a fifth of the observed points as unobserved query points."""

    def of(sample: int) -> Mesh:
        whole = mesh(sample)
        there = np.random.default_rng(0).permutation(len(whole)) % PARTS != part
        index = np.arange(len(whole)) if whole.index is None else whole.index
        some = [Mesh(whole.pos[k], index[k]) for k in (there, ~there)]
        return replace(some[0], queries=some[1])

    return of(0) if isinstance(mesh, Mesh) else of


def _elsewhere(transform: Any, queries: Tensor) -> Any:
    """A transform that does not know the climatology of normalised query points."""
    if not isinstance(transform, Climatology):
        return transform
    known, places = dict(transform.settings), transform.pos.cpu()
    there = (torch.cdist(places, queries).amin(1) > 1e-6).tolist()
    for key in ("pos", "coefficients"):
        known[key] = [*compress(known[key], there)]
    made = Climatology(**known).to(transform.pos.device)
    made.domain = transform.domain
    return made


def fit_bands(
    scored: ScoredModel, known: Mapping[str, Bands] | None = None
) -> dict[str, Bands]:
    """Bands of the model, fitted to the validation samples, and of references.

    The scale is that of :data:`FORMS` whose intervals have the best score on samples
    that it was not fitted to, in turn on each quarter of them, as are the factors.
    Of bands that are ``known`` the scale stays; factors are of the samples to score.
    The references are ``"constant"`` with a scale for each time step and component
    alone and, where there is time, ``"persistence"`` with such a scale.
    """
    errors = errors_of(scored, "test" if known else "valid")
    features, of = errors.around.features, {"model": errors.model}
    of |= {"constant": errors.model, "persistence": errors.persistence}
    if not scored.forecaster.task.has_time:
        del of["persistence"]
    if known:
        pairs = [(of[name], each, each.scale) for name, each in known.items()]
        made = [errors.bands(e, s, s(features), each.gaps) for e, each, s in pairs]
        return dict(zip(known, made, strict=True))
    some = features.flatten(0, 2)[:: max(1, features[..., 0].numel() // 10_000)]
    ends = some.quantile(torch.tensor([0.005, 0.995]).to(some), dim=0)
    limits = torch.stack([*ends, some.mean(0), some.std(0, correction=0) + 1e-6])
    order = errors.window.unique(return_inverse=True)[1]
    num = int(order.max()) + 1

    def crossed(error: Tensor, penalty: float, products: bool) -> tuple[Scale, Tensor]:
        scales, sigma = [], torch.ones_like(error)
        for out in (order * FOLDS // num == k for k in range(FOLDS)):
            of = features[~out], error[~out], limits, penalty / num, products
            scales.append(Scale.fit(*of))
            sigma[out] = scales[-1](features[out])
        return Scale.mean(scales), sigma

    def cost(form: tuple[Scale, Tensor]) -> float:
        total = 0.0
        for here in (errors.condition == k for k in errors.condition.unique()):
            e, sigma = errors.model[here].abs(), form[1][here]
            half = sigma * (e / sigma).nanquantile(LEVEL, dim=0)
            each = interval_score(e, half, LEVEL).nanmean(0) / e.nanmean(0)
            total += float(each.nanmean())
        return total

    gaps = float(errors.around.gaps[errors.condition == 0].mean()) + GAPS / 2
    forms = {name: crossed(error, *FORMS[0]) for name, error in of.items()}
    others = (crossed(errors.model, *form) for form in FORMS[1:])
    forms["model"] = min(forms["model"], *others, key=cost)
    return {name: errors.bands(of[name], *forms[name], gaps) for name in of}


def bands_of(
    scored: ScoredModel, paths: RunPaths, *, calibrate: bool = False
) -> dict[str, Bands]:
    """The bands of a run, fitted and stored now where there are none yet, or with
    ``calibrate``, once there are, fitted to the samples that are scored.
    """
    bands, num = read_bands(paths), len(scored.windows()) if calibrate else 0
    if calibrate and (not bands or num < needed(LEVEL)):
        raise UserError(
            f"{num} samples to calibrate {'' if bands else 'no '}bands of {paths.root}",
            f"bands, and {needed(LEVEL)} samples for the level {LEVEL:g}",
            "use a file with more samples" if bands else "train with --bands",
        )
    if calibrate or (scored.used.config.model.bands and not bands):
        bands, content = fit_bands(scored, bands), io.BytesIO()
        torch.save({name: of.state() for name, of in bands.items()}, content)
        write_bytes(paths.bands, content.getbuffer())
    scored.forecaster.bands = bands.get("model")
    return bands


def band_scores(scored: ScoredModel, bands: Mapping[str, Bands]) -> dict[str, Any]:
    """How good bands of the level 0.9 are on the samples that are scored.

    In the units of the data, of several components in standard deviations: ``level``,
    ``samples`` that they were fitted to, ``coverage``, the same ``by_time_step`` and
    ``by_condition``, ``width``, ``crps``, ``interval_score``, ``reliability`` with
    ``levels`` and ``coverage``, and references by their name.
    """
    errors, scores = errors_of(scored, "test"), dict[str, Any]()
    where, plain = errors.condition, errors.condition == 0
    for name, of in bands.items():
        e = (errors.persistence if name == "persistence" else errors.model).abs()
        unit = errors.around.unit if e.size(-1) == 1 else torch.ones_like(e)
        e, sigma = e * unit, of.scale(errors.around.features) * unit
        half, *halves = (of.factor(errors.around, x) * sigma for x in (LEVEL, *LEVELS))
        inside = [torch.where(e.isnan(), e, (e <= h).to(e)) for h in (half, *halves)]
        values = {"coverage": inside[0], "width": 2 * half.where(~e.isnan(), torch.nan)}
        values["crps"] = crps(e, halves, LEVELS)
        values["interval_score"] = interval_score(e, half, LEVEL)
        means = {key: float(each[plain].nanmean()) for key, each in values.items()}
        shares = [float(each[plain].nanmean()) for each in inside[1:]]
        numbers = where.unique().tolist()
        scores[name] = means | {
            "by_time_step": inside[0][plain].nanmean((0, 2)).tolist(),
            "by_condition": {
                CONDITIONS[k]: float(inside[0][where == k].nanmean()) for k in numbers
            },
            "reliability": {"levels": LEVELS, "coverage": shares},
        }
    about = {"level": LEVEL, "samples": bands["model"].samples}
    return about | scores.pop("model") | scores


def interval_score(error: Tensor, half: Tensor, level: float) -> Tensor:
    """The interval score of Gneiting and Raftery (2007, equation 43), of an absolute
    ``error`` from the centre of a band of half the width ``half``.
    """
    return 2 * half + 2 / (1 - level) * (error - half).clamp_min(0)


def crps(error: Tensor, halves: Sequence[Tensor], levels: Sequence[float]) -> Tensor:
    """The continuous ranked probability score of a symmetric distribution.

    Of the absolute ``error`` from its centre and half the widths of its central
    intervals of ``levels``, the midpoints of equal parts of 0 to 1: the mean of
    their interval scores, each times half of one less its level.
    """
    each = zip(levels, halves, strict=True)
    parts = [(1 - of) / 2 * interval_score(error, h, of) for of, h in each]
    return torch.stack(parts).mean(0)
