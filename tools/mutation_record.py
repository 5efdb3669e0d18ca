"""Which tests call which functions: found by running the tests once under a tracer; also the plugin that does so.

Every file of tests runs in a process of its own, so that what one file leaves in memory hides no call of the next. Of
each function a file's most specific tests are kept. A file that has changed is recorded again.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

KEPT = 12
"""Tests of a file that are kept for a function."""
COMPILED = (
    "tests/ops/test_compiled.py",
    "tests/ops/test_compiled_gradients.py",
    "tests/transforms/test_batching.py",
    "tests/func/test_entries.py",
)
"""Tests made from entries, each named after its own, that take long."""
LEFT_OUT = (*COMPILED, "tests/tools", "tests/conformance", "tests/demo", "tests/core/test_interrupts.py")
"""Besides, tests of tools, those that need other libraries, and those that a tracer disturbs."""
TARGET = "TWOFOLD_MUTATION_RECORD"


@dataclass(frozen=True)
class Test:
    """A test that calls a function; the fewer functions it calls at all, the more it is about each of them."""

    name: str
    seconds: float
    functions: int


class Recorder:
    """Notes the functions of the package that are called during each test."""

    def __init__(self, root: Path, target: Path) -> None:
        self.root, self.target = f"{root}{os.sep}", target
        self.seen: dict[int, CodeType] = {}
        self.names: dict[int, tuple[CodeType, str]] = {}  # the code is kept, so that its id is not used again
        self.tests: dict[str, tuple[float, set[str]]] = {}
        self.trace = self.note
        tracer = sys.gettrace
        # define-by-run computes each operation at once where it sees a debugger, and compiles nothing
        sys.gettrace = lambda: None if tracer() is self.trace else tracer()

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        """What is told of every call; as it returns nothing, lines are not traced."""
        code = frame.f_code
        self.seen[id(code)] = code

    def name_of(self, code: CodeType) -> str:
        """``path:qualified name`` of a function of the package, else nothing."""
        if id(code) not in self.names:
            path = code.co_filename.removeprefix(self.root)
            qualified = getattr(code, "co_qualname", code.co_name).replace("<locals>.", "")
            self.names[id(code)] = (code, f"{path}:{qualified}" if path.startswith("twofold/") else "")
        return self.names[id(code)][1]

    def start(self) -> None:
        sys.settrace(self.trace)
        threading.settrace(self.trace)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self.start()  # a test may have set another
        self.seen = {}
        started = time.process_time()
        yield
        seconds = time.process_time() - started
        self.tests[item.nodeid] = (seconds, {self.name_of(code) for code in list(self.seen.values())} - {""})

    def pytest_unconfigure(self) -> None:
        sys.settrace(None)
        self.target.write_text(json.dumps(condensed(self.tests)))


def pytest_configure(config: Any) -> None:
    """Takes part in the runs that ``recorded`` starts."""
    if TARGET in os.environ:
        recorder = Recorder(Path(config.rootpath), Path(os.environ[TARGET]))
        recorder.start()
        config.pluginmanager.register(recorder)


def condensed(tests: Mapping[str, tuple[float, set[str]]]) -> dict[str, Any]:
    """By function the tests to keep: half of them the most specific ones, the others spread over the rest."""
    of_function: dict[str, list[str]] = {}
    for name, (_, functions) in sorted(tests.items(), key=lambda one: len(one[1][1])):
        for function in functions:
            of_function.setdefault(function, []).append(name)
    for function, names in of_function.items():
        first, rest = names[: KEPT // 2], names[KEPT // 2 :]
        of_function[function] = first + rest[:: max(1, -(-len(rest) // (KEPT - KEPT // 2)))]
    kept = sorted({name for names in of_function.values() for name in names})
    number = {name: position for position, name in enumerate(kept)}
    return {
        "tests": [(name, round(tests[name][0], 3), len(tests[name][1])) for name in kept],
        "functions": {key: [number[name] for name in names] for key, names in sorted(of_function.items())},
    }


def groups(tree: Path) -> dict[str, list[str]]:
    """What is recorded together, by name: each file of tests, and the doctests of each folder."""
    found: dict[str, list[str]] = {}
    for path in sorted((tree / "tests").rglob("test_*.py")):
        name = path.relative_to(tree).as_posix()
        if not name.startswith(LEFT_OUT) and path.parent.name != "tests":
            found[name] = [name]
    for path in sorted((tree / "twofold").rglob("*.py")):
        if ">>>" in path.read_text(encoding="utf-8"):
            name = path.relative_to(tree).as_posix()
            found.setdefault(str(Path(name).parent), []).append(name)
    return found


def recorded(tree: Path, folder: Path, settings: Mapping[str, str], jobs: int) -> dict[str, list[list[Test]]]:
    """By function, for each group that calls it, the tests to try."""
    from tqdm import tqdm

    folder.mkdir(parents=True, exist_ok=True)
    wanted = {folder / f"{_digest(tree, paths)}.json": paths for paths in groups(tree).values()}
    for old in set(folder.glob("*.json")) - set(wanted):
        old.unlink()
    missing = [target for target in wanted if not target.exists()]
    with ThreadPoolExecutor(jobs) as pool, tqdm(total=len(missing), unit="file", desc="recording") as bar:
        for _ in pool.map(lambda target: _record(tree, target, wanted[target], settings), missing):
            bar.update()
    found: dict[str, list[list[Test]]] = {}
    for target in wanted:
        content = json.loads(target.read_text()) if target.exists() else {"functions": {}}
        for function, numbers in content["functions"].items():
            tests = [Test(*content["tests"][number]) for number in numbers]
            found.setdefault(function, []).append(tests)
    return found


def _digest(tree: Path, paths: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        text = (tree / path).read_bytes()
        if not path.startswith("tests/"):  # of a source only the examples
            text = b"".join(line for line in text.splitlines() if b">>>" in line)
        digest.update(path.encode() + b"\0" + text)
    return digest.hexdigest()[:24]


def _record(tree: Path, target: Path, paths: Sequence[str], settings: Mapping[str, str]) -> None:
    tools = str(Path(__file__).resolve().parent)
    written = target.with_suffix(".part")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mutation_record", "-p", "no:xdist", "--tb=no"]
    with tempfile.TemporaryDirectory() as cache:  # what is found there is not compiled
        path = os.pathsep.join(filter(None, [tools, settings.get("PYTHONPATH", "")]))
        own = {TARGET: str(written), "PYTHONPATH": path, "TWOFOLD_CACHE_DIR": cache}
        subprocess.run(
            [*command, "-p", "no:cacheprovider", "-W", "ignore", *paths],
            cwd=tree,
            env=dict(settings) | own,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    if written.exists():
        written.replace(target)
