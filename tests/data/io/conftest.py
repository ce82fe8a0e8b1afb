"""A small file of every format, in that format's own layout, no two axes equal."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
import torch
import xarray

import nfsgeo
import nfsgeo.data

N, T, X, Y = 5, 4, 6, 3
RNG = np.random.default_rng(0)
Save = Callable[..., None]


@dataclass
class Expected:
    """What is to be found, ``u`` as [N, T, *S, C] and ``a`` as [N, *S, C_a]."""

    u: np.ndarray
    axes: list[np.ndarray]
    times: np.ndarray
    periodic: tuple[bool, ...]
    a: np.ndarray | None = None
    role: str = ""
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    parameters: dict[str, np.ndarray] = field(default_factory=dict)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def unit(num: int) -> np.ndarray:
    return np.arange(num) / num


def save_mat73(path: Path, arrays: dict[str, np.ndarray]) -> None:
    # As MATLAB does: a user block with text, axes in reverse.
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in arrays.items():
            file.create_dataset(name, data=values.T, compression="gzip")
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file")


def burgers_pairs(path: Path) -> Expected:
    a, u = normal(N, X).astype(float), normal(N, X).astype(float)
    scipy.io.savemat(path, {"a": a, "u": u, "a_x": a})
    both = np.stack([a, u], axis=1)[..., None]
    return Expected(both, [unit(X)], np.array([0.0, 1.0]), (True,))


def burgers_series(path: Path, save: Save = scipy.io.savemat) -> Expected:
    first, u = normal(N, X), normal(N, T, X)
    save(path, {"input": first, "output": u})
    u = u.copy()
    u[:, 0] = first
    return Expected(u[..., None], [unit(X)], np.linspace(0, 1, T), (True,))


def navier_stokes(path: Path, save: Save = save_mat73) -> Expected:
    a, u = normal(N, X, Y), normal(N, X, Y, T)
    save(path, {"a": a, "u": u, "t": np.arange(1.0, T + 1)[None]})
    moved = np.moveaxis(u, -1, 1)[..., None]
    axes, times = [unit(X), unit(Y)], np.arange(1.0, T + 1)
    role = "initial condition"
    return Expected(moved, axes, times, (True, True), a[..., None], role)


def darcy(path: Path, save: Save = scipy.io.savemat) -> Expected:
    a, u = normal(N, X, Y), normal(N, X, Y)
    save(path, {"coeff": a, "sol": u, "Kcoeff": a})
    axes = [np.linspace(0, 1, X), np.linspace(0, 1, Y)]
    u, zero = u[:, None, ..., None], np.zeros(1)
    return Expected(u, axes, zero, (False, False), a[..., None], "static")


def combined_equation(path: Path) -> Expected:
    u = normal(N, T, X + 1).astype(float)
    u[..., -1] = u[..., 0]
    x = np.linspace(0, 16, X + 1)
    with h5py.File(path, "w") as file:
        for part, samples in (("train", slice(0, 3)), ("test", slice(3, 5))):
            group = file.create_group(part)
            group["pde_4-7"] = u[samples]
            group["pde_4-4"] = u[samples, :, ::2]
            for name, nx in (("pde_4-7", 7), ("pde_4-4", 4)):
                about = {"dt": 4 / 3, "dx": 16 / nx, "nt": T, "nx": nx}
                about |= {"tmin": 0.0, "tmax": 4.0, "x": np.linspace(0, 16, nx)}
                group[name].attrs.update(about)
            for number, name in enumerate(("alpha", "beta", "gamma")):
                group[name] = np.arange(N)[samples] + 10.0 * number
    more: Any = {"upper": (16.0,), "parameters": {"beta": np.arange(N) + 10.0}}
    return Expected(u[..., :X, None], [x[:X]], np.linspace(0, 4, T), (True,), **more)


def wave_equation(path: Path) -> Expected:
    u, x = normal(N, T, X), np.sort(normal(X).astype(float))
    with h5py.File(path, "w") as file:
        file["train/pde_4-6"] = u
        about = {"tmin": 0.0, "tmax": 100.0, "x": x, "nt": T, "nx": X}
        file["train/pde_4-6"].attrs.update(about)
        for name in ("bc_left", "bc_right", "c"):
            file[f"train/{name}"] = np.arange(N)
    times = np.linspace(0, 100, T)
    return Expected(u[..., None], [x], times, (False,), lower=(x[0],), upper=(x[-1],))


def neuraloperator_darcy(path: Path) -> Expected:
    x, y = torch.rand(N, X, Y) > 0.5, torch.randn(N, X, Y)
    torch.save({"x": x, "y": y}, path)
    u, a = y.numpy()[:, None, ..., None], x.numpy().astype(np.float32)[..., None]
    return Expected(u, [unit(X), unit(Y)], np.zeros(1), (False, False), a, "static")


def neuraloperator_burgers(path: Path) -> Expected:
    y = torch.randn(N, 17, X, dtype=torch.float64)
    save = {"x": y[:, 0].clone(), "y": y, "visc": torch.tensor([[0.01]])}
    torch.save(save, path, _use_new_zipfile_serialization=False)
    u, times, role = y.numpy()[..., None], 0.06 * np.arange(17), "initial condition"
    return Expected(u, [unit(X)], times, (True,), u[:, 0], role)


def pdebench_burgers(path: Path) -> Expected:
    u, x = normal(N, T, X), (np.arange(X) + 0.5) / X
    with h5py.File(path, "w") as file:
        file["tensor"], file["x-coordinate"] = u, x.astype(np.float32)
        file["t-coordinate"] = np.linspace(0, 2, T + 1, dtype=np.float32)
    times = np.linspace(0, 2, T + 1, dtype=np.float32)[:T]
    return Expected(u[..., None], [x], times, (True,))


def pdebench_darcy(path: Path) -> Expected:
    u, a = normal(N, 1, X, Y), normal(N, X, Y)
    axes = [(np.arange(n) + 0.5) / n for n in (X, Y)]
    with h5py.File(path, "w") as file:
        file["tensor"], file["nu"] = u, a
        file["x-coordinate"] = axes[0].astype(np.float32)
        file["y-coordinate"] = axes[1].astype(np.float32)
        file.attrs["beta"] = 0.1
    zero, role = np.zeros(1), "static"
    return Expected(u[..., None], axes, zero, (False, False), a[..., None], role)


def pdebench_navier_stokes(path: Path) -> Expected:
    velocity, particles = normal(N, T, X, Y, 2), normal(N, T, X, Y, 1)
    force, times = normal(N, X, Y, 2), np.linspace(0, 5, T)
    with h5py.File(path, "w") as file:
        file["velocity"], file["particles"], file["force"] = velocity, particles, force
        file["t"] = np.tile(times, (N, 1)).astype(np.float32)
    axes = [(np.arange(n) + 0.5) / n for n in (X, Y)]
    u = np.concatenate([velocity, particles], axis=-1)
    times = times.astype(np.float32)
    return Expected(u, axes, times, (False, False), force, "static")


def pdebench_groups(path: Path) -> Expected:
    u, times = normal(N, T, X, Y, 2), np.linspace(0, 5, T)
    axes = [(np.arange(n) + 0.5) / n for n in (X, Y)]
    with h5py.File(path, "w") as file:
        for sample, values in enumerate(u):
            file[f"{sample:04d}/data"], file[f"{sample:04d}/grid/t"] = values, times
            file[f"{sample:04d}/grid/x"], file[f"{sample:04d}/grid/y"] = axes
    lower, upper = zip(*((axis[0], axis[-1]) for axis in axes), strict=True)
    return Expected(u, axes, times, (False, False), lower=lower, upper=upper)


def the_well(path: Path) -> Expected:
    density, velocity = normal(N, T, X, Y), normal(N, T, X, Y, 2)
    strain, depth = normal(T, X, 2, 2), normal(N, Y)
    with h5py.File(path, "w") as file:
        about = {"dataset_name": "shear", "grid_type": "cartesian"}
        file.attrs.update(about | {"n_spatial_dims": 2, "n_trajectories": N})
        dims = file.create_group("dimensions")
        dims.attrs["spatial_dims"] = ["x", "y"]
        dims["time"] = np.linspace(0, 3, T, dtype=np.float32)
        dims["x"] = (2 * np.pi * unit(X)).astype(np.float32)
        dims["y"] = np.linspace(-1, 1, Y, dtype=np.float32)
        for name in ("time", "x", "y"):
            dims[name].attrs["sample_varying"] = False
        for name, kind in (("x", "PERIODIC"), ("y", "WALL")):
            group = file.create_group(f"boundary_conditions/{name}_{kind.lower()}")
            group.attrs["associated_dims"], group.attrs["bc_type"] = [name], kind
        file["scalars/Re"] = 100.0
        file["scalars/Re"].attrs.update(sample_varying=False, time_varying=False)
        varied = {  # order, values, and whether they vary by sample, time, x and y
            "density": (0, density, True, True, [True, True]),
            "depth": (0, depth, True, False, [False, True]),
            "velocity": (1, velocity, True, True, [True, True]),
            "strain": (2, strain, False, True, [True, False]),
        }
        for order, names in enumerate((["density", "depth"], ["velocity"], ["strain"])):
            file.create_group(f"t{order}_fields").attrs["field_names"] = names
        for name, (order, values, samples, times, dims_vary) in varied.items():
            file[f"t{order}_fields/{name}"] = values
            about = {"sample_varying": samples, "time_varying": times}
            about |= {"dim_varying": dims_vary}
            file[f"t{order}_fields/{name}"].attrs.update(about)
    wide = np.broadcast_to(strain[None, :, :, None], (N, T, X, Y, 2, 2))
    u = [density[..., None], velocity, wide.reshape(N, T, X, Y, 4)]
    axes, times = [2 * np.pi * unit(X), np.linspace(-1, 1, Y)], np.linspace(0, 3, T)
    a = np.broadcast_to(depth[:, None], (N, X, Y))[..., None]
    ends: Any = {"lower": (0.0, -1.0), "upper": (2 * np.pi, 1.0)}
    joined = np.concatenate(u, axis=-1)
    return Expected(joined, axes, times, (True, False), a, "static", **ends)


def authors_grid(path: Path) -> Expected:
    u, a = normal(N, X, Y, 1), normal(N, X, Y).astype(float)
    path.write_bytes(pickle.dumps({"u": u, "a": a}, protocol=4))
    moved = np.moveaxis(u, -1, 1)[..., None]
    axes, role = [unit(X), unit(Y)], "static"
    return Expected(moved, axes, np.zeros(1), (True, True), a[..., None], role)


def npz_grid(path: Path) -> Expected:
    u, a = normal(N, T, X, Y, 2), normal(N, X, Y, 1)
    arrays = {"u": u, "a": a, "x": unit(X), "y": np.linspace(-1, 2, Y)}
    arrays |= {"upper": np.array([1, 2]), "periodic": np.array([True, False])}
    np.savez(path, t=np.arange(T) / 2, parameter_nu=np.arange(N) / 10, **arrays)
    axes, times = [unit(X), arrays["y"]], np.arange(T) / 2
    more: Any = {"lower": (0.0, -1.0), "upper": (1.0, 2.0)}
    more["parameters"] = {"nu": np.arange(N) / 10}
    return Expected(u, axes, times, (True, False), a, "static", **more)


def camlab(path: Path, **arrays: np.ndarray) -> Path:
    if not arrays:
        arrays = {"u": normal(N, 21, 7, 1), "x": RNG.random((1, 1, 7, 2))}
        arrays["c"] = np.repeat(RNG.random((N, 1, 7, 1)), 21, axis=1)
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values
    return path


def geo_fno(path: Path, num: int = N, points: int = 7, grid: Any = (X, Y)) -> Path:
    stem = path.name.rpartition("_Q")[0]
    if not stem:
        np.save(path, RNG.random((points, num)))
        places = RNG.random((points, 2, num))
        np.save(path.with_name("Random_UnitCell_XY_10.npy"), places)
        return path
    np.save(path, RNG.random((num, 5, *grid)))
    for axis in "XY":
        np.save(path.with_name(f"{stem}_{axis}.npy"), RNG.random((num, *grid)))
    return path


def trajectories(
    path: Path,
    sizes: Any = (7, 7),
    steps: int = 1,
    tiled: Any = False,
    cells: Any = True,
) -> list[dict[str, np.ndarray]]:
    """As the converted files of cylinder_flow: a group for each trajectory."""
    made = []
    for n in sizes:
        kinds = RNG.choice([0, 4], (n, 1))
        arrays = {"mesh_pos": RNG.random((n, 2)), "node_type": kinds}
        if cells:
            arrays["cells"] = RNG.integers(0, n, (n + 1, 3)).astype("i4")
        if tiled:
            arrays = {k: np.tile(v, (steps, 1, 1)) for k, v in arrays.items()}
        arrays |= {"velocity": normal(steps, n, 2), "pressure": normal(steps, n, 1)}
        made.append(arrays)
    if path.suffix == ".npz":
        np.savez(path, **made[0])
        return made[:1]
    with h5py.File(path, "w") as file:
        for number, arrays in enumerate(made):
            for name, values in arrays.items():
                file[f"{number}/{name}"] = values
    return made


def authors_points(path: Path) -> None:
    found = {"u": normal(N, 7, 1), "a": normal(N, 7), "x": RNG.random((7, 2))}
    path.write_bytes(pickle.dumps(found, protocol=3))


def graphs(path: Path) -> None:
    from torch_geometric.data import Data

    t = torch.arange(4.0)
    made = (Data(x=torch.randn(7, 4, 1), pos=torch.rand(7, 2), t=t) for _ in range(N))
    torch.save([*made], path)


def written(path: Path) -> None:
    """By the writer for the ending."""
    steps = 1 if path.suffix == ".vtu" else T
    u, times = RNG.normal(size=(1, 7, steps)), np.arange(float(steps))
    nfsgeo.from_arrays(u, RNG.random((7, 2)), times).write(path)


def zarr(path: Path) -> None:
    written(path.with_suffix(".nc"))
    with xarray.open_dataset(path.with_suffix(".nc"), decode_times=False) as whole:
        whole.load().to_zarr(path, consolidated=False, zarr_format=2)


def blocks(path: Path) -> None:
    listed = ""
    for name in ("a.vtu", "b.vtu"):
        written(path.with_name(name))
        listed += f'<DataSet file="{name}"/>'
    kind = "vtkMultiBlockDataSet"
    path.write_text(f'<VTKFile type="{kind}"><{kind}>{listed}</{kind}></VTKFile>')


def steps(path: Path) -> None:
    meshio = pytest.importorskip("meshio")
    with meshio.xdmf.TimeSeriesWriter(path, data_format="XML") as out:
        out.write_points_cells(RNG.random((4, 3)), [("triangle", [[0, 1, 2]])])
        for time in (0.0, 0.5):
            out.write_data(time, point_data={"p": RNG.random(4)})


GRIDS: dict[str, Callable[[Path], Expected]] = {
    "burgers_data_R10.mat": burgers_pairs,
    "burgers_v100_t3.mat": burgers_series,
    "burgers_v100_t3_73.mat": partial(burgers_series, save=save_mat73),
    "NavierStokes_V1e-3_N5_T4.mat": navier_stokes,
    "ns_V1e-4_N5_T4.mat": partial(navier_stokes, save=scipy.io.savemat),
    "piececonst_r6_N5_smooth1.mat": darcy,
    "piececonst_r6_N5_smooth1_73.mat": partial(darcy, save=save_mat73),
    "CE.h5": combined_equation,
    "WE.h5": wave_equation,
    "darcy_train_16.pt": neuraloperator_darcy,
    "burgers_lowres.pt": neuraloperator_burgers,
    "1D_Burgers_Sols_Nu0.02.hdf5": pdebench_burgers,
    "2D_DarcyFlow.hdf5": pdebench_darcy,
    "ns_incom.h5": pdebench_navier_stokes,
    "2D_diff-react_NA_NA.h5": pdebench_groups,
    "well.hdf5": the_well,
    "dataset_sr128.pkl": authors_grid,
    "fields.npz": npz_grid,
}


def netcdf(path: Path) -> None:
    axis, u = np.arange(4.0), np.random.default_rng(3).random((3, 4, 4))
    coords = {"time": np.arange(3.0), "x": axis, "y": axis}
    dataset = xarray.Dataset({"u": (("time", "x", "y"), u)}, coords)
    dataset.to_netcdf(path, engine="scipy" if path.stem == "classic" else "h5netcdf")


# Every format has an example, here or above.
EXAMPLES: dict[str, Callable[..., Any]] = {
    **GRIDS,
    "Wave-Layer.nc": camlab,
    **dict.fromkeys(("Random_UnitCell_sigma_10.npy", "Pipe_Q.npy"), geo_fno),
    "NACA_Cylinder_Q.npy": geo_fno,
    "trajectories.h5": trajectories,
    "trajectory.npz": trajectories,
    "dataset_sr64.pkl": authors_points,
    "graphs.pt": graphs,
    "own.nc": written,
    **{f"points.{end}": written for end in ["npz", "csv", "parquet", "pvd", "vtu"]},
    "blocks.vtm": blocks,
    "steps.xdmf": steps,
    "points.zarr": zarr,
    "plain.nc": netcdf,
    "classic.nc": netcdf,
}


@pytest.fixture(params=list(GRIDS))
def grid_format(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any]:
    """Path and contents of a gridded file, once for every format."""
    path = tmp_path / request.param
    return path, GRIDS[request.param](path)


@pytest.fixture(params=list(EXAMPLES))
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of every format."""
    EXAMPLES[request.param](tmp_path / request.param)
    return Path(tmp_path / request.param)


@pytest.fixture
def examples() -> dict[str, Callable[[Path], Any]]:
    """What makes a file of each format, by the file's name."""
    return EXAMPLES
