"""Measures Twofold beside the installed peers and prints tables in Markdown.

``python bench/run.py [--only WORD,WORD] [--frameworks NAME,NAME] [--rounds N] [--json FILE]``

For each workload every framework gets a process of its own; all are warmed up, then they take turns, one
sample each in every round, in an order that rotates. A figure is the median over the rounds. Peers that are
not installed are left out with a line that says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import footprint
import report
from frameworks import FRAMEWORKS, installed
from timing import measure_floors

HERE = Path(__file__).resolve().parent
SAMPLE_SECONDS = 0.4


def environment(threads: int, cache: str | None = None) -> dict[str, str]:
    """The workers' environment: threads for every library, the source tree first, caches in one directory."""
    result = dict(os.environ)
    names = ("BENCH", "TWOFOLD", "OMP_NUM", "MKL_NUM", "OPENBLAS_NUM", "TF_NUM_INTRAOP", "TF_NUM_INTEROP")
    result.update({f"{name}_THREADS": str(threads) for name in names})
    result["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
    result["TF_CPP_MIN_LOG_LEVEL"] = "3"
    result["JAX_PLATFORMS"] = "cpu"
    if cache is not None:
        result["TWOFOLD_CACHE_DIR"] = f"{cache}/twofold"
        result["TORCHINDUCTOR_CACHE_DIR"] = f"{cache}/torch"
        result["JAX_COMPILATION_CACHE_DIR"] = f"{cache}/jax"
        result["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        result["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    return result


class Worker:
    """The other end of worker.py."""

    def __init__(self, framework: str, workload: str, threads: int, log: Any) -> None:
        self.framework = framework
        self.seconds: list[float] = []
        command = [sys.executable, str(HERE / "worker.py"), framework, workload]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(threads),
        )
        self.hello = self.read()

    def read(self) -> dict[str, Any]:
        """The next answer; a worker that died has skipped."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"skip": f"ended with status {self.process.wait()}"}

    def ask(self, text: str) -> dict[str, Any]:
        """The answer to one command."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.read()

    def close(self) -> float | None:
        """Ends the process; its peak memory in MiB."""
        answer = self.ask("end")
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        return answer.get("peak_mib")


def measure(
    workload: str, names: list[str], options: argparse.Namespace, log: Any
) -> dict[str, dict[str, Any]]:
    """Figures of one workload for each framework that can run it."""
    workers, figures = [], {}
    for name in names:
        worker = Worker(name, workload, options.threads, log)
        if "skip" in worker.hello:
            if worker.hello["skip"] != "no meaning here":
                print(
                    f"{workload}: {FRAMEWORKS[name].title} left out: {worker.hello['skip']}", file=sys.stderr
                )
            worker.process.wait()
        else:
            workers.append(worker)
    for turn in range(options.rounds):
        shift = turn % max(1, len(workers))
        for worker in workers[shift:] + workers[:shift]:
            answer = worker.ask(f"sample {SAMPLE_SECONDS}")
            if "seconds" in answer:
                worker.seconds.append(answer["seconds"])
    for worker in workers:
        peak = worker.close()
        if worker.seconds:
            figures[worker.framework] = {
                "seconds": median(worker.seconds),
                "rounds": worker.seconds,
                "first": worker.hello["first"],
                "check": worker.hello["check"],
                "peak_mib": peak,
            }
    return figures


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="workloads whose name contains one of these words")
    parser.add_argument("--frameworks", default=",".join(FRAMEWORKS), help="names, see frameworks.py")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", help="write all figures to this file")
    return parser.parse_args()


def main() -> None:
    """Measures and prints."""
    options = arguments()
    sys.path.append(str(HERE.parent))
    names = [name for name in options.frameworks.split(",") if installed(FRAMEWORKS[name])]
    for name in options.frameworks.split(","):
        if name not in names:
            print(
                f"{FRAMEWORKS[name].title}: {FRAMEWORKS[name].module} is not installed, left out",
                file=sys.stderr,
            )
    words = [word for word in options.only.split(",") if word]

    def wanted(workload: str) -> bool:
        return not words or any(word in workload for word in words)

    floors = measure_floors()
    results: dict[str, Any] = {}
    log_path = HERE.parent / "build" / "bench.log"
    log_path.parent.mkdir(exist_ok=True)
    with log_path.open("w") as log:
        for workload in filter(wanted, report.WORKLOADS):
            print(f"measuring {workload}", file=sys.stderr)
            results[workload] = measure(workload, names, options, log)
        if wanted("first_step"):
            results["first_step"] = footprint.first_steps(names, options.threads, environment, log)
        if wanted("footprint"):
            results["footprint"] = footprint.footprints(names, environment(options.threads))
    machine = f"{platform.machine()}, {options.threads} threads, Python {platform.python_version()}"
    print(report.tables(results, floors, machine))
    if options.json:
        content = {"machine": machine, "floors": vars(floors), "results": results}
        Path(options.json).write_text(json.dumps(content, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
