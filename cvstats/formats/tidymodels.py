"""tune::collect_predictions() of tidymodels."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from cvstats._check import InputError, show

from ._columns import first_is_constant, natural_column, texts, tuple_names, words
from ._layout import ROW_NAMES, Hints, Parsed, chosen, class_columns, in_our_words, layout

SINGLE = (".pred_time", ".pred", ".pred_class")
KNOWN = (*SINGLE, ".row", ".config", "id", "id2", ".eval_time", "label")


@layout(
    "tidymodels",
    "tidymodels collect_predictions() (.row, .pred or .pred_<level>, .config, id, id2)",
    needs=(r"\.row", r"\.pred.*"),
    # not to be confused with collect_metrics() (.metric, .estimator), which holds scores
    knows=tuple(re.escape(name) for name in KNOWN),
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Read by name: the order of the columns has changed between versions."""
    if ".eval_time" in frame.columns and ".pred_time" not in frame.columns:
        raise InputError(
            "the file holds survival probabilities at several times (.eval_time), not one prediction per sample; "
            "collect .pred_time instead, or keep one time and map the columns with columns={...}."
        )
    single = next((name for name in SINGLE if name in frame.columns), "")
    levels = class_columns((name for name in frame.columns if name not in KNOWN), r"\.pred_(.*)")
    values = chosen(levels, single, hints)
    if values == {None: ""}:
        raise InputError(
            f"no usable prediction column among {show(c for c in frame.columns if c.startswith('.pred'))}."
        )
    configuration = _configuration(frame, hints)
    roles: dict[str, Any] = {"sample": ".row", "configuration": configuration}
    known = (ROW_NAMES, *KNOWN, *hints.mapped)
    rest = [name for name in frame.columns if name not in known and not name.startswith(".pred")]
    outcome = "label" if "label" in frame.columns else _outcome(frame, configuration, rest, set(values), hints)
    rest = [name for name in rest if name != outcome]
    notes = []
    if "id" not in frame.columns:
        notes.append("no `id` column: collect_predictions(summarize = TRUE) has averaged the repeats")
    elif "id2" in frame.columns:
        roles |= {"repeat": "id", "fold": "id2"}
    else:
        roles["fold"] = "id"
    plain = all(str(level).lower() in ("0", "1", "-1", "true", "false") for level in levels)
    event = next(iter(levels)) if len(levels) == 2 and not plain else None
    if event is not None and hints.positive is None and None not in values:
        notes.append(f"the event is {event!r}, the first level, as yardstick takes it; positive= says otherwise")
    if outcome is not None:
        roles["label"] = outcome
        notes.append(f"the outcome is column {outcome!r}")
        if ".pred_time" in values.values():
            roles["label"], died = _survival(frame[outcome])
            roles |= {} if "event" in frame.columns else {"event": died}
    kind = "value" if {".pred_time", ".pred"} & set(values.values()) else None
    averaged = "id" not in frame.columns
    more = {"kind": kind, "averaged": averaged, "iterations": True, "positive": event if None not in values else None}
    return in_our_words(frame, roles, values, notes, rest, **more)


def _configuration(frame: pd.DataFrame, hints: Hints) -> pd.Series:
    """Return what names the configurations; the workflows of a workflow set share .config."""
    if "configuration" in hints.mapped:
        return frame["configuration"]
    names = [name for name in ("wflow_id", ".config") if name in frame.columns]
    if hints.several and names:  # fits of the same parameters, told apart by their files
        return tuple_names(frame.assign(fit=hints.name), ["fit", *names])
    if len(names) > 1:
        return tuple_names(frame, names)
    return frame.get(".config", pd.Series(hints.name, index=frame.index))


def _outcome(
    frame: pd.DataFrame, configuration: pd.Series, rest: list[str], classes: set[str | None], hints: Hints
) -> str | None:
    """Return the one column that varies within a configuration: tuning values do not."""
    if hints.labels is not None:
        return None
    found = [name for name in rest if not first_is_constant(configuration, frame[name])]
    if None not in classes:
        found = [name for name in found if words(frame[name]) <= classes]
    if len(found) != 1:
        raise InputError(
            f"tidymodels: the outcome could be {show(found) or 'no column'}; "
            "say which with columns={'label': <column>}."
        )
    return found[0]


def _survival(column: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Split R's survival text, such as ``306`` (observed) and ``1010+`` (censored)."""
    text = pd.Series(texts(column), index=column.index)
    event = (~text.str.endswith("+")).astype(int)
    return natural_column(text.str.rstrip("+").str.strip()), event
