"""Small, quick learners that are refitted in every fold. A family fits once and predicts all its configurations.

A family is ``family(X, y, Z, only=None) -> (len(Z), m)``: predictions for the rows of Z by the m configurations
trained on (X, y), or by configuration `only` alone. Classifiers give probabilities of class 1, kept inside
[.005, .995] so that log loss is finite; the others give numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Family = Callable[..., np.ndarray]
EDGE = 0.005


def _pick(values: list, only: int | None) -> list:
    return values if only is None else [values[only]]


def _probability(score: np.ndarray) -> np.ndarray:
    return np.clip(1 / (1 + np.exp(-np.clip(score, -30, 30))), EDGE, 1 - EDGE)


def _scaled(X: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    centre, scale = X.mean(0), X.std(0) + 1e-9
    return (X - centre) / scale, (Z - centre) / scale


def _prior(y: np.ndarray) -> float:
    return float(np.log((y.sum() + 0.5) / (len(y) - y.sum() + 0.5)))


def knn(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None, regress: bool = False) -> np.ndarray:
    """Predict by the nearest 1 to 25 neighbours, from one distance matrix."""
    sizes = [1, 3, 5, 7, 9, 13, 17, 25]
    X, Z = _scaled(X, Z)
    distance = (X**2).sum(1) - 2 * Z @ X.T
    most = min(max(_pick(sizes, only)), len(X))
    near = np.argpartition(distance, most - 1, axis=1)[:, :most] if most < len(X) else np.argsort(distance, axis=1)
    order = np.take_along_axis(near, np.argsort(np.take_along_axis(distance, near, 1), axis=1), 1)
    total = np.cumsum(y[order], axis=1)
    columns = []
    for k in _pick(sizes, only):
        k = min(k, len(X))
        columns.append(total[:, k - 1] / k if regress else (total[:, k - 1] + 0.25) / (k + 0.5))
    return np.stack(columns, 1)


def knn_value(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None) -> np.ndarray:
    """Mean of the k nearest neighbours."""
    return knn(X, y, Z, only, regress=True)


def lda(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None) -> np.ndarray:
    """Linear discriminant with the covariance shrunken to a multiple of the identity."""
    grid = [0.001, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 0.99]
    X, Z = _scaled(X, Z)
    mean0, mean1 = X[y == 0].mean(0), X[y == 1].mean(0)
    rest = X - np.where(y[:, None] == 1, mean1, mean0)
    _, size, base = np.linalg.svd(rest, full_matrices=False)
    spread = size**2 / max(len(y) - 2, 1)
    level = spread.sum() / X.shape[1]
    gap, at = mean1 - mean0, Z - (mean0 + mean1) / 2
    gap_in, at_in = base @ gap, at @ base.T
    outside = at @ gap - at_in @ gap_in  # directions without spread
    columns = []
    for share in _pick(grid, only):
        inside = at_in @ (gap_in / ((1 - share) * spread + share * level))
        columns.append(inside + outside / (share * level) + _prior(y))
    return _probability(np.stack(columns, 1))


def bayes(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None) -> np.ndarray:
    """Gaussian naive Bayes with smoothed variances; the last two use a common variance."""
    grid = [(0.01, False), (0.1, False), (0.5, False), (0.01, True), (0.5, True)]
    X, Z = _scaled(X, Z)
    own = [(X[y == c].mean(0), X[y == c].var(0)) for c in (0, 1)]
    columns = []
    for smooth, common in _pick(grid, only):
        score = np.full(len(Z), _prior(y))
        pooled = (own[0][1] + own[1][1]) / 2
        for sign, (mean, variance) in zip((-1, 1), own, strict=True):
            used = (pooled if common else variance) + smooth
            score += sign * -0.5 * (np.log(used).sum() + ((Z - mean) ** 2 / used).sum(1))
        columns.append(score)
    return _probability(np.stack(columns, 1))


def _hidden(X: np.ndarray, scale: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)  # the network is part of the configuration, not of the repetition
    weight = rng.normal(size=(X.shape[1], 25)) * scale / np.sqrt(X.shape[1])
    return np.tanh(X @ weight + rng.normal(size=25) * 0.5)


def _ridge_path(H: np.ndarray, target: np.ndarray, G: np.ndarray, penalties: list[float]) -> list[np.ndarray]:
    centre, level = H.mean(0), target.mean()
    value, base = np.linalg.eigh((H - centre).T @ (H - centre))
    inner = base.T @ ((H - centre).T @ (target - level))
    along = (G - centre) @ base
    return [level + along @ (inner / (np.maximum(value, 0) + penalty)) for penalty in penalties]


def network(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None, regress: bool = False) -> np.ndarray:
    """Random hidden layer, ridge output: three scales times five penalties."""
    penalties = [0.05, 0.3, 1.0, 5.0, 30.0]
    X, Z = _scaled(X, Z)
    target = y.astype(float) if regress else 2.0 * y - 1
    columns: list[np.ndarray] = []
    for at, scale in enumerate((0.5, 1.0, 2.5)):
        if only is not None and only // 5 != at:
            continue
        used = penalties if only is None else [penalties[only % 5]]
        columns += _ridge_path(_hidden(X, scale, at), target, _hidden(Z, scale, at), used)
    out = np.stack(columns, 1)
    return out if regress else _probability(2 * out)


def network_value(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None) -> np.ndarray:
    """Random hidden layer, ridge output, for numbers."""
    return network(X, y, Z, only, regress=True)


def ridge(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None) -> np.ndarray:
    """Ridge regression path."""
    penalties = [0.1, 1.0, 4.0, 12.0, 40.0, 120.0, 400.0, 2000.0]
    X, Z = _scaled(X, Z)
    return np.stack(_ridge_path(X, y.astype(float), Z, _pick(penalties, only)), 1)


def logistic(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None) -> np.ndarray:
    """Ridge-penalised logistic regression by Newton's method, six penalties at once."""
    penalties = [50.0, 15.0, 5.0, 1.5, 0.5, 0.1]
    X, Z = _scaled(X, Z)
    if X.shape[1] > 20:  # the path lives in the row space
        _, _, base = np.linalg.svd(X, full_matrices=False)
        X, Z = X @ base[:20].T, Z @ base[:20].T
    A = np.column_stack([np.ones(len(X)), X])
    B = np.column_stack([np.ones(len(Z)), Z])
    used = np.array(_pick(penalties, only))
    weight = np.repeat(used[:, None], A.shape[1], axis=1)
    weight[:, 0] = 1e-3
    beta = np.zeros(weight.shape)
    corner = weight[:, :, None] * np.eye(A.shape[1])
    for _ in range(7):
        p = 1 / (1 + np.exp(-np.clip(beta @ A.T, -15, 15)))
        hessian = (A.T * np.maximum(p * (1 - p), 1e-4)[:, None, :]) @ A + corner
        beta = beta + np.linalg.solve(hessian, ((y - p) @ A - weight * beta)[:, :, None])[:, :, 0]
    return _probability(B @ beta.T)


def centroid(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None) -> np.ndarray:
    """Nearest shrunken centroids: features below a threshold drop out."""
    grid = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    n1 = int(y.sum())
    n0 = len(y) - n1
    mean0, mean1 = X[y == 0].mean(0), X[y == 1].mean(0)
    spread = np.sqrt(((X - np.where(y[:, None] == 1, mean1, mean0)) ** 2).sum(0) / max(len(y) - 2, 1))
    spread = spread + np.median(spread) + 1e-9
    root = np.sqrt(1 / n0 + 1 / n1)
    gap = (mean1 - mean0) / (spread * root)
    at = (Z - (mean0 + mean1) / 2) / spread
    columns = []
    for threshold in _pick(grid, only):
        kept = np.sign(gap) * np.maximum(np.abs(gap) - threshold, 0) * root
        columns.append(at @ kept + _prior(y))
    return _probability(np.stack(columns, 1))


def filtered(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None, regress: bool = False) -> np.ndarray:
    """Choose the features most correlated with the target in the training set, then fit a linear model to them."""
    sizes = [1, 2, 3, 5, 8, 12]
    X, Z = _scaled(X, Z)
    target = y.astype(float) - y.mean()
    order = np.argsort(-np.abs(X.T @ target), kind="stable")
    columns = []
    for size in _pick(sizes, only):
        used = order[:size]
        columns += _ridge_path(X[:, used], y.astype(float), Z[:, used], [1.0 if regress else 2.0])
    out = np.stack(columns, 1)
    return out if regress else _probability(4 * (out - 0.5))


def filtered_value(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None) -> np.ndarray:
    """Choose the features most correlated with the target, then fit a nearly unpenalised linear model."""
    return filtered(X, y, Z, only, regress=True)


def quadratic(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None) -> np.ndarray:
    """Quadratic discriminant on the first four principal components, class covariances shrunken to the pooled one."""
    grid = [0.1, 0.4, 0.8]
    X, Z = _scaled(X, Z)
    if X.shape[1] > 4:
        _, _, base = np.linalg.svd(X, full_matrices=False)
        X, Z = X @ base[:4].T, Z @ base[:4].T
    parts = [X[y == c] for c in (0, 1)]
    rest = [part - part.mean(0) for part in parts]
    pooled = sum(r.T @ r for r in rest) / len(y) + 0.05 * np.eye(X.shape[1])
    columns = []
    for share in _pick(grid, only):
        score = np.full(len(Z), _prior(y))
        for sign, part, r in zip((-1, 1), parts, rest, strict=True):
            matrix = (1 - share) * (r.T @ r) / len(part) + share * pooled
            away = Z - part.mean(0)
            score += sign * -0.5 * (np.linalg.slogdet(matrix)[1] + (away * np.linalg.solve(matrix, away.T).T).sum(1))
        columns.append(score)
    return _probability(np.stack(columns, 1))


def tree(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None, regress: bool = False) -> np.ndarray:
    """Grow a decision tree of scikit-learn with at least 3 samples a leaf, cut at depth 1, 2, 3 or not at all."""
    from sklearn import config_context
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    made = DecisionTreeRegressor if regress else DecisionTreeClassifier
    X, Z = np.asarray(X, np.float32), np.asarray(Z, np.float32)
    with config_context(skip_parameter_validation=True, assume_finite=True):
        model = (
            made(random_state=0, min_samples_leaf=3).fit(X, y.astype(float) if regress else y, check_input=False).tree_
        )
    leaf, where = np.zeros(len(X), int), np.zeros(len(Z), int)
    columns = []
    for depth in range(1, model.max_depth + 1):
        leaf, where = _step(model, X, leaf), _step(model, Z, where)
        if depth in (1, 2, 3, model.max_depth):
            count, total = np.bincount(leaf), np.bincount(leaf, y)
            columns.append(total[where] / count[where] if regress else (total[where] + y.mean()) / (count[where] + 1))
    columns = columns or [np.full(len(Z), float(y.mean()))]
    columns += [columns[-1]] * (4 - len(columns))
    out = np.stack(columns if only is None else [columns[only]], 1)
    return out if regress else np.clip(out, EDGE, 1 - EDGE)


def _step(model: object, X: np.ndarray, node: np.ndarray) -> np.ndarray:
    """Move every case one level down, unless it sits in a leaf."""
    left, right = model.children_left[node], model.children_right[node]  # type: ignore[attr-defined]
    inner = left >= 0
    value = X[np.arange(len(X)), np.maximum(model.feature[node], 0)]  # type: ignore[attr-defined]
    down = np.where(value <= model.threshold[node], left, right)  # type: ignore[attr-defined]
    return np.where(inner, down, node)


def tree_value(X: np.ndarray, y: np.ndarray, Z: np.ndarray, only: int | None = None) -> np.ndarray:
    """Regression trees of scikit-learn."""
    return tree(X, y, Z, only, regress=True)


WIDTH: dict[Family, int] = {
    knn: 8, knn_value: 8, lda: 10, bayes: 5, network: 15, network_value: 15, ridge: 8, logistic: 6, centroid: 7,
    filtered: 6, filtered_value: 6, quadratic: 3, tree: 4, tree_value: 4,
}  # fmt: skip
TUNING = (knn, lda, bayes, network)  # 38 configurations
HELD_OUT = (logistic, centroid, filtered, quadratic, tree)  # 26 configurations
HELD_OUT_QUICK = (logistic, centroid, filtered, quadratic)  # 22
TUNING_VALUE = (knn_value, ridge)  # 16
HELD_OUT_VALUE = (network_value, filtered_value, tree_value)  # 25


def predict_all(families: tuple[Family, ...], X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return the predictions of every configuration of every family, trained on (X, y)."""
    return np.concatenate([family(X, y, Z) for family in families], axis=1)


def predict_one(families: tuple[Family, ...], number: int, X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return the predictions of configuration `number` alone."""
    for family in families:
        width = WIDTH[family]
        if number < width:
            return family(X, y, Z, only=number)[:, 0]
        number -= width
    raise IndexError(number)
