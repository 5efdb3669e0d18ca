"""First step with cold and warm caches, time to import, size on disk."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from frameworks import FRAMEWORKS

HERE = Path(__file__).resolve().parent
FIRST_WORKLOAD = "train_mnist_64"
REPEATS = 3
IMPORTS = 5


def _first(name: str, env: dict[str, str], log: Any) -> float | None:
    command = [sys.executable, str(HERE / "worker.py"), name, FIRST_WORKLOAD, "first"]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    log.write(done.stderr)
    lines = done.stdout.splitlines()
    answer = json.loads(lines[-1]) if lines else {}
    return answer.get("first")


def first_steps(
    names: list[str], threads: int, environment: Callable[[int, str | None], dict[str, str]], log: Any
) -> dict[str, dict[str, Any]]:
    """Seconds from after the import to the end of the first training step: caches empty, then filled."""
    results: dict[str, dict[str, Any]] = {}
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in names}
    print("measuring first_step", file=sys.stderr)
    for _ in range(REPEATS):
        for name in names:
            with tempfile.TemporaryDirectory() as cache:
                for times_of_state in times[name]:
                    seconds = _first(name, environment(threads, cache), log)
                    if seconds is not None:
                        times_of_state.append(seconds)
    for name, (cold, warm) in times.items():
        if cold and warm:
            results[name] = {"cold": median(cold), "warm": median(warm), "all": [cold, warm]}
    return results


def import_seconds(module: str, env: dict[str, str]) -> float | None:
    """Median seconds of an import in a fresh process, its files read before."""
    code = f"import time; t = time.perf_counter(); import {module}; print('@', time.perf_counter() - t)"
    times = []
    for _ in range(IMPORTS + 1):
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
        )
        times += [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("@")]
    return median(times[1:]) if len(times) > 1 else None


def _requirements(package: str) -> list[str]:
    """Names of the packages that one needs whatever extras are chosen."""
    try:
        lines = importlib.metadata.requires(package) or []
    except importlib.metadata.PackageNotFoundError:
        return ["numpy", "llvmlite"] if package == "twofold" else []
    plain = [line for line in lines if "extra ==" not in line]
    return [match.group() for line in plain if (match := re.match(r"[A-Za-z0-9._-]+", line))]


def _size(package: str) -> int:
    """Bytes of one installed package without compiled Python files; for Twofold, of the source tree."""
    if package == "twofold":
        files = [path for path in (HERE.parent / "twofold").rglob("*") if path.is_file()]
        return sum(path.stat().st_size for path in files if path.suffix != ".pyc")
    try:
        listed = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return 0
    paths = [Path(str(path.locate())) for path in listed if path.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())


def install_bytes(package: str) -> tuple[int, int]:
    """Bytes of a package, and of it with all it needs."""
    seen: set[str] = set()
    waiting = [package]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name not in seen:
            seen.add(name)
            waiting += _requirements(name)
    return _size(package), sum(map(_size, seen))


def footprints(names: list[str], env: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Import time, own size and size with requirements, once for each package."""
    print("measuring footprint", file=sys.stderr)
    results: dict[str, dict[str, Any]] = {}
    done: set[str] = set()
    for name in names:
        framework = FRAMEWORKS[name]
        if framework.package in done:
            continue
        done.add(framework.package)
        own, whole = install_bytes(framework.package)
        results[name] = {
            "import": import_seconds(framework.module, env),
            "own_mib": own / 2**20,
            "whole_mib": whole / 2**20,
        }
    return results
