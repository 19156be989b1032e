"""The command line. Arguments are parsed before anything heavy is imported, so that ``cvstats --help`` is instant."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NoReturn

OK, FAILED, BAD_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143

FLAGS = ("--debug", "--json", "--csv", "--force")  # options without a value
# arguments of the library
RENAMED = {"times": "draws", "rng": "seed", "path": "output", "name": "example", "criterion": "cut"}
USES = {"label": "classes", "score": "scores", "probability": "probabilities", "value": "numbers"}
EXAMPLES = """examples:
  cvstats report                                 report on the bundled example
  cvstats report predictions.csv                 report.html for your own predictions
  cvstats report run.parquet --metric accuracy --positive case -o case.html
  cvstats estimate predictions.csv --json        the numbers, for a script
  cvstats compare predictions.csv                which configurations cannot be excluded as the best
  cvstats compare predictions.csv --a svm --b forest
  cvstats help winner                            what a method does, and when not to rely on it
  cvstats describe predictions.csv               what is in the file
  cvstats convert caret.csv cube.nc              any layout to a cube, or to a long table (.csv, .parquet)
  cvstats verify report.html predictions.csv     does the report follow from these predictions?

A prediction file has one row per sample, configuration and repeat: sample, configuration, [repeat], [fold],
prediction, label. Tables of tidymodels, caret, mlr3, OpenML, H2O, AutoGluon and others are recognised.

exit codes: 0 done, 1 could not finish (nothing was written), or a report that differs, 2 bad input, 130 interrupted,
143 terminated"""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is."""
        message = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in message)
        self.exit(BAD_INPUT, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


class Help(argparse.RawDescriptionHelpFormatter):
    """Help that reads the list of metrics from the metrics themselves, once somebody asks for it."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = super()._get_help_string(action)
        if action.dest != "metric":
            return text
        from cvstats.metrics.base import REGISTRY

        known: dict[str, list[str]] = {}
        for metric in REGISTRY.values():
            known.setdefault(USES.get(metric.uses, metric.uses), []).append(metric.name)
        return f"{text}; " + "; ".join(f"{use}: {' '.join(names)}" for use, names in known.items())


class Terminated(BaseException):
    """SIGTERM arrived."""


def parser() -> Parser:
    """Return the parser of all commands."""
    from cvstats import __version__

    words = "Honest numbers from saved cross-validation predictions."
    top = Parser(prog="cvstats", description=words, epilog=EXAMPLES, formatter_class=Help)
    top.add_argument("--version", action="version", version=f"cvstats {__version__}")
    commands = top.add_subparsers(dest="command", metavar="command", required=True, parser_class=Parser)

    def command(words: str, example: str, *groups: Callable[[Parser], None]) -> Parser:
        texts: dict[str, Any] = {"help": words, "description": f"{words}.", "epilog": f"example:\n  cvstats {example}"}
        made = commands.add_parser(example.split()[0], formatter_class=Help, **texts)
        made.add_argument("--debug", action="store_true", help="show the traceback when something fails")
        if made.prog.endswith("verify"):
            made.add_argument("report", metavar="REPORT", help="the page, or its record (.record.json)")
        for add in groups:
            add(made)
        return made

    words = "Write a self-contained HTML report"
    report = command(words, "report predictions.csv -o report.html", _reading, _estimating, _models)
    report.add_argument("-o", "--output", metavar="PATH", default="report.html", help="where to (default: %(default)s)")
    _forcing(report)
    report.add_argument("--title", help="heading of the report")
    report.add_argument(
        "--preprocessing",
        choices=("inside", "outside", "none"),
        help="where steps that learn from the data were fitted: inside the training folds, outside (before "
        "splitting), or none; left open in the methods paragraph when omitted",
    )

    example = "estimate predictions.csv --metric auc --json"
    command("Print the estimates", example, _reading, _estimating, _models, _output)

    example = 'compare predictions.csv --a family=forest --b "ridge C=1"'
    compare = command("Compare configurations", example, _reading, _estimating, _output)
    family = "a configuration, a pattern such as 'svm*', or coordinate=value for a family; repeat to list a family. "
    family += "Without --a and --b: which configurations cannot be excluded as the best"
    compare.add_argument("--a", action="append", metavar="NAME", help=family)
    compare.add_argument("--b", action="append", metavar="NAME", help="what to compare it with; differences are a - b")

    describe = command("Say what is in a file", "describe predictions.csv", _reading)
    describe.add_argument("--json", action="store_true", help="as JSON")

    convert = command("Convert any layout to a cube or a long table", "convert caret.csv cube.nc", _reading)
    convert.add_argument(
        "target", metavar="OUT", help="cube (.nc, .cube) or long table (.csv, .csv.gz, .parquet, .feather)"
    )
    _forcing(convert)

    explain = command("Say what a method does, and when not to rely on it", "help winner")
    explain.add_argument("name", metavar="METHOD", help="a function, such as winner or best_set")

    again = command("Say whether a report follows from the predictions", "verify report.html predictions.csv", _reading)
    again.add_argument("--inner", metavar="FILE", help="cube of inner predictions, if the report was made with them")
    again.set_defaults(format=None, encoding=None)
    return top


def _forcing(made: Parser) -> None:
    made.add_argument("--force", action="store_true", help="replace a file that cvstats has not made")


def _reading(made: Parser) -> None:
    group = made.add_argument_group("reading")
    made.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="saved predictions; several files, or a folder of them, are one configuration each; none: the bundled "
        "example",
    )
    group.add_argument("--example", metavar="NAME", help="a bundled example: breast_cancer, diabetes, iris ...")
    group.add_argument("--positive", metavar="LABEL", help="the positive class, for two classes other than 0/1")
    group.add_argument("--format", default="auto", metavar="LAYOUT", help="the layout, when columns fit several")
    group.add_argument(
        "--columns",
        metavar="OURS=THEIRS",
        action="append",
        default=[],
        help="map columns by hand, such as sample=id, sample=ctd+date or probability[ill]=p_ill; repeat or separate by "
        "commas",
    )
    group.add_argument(
        "--labels", metavar="FILE", help="the truth, for layouts without it: CSV of labels, or ids and labels"
    )
    group.add_argument("--kind", choices=("label", "score", "probability", "value"), help="what the predictions are")
    group.add_argument("--threshold", type=float, metavar="X", help="a score is positive above it")
    group.add_argument("--encoding", default="utf-8", help="of text files (default: %(default)s)")


def _estimating(made: Parser) -> None:
    group = made.add_argument_group("estimating")
    group.add_argument("--metric", metavar="NAME", help="by default by the kind of labels")
    group.add_argument("--seed", type=_count, default=1, metavar="N", help="seed of the draws (default: %(default)s)")
    group.add_argument("--draws", type=_count, default=1000, metavar="N", help="bootstrap draws (default: %(default)s)")
    group.add_argument("--level", type=float, default=0.95, metavar="P", help="confidence level (default: %(default)s)")


def _models(made: Parser) -> None:
    group = made.add_argument_group("models")
    group.add_argument("--inner", metavar="FILE", help="cube of inner predictions (.nc, .cube), for nested CV")
    group.add_argument("--regime", choices=("cv", "holdout"), default="cv", help="models refitted per fold, or fixed")
    group.add_argument("--by", metavar="NAME", help="the metric that chooses, when --metric lists several (auc,brier)")
    group.add_argument("--cut", metavar="RULE", help="learn the threshold: a metric (youden, f1), or sensitivity=0.9")
    group.add_argument("--subgroup", metavar="NAME", help="judge within each level of this column")
    group.add_argument(
        "--prior", metavar="LABEL=P", help="the class's probability in the population, if it is not its share here"
    )


def _output(made: Parser) -> None:
    group = made.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="as JSON, with the names of the result variables")
    group.add_argument("--csv", action="store_true", help="as CSV, one row per result")


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a whole number that is not negative; got {text!r}")
    return int(text)


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments of a command; options may stand anywhere, also between files and before the command."""
    top = parser()
    commands = next(action.choices for action in top._actions if isinstance(action.choices, dict))
    before = ["", *argv]  # of each word the one before it, whose value it may be
    places = [i for i, word in enumerate(argv) if word in commands and (before[i][:1] != "-" or before[i] in FLAGS)]
    if not places or any(word in ("-h", "--help", "--version") for word in argv[: places[0]]):
        return top.parse_args(argv)
    name = argv[places[0]]
    options = commands[name].parse_intermixed_args([*argv[: places[0]], *argv[places[0] + 1 :]])
    return argparse.Namespace(command=name, **vars(options))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    _tolerant(sys.stdout)
    _tolerant(sys.stderr)
    options = parsed(sys.argv[1:] if argv is None else argv)
    try:
        previous = signal.signal(signal.SIGTERM, _terminate)
    except ValueError:  # not in the main thread
        previous = None
    try:
        return _run(options)
    finally:
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)


def _run(options: argparse.Namespace) -> int:
    """Return the exit code of a command; say in one line what failed."""
    try:
        with _unstruck():
            from .commands import run

        code = run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader, such as `head`, has gone
        _give_up_output()
    except KeyboardInterrupt:  # perhaps in the middle of an import, so nothing more is imported
        return _fail(options, "interrupted; no file is left half-written", INTERRUPTED)
    except Terminated:
        return _fail(options, "terminated; no file is left half-written", TERMINATED)
    except ImportError as error:
        return _fail(options, str(error), FAILED)
    except Exception as error:
        from cvstats.tables.words import printable

        try:
            sys.stdout.flush()
        except OSError:  # the disk is full
            _give_up_output()
        text, code = _words(error, options)
        return _fail(options, printable(" ".join(text.split())), code)
    return OK


@contextlib.contextmanager
def _unstruck() -> Iterator[None]:
    """Let signals wait while modules are imported: there Python may swallow what a handler raises, and go on."""
    signals = {signal.SIGINT, signal.SIGTERM}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _give_up_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _words(error: Exception, options: argparse.Namespace) -> tuple[str, int]:
    """Return what to say about an error, in the words of the command line, and the exit code."""
    from cvstats._check import InputError

    def option(found: re.Match[str]) -> str:
        name = RENAMED.get(found.group(1), found.group(1))
        return f"--{name}" if name in vars(options) else found.group()

    if isinstance(error, InputError):
        text = re.sub("`([a-z_]+)`", option, str(error))
        return re.sub(r"columns=({'.*?})(?=[\s.,;)])", _columns_option, text), BAD_INPUT
    if isinstance(error, (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)):
        return f"{error.strerror}: {str(error.filename)!r}", BAD_INPUT
    if isinstance(error, UnicodeError):
        return f"the text is not in the stated encoding: {error}; give --encoding", BAD_INPUT
    if isinstance(error, MemoryError):
        return "not enough memory for these predictions", FAILED
    if isinstance(error, OSError):
        return f"{error.strerror or error}", FAILED
    return f"unexpected {type(error).__name__}: {error} (please report it; --debug shows the traceback)", FAILED


def _columns_option(found: re.Match[str]) -> str:
    """Return a mapping of columns as it is written on the command line."""
    import ast
    import shlex

    try:
        mapping = ast.literal_eval(found.group(1))
    except (ValueError, SyntaxError):
        return found.group()
    pairs = []
    for ours, theirs in mapping.items():
        if isinstance(theirs, dict):
            pairs += [f"probability[{label}]={name}" for label, name in theirs.items()]
        else:
            names = theirs if isinstance(theirs, list) else [theirs]
            pairs += [f"{ours}={'...' if name is ... else name}" for name in names]
    return f"--columns {shlex.quote(','.join(pairs))}"


def _fail(options: argparse.Namespace, message: str, code: int) -> int:
    if getattr(options, "debug", False):
        import traceback

        traceback.print_exc()
    from .progress import clear

    clear()
    print(f"cvstats: error: {' '.join(message.split())}", file=sys.stderr)
    return code


def _terminate(number: int, frame: Any) -> NoReturn:
    raise Terminated


def _tolerant(stream: IO[str] | Any) -> None:
    """Let a terminal that lacks a character show its code instead of failing."""
    if hasattr(stream, "reconfigure"):
        with contextlib.suppress(OSError, ValueError):
            stream.reconfigure(errors="backslashreplace")
