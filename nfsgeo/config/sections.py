"""Settings of a run, checked on construction.

Names of models, meshes and losses are checked once they are loaded, by
:func:`nfsgeo.training.load_config`: the registries may have further ones.

The defaults are the demonstration: what ``nfsgeo train --model nfs`` trains when
nothing else is said, within minutes on two cores. Its data are in
:mod:`nfsgeo.training.source`, the paper's protocol in :mod:`nfsgeo.training.loading`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_serializer,
)

from nfsgeo.config.names import LossWeighting, Prediction

__all__ = [
    "DataSection",
    "LossSection",
    "ModelSection",
    "OptimiserSection",
    "RunConfig",
    "TrainerSection",
]

Share = Annotated[float, Field(ge=0, lt=1)]


class Section(BaseModel):
    """Base of all sections: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def changed(self, **values: Any) -> Self:
        """A copy with other values, which are checked already."""
        return self.model_copy(update=values)


class DataSection(Section):
    """Samples for training, validation and test, and the points of observation.

    Attributes:
        file: Data in any format that :func:`nfsgeo.data.open` reads, also called
            ``train_file``; None for the demonstration's.
        columns: Roles of the files' columns, where their names do not tell, as
            :func:`nfsgeo.data.open` takes them; also for files to predict from.
        test_file: A second file, whose samples are the test part; those of ``file`` are
            for training and validation then.
        split: Three fractions with the sum 1, or numbers of samples, of training,
            validation and test samples in the order of the file; None for the file's
            own parts, or else 0.7/0.1/0.2. With ``test_file`` the second alone counts,
            an eighth of ``file`` if None.
        known: Fields of the file that are known ahead (forcings), and parameters of
            samples that are inputs, besides those that the file itself tells.
        mesh: How points are chosen: ``random-subset``, ``grid``, ``all``,
            ``off-grid``, ``clustered`` or ``jittered``. None for a sub-grid where
            ``grid`` is given or the model needs one, else a random subset of a grid,
            all points of a cloud.
        points: Number of points; None for a quarter of a grid's, all of a cloud's.
        grid: Points along each axis, for the sub-grid.
        hold_out: Fraction of the points of a cloud that training never uses, drawn by
            ``mesh_seed``: a summary has the errors there as those at unobserved points.
        mesh_per_sample: Whether each sample is observed at points of its own.
        point_sets: Number of point sets that training samples cycle through, one per
            epoch: an augmentation that keeps networks from fitting one mesh.
            Validation and test samples are observed on the first. None for
            the model's, see :attr:`nfsgeo.models.Model.point_sets`.
        query_points: Points of the file, for each training sample, at which it is not
            observed and the model is to predict it all the same; 0 for none, None for
            as many as suit the model, see :attr:`nfsgeo.models.Model.query_points`.
        least_fraction: In every other epoch a training sample is observed at a random
            subset of its points, a fraction of them between this one and 1: an
            augmentation that keeps networks from fitting the density of a mesh. None
            for the model's where samples have meshes of their own and are observed at
            all points, see :attr:`nfsgeo.models.Model.least_fraction`, else 1, for all
            points in every epoch.
        mesh_seed: Seed of the points; None for that of the run.
        n_in: Number of observed time steps; None for 10, or 0 where a coefficient is
            the input.
        n_out: Number of time steps to predict, right after them; None for 10, or 1
            where a coefficient is the input.
        first_step: Index of the first observed time step.
        time_stride: Time steps of the file from one that is used to the next.
        input_noise: Standard deviation of Gaussian noise on the observed values,
            relative to theirs in the training data, in every part; targets have none,
            nor have static inputs of fields in time. Training sees new noise in every
            epoch.
        training_noise: The same of further noise on the inputs of training windows
            alone, after which a model corrects errors such as its own in a rollout.
        lead_times: Whether the model predicts one time step, at any time after its
            inputs that is asked for, and sees the time of each. Each visit of a
            training window takes one of its targets, and ``n_in`` time steps before it.
            Time steps may be of any length then.
        window_stride: Time steps of the file from the beginning of a training window to
            that of the next in the same sample. None for one window of each sample,
            from ``first_step``; of samples split by time 1, or as many, up to
            ``n_out``, as leave about 1000 windows.
        evaluation_stride: The same of validation and test windows; None for one of each
            sample, or ``window_stride`` where samples are split by time.
        split_by: ``series``, where each sample belongs to one part of the data, or
            ``time``, where all parts have all samples, and training has the first, test
            the last time steps of each. No time step belongs to two parts. None for
            ``time`` where there are too few samples for three parts, else ``series``.
        boundary_inputs: Whether distance and direction from each point to the boundary
            are inputs, too: to that of the domain's obstacles, or in a domain without
            any to the nearest point of each node type other than the interior, or in a
            file without these to the boundary of each sample's cells.
        impose: Node types, by their number or meaning, at whose points known values
            take the place of predictions, of all components or of those named for each
            type: ``[wall, inflow]``, ``{6: [velocity_0, velocity_1]}``. These are the
            values of the last input time step, or of a component ``u`` with a forcing
            ``forcing_u`` those of the forcing; also in every step of a rollout.
        max_missing: Largest fraction of missing values of a component in training and
            validation windows.
        max_train, max_valid, max_test: Use no more samples than this of each part.
        batch_size: Samples of a step, on each device. Where it is not given, a noisy
            series has 32, see :attr:`nfsgeo.stations.SeriesFit.noisy`.
        workers: Processes that read data; 0 reads in the training process.
    """

    file: Path | None = Field(
        default=None, validation_alias=AliasChoices("file", "train_file")
    )
    columns: dict[str, str | list[str]] | None = None
    test_file: Path | None = None
    split: tuple[NonNegativeFloat, NonNegativeFloat, NonNegativeFloat] | None = None
    known: list[str] = []
    mesh: str | None = None
    points: PositiveInt | None = None
    grid: PositiveInt | None = None
    hold_out: Share = 0.0
    mesh_per_sample: bool = False
    point_sets: PositiveInt | None = None
    query_points: NonNegativeInt | None = None
    least_fraction: float | None = Field(default=None, gt=0, le=1)
    mesh_seed: NonNegativeInt | None = None
    n_in: NonNegativeInt | None = None
    n_out: PositiveInt | None = None
    first_step: NonNegativeInt = 0
    time_stride: PositiveInt = 1
    input_noise: NonNegativeFloat = 0.0
    training_noise: NonNegativeFloat = 0.0
    lead_times: bool = False
    window_stride: PositiveInt | None = None
    evaluation_stride: PositiveInt | None = None
    split_by: Literal["series", "time"] | None = None
    boundary_inputs: bool = False
    impose: list[int | str] | dict[int | str, list[str]] = []
    max_missing: Share = 0.9
    max_train: PositiveInt | None = None
    max_valid: PositiveInt | None = None
    max_test: PositiveInt | None = None
    batch_size: PositiveInt = 4
    workers: NonNegativeInt = 0

    def length(self, num: int) -> int:
        """Time steps of the file that ``num`` time steps of a window reach over."""
        return (num - 1) * self.time_stride + 1


class ModelSection(Section):
    """The network and its settings.

    Attributes:
        name: Name of the network, see ``nfsgeo models``.
        settings: What its settings class holds; all of them once loaded, by
            :func:`nfsgeo.training.load_config`.
        prediction: ``residual`` for the change since the last observed time step,
            ``damped`` for the difference from damped persistence, which suits noisy
            inputs, ``linear`` for that from a linear forecast of one long series, see
            :class:`nfsgeo.stations.LinearForecast`, ``rate`` for the change divided by
            the time that it takes, with lead times only, or ``direct`` for the field
            itself, as in the paper. None for linear where series are split by
            time, else for residual, and for direct with ``data.input_noise``, which the
            last time step has. Always direct where the input has no time steps, and for
            models with an autoregressive rollout.
        start_from: A run, or the name of a model that comes with nfsgeo, whose weights
            and fitted scales training starts from, see
            :func:`nfsgeo.training.start_from`; None for random weights. Settings
            of the model that are not given are those of that run.
        freeze: Parts of the model whose weights stay as they are, by the names of its
            modules, such as ``blocks``.
        bands: Whether predictions have error bands, fitted to validation samples after
            training, see :mod:`nfsgeo.uncertainty.bands`.
    """

    name: str = "nfs"
    prediction: Prediction | None = None
    settings: dict[str, Any] = {}
    start_from: Path | None = None
    freeze: tuple[str, ...] = ()
    bands: bool = False

    @field_serializer("start_from")
    def _absolute(self, run: Path | None) -> str | None:
        # A run is resumed from any folder; the name of a model is no path.
        return None if run is None else str(run.resolve() if run.exists() else run)


class LossSection(Section):
    """The loss that training minimises.

    Attributes:
        name: ``mse``, ``relative_l2`` or ``mae``, see :mod:`nfsgeo.training.losses`.
            Where it is not given, a noisy series has ``mae``, which outliers of
            measurements do not sway.
        weighting: ``uniform`` weights of all points, as in the paper, or ``quadrature``
            weights, the volumes of their Voronoi cells. None for what suits the model,
            see :attr:`nfsgeo.models.Model.loss_weighting`. Unobserved query points
            and the validation loss have uniform weights.
    """

    name: str = "relative_l2"
    weighting: LossWeighting | None = None


class OptimiserSection(Section):
    """The optimiser and the schedule of its learning rate.

    Attributes:
        name: ``adam``, or ``adamw`` with its decoupled weight decay.
        lr: Learning rate, the highest of the schedule; None for the paper's. Where it
            is not given, that of the model, see
            :attr:`nfsgeo.models.Model.learning_rate`; a noisy series has 5e-4.
        find_lr: Whether a range test chooses ``lr`` before training, see
            :func:`nfsgeo.training.trainer.find_learning_rate`.
        betas, eps, weight_decay: As the optimiser defines them.
        gradient_clip: Largest norm of the gradient; None for no limit.
        schedule: ``one-cycle`` (up, then down to nothing, step by step), ``step``
            (times ``step_factor`` after every ``step_epochs``) or ``constant``.
        one_cycle_rise: Fraction of the steps in which the one-cycle rate rises.
        step_epochs, step_factor: Of the step schedule.
    """

    name: Literal["adam", "adamw"] = "adam"
    lr: PositiveFloat | None = 2e-3
    find_lr: bool = False
    betas: tuple[Share, Share] = (0.9, 0.98)
    eps: PositiveFloat = 1e-9
    weight_decay: NonNegativeFloat = 0.0
    gradient_clip: PositiveFloat | None = 5.0
    schedule: Literal["one-cycle", "step", "constant"] = "one-cycle"
    one_cycle_rise: float = Field(default=0.3, ge=0, le=1)
    step_epochs: PositiveInt = 100
    step_factor: PositiveFloat = 0.5


class TrainerSection(Section):
    """Length of training, devices, precision and logging.

    Attributes:
        epochs: Passes over the training samples.
        patience: Epochs without a better validation RMSE before stopping; None for
            no early stopping.
        device: Where to compute; ``auto`` takes a CUDA device where there is one.
        devices: Number of devices; more than one trains data-parallel.
        precision: Precision of the arithmetic; spectral layers stay in single
            precision.
        accumulate: Batches whose gradients are averaged for one step of the optimiser.
        logger: Logger of training, besides ``metrics.csv``:
            ``tensorboard``, ``csv``, ``wandb`` or ``mlflow``, the last two if they are
            installed; ``none`` for nowhere.
        log_every: Steps between two entries of the log.
    """

    epochs: PositiveInt = 12
    patience: PositiveInt | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    devices: PositiveInt = 1
    precision: Annotated[
        Literal["32", "64", "16-mixed", "bf16-mixed"],
        BeforeValidator(lambda value: str(value) if isinstance(value, int) else value),
    ] = "32"
    accumulate: PositiveInt = 1
    logger: Literal["tensorboard", "csv", "wandb", "mlflow", "none"] = "tensorboard"
    log_every: PositiveInt = 10


class RunConfig(Section):
    """Everything that determines a run.

    Attributes:
        preset: ``paper`` for the paper's protocol where nothing else is said.
        seed: Seed of points, weights and the order of the samples.
        data: Samples and points.
        model: The network.
        loss: The loss that training minimises.
        optimiser: The optimiser and its schedule.
        trainer: Length of training, devices, precision and logging.

    Raises:
        pydantic.ValidationError: A value is wrong;
            :func:`nfsgeo.training.load_config` says so in one line.
    """

    preset: Literal["default", "paper"] = "default"
    seed: int = Field(default=0, ge=0, lt=2**63)
    data: DataSection = DataSection()
    model: ModelSection = Field(default_factory=ModelSection)
    loss: LossSection = LossSection()
    optimiser: OptimiserSection = OptimiserSection()
    trainer: TrainerSection = TrainerSection()
