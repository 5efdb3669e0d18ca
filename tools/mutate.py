"""Mutation testing: changes the library a little, runs the tests that should notice, and lists what none noticed.

    python tools/mutate.py --seed 1 --count 300            # or: make mutate MUTATE="--count 20"
    python tools/mutate.py --only twofold/ops/linear_algebra/lu.py --list

Everything runs in a copy of the tree under ``build/mutation``, with a cache of machine code of its own; that one is
keyed by content, so that what a changed compiler makes is never taken for what the unchanged one makes. Results are
kept in a JSON file; a second run with the same file goes on where the first one stopped.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from queue import Queue
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutation_record import recorded
from mutation_tests import Stage, Suite
from mutations import Mutation, all_mutations, chosen

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutation"
PACKAGES = ("ops", "nn", "static", "transforms", "compiler")
CAUGHT = {1: "a test failed", 2: "the tests could not be run", 3: "pytest broke", 4: "pytest could not start"}
NOTHING_RAN = 5
OPTIONS = ("-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-W", "ignore", "--no-header", "--tb=no")
UNCHANGED = Stage(("twofold/__init__.py", "tests/references/test_public.py"), "twofold or linalg")
"""What must pass before anything is changed."""
SETTINGS = {
    "TWOFOLD_CACHE_DIR": str(WORK / "cache"),
    "PYTHONDONTWRITEBYTECODE": "",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def settings_of(tree: Path) -> dict[str, str]:
    """The environment in which the tests of a tree run: they import the tree's package, even if one is installed."""
    path = os.pathsep.join([str(ROOT / "tools" / "without_install"), str(tree)])
    return {**os.environ, **SETTINGS, "PYTHONPATH": path}


def make_tree(number: int) -> Path:
    """A copy of the tracked files, and of the compiled core."""
    tree = WORK / f"tree{number}"
    shutil.rmtree(tree, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [
        *listed.stdout.splitlines(),
        *[str(path.relative_to(ROOT)) for path in (ROOT / "twofold").glob("_core*.so")],
    ]
    for name in names:
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    return tree


def write(path: Path, text: str) -> None:
    """Write a source file and drop what Python compiled from the former one."""
    path.write_text(text, encoding="utf-8")
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def run(tree: Path, stage: Stage, limit: float, without: Sequence[str] = ()) -> tuple[str, str]:
    """How a run of pytest ended: "" if all passed, else why a change is caught; and the test that failed."""
    command = [sys.executable, "-m", "pytest", *OPTIONS, *stage.paths]
    command += ["-k", stage.names] if stage.names else []
    command += [f"--deselect={name}" for name in without]
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=settings_of(tree),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "it took too long", ""
    if process.returncode in (0, NOTHING_RAN):
        return "", ""
    failed = [line.split(" ")[1] for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    why = CAUGHT.get(process.returncode, f"the process ended with {process.returncode}")
    return why, failed[0] if failed else ""


def attempt(tree: Path, path: str, changed: str, number: int, stage: Stage, limit: float) -> tuple[str, str]:
    """As ``run``, of a stage on a changed file.

    A test is left out that fails once and passes alone, as it depends on time or load, or that fails on the unchanged
    file. Doctests of the file and tests made from entries, the first two stages, are taken at their word.
    """
    before = (tree / path).read_text(encoding="utf-8")
    left_out: list[str] = []
    while True:
        write(tree / path, changed)
        try:
            why, test = run(tree, stage, limit, left_out)
            repeated = not test or number < 2 or run(tree, Stage((test,)), limit)[0]
        finally:
            write(tree / path, before)
        if not test or number < 2 or (repeated and not run(tree, Stage((test,)), limit)[0]):
            return why, test
        left_out.append(test)


def examine(tree: Path, mutation: Mutation, stages: Sequence[Stage], limit: float) -> dict[str, Any]:
    """The result for one change."""
    changed = mutation.applied((tree / mutation.path).read_text(encoding="utf-8"))
    started = time.monotonic()
    found: dict[str, Any] = {**asdict(mutation), "caught": False}
    for number, stage in enumerate(stages):
        why, test = attempt(tree, mutation.path, changed, number, stage, limit)
        if why:
            found |= {"caught": True, "why": why, "test": test, "stage": number}
            break
    return {**found, "seconds": round(time.monotonic() - started, 1)}


def key_of(result: dict[str, Any]) -> tuple[Any, ...]:
    """What tells one change from all others."""
    return result["path"], result["start"], result["end"], result["new"]


def report(results: Sequence[dict[str, Any]]) -> str:
    """The score, and every change that no test noticed."""
    survivors = [result for result in results if not result["caught"]]
    lines = [
        f"{result['path']}:{result['line']} [{result['kind']}] in {'.'.join(result['scope'])}\n"
        f"    - {result['old']}\n    + {result['new']}"
        for result in survivors
    ]
    caught = len(results) - len(survivors)
    share = 100 * caught / max(len(results), 1)
    return "\n".join([*lines, f"{caught} of {len(results)} changes were caught ({share:.1f} %)"])


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="Mutation testing of the library.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument(
        "--only",
        action="append",
        help="a folder or file such as twofold/ops/linear_algebra/lu.py; may be repeated",
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300, help="seconds that one run of pytest may take")
    parser.add_argument(
        "--near", action="store_true", help="leave out the last, long run of a whole folder of tests"
    )
    parser.add_argument("--list", action="store_true", help="only show the changes")
    parser.add_argument("--again", action="store_true", help="examine the survivors of the results once more")
    parser.add_argument("--json", type=Path, default=WORK / "results.json")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool; the status is 0 if at least 95 % of the changes are caught."""
    options = parsed(arguments)
    folders = tuple(f"twofold/{name}" for name in PACKAGES)
    found = [
        one
        for one in all_mutations(ROOT, folders)
        if not options.only or one.path.startswith(tuple(options.only))
    ]
    picked = chosen(found, options.seed, options.count)
    if options.list:
        print("\n".join(one.difference() for one in picked))
        return 0
    done = json.loads(options.json.read_text()) if options.json.exists() else []
    done = [result for result in done if result["caught"] or not options.again]
    known = {key_of(result) for result in done}
    results = examine_all([one for one in picked if key_of(asdict(one)) not in known], done, options)
    wanted = {key_of(asdict(one)) for one in picked}
    shown = [result for result in results if key_of(result) in wanted]
    print(report(shown))
    return int(sum(result["caught"] for result in shown) < 0.95 * len(shown))


def examine_all(todo: Sequence[Mutation], done: list[dict[str, Any]], options: Any) -> list[dict[str, Any]]:
    """The results of all changes; those so far are written after every one."""
    from tqdm import tqdm

    trees = Queue[Path]()
    for number in range(options.jobs):
        trees.put(make_tree(number))
    first = trees.queue[0]
    imported = "import sys, twofold; sys.exit(not twofold.__file__.startswith(sys.argv[1]))"
    command = [sys.executable, "-c", imported, f"{first}{os.sep}"]
    if todo and subprocess.run(command, cwd=first, env=settings_of(first), check=False).returncode:
        raise SystemExit("the tests would import another package than the one that is changed")
    calls = recorded(first, WORK / "record", settings_of(first), options.jobs) if todo else {}
    suite = Suite(ROOT, calls)
    if todo and (broken := run(first, UNCHANGED, options.limit)[0]):
        raise SystemExit(f"the unchanged tree does not pass: {broken}")

    def one(mutation: Mutation) -> dict[str, Any]:
        tree = trees.get()
        try:
            return examine(tree, mutation, suite.stages(mutation, not options.near), options.limit)
        finally:
            trees.put(tree)

    options.json.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(options.jobs) as pool, tqdm(total=len(todo), unit="change") as bar:
        for future in as_completed([pool.submit(one, mutation) for mutation in todo]):
            done.append(future.result())
            options.json.write_text(json.dumps(done, indent=1))
            bar.set_postfix(survived=sum(not result["caught"] for result in done))
            bar.update()
    return done


if __name__ == "__main__":
    sys.exit(main())
