"""Mutation testing by hand: which small changes of the code does no test notice?

    pip install cosmic-ray coverage
    python -m tests.mutation cvstats/compare/*.py cvstats/kernels/*.py --log mutants.jsonl

The mutants are those of cosmic-ray (numbers by one more and one less, operators, comparisons, booleans, loops that
never run) and opposites that matter in numerical code (`PAIRS`); texts, type hints and messages are left alone. Every
mutant runs in a fork of one process that has imported everything and collected the tests. Only tests that reach the
changed line run, those that caught something in the same function or lately and the shortest first, up to a number
of seconds; the first failure ends it. Needs a system with fork.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import difflib
import functools
import gc
import importlib
import importlib.abc
import importlib.util
import json
import os
import pathlib
import random
import resource
import select
import signal
import sys
import time
import types

import coverage
import parso
import pytest
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator

QUIET = [
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-p",
    "no:cov",
    "--tb=native",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
]
ROOT = pathlib.Path(__file__).parents[1]
TESTS = (
    "tests/compare tests/conformance tests/intervals tests/judge tests/kernels tests/laws tests/metrics "
    "tests/protocols tests/test_resample.py tests/test_adjust.py tests/test_folds.py tests/test_select.py"
)
STEADY = "not memory"  # a busy machine is no evidence
REPLACED = {
    "ReplaceBinaryOperator": "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul BitOr_BitAnd "
    "BitAnd_BitOr BitXor_BitOr",
    "ReplaceComparisonOperator": "Eq_NotEq NotEq_Eq Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Is_IsNot "
    "IsNot_Is",
    "ReplaceUnaryOperator": "Delete_Invert Delete_Not Delete_USub",
}
OTHER = (
    "NumberReplacer AddNot ReplaceTrueWithFalse ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd "
    "ReplaceBreakWithContinue ReplaceContinueWithBreak ZeroIterationForLoop ExceptionReplacer"
)
PAIRS = (
    "minimum maximum, min max, nanmin nanmax, any all, argmin argmax, ones zeros, floor ceil, left right, "
    "greater less, cdf sf, ppf isf, fold pooled, first random, low high, maximize minimize, positive negative, "
    "isfinite isnan, ones_like zeros_like, log exp, conf_low conf_high"
)
ONE_WAY = "nansum sum, nanmean mean, sqrt abs, log1p log, expm1 exp, rint floor, abs negative"
SWAPS = dict(pair.split() for pair in PAIRS.split(", "))
SWAPS |= {b: a for a, b in SWAPS.items()} | dict(pair.split() for pair in ONE_WAY.split(", "))


class Swap(Operator):
    """Replace a name or an option by its opposite."""

    def mutation_positions(self, node):
        word = node.value.strip("\"'") if node.type in ("name", "string") else ""
        if word in SWAPS and (node.type == "string" or node.get_previous_leaf().value in (".", "(", "=", "[", ",")):
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        word = node.value.strip("\"'")
        node.value = node.value.replace(word, SWAPS[word])
        return node

    @classmethod
    def examples(cls):
        return ()


def operators():
    names = [f"{kind}_{name}" for kind, found in REPLACED.items() for name in found.split()] + OTHER.split()
    return {name: plugins.get_operator(f"core/{name}")() for name in names} | {"Swap": Swap()}


OPERATORS = operators()


def untouched(tree):
    """Spans of texts for people and of type hints."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "warn"):
            yield node
        elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
            args = node.args
            yield from (
                a.annotation
                for a in [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
                if a is not None and a.annotation is not None
            )
            if getattr(node, "returns", None) is not None:
                yield node.returns
        elif isinstance(node, ast.AnnAssign):
            yield node.annotation
        elif isinstance(node, ast.JoinedStr):
            yield node


def in_signature(node):
    return node.type == "operator" and node.parent.type in ("param", "parameters")


def spans(node):
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


@functools.cache
def blocks(path):
    """Return the top-level statements of a file."""
    return [(block.get_code(), list(ast_nodes(block))) for block in parso.parse(path.read_text()).children]


def find_mutants(path):
    """Yield every mutant of a file: operator, occurrence, position, lines of the statement, function it is in."""
    tree = ast.parse(path.read_text())
    skip = [spans(node) for node in untouched(tree)]
    bodies, statements = [], []
    for top in tree.body:
        members = top.body if isinstance(top, ast.ClassDef) else [top]
        for f in (m for m in members if isinstance(m, ast.FunctionDef)):
            name = f"{top.name}.{f.name}" if f is not top else f.name
            bodies.append((spans(f.body[0])[0], spans(f)[1], name))
    for s in ast.walk(tree):
        if isinstance(s, ast.stmt):
            inner = getattr(s, "body", None)
            last = inner[0].lineno - 1 if inner and inner[0].lineno > s.lineno else s.lineno if inner else s.end_lineno
            statements.append((spans(s), s.lineno, last))
    for name, operator in OPERATORS.items():
        count, block = 0, -1
        for number, node in ((number, node) for number, (_, nodes) in enumerate(blocks(path)) for node in nodes):
            if number != block:
                block, before = number, count
            for start, _ in operator.mutation_positions(node):
                occurrence, count = count, count + 1
                if any(a <= start < b for a, b in skip) or in_signature(node):
                    continue
                function = next((f for a, b, f in bodies if a <= start < b), None)
                around = [x for x in statements if x[0][0] <= start < x[0][1]]  # a decorator is in none
                _, first, last = max(around, key=lambda x: x[0][0]) if around else (None, start[0], start[0])
                yield {
                    "file": str(path.relative_to(ROOT)),
                    "operator": name,
                    "occurrence": occurrence,
                    "block": [block, occurrence - before],
                    "line": start[0],
                    "column": start[1],
                    "first": first,
                    "last": last,
                    "function": function,
                }


def code_of(code, qualname):
    for name in qualname.split("."):
        code = next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
    return code


class Loader(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Import one file with other contents."""

    def __init__(self, name, path, source):
        self.name, self.path, self.source = name, path, source

    def find_spec(self, name, path=None, target=None):
        places = [str(pathlib.Path(self.path).parent)] if self.path.endswith("__init__.py") else None
        return (
            importlib.util.spec_from_file_location(name, self.path, loader=self, submodule_search_locations=places)
            if name == self.name
            else None
        )

    def get_filename(self, name):
        return self.path

    def get_data(self, path):
        return self.source.encode()

    def path_stats(self, path):
        raise OSError


class Runner:
    """A pytest plugin that, instead of running the tests once, runs them against every mutant."""

    def __init__(self, options, out):
        self.options, self.out, self.failed, self.last = options, out, "", collections.Counter()
        self.near = collections.defaultdict(collections.Counter)

    def pytest_configure(self):
        from hypothesis import settings

        settings.register_profile("mutation", derandomize=True, database=None, deadline=None)
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def run(self, items, *, before=lambda item: None, after=lambda item, seconds: None, first=True):
        for item, following in zip(items, [*items[1:], None], strict=True):
            before(item)
            begin = time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            after(item, time.process_time() - begin)
            if self.failed and first:
                return

    def fork(self, work, seconds):
        """Run work() in a child; return what it returned, or that it died or took too long."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.close(read)
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
            with contextlib.suppress(BaseException):
                text = json.dumps(work()).encode()
                while text:
                    text = text[os.write(write, text) :]
            os._exit(0)
        os.close(write)
        chunks, end = [], time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and select.select([read], [], [], left)[0]:
            if not (chunk := os.read(read, 1 << 16)):
                break
            chunks.append(chunk)
        late = left <= 0 or not select.select([read], [], [], 0)[0]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.close(read)
        os.waitpid(pid, 0)
        return "timeout" if late else json.loads(b"".join(chunks)) if chunks else "died"

    def measure(self, session):
        """Run all tests once; return their seconds and the lines each reaches."""
        cover = coverage.Coverage(
            data_file=None, include=[str(ROOT / f) for f in self.options.files], config_file=False
        )
        seconds = {}

        def after(item, spent):
            seconds[item.nodeid] = spent

        cover.start()
        self.run(session.items, before=lambda item: cover.switch_context(item.nodeid), after=after, first=False)
        cover.stop()
        data = cover.get_data()
        lines = {}
        for file in data.measured_files():
            contexts = data.contexts_by_lineno(file)
            lines[str(pathlib.Path(file).relative_to(ROOT))] = {n: [c for c in cs if c] for n, cs in contexts.items()}
        return {"failed": self.failed, "seconds": seconds, "lines": lines}

    def mutated(self, mutant):
        number, occurrence = mutant["block"]
        codes = [code for code, _ in blocks(ROOT / mutant["file"])]
        codes[number] = mutate_code(codes[number], OPERATORS[mutant["operator"]], occurrence)
        source = "".join(codes)
        return source, source.splitlines()[mutant["line"] - 1].strip()

    def again(self, mutants, rows):
        """Return the mutants in `rows`: by their number, or by their text where the code has changed since."""
        by_number = {(m["file"], m["operator"], m["occurrence"]): m for m in mutants}
        found, lost = [], set()
        for row in rows:
            m = by_number.get((row["file"], row["operator"], row["occurrence"]))
            line = (ROOT / row["file"]).read_text().splitlines()[m["line"] - 1].strip() if m else ""
            if difflib.SequenceMatcher(None, line, row["text"]).ratio() > 0.7:
                found.append(m)
            else:
                lost.add((row["file"], row["operator"], row["text"]))
        moved = [m for m in mutants if (m["file"], m["operator"]) in {key[:2] for key in lost}]
        return found + [m for m in moved if (m["file"], m["operator"], self.mutated(m)[1]) in lost and m not in found]

    def attempt(self, mutant, source, items):
        """In the child: put the mutant in place and run the tests."""
        file = str(ROOT / mutant["file"])
        if mutant["function"]:
            try:
                new = compile(source, file, "exec")
            except SyntaxError:
                return "invalid"
            new, name = code_of(new, mutant["function"]), mutant["function"]
            found = self.functions[file, name]
            if found and all(len(f.__code__.co_freevars) == len(new.co_freevars) for f in found):
                for f in found:
                    f.__code__ = new
                self.run(items)
                return self.failed
        for name in [n for n in sys.modules if n.split(".")[0] in ("cvstats", "tests") and n != __name__]:
            del sys.modules[name]
        module = mutant["file"].removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        sys.meta_path.insert(0, Loader(module, file, source))
        ids = [item.nodeid for item in items]
        code = pytest.main([*QUIET, "-x", "--rootdir", str(ROOT), *ids])
        return "" if code == 0 else f"pytest {code}"

    def pytest_runtestloop(self, session):
        options = self.options
        base = self.fork(lambda: self.measure(session), 3600)
        if isinstance(base, str) or base["failed"]:
            raise SystemExit(f"the tests must pass first: {base if isinstance(base, str) else base['failed']}")
        self.functions = collections.defaultdict(list)
        for f in gc.get_objects():
            if isinstance(f, types.FunctionType):
                self.functions[f.__code__.co_filename, f.__code__.co_qualname].append(f)
        gc.freeze()
        self.out(f"{len(session.items)} tests take {sum(base['seconds'].values()):.0f} s")
        items = {item.nodeid: item for item in session.items}
        wanted = [m for f in options.files for m in find_mutants(ROOT / f)]
        if options.only:
            rows = [json.loads(line) for line in options.only]
            wanted = self.again(wanted, [row for row in rows if row["result"] in ("survived", "unreached")])
        if options.skip:
            rows = [json.loads(line) for line in options.skip]
            done = collections.Counter((r["file"], r["function"], r["operator"], r["text"]) for r in rows)
            wanted, found = [], wanted
            for m in found:
                key = m["file"], m["function"], m["operator"], self.mutated(m)[1]
                if not done[key]:
                    wanted.append(m)
                done[key] -= done[key] > 0
            self.out(f"{len(found) - len(wanted)} mutants of {len(found)} were run before")
        chosen = [m for m in wanted if random.Random(f"{options.seed} {m}").random() < options.share]
        tally = collections.defaultdict(collections.Counter)
        with open(options.log, "a") as log:
            for number, mutant in enumerate(chosen):
                reach = base["lines"].get(mutant["file"], {})
                names = {n for line in range(mutant["first"], mutant["last"] + 1) for n in reach.get(str(line), ())}
                if not mutant["function"]:  # runs at import: defaults, constants, what a decorator is told
                    names = set(items)
                near = self.near[mutant["file"], mutant["function"]]
                worth = {n: (near[n] + 0.2 * self.last[n] + 0.02) / (base["seconds"][n] + 0.02) for n in names}
                order = sorted(names, key=lambda n: -worth[n])
                total, tests = 0.0, []
                for n in order:
                    if total + base["seconds"][n] <= options.seconds or not tests:
                        total += base["seconds"][n]
                        tests.append(n)
                begin = time.monotonic()
                source, text = self.mutated(mutant)
                run = [items[n] for n in tests]
                killer = (
                    self.fork(lambda m=mutant, s=source, r=run: self.attempt(m, s, r), 15 + 8 * total) if tests else ""
                )
                if killer in items:
                    self.last = collections.Counter({n: w * 0.95 for n, w in self.last.items()})
                    self.last[killer] += 1
                    near[killer] += 1
                result = "killed" if killer else "survived" if tests else "unreached"
                result = "invalid" if killer == "invalid" else result
                tally[mutant["file"]][result] += 1
                row = mutant | {
                    "result": result,
                    "killer": killer,
                    "text": text,
                    "tests": f"{len(tests)} of {len(order)}",
                    "seconds": round(time.monotonic() - begin, 2),
                }
                log.write(json.dumps(row) + "\n")
                log.flush()
                if result in ("survived", "unreached"):
                    self.out(
                        f"{mutant['file']}:{mutant['line']} {result}: {text}   [{mutant['operator']}, {row['tests']}]"
                    )
                if number % 50 == 49:
                    self.out(f"-- {number + 1} of {len(chosen)}")
        for file, counts in tally.items():
            self.out(f"{file}: {dict(counts)}")
        self.out(f"{len(chosen)} of {len(wanted)} mutants")
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="source files, relative to the repository")
    parser.add_argument("--log", default="mutants.jsonl", help="one line per mutant is appended here")
    parser.add_argument("--share", type=float, default=1.0, help="run this share of the mutants, at random")
    parser.add_argument("--seed", default="0")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="tests per mutant, by the seconds they take unchanged"
    )
    parser.add_argument("--only", type=argparse.FileType(), help="a log: only what survived there")
    parser.add_argument("--skip", type=argparse.FileType(), help="a log: not what was run there")
    parser.add_argument("--tests", nargs="*", default=TESTS.split())
    parser.add_argument("--marks", default="not slow", help="which of them, as pytest -m takes it")
    options = parser.parse_args()
    os.chdir(ROOT)
    console = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for name in ("scipy.stats", "statsmodels.stats.multitest", "sklearn.metrics", "dask.array", "numba"):
        importlib.import_module(name)
    runner = Runner(options, lambda text: os.write(console, (text + "\n").encode()))
    sys.exit(pytest.main([*QUIET, "-m", options.marks, "-k", STEADY, *options.tests], plugins=[runner]))


if __name__ == "__main__":
    main()
