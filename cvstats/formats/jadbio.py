"""Out-of-sample predictions of JADBio."""

from __future__ import annotations

import re

import pandas as pd

from ._layout import Hints, Layout, Parsed

COLUMN = re.compile(r"Prob \( ?class ?= ?(.+?) ?\)")


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Class columns spell out ``Prob ( class = name )``."""
    found = {name: COLUMN.fullmatch(name) for name in frame.columns}
    values = {part[1]: name for name, part in found.items() if part}
    out = pd.DataFrame({"sample": frame["Sample name"], "configuration": hints.name, "label": frame["Label"]})
    taken = {"Sample name", "Label", *values.values()}
    return Parsed(
        out.join(frame[list(values.values())]), dict(values), ignored=[c for c in frame.columns if c not in taken]
    )


LAYOUT = Layout(
    name="jadbio",
    title="JADBio (Sample name, Prob ( class = name ), Label)",
    needs=("Sample name", r"Prob \( ?class ?= ?.+\)", "Label"),
    parse=parse,
)
