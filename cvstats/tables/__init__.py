"""Results as data frames and as tables: tidy, bind, confint, augment, format_table."""

from __future__ import annotations

from .frames import augment, tidy
from .layout import format_table
from .results import bind, confint

__all__ = ["augment", "bind", "confint", "format_table", "tidy"]
