"""Five ways to cross-validate with a tuning value, four of them flawed, side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from cvstats._check import InputError
from cvstats._results import call_text, names_of, result
from cvstats.cube.align import aligned
from cvstats.cube.arrays import check_cube
from cvstats.metrics import Metric, bound_metric, score
from cvstats.metrics.scoring import fold_members, fold_scores
from cvstats.select import by_value

from .common import fold_names
from .nested import check_inner, labelled_like
from .tuning import Inputs, best, choose, combined_score, eligible, over_batches, penalised, per_training_set

# implementation: preprocessing, choice, value for prediction, out-of-sample, internal coherence
ROWS: dict[str, tuple[str, str, str, bool, bool]] = {
    "[Pi1]-[CV1]": ("[Pi1]", "[CV1]", "(13)", False, False),
    "[Pi2]-[CV1]": ("[Pi2]", "[CV1]", "(13)", False, False),
    "[Pi1]-[CV2]": ("[Pi1]", "[CV2]", "(17)", False, True),
    "[Pi2]-[CV2]": ("[Pi2]", "[CV2]", "(17)", False, False),
    "[Pi1]-[CV3]": ("[Pi1]", "[CV3]", "(13)", True, True),
    "[Pi1]-(9)": ("[Pi1]", "(9)", "(13)", False, False),
    "[Pi2]-(9)": ("[Pi2]", "(9)", "(13)", False, False),
}


def implementations(
    cube: xr.DataArray | None,
    metric: str | Metric = "error_rate",
    *,
    leaky: xr.DataArray | None = None,
    training: xr.DataArray | None = None,
    leaky_training: xr.DataArray | None = None,
    inner: xr.DataArray | None = None,
    resubstitution: xr.DataArray | None = None,
    truth: xr.DataArray | None = None,
) -> xr.Dataset:
    r"""Return the error that each implementation of cross-validation with a tuning value would report.

    Two decisions make the implementations of Winderbaum and Koch. Preprocessing: [Pi1] is fitted on each training
    set, [Pi2] on all data before splitting, so that test samples leak into training. The tuning value: [CV1] takes the
    best cross-validated error of all folds and reports that error; [CV2] lets each training set choose by its own
    training error; [CV3] by an inner cross-validation (nested, "double" cross-validation). With :math:`v_j` the value
    used in fold j and :math:`E_{v,j}` the summed loss of fold j,

    .. math:: E^{cv} = \frac1n \sum_j E_{v_j, j}.

    Two principles judge them: *out-of-sample* (no sample helps to choose or train what it tests) and *internal
    coherence* (the rule used for prediction is made as the tested rules were). Only [Pi1]-[CV3] keeps both. The rows
    ``(9)`` are the supplement's variant, in which each fold's own test error chooses.

    Parameters
    ----------
    cube : DataArray or None
        Predictions under [Pi1]; configurations are the tuning values. None when there are only leaky ones.
    metric : str or Metric
        Any metric; other than means of losses are computed once over all samples, each predicted by what its fold
        chose.
    leaky : DataArray, optional
        Predictions under [Pi2], with the same samples and configurations.
    training, leaky_training : DataArray, optional
        Predictions of each fold's model for its own training samples: ``sample, configuration, outer_fold[, repeat]``,
        NaN on the samples of the fold.
    inner : DataArray, optional
        Inner predictions (of [Pi1]), as `ncv` takes them. The choice is by the pooled inner error (19).
        A coordinate ``penalty`` (over configurations, or configurations and outer folds) of any of these inputs, such
        as that of the lasso in (9) to (12) and (18), is added to the error that chooses, and to no estimate.
    resubstitution : DataArray, optional
        Predictions of the rule trained on all samples for those samples, which (17) chooses the [CV2] value by.
    truth : DataArray, optional
        True error of the rule trained on all samples, over ``configuration``.

    Returns
    -------
    xarray.Dataset
        Over ``implementation``: ``estimate``; ``chosen(implementation, outer_fold[, repeat])``, ``chosen_low`` and
        ``chosen_high`` (their range); ``selected``, the value for prediction, by the equation in ``rule``;
        ``out_of_sample`` and ``internal_coherence``. With `truth` also ``truth`` (at the selected value) and
        ``difference`` = estimate - truth. What an input is missing for is NaN (labels: an empty string).
        Ties go to the smallest tuning value when configurations are named by numbers, else to the first.

    References
    ----------
    Winderbaum, Koch (2022). Cross-validation for supervised learning with tuning parameters. Journal of Statistics
    and Computer Science 1, 89-106. doi:10.47509/JSCS.2022.v01i01.05

    Examples
    --------
    >>> import cvstats as cs
    >>> cube, inner = cs.simulate_cube(60, 20, inner=True, rng=4)
    >>> table = cs.implementations(cube, "error_rate", inner=inner)
    >>> table.estimate.sel(implementation=["[Pi1]-[CV1]", "[Pi1]-[CV3]"]).values.round(3)
    array([0.15, 0.2 ])
    """
    if cube is None and leaky is None:
        raise InputError("give `cube` (predictions with preprocessing inside the folds) or `leaky`, or both.")
    inputs: dict[str, xr.DataArray | None] = {"cube": cube, "leaky": leaky}
    main = check_cube(_main(inputs))
    if cube is not None and leaky is not None:
        inputs["leaky"] = leaky = aligned(check_cube(leaky), cube, "leaky")
    inside = (("training", training, cube), ("leaky_training", leaky_training, leaky), ("inner", inner, cube))
    for name, part, owner in inside:
        inputs[name] = None if part is None or owner is None else check_inner(owner, part, name)
    inputs["resubstitution"] = None
    if resubstitution is not None:
        inputs["resubstitution"] = labelled_like(main, resubstitution, "resubstitution")
    bound = bound_metric(metric, main)
    if "partner" in main.dims:
        raise InputError(
            "implementations compares ways of ordinary cross-validation, whose training sets each leave out one fold; "
            "in a separate-sampling cube (dimension 'partner') every pair of folds does. Use separate_cv(), winner()."
        )
    if truth is not None:
        inputs["truth"] = _truth(truth, main)
    out = over_batches(lambda one: _table(one, bound), inputs)
    given = {name: part for name, part in inputs.items() if name != "cube"}
    call = call_text("implementations", metric=bound.name, **given)
    columns = (("implementation", np.array(values)) for values in zip(*ROWS.values(), strict=True))
    preprocessing, choice, rule, out["out_of_sample"], out["internal_coherence"] = columns
    out = out.assign_coords(implementation=list(ROWS), preprocessing=preprocessing, choice=choice, rule=rule)
    return result(out, method="implementations", metric=bound.name, call=call)


def _main(inputs: Inputs) -> xr.DataArray:
    main = inputs["leaky"] if inputs["cube"] is None else inputs["cube"]
    assert main is not None
    return main


def _truth(truth: xr.DataArray, cube: xr.DataArray) -> xr.DataArray:
    """Return true errors in the cube's order of configurations."""
    if not isinstance(truth, xr.DataArray) or "configuration" not in truth.dims:
        raise InputError("`truth` must be a DataArray over 'configuration': the true error of each tuning value.")
    if "configuration" not in truth.indexes:
        truth = truth.assign_coords(configuration=cube["configuration"].values)
    lost = cube.indexes["configuration"].difference(truth.indexes["configuration"], sort=False)
    if len(lost):
        raise InputError(f"`truth` lacks the configurations {lost.tolist()}.")
    return truth.sel(configuration=cube["configuration"].values)


class _Row(NamedTuple):
    """What one implementation reports: its estimate, the value chosen in each fold, and the value for prediction."""

    estimate: float = np.nan
    chosen: np.ndarray | None = None
    selected: int = -1


def _table(inputs: Inputs, metric: Metric) -> xr.Dataset:
    """Return the table of inputs without batch dims."""
    rows = dict.fromkeys(ROWS, _Row())
    folds = np.empty(0)
    for pi, main in (("[Pi1]", "cube"), ("[Pi2]", "leaky")):
        cube = inputs[main]
        if cube is None:
            continue
        if not bool(cube.notnull().any()):
            raise InputError(f"`{main}` holds no predictions: every value is NaN.")
        scores, allowed = score(cube, metric), eligible(cube)
        overall = int(best(penalised(scores, cube, metric), allowed, metric))  # (13)
        rows[f"{pi}-[CV1]"] = _Row(float(scores[overall]) if overall >= 0 else np.nan, np.array([[overall]]), overall)
        choices = {}
        if "fold" in cube.coords:
            folds = fold_names(cube["fold"])
            choices[f"{pi}-(9)"] = _by_own_fold(cube, metric, allowed, folds), overall  # (9)
        training = inputs["training" if main == "cube" else "leaky_training"]
        if training is not None:
            full = inputs["resubstitution"]
            value = -1 if full is None else int(choose(full, metric))  # (17)
            choices[f"{pi}-[CV2]"] = _in_order(training, metric, folds), value
        inner = inputs["inner"]
        if main == "cube" and inner is not None:
            choices["[Pi1]-[CV3]"] = _in_order(inner, metric, folds), overall
        for name, (chosen, selected) in choices.items():
            rows[name] = _Row(combined_score(cube, metric, folds, chosen), chosen, selected)
    return _labelled(rows, inputs, folds)


def _by_own_fold(cube: xr.DataArray, metric: Metric, allowed: xr.DataArray, folds: np.ndarray) -> np.ndarray:
    """Return the positions that each fold's own scores choose, (fold, repeat or 1); -1 where nobody predicted it."""
    names, member = fold_members(cube)
    index = best(fold_scores(cube, metric), allowed, metric).reindex(fold=names, fill_value=-1)
    own = index.transpose("fold", ...).values.reshape(len(names), -1)
    table = cube["fold"].transpose("sample", ...).values.reshape(cube.sizes["sample"], -1)
    out = np.full((len(folds), own.shape[1]), -1)
    for repeat in range(own.shape[1]):
        ids = table[member[repeat].argmax(axis=1), min(repeat, table.shape[1] - 1)]  # may be numbered throughout
        out[np.searchsorted(folds, ids), repeat] = own[:, repeat]
    return out


def _in_order(inside: xr.DataArray, metric: Metric, folds: np.ndarray) -> np.ndarray:
    """Return the positions that training sets choose, in the order of `folds`."""
    place = [list(inside["outer_fold"].values).index(name) for name in folds]
    return per_training_set(inside, metric)[place]


def _labelled(rows: dict[str, _Row], inputs: Inputs, folds: np.ndarray) -> xr.Dataset:
    """Return the rows as variables; the lowest and highest choice by the value of the label."""
    main = _main(inputs)
    names, several = main["configuration"].values, "repeat" in main.dims
    estimate, selected = (np.array([row[field] for row in rows.values()]) for field in (0, 2))
    chosen = np.full((len(rows), len(folds), main.sizes.get("repeat", 1)), -1)
    extremes = np.full((2, len(rows)), -1)
    rank = np.argsort(by_value(names))  # place of each configuration in ascending order
    for at, row in enumerate(rows.values()):
        if row.chosen is not None:
            chosen[at], each = row.chosen, row.chosen.ravel()
            if (each >= 0).all():
                extremes[:, at] = each[rank[each].argmin()], each[rank[each].argmax()]
    columns = {
        "estimate": estimate,
        "chosen_low": names_of(names, extremes[0]),
        "chosen_high": names_of(names, extremes[1]),
        "selected": names_of(names, selected),
    }
    truth = inputs.get("truth")
    if truth is not None:
        columns["truth"] = np.where(selected >= 0, truth.values.astype(float)[selected], np.nan)
        columns["difference"] = estimate - columns["truth"]
    dims = ("implementation", "outer_fold", "repeat")
    table = xr.Variable(dims, names_of(names, chosen)).isel({} if several else {"repeat": 0})
    coords: dict[str, Any] = {"outer_fold": folds}
    if several and "repeat" in main.coords:
        coords["repeat"] = main["repeat"].values
    variables = {name: ("implementation", values) for name, values in columns.items()}
    return xr.Dataset({**variables, "chosen": table}, coords=coords)
