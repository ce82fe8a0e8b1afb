"""Names of settings are those of the registries, and need no torch."""

import subprocess
import sys
from typing import get_args

from nfsgeo.config import LOSS_NAMES, MESH_NAMES, MODEL_NAMES, LossWeighting
from nfsgeo.data.meshes import MESH_KINDS
from nfsgeo.models import MODELS
from nfsgeo.training.losses import LOSSES


def test_names_are_those_of_the_registries():
    assert tuple(MODELS) == MODEL_NAMES
    assert tuple(LOSSES) == LOSS_NAMES
    assert tuple(MESH_KINDS) == MESH_NAMES
    assert {model.loss_weighting for model in MODELS.values()} <= {
        *get_args(LossWeighting)
    }


def test_settings_need_no_torch():
    code = "import sys, nfsgeo.config; print(*sys.modules)"
    run = [sys.executable, "-c", code]
    loaded = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert not {"torch", "numpy", "xarray", "pandas"} & {*loaded.split()}
