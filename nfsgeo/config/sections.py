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
    model_validator,
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
        file: File, folder or quoted pattern of files, in any format that ``nfsgeo
            datasets`` lists; None for a small Navier-Stokes set. It is also called
            ``train_file``.
        columns: Roles of columns whose names do not tell them, also in files to predict
            from. :func:`nfsgeo.data.open` describes them.
        test_file: A second file with the test samples; all samples of the first are for
            training and validation then.
        split: Three fractions with the sum 1, or numbers of samples, of training,
            validation and test samples in the order of the file; None for the file's
            own parts, or else 0.7/0.1/0.2. With ``test_file`` the second alone counts,
            an eighth of ``file`` if None.
        known: Fields of the file that are known ahead (forcings), and parameters of
            samples that are inputs, besides those that the file itself tells.
        graph: Table of directed edges between points, such as roads, with columns
            ``from``, ``to`` and ``weight``, for models that use a graph (``gcgru``,
            ``dcrnn``). Ends of edges are names of stations or numbers of points from 0.
            Distances, ``cost`` or ``distance``, are no weights but with ``:gaussian``
            behind its name, see :func:`nfsgeo.data.io.edges.with_graph_of`. None for
            that of the file.
        mesh: How observed points are chosen: ``random-subset``, ``grid``, ``all``,
            ``off-grid``, ``clustered`` or ``jittered``. None for a sub-grid where
            ``grid`` is given or the model needs one, else a random subset of a grid,
            all points of a cloud.
        points: Number of observed points; None for a quarter of the points of a grid,
            all points of a cloud.
        grid: Points along each axis of the sub-grid that is observed.
        hold_out: Fraction of the points of a cloud that training never uses, and where
            errors are those at unobserved points. ``mesh_seed`` draws them.
        mesh_per_sample: Whether each sample is observed at points of its own.
        point_sets: Number of point sets that training samples cycle through, one per
            epoch: an augmentation that keeps networks from fitting one mesh.
            Validation and test samples are observed on the first. None for
            the model's, see :attr:`nfsgeo.models.Model.point_sets`.
        query_points: Points of the file, for each training sample, at which it is not
            observed and the model is to predict it all the same; 0 for none, None for
            as many as suit the model, see :attr:`nfsgeo.models.Model.query_points`.
        least_fraction: In every other epoch a training sample is observed at a subset
            of its points that is graded as they are, a random fraction of them between
            this one and 1: an augmentation that keeps networks from fitting the density
            of a mesh. None for the model's where samples have meshes of their own and
            are observed at all points, see :attr:`nfsgeo.models.Model.least_fraction`,
            else 1, for all points in every epoch.
        mesh_seed: Seed of the points; None for that of the run.
        n_in: Number of observed time steps; None for 10, or 0 where a coefficient is
            the input.
        n_out: Number of time steps to predict, right after them; None for 10, or 1
            where a coefficient is the input.
        first_step: Index of the first observed time step.
        time_stride: Number of time steps of the file per time step of a window.
        input_noise: Standard deviation of Gaussian noise on the observed fields in all
            parts, relative to that of the training data. Targets have no noise, nor
            have static inputs of fields in time. Training draws new noise in every
            epoch.
        training_noise: Standard deviation of further noise on the inputs of training
            windows only, which teaches a model to correct errors in a rollout.
        lead_times: Whether the model predicts one time step at any requested time after
            its inputs, with all times as inputs. Each visit of a training window draws
            one of its targets, and ``n_in`` time steps before it. Time steps may then
            differ in length.
        window_stride: Number of time steps of the file between the starts of
            consecutive training windows of a sample. None for one window per sample,
            from ``first_step``. If samples are split by time, None means 1 or, in
            a long series, for up to ``n_out``, so that about 1000 windows remain.
        evaluation_stride: The stride of validation and test windows. None for one
            window per sample, or for ``window_stride`` if samples are split by time.
        split_by: ``series`` if each sample belongs to one part of the data, or ``time``
            if all parts have all samples, training their first and test their last time
            steps. No time step belongs to two parts. None for ``time`` if there are too
            few samples for three parts, otherwise for ``series``.
        boundary_inputs: Whether distance and direction from each point to the boundary
            are inputs. The boundary is that of the obstacles in the domain; without
            obstacles, the nearest point of each node type except the interior; without
            node types, the boundary of the cells of each sample.
        impose: Node types, by number or meaning, at whose points known values replace
            predictions, for all components (``[wall, inflow]``) or for those named by
            type (``{6: [velocity_0, velocity_1]}``). The values are those of the last
            input time step, or of the forcing ``forcing_u`` of a component ``u``. This
            holds in every step of a rollout, too.
        max_missing: Largest fraction of missing values of a component in training and
            validation windows.
        max_train, max_valid, max_test: Use no more samples than this of each part.
        batch_size: Samples in each training step, on each device. Where it is not
            given, a noisy series has 32, see :attr:`nfsgeo.stations.SeriesFit.noisy`.
        workers: Processes that read data; 0 reads in the training process.
    """

    file: Path | None = Field(
        default=None, validation_alias=AliasChoices("file", "train_file")
    )
    columns: dict[str, str | list[str]] | None = None
    test_file: Path | None = None
    split: tuple[NonNegativeFloat, NonNegativeFloat, NonNegativeFloat] | None = None
    known: list[str] = []
    graph: str | None = None
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
        name: Name of the model; ``nfsgeo models`` lists them.
        settings: Fields of its settings class; all of them once loaded, by
            :func:`nfsgeo.training.load_config`.
        prediction: ``residual`` predicts the change since the last observed time step;
            ``damped`` the difference from damped persistence, which suits noisy inputs;
            ``linear`` the difference from a linear forecast of one long series, see
            :class:`nfsgeo.stations.LinearForecast`; ``rate`` the change divided by the
            lead time, with lead times only; ``direct`` the field itself, as in the
            paper. None for linear if samples are split by time, for direct with
            ``data.input_noise``, and otherwise for residual. Without input time steps
            and for autoregressive models it is always direct.
        start_from: A run, or the name of a pretrained model, whose weights and scales
            training starts from; None for random weights. See
            :func:`nfsgeo.training.start_from`. Settings of the
            model that the user does not choose are those of that run.
        freeze: Names of modules of the model whose weights do not change, such as
            ``blocks``.
        bands: Whether error bands of predictions are fitted to validation samples after
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
        lr: Highest learning rate of the schedule; None for that of the model.
            See :attr:`nfsgeo.models.Model.learning_rate`. A noisy series has 5e-4, and
            the preset ``paper`` the paper's rate.
        find_lr: Whether a range test chooses ``lr`` before training, see
            :func:`nfsgeo.training.trainer.find_learning_rate`.
        betas, eps, weight_decay: As the optimiser defines them.
        gradient_clip: Largest norm of the gradient; None for no limit.
        schedule: ``one-cycle`` (up, then down to zero, after every step), ``step``
            (multiplied by ``step_factor`` after every ``step_epochs``) or ``constant``.
        one_cycle_rise: Fraction of the steps in which the one-cycle rate rises.
        step_epochs, step_factor: Period and factor of the step schedule.
    """

    name: Literal["adam", "adamw"] = "adam"
    lr: PositiveFloat | None = None
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
        budget: Minutes of CPU time to train, instead of a number of epochs; on CUDA
            minutes of wall-clock time. The number of epochs follows from the time of
            the first steps. Evaluation and figures come on top.
        patience: Epochs without a better validation RMSE before stopping; None for
            no early stopping.
        device: Where to compute; ``auto`` takes a CUDA device where there is one.
        devices: Number of devices, each of which trains on its own samples.
        num_nodes: Number of machines; on several torchrun or srun starts the run.
        precision: Precision of the arithmetic; spectral layers stay in single
            precision.
        accumulate: Batches whose gradients are averaged for one step of the optimiser.
        logger: Logger of training, besides ``metrics.csv``:
            ``tensorboard``, ``csv``, ``wandb`` or ``mlflow``, the last two if they are
            installed; ``none`` for nowhere.
        log_every: Steps between two entries of the log.
    """

    epochs: PositiveInt = 12
    budget: PositiveFloat | None = None
    patience: PositiveInt | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    devices: PositiveInt = 1
    num_nodes: PositiveInt = 1
    precision: Annotated[
        Literal["32", "64", "16-mixed", "bf16-mixed"],
        BeforeValidator(lambda value: str(value) if isinstance(value, int) else value),
    ] = "32"
    accumulate: PositiveInt = 1
    logger: Literal["tensorboard", "csv", "wandb", "mlflow", "none"] = "tensorboard"
    log_every: PositiveInt = 10

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if self.budget is not None and "epochs" in self.model_fields_set:
            raise ValueError("either epochs or a budget, not both")
        return self


class RunConfig(Section):
    """Everything that determines a run.

    Attributes:
        preset: ``paper`` takes all settings that are not given from the paper.
        seed: Seed of points, weights and the order of the samples.
        data: Samples and points.
        model: The network.
        loss: The loss that training minimises.
        optimiser: The optimiser and its schedule.
        trainer: Length of training, devices, precision and logging.
        imports: Files and modules that ``--import`` named, see :mod:`nfsgeo.plugins`.

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
    imports: tuple[str, ...] = ()
