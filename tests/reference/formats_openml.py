"""Run predictions as openml-python writes them, without a server (pip install openml). Run from the root."""

from unittest import mock

import arff
import numpy as np
import openml
from openml.runs.functions import format_prediction
from openml.tasks import OpenMLClassificationTask, OpenMLRegressionTask
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import RepeatedKFold

x, y = load_iris(return_X_y=True)
rows = np.random.default_rng(4).permutation(150)[:40]
x, y = x[rows], y[rows]
names = ["Iris-setosa", "Iris 'odd' name", "Iris, virginica"]
cv = RepeatedKFold(n_splits=4, n_repeats=2, random_state=1)


def write(task: object, name: str) -> None:
    content = []
    regression = isinstance(task, OpenMLRegressionTask)
    for number, (train, test) in enumerate(cv.split(x)):
        repeat, fold = divmod(number, 4)
        if regression:
            p = LinearRegression().fit(x[train, :2], x[train, 2]).predict(x[test, :2])
        else:
            p = LogisticRegression().fit(x[train, :2], y[train]).predict_proba(x[test, :2])
        for row, value in zip(test, p, strict=True):
            if regression:
                content.append(format_prediction(task, repeat, fold, int(row), float(value), float(x[row, 2])))
            else:
                proba = dict(zip(names, map(float, value), strict=True))
                guess = names[int(np.argmax(value))]
                content.append(format_prediction(task, repeat, fold, int(row), guess, names[y[row]], proba=proba))
    run = openml.runs.OpenMLRun(task_id=1, flow_id=1, dataset_id=1, data_content=content, description_text="example")
    run.flow = object()
    with mock.patch("openml.runs.run.get_task", return_value=task):
        text = arff.dumps(run._generate_arff_dict())
    with open(f"tests/files/openml_{name}.arff", "w") as file:
        file.write(text)


def stub(kind: type) -> object:
    task = object.__new__(kind)
    task.task_id, task.class_labels = 1, names
    return task


write(stub(OpenMLClassificationTask), "classification")
write(stub(OpenMLRegressionTask), "regression")
with open("tests/files/openml_version.txt", "w") as file:
    file.write(f"openml {openml.__version__}\n")
