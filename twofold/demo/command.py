"""``twofold demo``: trains the network both ways, prints what came out and writes the report."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from twofold.demo import dynamic, static
from twofold.demo.report import duration, page
from twofold.demo.task import first_difference, load_task
from twofold.errors import TwofoldError


def run(arguments: Namespace) -> int:
    """Runs the demonstration; the exit status is 0 if the final weights are equal bit for bit, else 1."""
    try:
        task = load_task(arguments.mnist, arguments.epochs)
    except (TwofoldError, OSError) as error:
        print(f"twofold demo: {error}", file=sys.stderr)
        return 2
    print(
        f"{task.name}: {len(task.train[0])} training images, {task.steps} steps of {task.batch_size} images"
    )
    results = dynamic.train(task), static.train(task)
    for result in results:
        print(
            f"{result.title:15}  accuracy {result.accuracy:.2%}  step {duration(result.median_step_seconds)}"
            f"  first step after {duration(result.first_step_seconds)}"
        )
    difference = first_difference(results[0].weights, results[1].weights)
    print("final weights: equal bit for bit" if difference is None else f"final weights differ: {difference}")
    report = Path(arguments.report)
    report.write_text(page(task, *results), encoding="utf-8")
    print(f"report: {report}")
    return 0 if difference is None else 1
