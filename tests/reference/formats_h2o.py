"""Cross-validated holdout predictions of H2O (pip install h2o, needs Java). Run from the repository root."""

import h2o
import numpy as np
from h2o.estimators import H2OGeneralizedLinearEstimator
from sklearn.datasets import load_iris

h2o.init(nthreads=1, max_mem_size="1g", verbose=False)
h2o.no_progress()
data = load_iris(as_frame=True)
frame = data.frame[data.frame.target > 0].sample(40, random_state=1).reset_index(drop=True)
frame.columns = ["sl", "sw", "pl", "pw", "target"]
frame["species"] = np.array(data.target_names)[frame.target]
frame["flag"] = (frame.target == 2).astype(int)


def write(y: str, name: str, family: str) -> None:
    hf = h2o.H2OFrame(frame[["sl", "sw", y]])
    if family != "gaussian":
        hf[y] = hf[y].asfactor()
    model = H2OGeneralizedLinearEstimator(
        family=family,
        nfolds=4,
        seed=1,
        fold_assignment="modulo",
        keep_cross_validation_predictions=True,
        keep_cross_validation_fold_assignment=True,
    )
    model.train(x=["sl", "sw"], y=y, training_frame=hf)
    held = model.cross_validation_holdout_predictions()
    folds = model.cross_validation_fold_assignment()
    held.cbind(folds).cbind(hf[y].set_names(["label"])).as_data_frame().to_csv(
        f"tests/files/h2o_{name}.csv", index=False
    )
    if name == "species":
        held.as_data_frame().to_csv("tests/files/h2o_bare.csv", index=False)
        frame[[y]].to_csv("tests/files/h2o_truth.csv", index=False)
        part = model.cross_validation_predictions()[0]
        part.cbind(hf[y].set_names(["label"])).as_data_frame().to_csv("tests/files/h2o_zero_filled.csv", index=False)


write("species", "species", "binomial")
write("flag", "integer_classes", "binomial")
write("pl", "regression", "gaussian")
with open("tests/files/h2o_version.txt", "w") as file:
    file.write(f"h2o {h2o.__version__}\n")
h2o.cluster().shutdown()
