"""Diagnostics in plain words: what a careful statistician would say about these predictions before using them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import plain
from cvstats.cube.arrays import coverage
from cvstats.protocols.bootstrap import FEW_GROUPS, doubts
from cvstats.tables.words import capital, count, number, percent, printable, several, spread_of

from .analysis import Analysis
from .design import Design
from .page import Remark

FEW = 40
AGAIN = re.compile(r"(; )?\d+ of \d+ draws were unusable and drawn again\.?")  # `_draws` says it once for all


def remarks_of(analysis: Analysis) -> list[Remark]:
    """Return remarks, those that need care first."""
    return _sorted(
        [
            *looking_remarks(analysis),
            *_fold_shift(analysis),
            *_choice(analysis),
            *_draws(analysis),
            *(_care(text) for said in analysis.warned if (text := AGAIN.sub("", said))[-2:] != ": "),
        ]
    )


def looking_remarks(analysis: Analysis) -> list[Remark]:
    """Return what can be said from the predictions alone, before anything is estimated."""
    design, doubtful = analysis.design, doubts([(analysis.cube, coverage(analysis.cube), None, None)])
    parts = _sizes(design), _folds(design), _reading(analysis.source), _configurations(analysis.about)
    return _sorted([*map(_care, doubtful), *(remark for part in parts for remark in part)])


def choice_words(analysis: Analysis) -> str:
    """Return how firm the choice of the winner is."""
    rate = analysis.winner["win_rate"].values.astype(float)
    if len(rate) == 1 or not np.isfinite(rate).any():
        return ""
    own, top = float(rate[analysis.chosen]), int(np.nanargmax(rate))
    text = (
        f"The selected configuration wins {percent(own)} of the bootstrap draws, and {count((rate > 0).sum())} of "
        f"{count(len(rate))} configurations win at least one."
    )
    if rate[top] > own:
        name = printable(analysis.cube["configuration"].values[top])
        text += (
            f" {name} wins more draws ({percent(float(rate[top]))}): being best on all samples and being best in most "
            "draws differ where several configurations are close, or where copies share their wins."
        )
    if analysis.best is None:
        return text
    others, level = int(analysis.best["in_set"].sum()) - 1, f"at the {analysis.percentage} level"
    if others > 0:
        return (
            f"{text} {several(others, 'other configuration')} cannot be excluded as the best {level}, so other data "
            "could well overturn the choice."
        )
    return f"{text} No other configuration is compatible with being the best {level}: a firm choice."


def _care(text: str) -> Remark:
    """Return what must not be overlooked as a sentence."""
    text = capital(printable(text.strip()))
    return Remark(text + ("" if text.endswith((".", "!", "?")) else "."), care=True)


def _sorted(remarks: Iterable[Remark]) -> list[Remark]:
    """Return each remark once, those that need care first."""
    once: dict[str, Remark] = {}
    for remark in remarks:
        once.setdefault(remark.text, remark)
    return sorted(once.values(), key=lambda remark: not remark.care)


def _configurations(about: xr.Dataset) -> Iterator[Remark]:
    """Say what `describe_cube` found: copies, constant predictions, scores that shift between folds."""

    def several_of(which: np.ndarray, one: str, many: str) -> str:
        return f"{several(which.sum(), 'configuration')} {one if which.sum() == 1 else many}"

    def names(which: np.ndarray, most: int = 3) -> str:
        all_of_them = [printable(name) for name in about["configuration"].values[which]]
        more = f" and {len(all_of_them) - most} more" if len(all_of_them) > most else ""
        return ", ".join(all_of_them[:most]) + more

    copies, moved = about["duplicated"].values, about["shifted"].values
    if copies.any():
        yield Remark(f"{several_of(copies, 'has', 'have')} the predictions of another: {names(copies)}.")
    flat = about["constant"].values | about["constant_in_folds"].values
    if flat.any():
        words = several_of(flat, "predicts", "predict")
        yield Remark(f"{words} one value for every sample of a fold: {names(flat)}.")
    if moved.any():
        yield Remark(
            f"Scores shift between folds in {count(moved.sum())} of {several(len(moved), 'configuration')}: "
            f"{names(moved)}. For these, a metric that ranks the scores of all folds together, such as "
            f"AUC, is misleading ({about['shift_test'].item()}; smallest adjusted P = "
            f"{float(about['shift_p_adjusted'].min()):.2g})."
        )


def _sizes(design: Design) -> Iterator[Remark]:
    units = design.groups or design.predicted
    if units < FEW and not 0 < design.groups < FEW_GROUPS:  # so few groups are a doubt already
        what = "independent groups" if design.groups else "samples"
        yield _care(f"Only {units} {what}: the interval is wide, and with so few it is itself uncertain.")
    name = min(design.classes, key=lambda key: design.classes[key], default="")
    if name and design.classes[name] < 10:
        size = several(design.classes[name], "sample")
        yield _care(f"Class {printable(name)} has only {size}: its part of any score is shaky.")
    if design.groups:
        yield Remark(
            f"Samples come in {count(design.groups)} groups, which are drawn whole; the interval counts groups, "
            "not samples."
        )
    if design.weighted:
        yield Remark("Samples carry case weights; they multiply the bootstrap counts.")
    if design.samples > design.predicted:
        yield _care(f"Left out: {several(design.samples - design.predicted, 'sample')} without any prediction.")


def _folds(design: Design) -> Iterator[Remark]:
    if design.leave_one_out:
        yield _care(
            "Leave-one-out: the labels of the other samples leak into every prediction through the class ratio, "
            "and no analysis of saved predictions can see it. Prefer 5 or 10 folds."
        )
    elif design.own_folds:
        yield Remark(
            "Configurations were split into folds in different ways, so two of them differ by their partitions, too, "
            "and methods that go fold by fold do not apply."
        )
    elif not design.folds:
        yield Remark("Folds were not saved, so nothing can be said about differences between folds.")
    if design.stratified is False:
        yield Remark("Classes are not spread evenly over the folds; stratified folds would make scores steadier.")
    if design.repeats > 1:
        yield Remark(
            f"{count(design.repeats)} repeats reduce the luck of the partition, not the uncertainty from "
            f"having {count(design.predicted)} samples: the interval would hardly shrink with more repeats."
        )


def _reading(source: dict[str, Any]) -> Iterator[Remark]:
    yield from (_care(str(note)) for note in source.get("notes") or [])
    if source.get("averaged_repeats"):
        yield _care(
            "The file holds predictions already averaged over repeats; such averages look better than any single "
            "model, so the estimate is for the averaged predictor."
        )


def _fold_shift(analysis: Analysis) -> Iterator[Remark]:
    """Say so when the selected configuration's scores shift between folds and its score ranks them together."""
    if analysis.metric.family != "rank" or not analysis.about["shifted"].values[analysis.chosen]:
        return
    text = "The selected configuration's scores shift between folds, so its pooled score is misleading"
    by_fold = analysis.results.get("tt")
    if by_fold is not None and plain(by_fold["selected"].item()) == plain(analysis.winner["selected"].item()):
        inside, pooled = number(by_fold["naive"], 3), number(analysis.winner["naive"], 3)
        said = f"its {analysis.name} is {inside} within folds and {pooled} pooled over them"
        if abs(float(by_fold["naive"]) - float(analysis.winner["naive"])) < 0.25 * spread_of(analysis.winner):
            yield Remark(f"The selected configuration's scores shift between folds, which hardly matters here: {said}.")
            return
        text += f": {said}"
    yield _care(f"{text}.")


def _choice(analysis: Analysis) -> Iterator[Remark]:
    scores = analysis.scores.values.astype(float)
    known = scores[np.isfinite(scores)] * analysis.metric.sign
    ties = int((known == known.max(initial=-np.inf)).sum())
    if ties > 1:
        yield Remark(
            f"{count(ties)} configurations share the best plain score; the first in the order given is reported."
        )
    perfect = analysis.metric.range[analysis.metric.sign > 0]
    if np.isfinite(perfect) and float(analysis.winner["naive"]) == perfect:
        yield _care(
            "The winner's plain score is perfect. Check that no label leaked into the features before believing it."
        )


def _draws(analysis: Analysis) -> Iterator[Remark]:
    again = int(analysis.winner["n_redrawn"])
    if again:
        share = percent(again / max(1, analysis.times))
        yield Remark(f"{several(again, 'bootstrap draw')} ({share}) could not be used and were drawn again.")
