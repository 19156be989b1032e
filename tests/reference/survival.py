"""Reference values of survival metrics by scikit-survival, and the data for `survival.R`.

Made with scikit-survival 0.28: python survival.py && Rscript survival.R
"""

import json
from pathlib import Path

import numpy as np
import sksurv
from sksurv.metrics import brier_score, concordance_index_ipcw, cumulative_dynamic_auc
from sksurv.util import Surv

HORIZONS = [2.0, 5.0, 8.0]
rng = np.random.default_rng(20)
n, columns = 60, 3
hidden = rng.normal(size=n)
event_time = rng.exponential(6 * np.exp(-hidden))
censoring = rng.uniform(1, 15, size=n)
time = np.round(np.minimum(event_time, censoring), 6)
event = (event_time <= censoring).astype(int)
assert len(np.unique(time)) == n  # scikit-survival has G(t) where others have G(t-): the same without ties
risk = np.round(hidden[:, None] + rng.normal(size=(n, columns)), 1)  # some are tied
scale = 6 * np.exp(-risk)
survival = np.exp(-np.array(HORIZONS) / scale[..., None]).round(4)  # sample, configuration, horizon

truth = Surv.from_arrays(event == 1, time)
found = {
    "uno": [concordance_index_ipcw(truth, truth, risk[:, j])[0] for j in range(columns)],
    "uno_truncated": [concordance_index_ipcw(truth, truth, risk[:, j], tau=5.0)[0] for j in range(columns)],
    "auc": [cumulative_dynamic_auc(truth, truth, risk[:, j], HORIZONS)[0].tolist() for j in range(columns)],
    "brier": [brier_score(truth, truth, survival[:, j], HORIZONS)[1].tolist() for j in range(columns)],
}
values = {
    "made_with": f"scikit-survival {sksurv.__version__}",
    "horizon": HORIZONS,
    "time": time.tolist(),
    "event": event.tolist(),
    "risk": risk.tolist(),
    "survival": survival.tolist(),
    "found": found,
}
Path(__file__).with_suffix(".json").write_text(json.dumps(values) + "\n")
