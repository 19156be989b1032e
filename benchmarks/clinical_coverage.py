"""Whether limits of calibration slope, net benefit and sensitivity at a chosen threshold hold where the truth is known.

Fixed models: the risk of a patient is known, each configuration sees it through a slope, a shift and noise of its own.
The winner is chosen by AUC (and, for the sensitivity, a threshold by Youden's index); the truth is the selected
decision's value on 20 000 new patients. Run ``python benchmarks/clinical_coverage.py``; it prints the table of
docs/caveats.md.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from scipy.special import expit

import cvstats as cs

CELLS = [(80, 10), (80, 50), (200, 10), (200, 50)]  # patients, configurations
NEW = 20_000
METRICS = {"calibration_slope": cs.calibration_slope, "net_benefit(0.3)": cs.net_benefit(0.3)}


def study(g: np.random.Generator, n: int, m: int) -> dict[str, tuple[float, float, float, float, float]]:
    """Return estimate, limits, plain value and truth by metric of one data set."""
    slope, shift, noise = g.uniform(0.5, 1.8, m), g.normal(0, 0.3, m), g.uniform(0.3, 1.5, m)

    def patients(size: int, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z = g.normal(-0.5, 1.5, size)
        label = (g.random(size) < expit(z)).astype(int)
        view = z[:, None] * slope[columns] + shift[columns] + noise[columns] * g.normal(size=(size, len(columns)))
        return label, expit(view)

    label, prediction = patients(n, np.arange(m))
    cube = cs.as_cube(prediction, label, kind="probability")
    fitted = cs.winner(cube, ["calibration_slope", cs.net_benefit(0.3)], by="auc", times=200, rng=g)
    cut = cs.winner(cube, ["sensitivity"], by="auc", adjust=cs.cut("youden"), times=200, rng=g)
    new, risk = patients(NEW, np.array([int(fitted["selected"])]))
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
    print("| patients | configurations | metric | bias of plain CV | bias | coverage | mean width |")
    print("|---|---|---|---|---|---|---|")
    for n, m in CELLS:
        g = np.random.default_rng([n, m])
        found = [study(g, n, m) for _ in range(times)]
        for name in found[0]:
            estimate, low, high, naive, truth = np.array([one[name] for one in found]).T
            inside = np.nanmean(np.where(np.isnan(low), np.nan, (low <= truth) & (truth <= high)))
            print(
                f"| {n} | {m} | `{name}` | {np.nanmean(naive - truth):+.3f} | {np.nanmean(estimate - truth):+.3f} | "
                f"{inside:.3f} | {np.nanmean(high - low):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
