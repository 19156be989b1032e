"""What the columns of a table are when no layout knows them: judged by their names, checked against the labels.

A guess is used only where nothing else is possible; otherwise the error lists the candidates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from cvstats._check import InputError, show

from ._columns import is_number, plain, texts
from ._frames import SETS
from ._layout import ROW_NAMES, TRUTHS, Hints

# our word -> other people's, in lower case without punctuation
SYNONYMS = {
    "prediction": "pred predictions predicted prob proba probability score yhat ypred yprob yproba yscore phat"
    " p risk decision oof oofpred oofprediction predictionoof oofproba oofprob predprob predproba ypredproba"
    " predictedprobability predictedclass predictedlabel predclass",
    "label": f"{' '.join(TRUTHS)} y true ytrue truelabel trueclass truevalue groundtruth gt observed class labels"
    " ytest",
    "configuration": "config configurationid configid model modelid modelname method algorithm learner pipeline"
    " estimator classifier regressor params workflow wflowid trial",
    "repeat": "rep repetition run seed foldcolumn repeatid cvrepeat",
    "fold": "foldid foldnumber foldno cvfold cv split splitid resample iteration iter",
    "sample": "id sampleid samples row rowid rownumber rowindex rowids index idx subject subjectid patient patientid"
    " case caseid participant participantid",
    "group": "groups groupid cluster clusterid",
    "weight": "sampleweight caseweight weights",
    "event": "",
}
WORDS = {role: {re.sub(r"[\W_]", "", word) for word in [role, *words.split()]} for role, words in SYNONYMS.items()}
KNOWN = set().union(*WORDS.values())
# parts of longer names that say as much, in the order in which they are believed
PARTS = {
    "prediction": {"pred", "prediction", "predicted", "predictions", "prob", "proba", "probability", "oof", "yhat"},
    "label": {"true", "truth", "target", "actual", "observed", "groundtruth"},
    "fold": {"fold"},
    "configuration": {"model", "classifier", "learner", "algorithm", "config", "configuration"},
    "sample": {"id", "ids", "idx", "index", "uid", "sample", "mbid"},
}
WEKA = re.compile(r"\d+:.+")
FLAGS = {"0", "1", "-1", "true", "false", "yes", "no"}  # what features hold too
NAMING = ("sample", "configuration", "repeat", "fold", "group")
PROBABILITY = re.compile(r"prob", re.IGNORECASE)
# what else predictions are saved with: columns called pred_<one of these> are no configurations
BESIDE = {"class", "label", "score", "raw", "low", "lower", "high", "upper", "mean", "median", "std", "sd", "se", "var"}
BESIDE |= {"error", "binary", "time", "rank", "id", "fold", "train", "test", "val"}
BESIDE |= {"residual", "residuals", "correct", "confidence"} | PARTS["prediction"] | WORDS["label"]
PREDICTIONS = WORDS["prediction"] | PARTS["prediction"]
ROLES = set().union(*(WORDS[role] for role in WORDS if role not in ("prediction", "configuration")))
SAYS_ELSE = ROLES | BESIDE | PREDICTIONS
WITHOUT_DIGITS = str.maketrans("", "", "0123456789")
ANY_MODEL = PREDICTIONS | {"class", "label", "raw", "mean", "median", "binary"}  # words that a model may be called
# what else is kept of a model, behind its name
DETAILS = {
    "rep",
    "repeat",
    "repetition",
    "fold",
    "seed",
    "run",
    "train",
    "training",
    "test",
    "val",
    "valid",
    "validation",
}
DETAILS |= {"std", "sd", "lower", "upper", "residual", "residuals", "error", "class", "label", "prob", "proba"}
BEFORE = PREDICTIONS | {"p", "pr", "confidence", "score"}  # words before or behind a class, and those between
BETWEEN = {"class", "label", "of", "for", "is", "y"}


def parts_of(name: str) -> list[str]:
    """Return the words that a name is made of: ``yTrue``, ``y_true`` and ``Y True`` are y and true."""
    return [part.lower() for part in re.split(r"[\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)) if part]


def is_id(name: str) -> bool:
    """Return whether a column may name samples, configurations, repeats or folds, whose values are names."""
    return any(plain(name) in WORDS[role] for role in NAMING) or _says(name) in NAMING


def guess(columns: Sequence[str], distinct: Callable[..., list[list[str]]], hints: Hints) -> dict[str, Any]:
    """Return our names -> columns, as the caller would give them; raise where several readings are possible.

    `distinct` returns the values of columns as they are written. Empty when too little is known for any reading.
    """
    given = {ROW_NAMES, *hints.wide}
    left = [name for name in columns if name not in given]
    found, doubts = _named(left)
    if "prediction" in hints.mapped:  # which may be several columns
        found["prediction"] = "prediction"
        doubts.pop("prediction", None)
    if hints.labels is not None:
        found.pop("label", None)
        doubts.pop("label", None)
    if doubts:
        role, names = next(iter(doubts.items()))
        said = f"columns={ {role: names[0]} }"
        raise InputError(f"several columns could be the {role}: {show(names)}. Say which, for instance {said}.")
    if "fold" in found and {name.lower() for name in distinct(found["fold"])[0]} <= SETS:  # of test sets only
        found.pop("fold")
    if "label" not in found and hints.labels is None:
        rest = [name for name in left if name not in found.values()]
        if "prediction" in found and rest and "prediction" not in hints.mapped:
            said = ", ".join(f"{theirs!r} is the {ours}" for ours, theirs in found.items())
            raise InputError(
                f"{said}, but which column is the truth? Say columns={ {'label': '...'} } with one of {show(rest)}. "
                "Several columns that together name the sample or the configuration are joined with a plus: 'a+b'."
            )
        return {}
    rest = [name for name in left if name not in found.values()]
    classes = distinct(found["label"])[0] if "label" in found else texts(dict.fromkeys(hints.labels))
    if hints.kind != "label" and "prediction" not in hints.mapped:
        if classes and all(WEKA.fullmatch(name) for name in classes):
            raise InputError(
                f"classes such as {classes[0]!r} are Weka's, but there is no column 'inst#'; was it renamed?"
            )
        single = found.get("prediction", "")
        longer = plain(single) not in KNOWN  # perhaps proba_1, which names a class
        named = of_classes([*rest, *[single] * longer], classes)
        if named and not longer and PROBABILITY.search(single):
            raise InputError(
                f"both {found['prediction']!r} and {show(named.values())} could be the prediction. Say which, for "
                f"instance columns={ {'prediction': named} }."
            )
        found |= {"prediction": named} if named else {}
        if not named and single:
            _refuse_confidence(single, [name for name in rest if _says(name) == "prediction"], classes, distinct)
    if "prediction" not in found and not {"configuration", "repeat"} & set(found):
        names = _of_configurations(rest) or _of_guesses(rest, distinct, classes)
        found |= {"prediction": names} if names else {}
    if "prediction" not in found:
        return {}
    used = {name for given in found.values() for name in ([given] if isinstance(given, str) else given)}
    used |= set(found["prediction"].values()) if isinstance(found["prediction"], dict) else set()
    strange = [name for name in rest if name not in used and _says(name) is None and plain(name) not in KNOWN]
    if (
        "sample" not in found
        and "prediction" not in hints.mapped
        and (strange or {"configuration", "repeat"} & set(found))
    ):
        what = f"is it {show(strange)}? Say" if strange else "so predictions cannot be matched. Add one and say"
        raise InputError(f"no column names the samples; {what} columns={ {'sample': (strange or ['...'])[0]} }.")
    return found


def advice(columns: Sequence[str]) -> dict[str, Any]:
    """Return what the columns may be if all that are left hold predictions of one configuration each."""
    found, doubts = _named([name for name in columns if name != ROW_NAMES])
    rest = [name for name in columns if name not in found.values() and name != ROW_NAMES]
    odd = {*no_configurations(rest)}
    rest = [name for name in rest if name not in odd]
    if doubts or "label" not in found or not rest or {"prediction", "configuration", "repeat"} & set(found):
        return {}
    return {ours: theirs for ours, theirs in {**found, "prediction": rest}.items() if ours != theirs}


def missing_roles(columns: Sequence[str]) -> dict[str, str]:
    """Return what names configurations and repeats in a long table that calls them otherwise."""
    found = _named([name for name in columns if name != ROW_NAMES])[0]
    likely = {role: found[role] for role in ("configuration", "repeat") if role in found}
    return {role: name for role, name in likely.items() if plain(name) in WORDS[role] - {role}}


def _named(columns: list[str]) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the column of each role by its whole name, else by parts of it; and the candidates where several fit."""
    found: dict[str, Any] = {}
    doubts: dict[str, list[str]] = {}
    whole = {
        role: [role] if role in columns else [name for name in columns if plain(name) in words]
        for role, words in WORDS.items()
    }
    taken = {name for names in whole.values() for name in names}
    for role in WORDS:
        names = whole[role]
        if not names and role in PARTS:
            names = [name for name in columns if name not in taken and _says(name) == role]
        if len(names) > 1 and role == "prediction":
            if not whole[role]:
                continue  # perhaps of classes or configurations
            graded = [name for name in names if not {"class", "label"} & {*parts_of(name)}]
            likely = [name for name in names if PROBABILITY.search(name)] or graded
            names = likely if len(likely) == 1 else names  # beside the classes that follow from them
        if len(names) == 1:
            found[role] = names[0]
        elif names:
            doubts[role] = names
    return found, doubts


def _says(name: str) -> str | None:
    """Return the role that a part of a name says."""
    parts = {*parts_of(name), plain(name)}
    return next((role for role, words in PARTS.items() if parts & words), None)


def no_configurations(columns: Sequence[str]) -> list[str]:
    """Return which of the columns of a wide table say that they are something else: rep1, fold_2, residual, upper.

    Words that a model might be called, such as mean or score, say so only where there are no others. Behind a name,
    rep or upper say so where several columns have that name.
    """
    stems = {name: name.translate(WITHOUT_DIGITS) for name in columns}
    parts = {stem: tuple(parts_of(stem)) for stem in {*stems.values()}}
    begins = Counter(begin for stem in stems.values() for begin in {parts[stem], parts[stem][:-1]})
    if details := [
        c for c, s in stems.items() if {*parts[s][-1:]} & DETAILS and begins[parts[s][:-1]] > 1 < len(parts[s])
    ]:
        return details
    words = {stem: {*found} for stem, found in parts.items()}
    known = {name: words[stem] for name, stem in stems.items() if words[stem] and words[stem] <= SAYS_ELSE}
    odd = [name for name, said in known.items() if name == stems[name] or not said <= PREDICTIONS]
    sure = any(plain(name) not in ANY_MODEL and not known[name] <= ANY_MODEL for name in odd)
    return odd if len(columns) > 1 and (sure or len(known) == len(columns)) else []


def of_classes(columns: Sequence[str], classes: Sequence[str]) -> dict[str, str]:
    """Return the columns that are named like all the classes; empty where none are, an error where only some are."""
    about = [(words, names) for words, names in by_class(columns, classes).items() if are_probabilities(*words)]
    complete = [names for _, names in about if len(names) == len(classes) > 1]
    if len(complete) > 1:
        choices = "; ".join(show(names.values()) for names in complete)
        raise InputError(
            f"several sets of columns could be the probabilities of classes {show(classes)}: {choices}. "
            "Say which with columns={'prediction': {<class>: <column>, ...}}."
        )
    if complete:
        return complete[0]
    (start, end), part = about[0] if about else (("", ""), {})
    alike = [name for name in columns if name.startswith(start) and name.endswith(end)]
    if len(classes) == 2 and len(part) == len(alike) == 1:
        return part
    if len(part) > 1:
        raise InputError(
            f"there are columns for the classes {show(part)} but not for {show(c for c in classes if c not in part)}; "
            "say what they are with columns={'prediction': ...}."
        )
    return {}


def by_class(columns: Sequence[str], classes: Sequence[str]) -> dict[tuple[str, str], dict[str, str]]:
    """Return the columns that begin or end with a class, by what is before and behind it, and by class."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    known = {label.lower(): label for label in classes}
    sizes = {len(label) for label in known}
    for name in columns:
        bare = name.rstrip(")]}")
        for n in sizes:
            ends = ((name[:-n], name[-n:], ""), (bare[:-n], bare[-n:], ""), ("", name[:n], name[n:]))
            for before, label, behind in ends:
                if label.lower() in known:
                    found.setdefault((before, behind), {})[known[label.lower()]] = name
    return found


def are_probabilities(before: str, behind: str) -> bool:
    """Return whether words beside a class say that it is predicted: nothing, proba, or probability of class."""
    text, words = plain(before + behind), parts_of(before + behind)
    about = before.endswith("=") and words[:1] and words[0] in BEFORE
    return not text or text in BEFORE or bool(about) or ({*words} <= BEFORE | BETWEEN and bool({*words} & BEFORE))


def _refuse_confidence(
    single: str, others: Sequence[str], classes: Sequence[str], distinct: Callable[..., list[list[str]]]
) -> None:
    """Raise when the probability beside the predicted classes is that of the class that was predicted."""
    said = [name for name in others if len(classes) == 2 and {*distinct(name)[0]} == {*classes}]
    values = [float(value) for value in distinct(single)[0] if is_number(value)] if said else []
    if values and min(values) >= 0.5:
        raise InputError(
            f"column {single!r} is never below one half, though {said[0]!r} holds both classes: it seems to be the "
            "probability of the predicted class. Save that of one class, or read the classes with "
            f"columns={ {'prediction': said[0]} }."
        )


def _of_configurations(columns: Sequence[str]) -> list[str]:
    """Return columns called oof_<model>, <model>_pred or the like, when they all begin or end with the same word."""
    for place in (0, -1):
        words = {parts_of(name)[place] for name in columns if len(parts_of(name)) > 1} & PARTS["prediction"]
        if len(words) == 1:
            names = [name for name in columns if len(parts_of(name)) > 1 and parts_of(name)[place] in words]
            rest = {part for name in names for part in (parts_of(name)[1:] if place == 0 else parts_of(name)[:-1])}
            return [] if rest & BESIDE or no_configurations(names) else names
    return []


def _of_guesses(columns: Sequence[str], distinct: Callable[..., list[list[str]]], classes: Sequence[str]) -> list[str]:
    """Return all columns when each holds nothing but classes, which are words or more than two."""
    if len(classes) > 50 or (len(classes) < 3 and all(name.lower() in FLAGS for name in classes)):
        return []
    held = (values for some in (columns[:1], columns[1:]) for values in distinct(*some))  # the first rules most out
    return list(columns) if len(columns) > 1 and all({*values} <= {*classes} for values in held) else []
