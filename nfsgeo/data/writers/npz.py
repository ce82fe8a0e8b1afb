"""Archives of numpy, ``.npz``, that hold everything that fields hold."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nfsgeo.data.checks import not_infinite
from nfsgeo.data.conventions import AT_POINTS, NPZ_ABOUT
from nfsgeo.data.writers.writer import Writer
from nfsgeo.files import check_room, growing
from nfsgeo.progress import Progress

if TYPE_CHECKING:
    from nfsgeo.data.fields import Fields

__all__ = ["NPZ"]


def _write(fields: Fields, out: Path, progress: Progress) -> None:
    """Write each variable, and JSON of their dimensions and attributes."""
    dataset = fields.dataset
    check_room(out, dataset.nbytes)
    about = json.dumps(dataset.to_dict(data=False))
    with growing(out) as partial, zipfile.ZipFile(partial, "w") as archive:
        arrays = {str(name): v.values for name, v in dataset.variables.items()}
        for name, values in arrays.items():
            if dataset[name].attrs.get("role") in AT_POINTS:
                not_infinite(values, f"{name} of {fields.path}")
        for name, values in (arrays | {NPZ_ABOUT: np.array(about)}).items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    progress("writing samples", fields.num_samples, fields.num_samples)


NPZ = Writer(
    "grids and point clouds of numpy (.npz)", (".npz",), _write, keeps_attributes=True
)
