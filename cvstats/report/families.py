"""The section of families: the best of each kind of model, and whether tuning it would do as well as the best kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cvstats.compare.contrasts import best_of_families, tuned_difference
from cvstats.compare.location import wald
from cvstats.compare.multiplicity import p_adjust
from cvstats.resample import unit_count
from cvstats.select import label_keys
from cvstats.tables.render import Cell
from cvstats.tables.words import count, labels_of, p_text, printable

from .analysis import Analysis
from .page import Block, Listing, Page

FAMILIES = ("family", "learner", "model", "wflow_id", "classifier")  # coordinates that name the kind of model
MOST_FAMILIES = 40


def family_blocks(page: Page) -> Iterator[Block]:
    """Yield every family's best configuration, and the difference between tuned families."""
    if table := family_table(page.analysis):
        yield (
            "What tuning picks from each family, chosen again in every draw and judged on the samples left out, and "
            "its difference from the family that comes out best. P is adjusted for the number of families (Holm)."
        )
        yield table


def family_table(analysis: Analysis) -> Listing | None:
    """Return the table, where a coordinate says which configurations belong together."""
    cube = analysis.cube
    name = next((name for name in FAMILIES if name in cube.coords and cube[name].dims == ("configuration",)), None)
    if name is None or analysis.design.eligible < 2:
        return None
    data, tables = analysis.tables
    group = np.array([printable(label) for label in cube[name].values], object)[data.eligible]
    size = {label: int((group == label).sum()) for label in dict.fromkeys(group.tolist())}
    if not 2 <= len(size) <= min(MOST_FAMILIES, len(group) - 1):
        return None
    found = best_of_families(analysis.metric, group, tables, label_keys(data.names[data.eligible]), analysis.seed)
    with np.errstate(invalid="ignore"):
        mean = {label: float(np.nanmean(value)) for label, (value, _, _) in found.items()}
    ranked = sorted(mean, key=lambda label: -analysis.metric.sign * mean[label])
    units = unit_count(cube, data.rows)
    tests = {label: _difference(found, label, ranked[0], units, analysis.level) for label in ranked[1:]}
    adjusted = p_adjust(np.array([test["p_value"] for test in tests.values()]))
    configurations = [printable(label) for label in np.array(labels_of(cube, "configuration"), object)[data.eligible]]
    rows = []
    for label in ranked:
        _, _, best = found[label]
        cells = [
            Cell(label, key=label),
            Cell(count(size[label]), key=float(size[label])),
            Cell(configurations[best], key=configurations[best]),
            Cell(analysis.number(tables[2][0][best]), key=float(tables[2][0][best])),
            Cell(analysis.number(mean[label]), key=mean[label]),
        ]
        if label in tests:
            test, p = tests[label], float(adjusted[list(tests).index(label)])
            limits = f"{analysis.number(test['conf_low'])} to {analysis.number(test['conf_high'])}"
            cells += [
                Cell(analysis.number(test["estimate"]), key=float(test["estimate"])),
                Cell(limits),
                Cell(p_text(p), key=p),
            ]
        rows.append([*cells, *[Cell("\u2013")] * (8 - len(cells))])
    head = [printable(name).capitalize(), "Tried", "Best configuration", "Plain CV", "Judged", "Difference"]
    numeric = [False, True, False, True, True, True, True, True]
    return Listing([*head, f"{analysis.percentage} interval", "P"], rows, 1, "Families", "", "families", numeric)


def _difference(found: dict[str, Any], label: str, best: str, units: int, level: float) -> dict[str, float]:
    """Return the contrast of one family with the best one."""
    value, standing = zip(found[label][:2], found[best][:2], strict=True)
    means, variance, _ = tuned_difference(value, standing)
    error = float(np.sqrt(variance))
    return wald(means[0] - means[1], error if error > 0 else np.nan, units - 1.0, level)
