"""What is in a cube, in words and as a record, without estimating anything."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import xarray as xr

from cvstats._check import listened
from cvstats.describe import describe_cube
from cvstats.formats import _report
from cvstats.report.analysis import check_one, design_of
from cvstats.report.parts import Remark, read_facts
from cvstats.report.remarks import looking_remarks


def described(cube: xr.DataArray) -> tuple[list[tuple[str, str]], list[Remark], dict[str, Any]]:
    """Return facts and remarks in words, and both as one record for JSON."""
    check_one(cube)
    design, source = design_of(cube), _report.read(cube)
    facts = read_facts(cube, design, source)
    if design.tuning:
        facts.append(("Tuning values", ", ".join(f"{k} {a:g} to {b:g}" for k, (a, b, _) in design.tuning.items())))
    remarks = looking_remarks(design, source, listened([], lambda: describe_cube(cube)), cube)
    record = {**(source or {}), **asdict(design), "remarks": [remark.text for remark in remarks]}
    return facts, remarks, record
