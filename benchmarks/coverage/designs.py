"""The designs of the study. Constants are tuned on "tuning"; "held_out" has other learners, data and parameters."""

from __future__ import annotations

from dataclasses import dataclass

from . import data, learners


@dataclass(frozen=True)
class Design:
    """Refitted learners on one source of data at one size."""

    set: str
    name: str
    source: data.Source
    families: tuple[learners.Family, ...]
    n: int
    folds: int = 5
    metrics: tuple[str, ...] = ("accuracy", "auc", "log_loss")
    repeats: int = 1
    inner: bool = False
    repetitions: int = 500

    @property
    def key(self) -> str:
        """A name for files."""
        extra = f"-r{self.repeats}" if self.repeats > 1 else "-inner" if self.inner else ""
        return f"{self.set}-{self.name}-n{self.n}-k{self.folds}{extra}"


def _grid(
    set_: str, families: tuple, sources: dict, sizes: dict[str, tuple[tuple[int, int], ...]], **more: object
) -> list:
    return [
        Design(set_, name, sources[name], families, n, k, **more)  # type: ignore[arg-type]
        for name in sizes
        for n, k in sizes[name]
    ]


TUNING_SOURCES = {
    "shift5": data.shifted(5, 1.5, 5),
    "sparse20": data.shifted(20, 2.0, 3),
    "unbalanced": data.shifted(8, 1.5, 4, share=0.25),
    "null": data.shifted(10, 0.0, 0),
    "exclusive": data.exclusive,
    "easy": data.shifted(6, 4.2, 6),
}
HELD_OUT_SOURCES = {
    "heavy": data.shifted(8, 1.8, 3, tail=3.0),
    "circle": data.circle,
    "additive": data.additive,
    "mixture": data.mixture,
    "wide100": data.shifted(100, 2.5, 5),
    "separated": data.shifted(4, 5.0, 4),
    "rare": data.shifted(8, 2.0, 4, share=0.2, spread=1.6),
    "no-signal": data.shifted(6, 0.0, 0, share=0.35),
    "breast_cancer": data.real("breast_cancer"),
    "wine-1": data.real("wine-1"),
    "digits-38": data.real("digits-38"),
    "digits-parity": data.real("digits-parity"),
    "digits-8": data.real("digits-8"),
}
VALUE_SOURCES = {"linear": data.linear_value, "bent": data.bent_value}
HELD_OUT_VALUE_SOURCES = {
    "friedman": data.friedman_value,
    "heavy-noise": data.heavy_value,
    "diabetes": data.real("diabetes"),
}

DESIGNS: list[Design] = [
    *_grid(
        "tuning",
        learners.TUNING,
        TUNING_SOURCES,
        {
            "shift5": ((30, 5), (80, 10)),
            "sparse20": ((40, 5), (120, 5)),
            "unbalanced": ((40, 5), (100, 10)),
            "null": ((30, 10), (80, 5)),
            "exclusive": ((50, 10), (150, 5)),
            "easy": ((30, 5), (80, 5)),
        },
        repetitions=200,
    ),
    *_grid(
        "tuning",
        learners.TUNING_VALUE,
        VALUE_SOURCES,
        {"linear": ((30, 5), (80, 10)), "bent": ((50, 5), (120, 5))},
        metrics=("mse",),
        repetitions=200,
    ),
    *_grid(
        "held_out",
        learners.HELD_OUT_QUICK,
        HELD_OUT_SOURCES,
        {
            "heavy": ((30, 5), (100, 10)),
            "wide100": ((30, 5), (60, 5)),
            "separated": ((30, 5), (100, 5)),
            "rare": ((60, 5), (100, 10)),
            "no-signal": ((30, 5), (100, 5)),
        },
        metrics=("accuracy", "auc", "log_loss", "brier"),
    ),
    *_grid(
        "held_out",
        learners.HELD_OUT,
        HELD_OUT_SOURCES,
        {
            "circle": ((60, 5), (200, 5)),
            "additive": ((60, 5), (200, 5)),
            "mixture": ((30, 10), (100, 5)),
            "breast_cancer": ((30, 5), (60, 10)),
            "wine-1": ((30, 5),),
            "digits-38": ((30, 10),),
            "digits-parity": ((60, 5), (100, 5)),
            "digits-8": ((100, 5),),
        },
        metrics=("accuracy", "auc", "log_loss", "brier"),
    ),
    *_grid(
        "held_out",
        learners.HELD_OUT_VALUE,
        HELD_OUT_VALUE_SOURCES,
        {"friedman": ((60, 5), (120, 5)), "heavy-noise": ((40, 5), (100, 10)), "diabetes": ((40, 5), (80, 5))},
        metrics=("mse",),
    ),
    *_grid(
        "tuning",
        learners.TUNING_VALUE,
        VALUE_SOURCES,
        {"linear": ((40, 5),), "bent": ((60, 5),)},
        metrics=("concordance",),
        repetitions=200,
    ),
    *_grid(
        "held_out",
        learners.HELD_OUT_VALUE,
        HELD_OUT_VALUE_SOURCES,
        {"friedman": ((40, 5),), "heavy-noise": ((60, 5),), "diabetes": ((60, 5),)},
        metrics=("concordance",),
        repetitions=200,
    ),
    *[
        Design(set_, name, sources[name], families, n, 5, repeats=10, repetitions=200)
        for set_, families, sources, name, n in (
            ("tuning", learners.TUNING, TUNING_SOURCES, "shift5", 40),
            ("held_out", learners.HELD_OUT_QUICK, HELD_OUT_SOURCES, "heavy", 40),
            ("held_out", learners.HELD_OUT_QUICK, HELD_OUT_SOURCES, "breast_cancer", 50),
            ("held_out", learners.HELD_OUT_QUICK, HELD_OUT_SOURCES, "circle", 60),
        )
    ],
    *[
        Design(set_, name, sources[name], families, n, 5, metrics=("accuracy", "log_loss"), inner=True, repetitions=200)
        for set_, families, sources, name, n in (
            ("tuning", learners.TUNING, TUNING_SOURCES, "sparse20", 40),
            ("held_out", learners.HELD_OUT_QUICK, HELD_OUT_SOURCES, "additive", 60),
            ("held_out", learners.HELD_OUT_QUICK, HELD_OUT_SOURCES, "mixture", 40),
        )
    ],
]
