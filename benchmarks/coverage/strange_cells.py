"""The cells of the study of strange designs, split once into tuning and validation by generator and by learner.

Constants come from the tuning cells only. No generator and no learner of one set is used in the other. A few cells more
(`fresh`) have generators and learners that neither set has, small N and steep learning curves; seventeen (`last`) have
scikit-learn's learners and were made when nothing was left to tune; others (`pairs`) ask how wide limits of
concordance have to be. Nothing was tuned on these.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import learners as old
from . import strange_data as data
from . import strange_learners as new
from .learners import Family


@dataclass(frozen=True)
class Cell:
    """Learners refitted in every fold, on data of one generator."""

    set: str
    name: str
    make: data.Make
    families: tuple[Family, ...]
    n: int
    kind: str = "class"  # "class", "three", "value", "survival", "group" or "separate"
    folds: int = 5  # 0: leave one out
    share: float = 0.0  # of class 1; 0: as the generator has it
    repeats: int = 1
    inner: bool = False
    stratified: bool = True

    @property
    def key(self) -> str:
        """A name for files."""
        return f"{self.set}-{self.name}-n{self.n}"


def _tuning() -> list[Cell]:
    knn, lda, bayes, network = old.knn, old.lda, old.bayes, old.network
    stumps, lasso = new.stumps, new.lasso
    values = (old.knn_value, old.ridge, new.value(stumps), new.value(lasso))
    shift, sparse = data.shifted(6, 1.6, 6), data.shifted(40, 2.2, 3)
    skew = data.linear(8, lambda rng, n: 1.5 * rng.normal(size=n))
    heavy = data.linear(8, lambda rng, n: rng.standard_t(3, n))
    wide = data.linear(200, lambda rng, n: rng.normal(size=n))

    def cell(name: str, make: data.Make, families: tuple[Family, ...], n: int, **more: object) -> Cell:
        return Cell("tuning", name, make, families, n, **more)  # type: ignore[arg-type]

    return [
        cell("shift", shift, (lda, bayes), 40),
        cell("shift-rare", shift, (lda, knn), 80, share=0.1),
        cell("shift-rarest", data.shifted(6, 2.5, 6), (bayes, stumps), 250, share=0.05),
        cell("shift-one", shift, (new.only(lda, 4),), 60),
        cell("shift-two", shift, (new.only(lda, 1, 8),), 50),
        cell("easy", data.shifted(6, 4.5, 6), (lda, stumps), 50),
        cell("sparse", sparse, (lasso, bayes), 60),
        cell("sparse-many", sparse, (new.subsets(500),), 100),
        cell("sparse-loo", sparse, (new.only(lda, 0, 3, 6, 9), knn), 40, folds=0),
        cell("xor", data.exclusive, (knn, network), 100, folds=10),
        cell("moons", data.moons, (stumps, network), 60),
        cell("moons-rare", data.moons, (knn, stumps), 150, share=0.1),
        cell("moons-loose", data.moons, (lda, bayes), 100, share=0.1, stratified=False),
        cell("quantiles", data.quantiles, (network, knn, bayes), 150),
        cell("digits-17", data.real("digits-17"), (lda, knn), 40),
        cell("digits-49-rare", data.real("digits-49"), (lasso, knn), 100, share=0.15),
        cell("noise", data.noise(10), (lda, knn, stumps), 80),
        cell("noise-rare", data.noise(5), (bayes, knn), 60, share=0.2),
        cell("junk", data.shifted(60, 2.0, 4), (new.subsets(60, useful=4),), 60),
        cell("blocks", data.blocks, (lasso, lda), 50),
        cell("shift-repeats", shift, (lda, bayes), 50, repeats=3),
        cell("moons-inner", data.moons, (lda, knn, bayes), 50, inner=True),
        cell("three", data.three, (lda, knn), 60, kind="three"),
        cell("three-large", data.three, (bayes, stumps), 150, kind="three"),
        cell("linear", skew, values[:2], 40, kind="value"),
        cell("linear-one", skew, (new.only(old.ridge, 2),), 60, kind="value"),
        cell("wavy", data.wavy, values, 100, kind="value"),
        cell("friedman2", data.friedman2, values, 60, kind="value"),
        cell("heavy", heavy, values[1:], 60, kind="value"),
        cell("heavy-large", heavy, values[:2], 200, kind="value"),
        cell("wide", wide, values[1::2], 50, kind="value"),
        cell("weibull", data.survival(6, 1.5, False), values[:2], 80, kind="survival"),
        cell("weibull-small", data.survival(4, 0.8, False), values[::2], 50, kind="survival"),
        cell("groups-30", data.grouped(5, 0.4), (lda, knn), 150, kind="group"),
        cell("groups-40", data.grouped(3, 0.7), (bayes, stumps), 120, kind="group"),
        cell("separate", shift, (lda, bayes), 60, kind="separate", share=0.5),
        cell("separate-moons", data.moons, (lda, knn), 80, kind="separate", share=0.4),
        cell("separate-sparse", sparse, (new.only(lda, 0, 3, 6, 9), bayes), 100, kind="separate", share=0.3),
        cell("separate-xor", data.exclusive, (knn, network), 80, kind="separate", share=0.5),
        cell("separate-quantiles", data.quantiles, (knn, bayes), 120, kind="separate", share=0.6),
        # Five more, whose models get much better with every sample.
        cell("steep-shift", data.shifted(40, 4.0, 40), (lda, knn), 50),
        cell("steep-xor", data.exclusive, (knn, network), 60),
        cell("steep-quantiles", data.quantiles, (network, knn), 80),
        cell("steep-digits", data.real("digits-38"), (lda, lasso), 50),
        cell("steep-linear", data.linear(30, lambda rng, n: rng.normal(size=n)), values[1::2], 45, kind="value"),
    ]


def _validation() -> list[Cell]:
    logistic, centroid, filtered = old.logistic, old.centroid, old.filtered
    quadratic, tree, forest, machine, process = old.quadratic, old.tree, new.forest, new.machine, new.process
    values = (old.network_value, old.filtered_value, old.tree_value, new.value(forest), new.value(process))

    def cell(name: str, make: data.Make, families: tuple[Family, ...], n: int, **more: object) -> Cell:
        return Cell("validation", name, make, families, n, **more)  # type: ignore[arg-type]

    return [
        cell("circles", data.circles, (quadratic, process), 60),
        cell("circles-rare", data.circles, (quadratic, forest), 100, share=0.1),
        cell("circles-loo", data.circles, (quadratic, new.only(process, 1, 5, 9)), 35, folds=0),
        cell("hastie", data.hastie, (process, forest), 100),
        cell("hastie-large", data.hastie, (quadratic, tree), 300),
        cell("hastie-rare", data.hastie, (process,), 200, share=0.1),
        cell("bent", data.bent, (logistic, tree, machine), 80),
        cell("bent-rare", data.bent, (logistic, centroid), 150, share=0.1, folds=10),
        cell("bent-one", data.bent, (new.only(logistic, 2),), 60),
        cell("bent-two", data.bent, (new.only(machine, 0, 3),), 60),
        cell("bent-repeats", data.bent, (logistic, centroid, filtered), 60, repeats=5),
        cell("bent-loose", data.bent, (logistic, filtered), 80, share=0.15, stratified=False),
        cell("tailed", data.tailed, (logistic, filtered, tree), 40),
        cell("tailed-rare", data.tailed, (logistic, filtered), 100, share=0.12),
        cell("tailed-inner", data.tailed, (logistic, filtered), 60, inner=True),
        cell("friedman", data.friedman_class, (forest, machine), 60),
        cell("friedman-rarest", data.friedman_class, (logistic, process), 300, share=0.05),
        cell("friedman-one", data.friedman_class, (new.only(forest, 2),), 80),
        cell("cancer", data.real("breast_cancer"), (logistic, centroid, filtered), 40),
        cell("cancer-large", data.real("breast_cancer"), (logistic, machine), 120, folds=10),
        cell("cancer-rare", data.real("breast_cancer"), (logistic, centroid), 100, share=0.1),
        cell("odd", data.real("digits-odd"), (machine, process, centroid), 100),
        cell("tailed-many", data.tailed, (logistic, centroid, filtered, quadratic, tree, process), 120),
        cell("noise-plain", data.noise(20), (logistic, centroid, forest), 50),
        cell("noise-fifth", data.noise(8), (logistic, quadratic), 120, share=0.2),
        cell("ordinal", data.ordinal, (logistic, centroid), 80, kind="three"),
        cell("wine", data.real("wine"), (centroid, filtered), 50, kind="three"),
        cell("ordinal-large", data.ordinal, (quadratic, process), 200, kind="three"),
        cell("friedman1", data.friedman1, (values[0], values[3]), 80, kind="value"),
        cell("friedman3", data.friedman3, (values[2], values[4]), 60, kind="value"),
        cell("friedman1-one", data.friedman1, (new.only(values[1], 4),), 60, kind="value"),
        cell("diabetes", data.real("diabetes"), values[:3], 60, kind="value"),
        cell("lognormal", data.lognormal, values[:2], 60, kind="value"),
        cell("lognormal-large", data.lognormal, values[1:3], 200, kind="value"),
        cell("block-value", data.block_value, (values[1], values[4]), 60, kind="value"),
        cell("survival-bent", data.survival(5, 1.2, True), (values[0], values[2]), 80, kind="survival"),
        cell("survival-large", data.survival(10, 2.0, True), values[1:3], 150, kind="survival"),
        cell("groups-24", data.grouped(6, 0.2, 4), (logistic, centroid), 144, kind="group"),
        cell("groups-60", data.grouped(3, 0.9, 10), (filtered, tree), 180, kind="group"),
        cell("separate-bent", data.bent, (logistic, centroid), 80, kind="separate", share=0.3),
        cell("separate-tailed", data.tailed, (logistic, filtered), 60, kind="separate", share=0.5),
        cell("separate-circles", data.circles, (quadratic, tree), 80, kind="separate", share=0.5),
        cell("separate-hastie", data.hastie, (quadratic, centroid), 120, kind="separate", share=0.6),
        cell("separate-cancer", data.real("breast_cancer"), (logistic, centroid), 60, kind="separate", share=0.4),
    ]


def _fresh() -> list[Cell]:
    kernels, components, splines, windows = new.kernels, new.components, new.splines, new.windows

    def cell(name: str, make: data.Make, families: tuple[Family, ...], n: int, **more: object) -> Cell:
        return Cell("fresh", name, make, families, n, **more)  # type: ignore[arg-type]

    return [
        cell("spiral", data.spiral, (kernels, windows), 100),
        cell("board", data.board, (windows, kernels), 120),
        cell("words", data.words, (components, splines), 60),
        cell("words-rare", data.words, (components, kernels), 90, share=0.15),
        cell("factors", data.factors(0.3, True), (components, kernels), 40),
        cell("sectors", data.sectors, (windows, splines, kernels), 90, kind="three"),
        cell("additive", data.additive, (new.value(splines), new.value(kernels)), 60, kind="value"),
        cell("factors-value", data.factors(0.5, False), (new.value(components), new.value(kernels)), 50, kind="value"),
        cell("wound", data.wound, (new.value(windows), new.value(kernels)), 80, kind="value"),
    ]


def _last() -> list[Cell]:
    boosted, forest, vectors, gaussian, screened = (
        new.boosted, new.random_forest, new.vectors, new.gaussian, new.screened,
    )  # fmt: skip

    def cell(name: str, make: data.Make, families: tuple[Family, ...], n: int, **more: object) -> Cell:
        return Cell("last", name, make, families, n, **more)  # type: ignore[arg-type]

    return [
        cell("ring", data.ringnorm, (vectors, boosted), 60),
        cell("ring-rare", data.ringnorm, (gaussian, vectors), 150, share=0.1),
        cell("ring-two", data.ringnorm, (new.only(vectors, 4, 7),), 50),
        cell("three-heaps", data.threenorm, (forest, vectors), 100),
        cell("three-heaps-one", data.threenorm, (new.only(vectors, 4),), 80),
        cell("three-heaps-loose", data.threenorm, (boosted, gaussian), 120, folds=10, stratified=False),
        cell("waves", data.waveform(2), (gaussian, boosted), 80),
        cell("waves-repeats", data.waveform(2), (vectors, screened), 60, repeats=3),
        cell("waves-three", data.waveform(3), (boosted,), 90, kind="three"),
        cell("planted", data.planted(15, 4, 1.0), (forest, screened, boosted), 40),
        cell("planted-rare", data.planted(15, 4, 1.5), (screened, boosted), 100, share=0.1),
        cell("planted-wide", data.planted(300, 6, 1.2), (screened,), 50),
        cell("digits", data.real("digits-35"), (vectors, forest), 60),
        cell("digits-rare", data.real("digits-35"), (vectors, gaussian), 100, share=0.1),
        cell("nothing", data.noise(15), (forest, boosted, vectors), 60),
        cell("product", data.product, (new.value(forest), new.value(vectors)), 80, kind="value"),
        cell("ramp", data.ramp, (new.value(screened), new.value(boosted)), 60, kind="value"),
    ]


def _pairs() -> list[Cell]:
    values = (old.knn_value, old.ridge)

    def cell(name: str, make: data.Make, families: tuple[Family, ...], n: int, folds: int = 5) -> Cell:
        return Cell("pairs", name, make, families, n, kind="survival", folds=folds)

    return [
        cell("null", data.lifetimes(6), values, 60),
        cell("strong", data.survival(3, 3.0, False), values, 40),
        cell("wide", data.survival(30, 1.5, False), (old.ridge, new.value(new.lasso)), 80, 10),
        cell("one", data.survival(5, 1.0, False), (new.only(old.ridge, 2),), 60),
        cell("weak", data.survival(8, 0.5, False), values, 120),
    ]


CELLS = {cell.key: cell for cell in (*_tuning(), *_validation(), *_fresh(), *_last(), *_pairs())}
