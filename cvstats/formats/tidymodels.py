"""tune::collect_predictions() of tidymodels."""

from __future__ import annotations

import re

import pandas as pd

from cvstats._check import InputError, show

from ._layout import (
    Hints,
    Layout,
    Parsed,
    first_is_constant,
    natural_column,
    refuse_unused,
    repeats_of_iterations,
    texts,
    tuple_names,
)

CLASS = ".pred_"
KNOWN = (".pred", ".pred_class", ".pred_time", ".row", ".config", "id", "id2", ".eval_time", "label")


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Read by name: the order of the columns has changed between versions."""
    if ".eval_time" in frame.columns and ".pred_time" not in frame.columns:
        raise InputError(
            "the file holds survival probabilities at several times (.eval_time), not one prediction per sample; "
            "collect .pred_time instead, or keep one time and map the columns with columns={...}."
        )
    value = _values(frame, hints)
    configuration = frame[".config"] if ".config" in frame.columns else pd.Series(hints.name, index=frame.index)
    if "configuration" in hints.mapped:
        configuration = frame["configuration"]
    elif ".config" in frame.columns and "wflow_id" in frame.columns:  # a workflow set, whose workflows share .config
        configuration = tuple_names(frame, ["wflow_id", ".config"])
    known = (*KNOWN, *hints.mapped)
    others = [name for name in frame.columns if name not in known and not name.startswith(".pred")]
    outcome = "label" if "label" in frame.columns else _outcome(frame, configuration, others, list(value), hints)
    out = pd.DataFrame({"sample": frame[".row"], "configuration": configuration})
    for column in value.values():
        out[column] = frame[column]
    notes, averaged = [], False
    if "id" not in frame.columns:
        averaged = True
        notes.append("no `id` column: collect_predictions(summarize = TRUE) has averaged the repeats")
    elif "id2" in frame.columns:
        out["repeat"], out["fold"] = frame["id"], frame["id2"]
    elif all(name.startswith("Fold") for name in texts(frame["id"].unique())):
        out["fold"] = frame["id"]
    else:
        refuse_unused(frame, [frame[".row"], configuration], [name for name in others if name != outcome])
        out["repeat"] = repeats_of_iterations(frame[".row"], frame["id"])
        notes.append("`id` names resampling iterations, not folds: iterations that overlap are read as repeats")
    if outcome is not None:
        out["label"] = frame[outcome]
        notes.append(f"the outcome is column {outcome!r}")
        if ".pred_time" in value.values():
            out["label"], event = _survival(frame[outcome])
            if "event" not in frame.columns:
                out["event"] = event
    extras = [name for name in others if name != outcome]
    return Parsed(
        out.join(frame[extras]),
        value,
        extras,
        kind="value" if {".pred_time", ".pred"} & set(value.values()) else None,
        notes=notes,
        averaged=averaged,
    )


def _values(frame: pd.DataFrame, hints: Hints) -> dict[str | None, str]:
    levels = [name for name in frame.columns if name.startswith(CLASS) and name not in KNOWN]
    if levels and hints.kind != "label":
        return {name[len(CLASS) :]: name for name in levels}
    single = [name for name in (".pred_time", ".pred", ".pred_class") if name in frame.columns]
    if not single:
        raise InputError(
            f"no usable prediction column among {show(c for c in frame.columns if c.startswith('.pred'))}."
        )
    return {None: single[0]}


def _outcome(
    frame: pd.DataFrame, configuration: pd.Series, others: list[str], classes: list[str | None], hints: Hints
) -> str | None:
    """Return the one column that varies within a configuration: tuning values do not."""
    if hints.labels is not None:
        return None
    named = {str(name) for name in classes if name is not None}
    found = [name for name in others if not first_is_constant(configuration, frame[name])]
    if named:
        found = [name for name in found if set(texts(frame[name].dropna().unique())) <= named]
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


LAYOUT = Layout(
    name="tidymodels",
    title="tidymodels collect_predictions() (.row, .pred or .pred_<level>, .config, id, id2)",
    needs=(r"\.row", r"\.pred.*"),
    unlike="collect_metrics() (.metric, .estimator), which holds scores",
    knows=tuple(re.escape(name) for name in KNOWN),
    parse=parse,
)
