"""Whether limits of calibration slope, net benefit and sensitivity at a chosen threshold hold where the truth is known.

Fixed models: the risk of a patient is known, each configuration sees it through a slope, a shift and noise of its own.
Refitted models: penalised logistic regressions on ten variables of a bent logistic model, five folds; the truth is
that of the selected penalty refitted on all patients. The winner is chosen by AUC (and, for the sensitivity, a
threshold by Youden's index); the truth is the selected decision's value on 20 000 new patients. Run
``python benchmarks/clinical_coverage.py``; it prints the table of docs/caveats.md.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import cvstats as cs

CELLS = [("fixed", 80, 10), ("fixed", 80, 50), ("fixed", 200, 10), ("fixed", 200, 50)]  # patients, configurations
CELLS += [("refitted", 80, 12), ("refitted", 200, 12)]
NEW = 20_000
METRICS = {"calibration_slope": cs.calibration_slope, "net_benefit(0.3)": cs.net_benefit(0.3)}


Patients = tuple[np.ndarray, np.ndarray]  # outcomes, predicted risks (patient, configuration)


def fixed(g: np.random.Generator, n: int, m: int) -> tuple[xr.DataArray, Callable[[int], Patients]]:
    """Return a cube, and what makes new patients with the risks by one configuration."""
    slope, shift, noise = g.uniform(0.5, 1.8, m), g.normal(0, 0.3, m), g.uniform(0.3, 1.5, m)

    def patients(size: int, columns: np.ndarray) -> Patients:
        z = g.normal(-0.5, 1.5, size)
        label = (g.random(size) < expit(z)).astype(int)
        view = z[:, None] * slope[columns] + shift[columns] + noise[columns] * g.normal(size=(size, len(columns)))
        return label, expit(view)

    label, prediction = patients(n, np.arange(m))
    return cs.as_cube(prediction, label, kind="probability"), lambda chosen: patients(NEW, np.array([chosen]))


def refitted(g: np.random.Generator, n: int, m: int) -> tuple[xr.DataArray, Callable[[int], Patients]]:
    """Return a cube of penalised logistic regressions, and what makes new patients with the risks by a refitted one."""

    def drawn(size: int) -> tuple[np.ndarray, np.ndarray]:
        x = g.normal(size=(size, 10))
        risk = expit(x[:, 0] - 0.7 * x[:, 1] + 0.6 * (x[:, 2] ** 2 - 1) + 0.3 * x[:, 3] - 0.5)
        return x, (g.random(size) < risk).astype(int)

    strengths = np.logspace(-1.5, 1.5, m)
    x, label = drawn(n)
    fold = cs.kfold(label, 5, rng=g).values[:, 0]
    prediction = np.empty((n, m))
    for k in range(5):
        rest = fold != k
        for at, strength in enumerate(strengths):
            model = LogisticRegression(C=strength).fit(x[rest], label[rest])
            prediction[~rest, at] = model.predict_proba(x[~rest])[:, 1]

    def new(chosen: int) -> Patients:
        fresh, outcome = drawn(NEW)
        return outcome, LogisticRegression(C=strengths[chosen]).fit(x, label).predict_proba(fresh)[:, [1]]

    return cs.as_cube(prediction, label, folds=fold, kind="probability"), new


def study(g: np.random.Generator, kind: str, n: int, m: int) -> dict[str, tuple[float, float, float, float, float]]:
    """Return estimate, limits, plain value and truth by metric of one data set."""
    cube, patients = {"fixed": fixed, "refitted": refitted}[kind](g, n, m)
    fitted = cs.winner(cube, ["calibration_slope", cs.net_benefit(0.3)], by="auc", times=200, rng=g)
    cut = cs.winner(cube, ["sensitivity"], by="auc", adjust=cs.cut("youden"), times=200, rng=g)
    new, risk = patients(int(fitted["selected"]))
    known = cs.as_cube(risk, new, kind="probability")
    truth = {name: float(cs.score(known, metric)[0]) for name, metric in METRICS.items()}
    truth["sensitivity"] = float((risk[new == 1, 0] > float(cut["threshold"])).mean())
    rows = {}
    for out in (fitted, cut):
        for name in out["metric"].values.tolist():
            one = out.sel(metric=name)
            numbers = (float(one[part]) for part in ("estimate", "conf_low", "conf_high", "naive"))
            rows[name] = (*numbers, truth[name])
    return rows


def main(times: int) -> None:
    """Print bias, plain bias, coverage and width of every cell."""
    warnings.simplefilter("ignore", cs.CvstatsWarning)
    print("| models | patients | configurations | metric | bias of plain CV | bias | coverage | mean width |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, n, m in CELLS:
        g = np.random.default_rng([n, m])
        studies = [study(g, kind, n, m) for _ in range(times)]
        for name in studies[0]:
            estimate, low, high, naive, truth = np.array([one[name] for one in studies]).T
            inside = np.nanmean(np.where(np.isnan(low), np.nan, (low <= truth) & (truth <= high)))
            print(
                f"| {kind} | {n} | {m} | `{name}` | {np.nanmean(naive - truth):+.3f} | "
                f"{np.nanmean(estimate - truth):+.3f} | {inside:.3f} | {np.nanmean(high - low):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
