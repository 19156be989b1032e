"""Diagnostics in plain words: what a careful statistician would say about these predictions before using them."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ._analysis import Analysis, Design
from ._check import plain
from ._report_parts import Remark
from ._words import count, metric_words, number, percent, printable, several

FEW = 40


def remarks_of(analysis: Analysis, design: Design, source: dict[str, Any] | None) -> list[Remark]:
    """Return remarks, those that need care first."""
    found = [
        *looking_remarks(analysis.cube, design, source),
        *_fold_shift(analysis, design),
        *_choice(analysis),
        *_draws(analysis),
        *(Remark(_sentence(text), care=True) for text in analysis.warned),
    ]
    return _sorted(found)


def looking_remarks(cube: xr.DataArray, design: Design, source: dict[str, Any] | None) -> list[Remark]:
    """Return what can be said from the predictions alone, before anything is estimated."""
    return _sorted([*_sizes(design), *_gaps(design), *_folds(design), *_reading(source)])


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
    if units < FEW:
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
    """Compare pooled with by-fold scores of the selected configuration: a gap means shifted scores."""
    if analysis.metric.family != "rank" or not design.folds or "event" in analysis.cube.coords:
        return []
    by_fold = analysis.others.get("tt")
    if by_fold is None or plain(by_fold["selected"].item()) != plain(analysis.winner["selected"].item()):
        return []
    gap = float(by_fold["naive"]) - float(analysis.winner["naive"])
    if abs(gap) < 0.02:
        return []
    name = metric_words(analysis.metric.name)
    return [
        Remark(
            f"The winner's {name} is {number(by_fold['naive'], 3)} within folds and "
            f"{number(analysis.winner['naive'], 3)} pooled over them: scores may not be comparable across folds.",
            care=True,
        )
    ]


def _gaps(design: Design) -> list[Remark]:
    found = []
    gone = design.configurations - design.eligible
    if gone:
        found.append(
            Remark(
                f"{several(gone, 'configuration')} lacked predictions that others have and could not be selected.",
                care=True,
            )
        )
    if design.samples > design.predicted:
        left = several(design.samples - design.predicted, "sample")
        found.append(Remark(f"Left out: {left} without any prediction.", care=True))
    return found


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
