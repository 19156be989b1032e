"""The cube: one plain ``xarray.DataArray`` of out-of-sample predictions with the truth beside them."""

from __future__ import annotations

from .make import as_cube, check_cube

__all__ = ["as_cube", "check_cube"]
