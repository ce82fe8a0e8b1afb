"""The errors that predictions are measured by."""

from __future__ import annotations

__all__ = ["MEASURES"]

# Titles of their columns in tables, by the names in files.
MEASURES = {
    "mae": "MAE",
    "rmse": "RMSE",
    "rel_l2": "relative L2",
    "rel_l1": "relative L1",
}
