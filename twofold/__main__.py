"""The command line: ``twofold demo``, and what looks at the machine and into programs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from twofold.debug import command as looking
from twofold.demo import command


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


def _installed_version() -> str:
    try:
        return version("twofold")
    except PackageNotFoundError:
        return "not installed"


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    whole = argparse.ArgumentParser(
        prog="twofold", description="One computation graph, two ways to declare it."
    )
    whole.add_argument("--version", action="version", version=f"twofold {_installed_version()}")
    commands = whole.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="train a digit classifier both ways and write a report",
        description="Trains one network declared both ways and compares the weights bit for bit.",
    )
    demo.add_argument(
        "--mnist", metavar="DIR", help="directory of the four MNIST files (default: the small digits)"
    )
    demo.add_argument("--epochs", type=_positive, metavar="N", help="passes over the training images")
    demo.add_argument("--report", default="report.html", metavar="PATH", help="where to write the page")
    demo.set_defaults(run=command.run)
    looking.add_commands(commands)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status."""
    parsed = parser().parse_args(arguments)
    status: int = parsed.run(parsed)
    return status


if __name__ == "__main__":
    sys.exit(main())
