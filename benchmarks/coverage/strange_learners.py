"""Further learners for the study of strange designs, of the same form as `learners`: one fit, many configurations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .learners import EDGE, Family, _probability, _scaled

Array = np.ndarray


def _link(values: Array, regress: bool) -> Array:
    """Return predictions of a least squares fit to classes as probabilities."""
    return values if regress else _probability(4 * (values - 0.5))


def stumps(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Boosted stumps after 3 to 60 stages at two rates: steepest descent of log loss or squared error."""
    n = len(y)
    order = np.argsort(X, axis=0, kind="stable")
    ordered = np.take_along_axis(X, order, 0)
    split = ordered[1:] > ordered[:-1]
    left = np.arange(1, n)[:, None]
    columns = []
    for rate in (0.1, 0.4):
        base = y.mean() if regress else np.log((y.mean() + 0.01) / (1.01 - y.mean()))
        fit, out = np.full(n, base), np.full(len(Z), base)
        for stage in range(1, 61):
            chance = 1 / (1 + np.exp(-fit))
            rest = y - (fit if regress else chance)
            below = np.cumsum(rest[order], axis=0)[:-1]
            gain = np.where(split, (below - left * rest.mean()) ** 2 / (left * (n - left)), -1)
            at, feature = np.unravel_index(gain.argmax(), gain.shape)
            edge = (ordered[at, feature] + ordered[at + 1, feature]) / 2
            side = X[:, feature] <= edge
            weight = np.ones(n) if regress else np.maximum(chance * (1 - chance), 0.02)
            step = [rate * rest[s].sum() / (weight[s].sum() + 1) for s in (side, ~side)]
            fit = fit + np.where(side, *step)
            out = out + np.where(Z[:, feature] <= edge, *step)
            if stage in (3, 8, 15, 30, 60):
                columns.append(out)
    made = np.stack(columns, 1)
    return made if regress else _probability(made)


def forest(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Extremely randomised trees: 3, 10 or 30 of them, with leaves of at least one or five cases."""
    from sklearn import config_context
    from sklearn.tree import ExtraTreeRegressor

    X, Z, columns = np.asarray(X, np.float32), np.asarray(Z, np.float32), []
    with config_context(skip_parameter_validation=True, assume_finite=True):
        for leaf in (1, 5):
            made = [
                ExtraTreeRegressor(min_samples_leaf=leaf, max_features=0.5, random_state=seed)
                .fit(X, y.astype(float), check_input=False)
                .predict(Z, check_input=False)
                for seed in range(30)
            ]
            mean = np.cumsum(made, axis=0) / np.arange(1, 31)[:, None]
            columns += [mean[2], mean[9], mean[29]]
    out = np.stack(columns, 1)
    return out if regress else np.clip(0.02 + 0.96 * out, EDGE, 1 - EDGE)


def machine(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Support vectors, linear and radial, four penalties in all."""
    from sklearn.svm import SVC, SVR

    X, Z = _scaled(X, Z)
    columns = []
    for kernel, penalty in (("linear", 0.05), ("linear", 1.0), ("rbf", 1.0), ("rbf", 10.0)):
        model = (SVR if regress else SVC)(kernel=kernel, C=penalty).fit(X, y)
        columns.append(model.predict(Z) if regress else 2 * model.decision_function(Z))
    out = np.stack(columns, 1)
    return out if regress else _probability(out)


def process(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Gaussian processes: three length scales, four noises."""
    X, Z = _scaled(X, Z)
    level, columns = y.mean(), []
    between = np.maximum((X**2).sum(1)[:, None] - 2 * X @ X.T + (X**2).sum(1), 0) / X.shape[1]
    across = np.maximum((Z**2).sum(1)[:, None] - 2 * Z @ X.T + (X**2).sum(1), 0) / X.shape[1]
    for scale in (0.5, 1.0, 2.5):
        value, base = np.linalg.eigh(np.exp(-between / (2 * scale**2)))
        along, inner = np.exp(-across / (2 * scale**2)) @ base, base.T @ (y - level)
        columns += [level + along @ (inner / (np.maximum(value, 0) + noise)) for noise in (0.03, 0.2, 1.0, 5.0)]
    return _link(np.stack(columns, 1), regress)


def lasso(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Lasso path of ten penalties on the fifteen features that go best with the target in the training set."""
    from sklearn.linear_model import lasso_path

    X, Z = _scaled(X, Z)
    level = y.mean()
    kept = np.argsort(-np.abs(X.T @ (y - level)), kind="stable")[:15]
    _, weight, _ = lasso_path(np.asfortranarray(X[:, kept]), y - level, n_alphas=10, eps=0.02)
    return _link(level + Z[:, kept] @ weight, regress)


def kernels(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Kernel ridge regression: polynomials of degree two and three, two exponential kernels, three penalties."""
    X, Z = _scaled(X, Z)
    p, level, columns = X.shape[1], y.mean(), []
    away = [np.sqrt(np.maximum((A**2).sum(1)[:, None] - 2 * A @ X.T + (X**2).sum(1), 0) / p) for A in (X, Z)]
    made = [[(1 + A @ X.T / p) ** degree for A in (X, Z)] for degree in (2, 3)]
    made += [[np.exp(-d / scale) for d in away] for scale in (0.5, 2.0)]
    for own, across in made:
        value, base = np.linalg.eigh(own)
        along, inner = across @ base, base.T @ (y - level)
        columns += [level + along @ (inner / (np.maximum(value, 0) + penalty)) for penalty in (0.02, 0.2, 2.0)]
    return _link(np.stack(columns, 1), regress)


def components(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Partial least squares with one to eight components."""
    X, Z = _scaled(X, Z)
    level, rest = y.mean(), y - y.mean()
    fit, columns, left = np.full(len(Z), level), [], (X.copy(), Z.copy())
    for _ in range(8):
        weight = left[0].T @ rest
        weight = weight / (np.linalg.norm(weight) + 1e-12)
        t, u = left[0] @ weight, left[1] @ weight
        square = t @ t + 1e-9
        load, slope = left[0].T @ t / square, t @ rest / square
        left = (left[0] - np.outer(t, load), left[1] - np.outer(u, load))
        rest, fit = rest - slope * t, fit + slope * u
        columns.append(fit)
    return _link(np.stack(columns, 1), regress)


def splines(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Ridge regression on broken lines of every feature with one, three or six bends, three penalties each."""
    level, columns = y.mean(), []
    for bends in (1, 3, 6):
        knots = np.quantile(X, np.arange(1, bends + 1) / (bends + 1), axis=0)
        A, B = (np.concatenate([D, *(np.maximum(D - knot, 0) for knot in knots)], axis=1) for D in (X, Z))
        A, B = _scaled(A, B)
        value, base = np.linalg.eigh(A.T @ A)
        along, inner = B @ base, base.T @ (A.T @ (y - level))
        columns += [level + along @ (inner / (np.maximum(value, 0) + penalty)) for penalty in (1.0, 8.0, 60.0)]
    return _link(np.stack(columns, 1), regress)


def windows(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Return local means with normal weights of five widths (Parzen's windows)."""
    X, Z = _scaled(X, Z)
    square = np.maximum((Z**2).sum(1)[:, None] - 2 * Z @ X.T + (X**2).sum(1), 0) / X.shape[1]
    columns = []
    for width in (0.15, 0.25, 0.4, 0.7, 1.2):
        weight = np.exp(-(square - square.min(1, keepdims=True)) / (2 * width**2))
        columns.append((weight @ y + (0 if regress else 0.25)) / (weight.sum(1) + (0 if regress else 0.5)))
    return np.stack(columns, 1)


def _fits(models: list[Any], X: Array, y: Array, Z: Array, regress: bool) -> Array:
    """Return what scikit-learn's models predict, distances from a boundary as probabilities."""
    from sklearn import config_context

    columns = []
    with config_context(skip_parameter_validation=True):
        for model in models:
            fit = model.fit(X, y)
            if regress:
                columns.append(fit.predict(Z))
            elif hasattr(fit, "predict_proba"):
                columns.append(fit.predict_proba(Z)[:, 1])
            else:
                columns.append(_probability(2 * fit.decision_function(Z)))
    return np.stack(columns, 1)


def boosted(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Boosted trees of depth one and three after 5 to 40 stages."""
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    columns = []
    for depth in (1, 3):
        kind = GradientBoostingRegressor if regress else GradientBoostingClassifier
        fit = kind(n_estimators=40, max_depth=depth, learning_rate=0.15, random_state=1).fit(X, y)
        each = list(fit.staged_predict(Z) if regress else fit.staged_predict_proba(Z))
        columns += [each[stage - 1] if regress else each[stage - 1][:, 1] for stage in (5, 10, 20, 40)]
    return np.stack(columns, 1)


def random_forest(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Random forests of 15 trees that try few or many features, with leaves of at least one or four cases."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if regress else RandomForestClassifier
    models = [
        kind(n_estimators=15, max_features=tried, min_samples_leaf=leaf, random_state=1)
        for tried in ("sqrt", 0.7)
        for leaf in (1, 4)
    ]
    return _fits(models, X, y, Z, regress)


def vectors(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Support vectors with three costs, linear and with two radial kernels."""
    from sklearn.svm import SVC, SVR

    X, Z = _scaled(X, Z)
    kinds = [{"kernel": "linear"}, *({"gamma": width / X.shape[1]} for width in (0.5, 2.0))]
    models = [(SVR if regress else SVC)(C=cost, **kind) for kind in kinds for cost in (0.1, 1.0, 10.0)]
    return _fits(models, X, y, Z, regress)


def gaussian(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Gaussian processes with three length scales."""
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    X, Z = _scaled(X, Z)
    kernels = [4.0 * RBF(scale * np.sqrt(X.shape[1])) for scale in (0.3, 0.7, 1.5)]
    if regress:
        return _fits(
            [GaussianProcessRegressor(each, alpha=0.5, optimizer=None, normalize_y=True) for each in kernels],
            X,
            y,
            Z,
            True,
        )
    return _fits([GaussianProcessClassifier(each, optimizer=None) for each in kernels], X, y, Z, False)


def screened(X: Array, y: Array, Z: Array, regress: bool = False) -> Array:
    """Lasso on the 5, 15 or 40 features with the largest F statistics, three penalties each."""
    from sklearn.feature_selection import SelectKBest, f_classif, f_regression
    from sklearn.linear_model import Lasso, LogisticRegression
    from sklearn.pipeline import make_pipeline

    X, Z = _scaled(X, Z)
    models = [
        make_pipeline(
            SelectKBest(f_regression if regress else f_classif, k=min(many, X.shape[1])),
            Lasso(alpha=0.3 / cost) if regress else LogisticRegression(l1_ratio=1, C=cost, solver="liblinear"),
        )
        for many in (5, 15, 40)
        for cost in (0.3, 1.0, 5.0)
    ]
    return _fits(models, X, y, Z, regress)


def subsets(count: int, useful: int = 0) -> Family:
    """Independence rule on random subsets of features; with `useful` the first sees these and the others the rest."""

    def family(X: Array, y: Array, Z: Array) -> Array:
        X, Z = _scaled(X, Z)
        p, rng = X.shape[1], np.random.default_rng(5)  # the subsets are the configurations
        mask = rng.random((count, p)) < max(0.2, 1.5 / p)
        mask[np.arange(count), rng.integers(useful, p, count)] = True
        if useful:
            mask[:, :useful], mask[0] = False, np.arange(p) < useful
        gap = X[y == 1].mean(0) - X[y == 0].mean(0)
        return _probability((Z * gap) @ (mask.T * 1.0) + np.log((y.sum() + 0.5) / (len(y) - y.sum() + 0.5)))

    return family


def only(family: Family, *which: int) -> Family:
    """Return some configurations of a family."""
    return lambda X, y, Z: family(X, y, Z)[:, list(which)]


def value(family: Callable[..., Array]) -> Family:
    """Return a family that predicts numbers."""
    return partial(family, regress=True)


def one_against_rest(families: tuple[Family, ...]) -> Family:
    """Return probabilities of several classes (case, configuration, class), each class against the rest."""

    def family(X: Array, y: Array, Z: Array) -> Array:
        each = [np.concatenate([one(X, (y == c).astype(int), Z) for one in families], axis=1) for c in range(3)]
        made = np.stack(each, axis=2)
        return made / made.sum(axis=2, keepdims=True)

    return family
