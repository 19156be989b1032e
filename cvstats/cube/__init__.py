"""The cube: one plain ``xarray.DataArray`` of out-of-sample predictions with the truth beside them."""

from __future__ import annotations

from .arrays import check_cube
from .make import as_cube

__all__ = ["as_cube", "check_cube"]
