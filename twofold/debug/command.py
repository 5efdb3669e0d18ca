"""Commands that look at the machine and into programs."""

from __future__ import annotations

import os
import platform
import re
import runpy
import subprocess
import sys
from argparse import REMAINDER, ArgumentParser, ArgumentTypeError, Namespace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from twofold import _core
from twofold.compiler.disk_cache import DiskCache, default_directory
from twofold.debug.draw import draw, session_of
from twofold.debug.machine import machine
from twofold.debug.profile import profile
from twofold.debug.script import debug_script
from twofold.debug.stories import story
from twofold.errors import TwofoldError
from twofold.frontend.gradients import graphs_kept
from twofold.version import package


def add_commands(commands: Any) -> None:
    """Enter the commands with a parser's subparsers."""
    info = commands.add_parser("info", help="the machine, what it can do at best, the cache, versions")
    info.set_defaults(run=_info)
    cache = commands.add_parser("cache", help="the machine code that is kept on disk")
    cache.add_argument("action", choices=("size", "clear", "verify"))
    cache.set_defaults(run=_cache)
    # no argument is an option of this parser, the first one neither: all are those of the program
    bench = commands.add_parser(
        "bench", help="the benchmarks, from a source tree", prefix_chars="\0", add_help=False
    )
    bench.add_argument("arguments", nargs=REMAINDER, help="arguments of bench/run.py")
    bench.set_defaults(run=_bench)
    drawn = _of_script(commands, "draw", "run a program and draw a variable of it")
    drawn.add_argument("--out", default="picture.html", metavar="PATH", help=".html, .dot or .json")
    drawn.set_defaults(run=_draw)
    told = _of_script(commands, "trace", "run a program and tell, step by step, how a variable came about")
    told.set_defaults(run=_trace)
    debugged = commands.add_parser(
        "debug", help="run a program under pdb, compiled graphs line by line as well"
    )
    debugged.add_argument("script", type=_script)
    debugged.add_argument("arguments", nargs=REMAINDER, help="of the program")
    debugged.set_defaults(run=_debug)
    profiled = commands.add_parser("profile", help="run a program and measure it")
    profiled.add_argument("--by", choices=("line", "module", "operation"), default="line")
    profiled.add_argument("--rows", type=int, default=20, metavar="N", help="rows of the table")
    profiled.add_argument("--timeline", metavar="PATH", help="where to write the time line for Perfetto")
    profiled.add_argument("script", type=_script)
    profiled.add_argument("arguments", nargs=REMAINDER, help="of the program")
    profiled.set_defaults(run=_profile)


def _script(path: str) -> str:
    """A program that is there."""
    if not os.path.isfile(path):
        raise ArgumentTypeError(f"there is no program {path}")
    return path


def _of_script(commands: Any, name: str, help: str) -> ArgumentParser:
    made: ArgumentParser = commands.add_parser(name, help=help)
    made.add_argument("script", type=_script)
    made.add_argument("variable", help="a tensor of the program, or a declared graph or session")
    return made


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _info(arguments: Namespace) -> int:
    on, cache = machine(), DiskCache(default_directory())
    rows = {
        "processor": _processor(),
        "processors": str(os.cpu_count()),
        "threads": str(_core.threads()),
        "peak": f"{on.flops / 1e9:.1f} Gflop/s in float32, by a matrix product",
        "bandwidth": f"{on.bandwidth / 1e9:.1f} GB/s, by a long sum",
        "cache": f"{cache.path}: {len(cache.keys())} kernels, {cache.size() / 2**20:.1f} MiB",
        "twofold": package,
        "python": platform.python_version(),
        "numpy": _version("numpy"),
        "llvmlite": _version("llvmlite"),
    }
    for name, value in rows.items():
        print(f"{name:<11}{value}")
    return 0


def _cache(arguments: Namespace) -> int:
    cache = DiskCache(default_directory())
    if arguments.action == "size":
        print(f"{cache.path}: {len(cache.keys())} kernels, {cache.size():,} bytes")
        return 0
    if arguments.action == "clear":
        print(f"{cache.path}: {cache.clear()} kernels deleted")
        return 0
    wrong = cache.verify()
    print(f"{cache.path}: {len(wrong)} files failed their check{': ' + ', '.join(wrong) if wrong else ''}")
    return 1 if wrong else 0


def _bench(arguments: Namespace) -> int:
    program = Path(__file__).resolve().parents[2] / "bench" / "run.py"
    if not program.exists():
        print("twofold bench: the benchmarks are in the source tree, not in the package", file=sys.stderr)
        return 2
    return subprocess.run([sys.executable, str(program), *arguments.arguments], check=False).returncode


def _run(script: str, arguments: list[str]) -> dict[str, Any]:
    """Run a program as the interpreter does; returns its variables."""
    before = sys.argv, sys.path[:]
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        return runpy.run_path(script, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = before


def _variable(arguments: Namespace) -> Any:
    with graphs_kept():
        found = _run(arguments.script, [])
    if arguments.variable not in found:
        names = [name for name in found if not name.startswith("_")]
        raise SystemExit(
            f"twofold: {arguments.script} has no variable {arguments.variable!r}; it has {', '.join(names)}"
        )
    value = found[arguments.variable]
    if callable(value) and not isinstance(value, _core.Tensor) and not hasattr(value, "_tensor"):
        raise SystemExit(
            f"twofold: {arguments.variable} is a {type(value).__name__}, which computes nothing before it is called. "
            "Name a variable that holds what it returned."
        )
    return value


def _draw(arguments: Namespace) -> int:
    value = _variable(arguments)
    try:
        drawing = draw(value, path=arguments.out)
    except TwofoldError as error:
        return _refused("draw", error)
    print(f"{arguments.out}: {drawing!r}")
    return 0


def _trace(arguments: Namespace) -> int:
    value = _variable(arguments)
    if hasattr(value, "get_operations") or (hasattr(value, "graph") and session_of(value) is None):
        print(
            f"twofold trace: {arguments.variable} is declared and has values in runs alone. Name the session that runs "
            "it, step through its runs with 'twofold debug', or look at the graph with 'twofold draw'.",
            file=sys.stderr,
        )
        return 2
    try:
        print(story(value))
    except TwofoldError as error:
        return _refused("trace", error)
    return 0


def _refused(command: str, error: TwofoldError) -> int:
    """Say why a command cannot be done, without the line that called it, which is none of a program."""
    text = re.sub(r", at [^:]+:\d+", "", str(error).partition(": ")[2])
    print(f"twofold {command}: {text}", file=sys.stderr)
    return 2


def _debug(arguments: Namespace) -> int:
    return debug_script(arguments.script, arguments.arguments)


def _profile(arguments: Namespace) -> int:
    status = 0
    with profile() as measured:
        try:
            _run(arguments.script, arguments.arguments)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    print(measured.table(arguments.by, arguments.rows))
    for line in measured.compiled:
        print(f"compiled {line}")
    if arguments.timeline:
        measured.export_chrome_trace(arguments.timeline)
        print(f"time line: {arguments.timeline}")
    return status
