"""Out-of-sample predictions of JADBio."""

from __future__ import annotations

import pandas as pd

from ._layout import Hints, Parsed, class_columns, in_our_words, layout


@layout(
    "jadbio",
    "JADBio (Sample name, Prob ( class = name ), Label)",
    needs=("Sample name", r"Prob \( ?class ?= ?.+\)", "Label"),
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Class columns spell out ``Prob ( class = name )``."""
    values = class_columns(frame.columns, r"Prob \( ?class ?= ?(.+?) ?\)")
    ignored = [name for name in frame.columns if name not in ("Sample name", "Label", *values.values())]
    return in_our_words(frame, {"sample": "Sample name", "label": "Label"}, values, ignored=ignored)
