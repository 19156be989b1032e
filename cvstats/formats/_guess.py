"""What the columns of a table nobody recognised probably are: for the error's advice, never to read by."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ._layout import ROW_NAMES, TRUTHS

# our word -> other people's, in lower case without punctuation
SYNONYMS = {
    "sample": "sample id sampleid row rowid rowindex rowids index idx subject subjectid patient patientid case caseid",
    "configuration": "configuration config model modelid modelname method algorithm learner pipeline estimator"
    " classifier regressor params workflow wflowid trial",
    "repeat": "repeat rep repetition iteration iter run seed",
    "fold": "fold foldid cvfold cv split",
    "label": f"{' '.join(TRUTHS)} y true ytrue truelabel trueclass observed response class",
    "prediction": "prediction pred predictions predicted prob proba probability score yhat ypred yprob yscore phat"
    " p risk decision oof",
    "group": "group groupid cluster site",
    "weight": "weight weights sampleweight",
}
WORDS = {role: {re.sub(r"\W|_", "", word) for word in words.split()} for role, words in SYNONYMS.items()}


def guess(columns: Sequence[str]) -> dict[str, str | list[str]] | None:
    """Return a mapping that may be what the caller means, or None when truth or predictions cannot be told."""
    plain = {name: re.sub(r"\W|_", "", name).lower() for name in columns}
    found: dict[str, str | list[str]] = {}
    for role, words in WORDS.items():
        named = [name for name in columns if plain[name] in words]
        if len(named) == 1:
            found[role] = named[0]
        elif named:
            return None
    if "label" not in found:
        return None
    if "prediction" not in found:
        rest = [name for name in columns if name not in found.values() and name != ROW_NAMES]
        if not rest or {"configuration", "repeat"} & set(found):
            return None
        found["prediction"] = rest
    elif "sample" not in found and {"configuration", "repeat"} & set(found):
        return None
    return {ours: theirs for ours, theirs in found.items() if ours != theirs}
