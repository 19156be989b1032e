"""Diagnostics in plain words: what a careful statistician would say about these predictions before using them."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import plain
from cvstats.cube.blocks import coverage
from cvstats.protocols.doubts import FEW_GROUPS, Doubts
from cvstats.tables.words import count, metric_words, number, percent, printable, several

from .analysis import Analysis, Design
from .parts import Remark

FEW = 40


def remarks_of(analysis: Analysis, design: Design, source: dict[str, Any] | None) -> list[Remark]:
    """Return remarks, those that need care first."""
    found = [
        *looking_remarks(design, source, analysis.about, analysis.cube),
        *_fold_shift(analysis, design),
        *_choice(analysis),
        *_draws(analysis),
        *(Remark(_sentence(text), care=True) for text in analysis.warned),
    ]
    return _sorted(found)


def looking_remarks(
    design: Design, source: dict[str, Any] | None, about: xr.Dataset | None, cube: xr.DataArray
) -> list[Remark]:
    """Return what can be said from the predictions alone, before anything is estimated."""
    doubts = Doubts()
    doubts.add(cube, coverage(cube))
    found = [Remark(_sentence(text), care=True) for text in doubts.notes()]
    found += [*_sizes(design), *_gaps(design), *_folds(design), *_reading(source)]
    return _sorted([*found, *_configurations(about)] if about is not None else found)


def _configurations(about: xr.Dataset) -> list[Remark]:
    """Return what `describe_cube` found: copies, constant predictions, scores that shift between folds."""
    found, total = [], about.sizes["configuration"]
    copies = about["duplicated"].values
    if copies.any():
        words = (
            f"{several(int(copies.sum()), 'configuration')} {_verb(copies, 'has', 'have')} the predictions of another"
        )
        found.append(Remark(f"{words}: {_names(about, copies)}."))
    flat = about["constant"].values | about["constant_in_folds"].values
    if flat.any():
        words = f"{several(int(flat.sum()), 'configuration')} {_verb(flat, 'predicts', 'predict')} one value"
        found.append(Remark(f"{words} for every sample of a fold: {_names(about, flat)}."))
    moved = about["shifted"].values
    if moved.any():
        found.append(
            Remark(
                f"Scores shift between folds in {count(int(moved.sum()))} of {several(total, 'configuration')}: "
                f"{_names(about, moved)}. For these, a metric that ranks the scores of all folds together, such as "
                f"AUC, is misleading ({about['shift_test'].item()}; smallest adjusted P = "
                f"{float(about['shift_p_adjusted'].min()):.2g})."
            )
        )
    return found


def _verb(which: np.ndarray, one: str, many: str) -> str:
    return one if which.sum() == 1 else many


def _names(about: xr.Dataset, which: np.ndarray, most: int = 3) -> str:
    names = [printable(name) for name in about["configuration"].values[which]]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _sorted(found: list[Remark]) -> list[Remark]:
    seen: dict[str, Remark] = {}
    for remark in found:
        seen.setdefault(remark.text, remark)
    return sorted(seen.values(), key=lambda remark: not remark.care)


def _sentence(text: str) -> str:
    text = printable(text.strip())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _sizes(design: Design) -> list[Remark]:
    found = []
    units = design.groups or design.predicted
    what = "independent groups" if design.groups else "samples"
    if units < FEW and not 0 < design.groups < FEW_GROUPS:  # so few groups are a doubt already
        found.append(
            Remark(f"Only {units} {what}: the interval is wide, and with so few it is itself uncertain.", care=True)
        )
    if design.classes and min(design.classes.values()) < 10:
        name = min(design.classes, key=lambda key: design.classes[key])
        found.append(
            Remark(
                f"Class {printable(name)} has only {several(design.classes[name], 'sample')}: "
                "its part of any score is shaky.",
                care=True,
            )
        )
    if design.groups:
        found.append(
            Remark(
                f"Samples come in {count(design.groups)} groups, which are drawn whole; the interval counts groups, "
                "not samples."
            )
        )
    if design.weighted:
        found.append(Remark("Samples carry case weights; they multiply the bootstrap counts."))
    return found


def _folds(design: Design) -> list[Remark]:
    found = []
    if design.leave_one_out:
        found.append(
            Remark(
                "Leave-one-out: the labels of the other samples leak into every prediction through the class ratio, "
                "and no analysis of saved predictions can see it. Prefer 5 or 10 folds.",
                care=True,
            )
        )
    elif not design.folds:
        found.append(Remark("Folds were not saved, so nothing can be said about differences between folds."))
    if design.stratified is False:
        found.append(
            Remark("Classes are not spread evenly over the folds; stratified folds would make scores steadier.")
        )
    if design.repeats > 1:
        found.append(
            Remark(
                f"{count(design.repeats)} repeats reduce the luck of the partition, not the uncertainty from "
                f"having {count(design.predicted)} samples: the interval would hardly shrink with more repeats."
            )
        )
    return found


def _fold_shift(analysis: Analysis, design: Design) -> list[Remark]:
    """Say so when the selected configuration's scores shift between folds and its score ranks them together."""
    about = analysis.about
    if about is None or analysis.metric.family != "rank" or not design.folds:
        return []
    if not bool(about["shifted"].values[about.indexes["configuration"].get_loc(analysis.winner["selected"].item())]):
        return []
    text = "The selected configuration's scores shift between folds, so its pooled score is misleading"
    by_fold = analysis.others.get("tt")
    if by_fold is not None and plain(by_fold["selected"].item()) == plain(analysis.winner["selected"].item()):
        name = metric_words(analysis.metric.name)
        inside, pooled = number(by_fold["naive"], 3), number(analysis.winner["naive"], 3)
        text += f": its {name} is {inside} within folds and {pooled} pooled over them"
    return [Remark(f"{text}.", care=True)]


def _gaps(design: Design) -> list[Remark]:
    if design.samples == design.predicted:
        return []
    left = several(design.samples - design.predicted, "sample")
    return [Remark(f"Left out: {left} without any prediction.", care=True)]


def _choice(analysis: Analysis) -> list[Remark]:
    found = []
    scores = analysis.scores.values.astype(float)
    known = scores[np.isfinite(scores)] * analysis.metric.sign
    if len(known) > 1:
        ties = int((known == known.max()).sum())
        if ties > 1:
            found.append(
                Remark(
                    f"{count(ties)} configurations share the best plain score; "
                    "the first in the order given is reported."
                )
            )
    low, high = analysis.metric.range
    perfect = high if analysis.metric.sign > 0 else low
    if np.isfinite(perfect) and float(analysis.winner["naive"]) == perfect:
        found.append(
            Remark(
                "The winner's plain score is perfect. Check that no label leaked into the features "
                "before believing it.",
                care=True,
            )
        )
    return found


def _draws(analysis: Analysis) -> list[Remark]:
    again = int(analysis.winner["n_redrawn"]) if "n_redrawn" in analysis.winner else 0
    if not again:
        return []
    return [
        Remark(
            f"{several(again, 'bootstrap draw')} ({percent(again / max(1, analysis.times))}) could not be used "
            "and were drawn again."
        )
    ]


def _reading(source: dict[str, Any] | None) -> list[Remark]:
    report = source or {}
    found = [Remark(_sentence(str(note)), care=True) for note in report.get("notes") or []]
    if report.get("averaged_repeats"):
        found.append(
            Remark(
                "The file holds predictions already averaged over repeats; such averages look better than any single "
                "model, so the estimate is for the averaged predictor.",
                care=True,
            )
        )
    return found
