"""Scikit-learn at the door: train candidates and keep their out-of-fold predictions, or record a running search.

The only file that knows scikit-learn, and the only one that trains. What leaves it is a cube.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, Rng, check_count, entropy, plain, show, warn
from cvstats.formats._candidates import Candidate, Splits, candidates_cube, write_call, write_design
from cvstats.formats._gate import needed
from cvstats.kernels.threads import ticker

__all__ = ["collect", "record"]

RESPONSES = ("predict_proba", "decision_function", "predict")
Split = tuple[np.ndarray, np.ndarray]
Job = tuple[int, int, int]  # candidate, split, inner split (-1: outer)
Answers = Mapping[Job, Any]  # values, response and classes
About = Sequence[Mapping[str, Any]]  # of every candidate


def collect(
    models: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    groups: Any = None,
    repeats: int = 1,
    inner: bool = False,
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Any:
    """Train every candidate of some models in every fold and return their out-of-fold predictions as a cube.

    A search (`GridSearchCV`, `RandomizedSearchCV` or any other with ``param_grid`` or ``param_distributions``) stands
    for all its candidates; its own `cv` and scoring are not used, because here every candidate is predicted in the same
    folds. Any other estimator is one candidate.

    Parameters
    ----------
    models : estimator, search, or mapping of name to either
        Names become the coordinate ``family``; without a mapping it is the class's name.
    X, y : array-like
        Data as scikit-learn takes them. The index of a data frame names the samples; if `y` has an index too, the two
        must agree.
    cv : int, splitter or list of (train, test)
        Number of folds (shuffled; within classes for classifiers, groups whole when given), or scikit-learn's splitter.
        Test sets must not overlap, but for repeats that each test all samples.
    groups : array-like, optional
        Cluster of each sample: kept whole in folds, and as the coordinate ``group``.
    repeats : int
        Number of partitions into folds.
    inner : bool
        Also train within the training set of every fold, for ``ncv`` and ``winner(inner=)``; K times the work.
    rng : int or numpy.random.Generator, optional
        Seeds the folds, the candidates of a randomized search and every ``random_state`` that is None.
    n_jobs : int, optional
        Processes, as in scikit-learn.
    progress : bool
        Show a progress bar.

    Returns
    -------
    xarray.DataArray or tuple
        The cube, with tuning values and ``family`` as coordinates over ``configuration``; with `inner` the cube and the
        inner predictions. A candidate that fails in a fold is NaN there, and one warning names it. The positive class
        of two is the later one in scikit-learn's order.

    Raises
    ------
    InputError
        Splits that overlap, a search whose candidates are not known in advance, an index of `X` unlike that of `y`.

    Examples
    --------
    >>> from cvstats.sklearn import collect
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5, 15]})
    >>> cube = collect({"knn": search}, X, y, rng=1)
    >>> dict(cube.sizes)
    {'sample': 150, 'configuration': 3, 'label_class': 3}
    >>> cube.n_neighbors.values
    array([ 1,  5, 15])
    """
    needed("sklearn", "collect()", "sklearn")
    repeats = check_count(repeats, "repeats")
    seed = entropy(rng)
    todo = list(_candidates(models, seed if rng is not None else None))
    classifier = [_is_classifier(estimator) for _, _, estimator in todo]
    if len(set(classifier)) > 1:
        raise InputError("`models` holds classifiers and regressors; collect them apart.")
    samples, labels = _named_data(X, y)
    cluster = None if groups is None else np.asarray(groups)
    splits = list(_splits(cv, X, labels, cluster, repeats, seed, classifier[0]))
    design = Splits(samples, labels, [test for _, test in splits], cluster)
    design.folds()  # which refuses splits that overlap, before anything is trained
    jobs: dict[Job, Split] = {}
    inside: list[list[Split]] = []
    for number, (train, test) in enumerate(splits):
        inside.append([*_inner_splits(cv, X, labels, cluster, train, seed, classifier[0])] if inner else [])
        pairs = {-1: (train, test), **dict(enumerate(inside[-1]))}
        jobs |= {(one, number, place): pair for one in range(len(todo)) for place, pair in pairs.items()}
    answers = _trained(todo, jobs, X, labels, n_jobs, progress)
    about = _about(todo, answers)
    cube = _cube_of(
        design, about, {(one, split): answer for (one, split, place), answer in answers.items() if place < 0}
    )
    return (cube, _inner_cube(cube, design, about, answers, inside)) if inner else cube


def record(path: str | Path, scoring: Any, X: Any, y: Any, cv: Any) -> Recorder:
    """Return a scorer that keeps every candidate's out-of-fold predictions while your own search runs.

    Give it to a search as ``scoring=``; nothing is trained twice. Whenever the search scores a candidate on a test set
    of `cv`, the predictions go to the folder `path`, one small file a call, written aside and renamed: any number of
    processes may do so at a time, and an interrupted search leaves what it had done. `read_cube` reads the folder, at
    any time. Scores of training sets (``return_train_score=True``) are not recorded.

    Parameters
    ----------
    path : str or Path
        Folder of the recording; one that exists is continued when it has the same samples, labels and splits.
    scoring : str, callable or None
        What the search shall see as the score, as scikit-learn's ``scoring``; None is the estimator's own.
    X, y : array-like
        The very data that are given to the search.
    cv : int, splitter or list of (train, test)
        The very splits that the search uses; a shuffled splitter needs a ``random_state``.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``.

    Raises
    ------
    InputError
        Splits that change from call to call or that overlap; test sets that cannot be told apart by their content.

    Examples
    --------
    >>> import tempfile
    >>> import cvstats as cs
    >>> from cvstats.sklearn import record
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV, StratifiedKFold
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> cv = StratifiedKFold(5, shuffle=True, random_state=1)
    >>> folder = tempfile.mkdtemp()
    >>> scorer = record(f"{folder}/knn", "accuracy", X, y, cv)
    >>> search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5, 15]}, scoring=scorer, cv=cv).fit(X, y)
    >>> cube = cs.read_cube(f"{folder}/knn")
    >>> bool(cs.score(cube, "accuracy", average="fold").max().round(9) == search.best_score_.round(9))
    True
    """
    needed("sklearn", "record()", "sklearn")
    from sklearn.utils.multiclass import type_of_target

    samples, labels = _named_data(X, y)
    classes = type_of_target(labels) in ("binary", "multiclass")
    first, second = ([test for _, test in _given_splits(cv, X, labels, None, classes)] for _ in range(2))
    if not all(map(np.array_equal, first, second)):
        raise InputError("`cv` splits differently every time; give it a random_state, or a list of its splits.")
    design = Splits(samples, labels, first)
    design.folds()
    known: dict[str, int] = {}
    for number, test in enumerate(first):
        key = _digest(_rows(X, test), labels[test])
        if key in known:
            raise InputError(
                f"the test sets of splits {known[key]} and {number} of `cv` hold the same data, so that what is scored "
                "cannot be told apart; give X a column, or a data frame an index, that tells samples apart."
            )
        known[key] = number
    folder = Path(path)
    write_design(folder, design)
    return Recorder(folder.resolve(), scoring, known, np.unique(labels).tolist())


class Recorder:
    """A scorer that records; see `record`."""

    def __init__(self, folder: Path, scoring: Any, known: Mapping[str, int], classes: list[Any]) -> None:
        self.folder, self.scoring, self.known, self.classes = folder, scoring, known, classes
        self.scorer: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score of a fitted estimator; record its predictions if this is a test set."""
        from sklearn.metrics import check_scoring

        split = self.known.get(_digest(X, np.asarray(y)))
        if split is not None:
            estimator = _asked_once(estimator, X)
            response, classes, values = _answer(estimator, X, self.classes)
            family, parameters = _family(estimator), _simple(estimator.get_params(deep=True))
            about = {"family": family, "parameters": parameters, "response": response, "classes": classes}
            key = hashlib.blake2b(repr(sorted(parameters.items())).encode(), digest_size=16)
            key.update(family.encode())
            write_call(self.folder, key.hexdigest(), split, about, values)
        if self.scorer is None or self.scoring is None:  # the estimator's own
            self.scorer = check_scoring(estimator, scoring=self.scoring)
        return float(self.scorer(estimator, X, y))


def _asked_once(estimator: Any, X: Any) -> Any:
    """Return a copy of a fitted estimator that predicts the same rows once, however often it is asked."""

    def once(method: Any) -> Any:
        kept: list[Any] = []

        @wraps(method)  # scikit-learn asks methods for their names
        def answer(rows: Any, **more: Any) -> Any:
            if rows is not X or more:
                return method(rows, **more)
            if not kept:
                kept.append(method(rows))
            return kept[0]

        return answer

    twin = copy.copy(estimator)
    vars(twin).update({name: once(getattr(estimator, name)) for name in RESPONSES if hasattr(estimator, name)})
    return twin


# -- data and splits


def _named_data(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of the samples and their labels."""
    index, other = getattr(X, "index", None), getattr(y, "index", None)
    index = None if callable(index) else index  # a list has a method of that name
    other = None if callable(other) else other
    if index is not None and other is not None and not index.equals(other):
        raise InputError(f"the index of `X` and that of `y` differ: {show(index)} and {show(other)}.")
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(f"`y` must have one value per sample; got shape {labels.shape}.")
    name = index if index is not None else other
    return (np.arange(len(labels)) if name is None else np.asarray(name)), labels


def _rows(X: Any, rows: np.ndarray) -> Any:
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, rows)


def _splits(
    cv: Any, X: Any, y: np.ndarray, groups: np.ndarray | None, repeats: int, seed: int, classifier: bool
) -> Iterator[Split]:
    """Yield the splits of all repeats."""
    for repeat in range(repeats):
        state = int(np.random.SeedSequence(seed, spawn_key=(repeat,)).generate_state(1)[0])
        if isinstance(cv, (int, np.integer)):
            yield from _kfold(int(cv), groups, state, classifier).split(X, y, groups)
            continue
        now = cv
        if repeats > 1:
            if not getattr(cv, "shuffle", hasattr(cv, "random_state")) or not hasattr(cv, "random_state"):
                raise InputError(
                    "`repeats` needs a `cv` that shuffles, or a number of folds; this one would repeat itself."
                )
            now = copy.copy(cv)
            now.random_state = state
        yield from _given_splits(now, X, y, groups, classifier)


def _kfold(k: int, groups: np.ndarray | None, state: int, classifier: bool) -> Any:
    from sklearn import model_selection as ms

    plain_or_stratified = (ms.KFold, ms.StratifiedKFold) if groups is None else (ms.GroupKFold, ms.StratifiedGroupKFold)
    return plain_or_stratified[classifier](k, shuffle=True, random_state=state)


def _given_splits(cv: Any, X: Any, y: np.ndarray, groups: np.ndarray | None, classifier: bool) -> list[Split]:
    """Return the splits as scikit-learn makes them."""
    from sklearn.model_selection import check_cv

    return [(np.asarray(a), np.asarray(b)) for a, b in check_cv(cv, y, classifier=classifier).split(X, y, groups)]


def _inner_splits(
    cv: Any, X: Any, y: np.ndarray, groups: np.ndarray | None, train: np.ndarray, seed: int, classifier: bool
) -> Iterator[Split]:
    """Yield splits of a training set, as places in all samples."""
    cv = cv if isinstance(cv, (int, np.integer)) or hasattr(cv, "split") else len(list(cv))
    own = None if groups is None else groups[train]
    for a, b in _splits(cv, _rows(X, train), y[train], own, 1, seed, classifier):
        yield train[a], train[b]


# -- candidates


def _candidates(models: Any, seed: int | None) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield family, tuning values and the estimator of every candidate."""
    from sklearn.base import clone
    from sklearn.model_selection import ParameterGrid, ParameterSampler

    named = models if isinstance(models, Mapping) else {_family(getattr(models, "estimator", models)): models}
    if not named:
        raise InputError("`models` is empty.")
    for name, model in named.items():
        base: Any = getattr(model, "estimator", model)
        if hasattr(model, "param_grid"):
            grid: Any = ParameterGrid(model.param_grid)
        elif hasattr(model, "param_distributions"):
            state = model.random_state if model.random_state is not None else seed
            grid = ParameterSampler(model.param_distributions, model.n_iter, random_state=_state(state))
        elif hasattr(model, "best_params_") or (hasattr(model, "refit") and hasattr(model, "scoring")):
            raise InputError(
                f"the candidates of {type(model).__name__} are not known before it runs; record() keeps what it tries."
            )
        else:
            base, grid = model, [{}]
        if not hasattr(base, "fit"):
            raise InputError(f"`models`[{name!r}] must be an estimator or a search; got {type(base).__name__}.")
        for parameters in grid:
            estimator = clone(base).set_params(**parameters)
            if seed is not None:
                own = estimator.get_params().items()
                free = [name for name, value in own if name.endswith("random_state") and value is None]
                estimator.set_params(**dict.fromkeys(free, _state(seed)))
            yield str(name), _simple(parameters), estimator


def _state(seed: Any) -> Any:
    """Return a seed in the range that scikit-learn takes."""
    return seed % 2**32 if isinstance(seed, int) else seed


def _family(estimator: Any) -> str:
    """Return the class's name, that of the last step of a pipeline."""
    return type(estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator).__name__


def _is_classifier(estimator: Any) -> bool:
    from sklearn.base import is_classifier

    return bool(is_classifier(estimator))


def _simple(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON keeps them: numbers and texts as they are, objects by their class."""
    simple: dict[str, Any] = {}
    for key, value in parameters.items():
        value = plain(value)
        if value is None or isinstance(value, (bool, int, float, str)):
            simple[key] = value
        elif isinstance(value, (list, tuple)) and not any(
            hasattr(part, "fit") for part in np.ravel(np.array(value, object))
        ):
            simple[key] = str(tuple(plain(part) for part in value))
        else:
            simple[key] = getattr(value, "__name__", type(value).__name__)
    return simple


# -- training


def _trained(
    todo: Sequence[Any], jobs: Mapping[Job, Split], X: Any, y: np.ndarray, n_jobs: int | None, progress: bool
) -> Answers:
    """Return what every job answered that did not fail: values, response and classes. Those that failed are named."""
    from joblib import Parallel, delayed

    every = np.unique(y).tolist()
    calls: Iterator[Any] = (delayed(_fit)(todo[job[0]][2], X, y, *pair, every) for job, pair in jobs.items())
    with ticker("training" if progress else "", len(jobs)) as tick:
        answers = [tick(answer) for answer in Parallel(n_jobs=n_jobs, return_as="generator")(calls)]
    done = dict(zip(jobs, answers, strict=True))
    failed = {job: answer for job, answer in done.items() if isinstance(answer, str)}
    first = next(iter(failed.values()), "")
    if len(failed) == len(done):
        raise InputError(f"every candidate failed in every fold; first: {first}")
    if failed:
        names = [(todo[one][0], ", ".join(f"{k}={v}" for k, v in todo[one][1].items())) for one, _, _ in failed]
        shown = show(dict.fromkeys(" ".join(name).strip() for name in names))
        warn(f"{len(failed)} of {len(done)} fits failed and are NaN ({shown}); first: {first}")
    return {job: answer for job, answer in done.items() if job not in failed}


def _fit(estimator: Any, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, every: list[Any]) -> Any:
    """Train a copy and predict the test samples; an error is returned as text."""
    from sklearn.base import clone

    try:
        fitted = clone(estimator).fit(_rows(X, train), y[train])
        response, classes, values = _answer(fitted, _rows(X, test), every)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return values, response, classes


def _answer(fitted: Any, X: Any, every: Sequence[Any]) -> tuple[str, list[Any] | None, np.ndarray]:
    """Return the most telling answer of a fitted estimator: its name, the classes `every` of the data, the values.

    A class that the training set lacks has probability zero.
    """
    if not _is_classifier(fitted):
        return "predict", None, np.asarray(fitted.predict(X))
    response = next((name for name in RESPONSES if hasattr(fitted, name)), "predict")
    values = np.asarray(getattr(fitted, response)(X))
    own = np.asarray(fitted.classes_).tolist()
    if own != every and response == "predict_proba":
        wide = np.zeros((len(values), len(every)))
        wide[:, [every.index(name) for name in own]] = values
        values = wide
    elif own != every and response == "decision_function":
        raise InputError(f"the training set holds only the classes {show(own)}.")
    return response, list(every), values


def _about(todo: Sequence[Any], answers: Answers) -> list[dict[str, Any]]:
    """Return family, parameters, response and classes of every candidate; one that always failed takes another's."""
    spoken: dict[int, Any] = {}
    for (candidate, _, _), answer in answers.items():
        spoken.setdefault(candidate, answer[1:])
    some = next(iter(spoken.values()))
    keys = ("family", "parameters", "response", "classes")
    return [dict(zip(keys, (*todo[i][:2], *spoken.get(i, some)), strict=True)) for i in range(len(todo))]


def _cube_of(design: Splits, about: About, answers: Mapping[tuple[int, int], Any]) -> xr.DataArray:
    """Return the predictions as a cube, from what each candidate answered in each split."""
    given: list[dict[int, np.ndarray]] = [{} for _ in about]
    for (candidate, split), answer in answers.items():
        given[candidate][split] = answer[0]
    known = [Candidate(**one, predictions=mine) for one, mine in zip(about, given, strict=True)]
    return candidates_cube(design, known)


def _inner_cube(
    cube: xr.DataArray, design: Splits, about: About, answers: Answers, inside: Sequence[Sequence[Split]]
) -> xr.DataArray:
    """Return the inner predictions over ``sample, configuration, outer_fold[, repeat]``, with their folds."""
    parts = []
    for number, pairs in enumerate(inside):
        own = Splits(design.samples, design.labels, [test for _, test in pairs], design.groups)
        within = {(one, place): a for (one, outer, place), a in answers.items() if outer == number and place >= 0}
        parts.append(_cube_of(own, about, within))
    counts = design.folds().max(axis=0) + 1
    if len(set(counts.tolist())) > 1:
        raise InputError("`inner` needs the same number of folds in every repeat.")
    k = int(counts[0])
    stacked = [
        xr.concat(parts[at : at + k], dim=xr.DataArray(np.arange(k), dims="outer_fold", name="outer_fold"))
        for at in range(0, len(parts), k)
    ]
    whole = stacked[0] if "repeat" not in cube.dims else xr.concat(stacked, dim=cube["repeat"])
    return whole.transpose("sample", "configuration", "outer_fold", ...)


def _digest(X: Any, y: np.ndarray) -> str:
    """Return a hash of some rows, by which the test sets of a search are recognised."""
    digest = hashlib.blake2b(digest_size=16)
    if hasattr(X, "iloc"):
        import pandas as pd

        digest.update(pd.util.hash_pandas_object(X, index=True).to_numpy().tobytes())
    elif hasattr(X, "tocsr"):
        rows = X.tocsr()
        for part in (rows.data, rows.indices, rows.indptr):
            digest.update(np.ascontiguousarray(part).tobytes())
    else:
        values = np.asarray(X)
        raw = repr(values.tolist()).encode() if values.dtype.kind == "O" else np.ascontiguousarray(values).tobytes()
        digest.update(raw)
    digest.update(repr(y.tolist()).encode() if y.dtype.kind == "O" else np.ascontiguousarray(y).tobytes())
    return digest.hexdigest()
