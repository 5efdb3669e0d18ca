"""The page that shows both programs side by side: one file, no script, nothing fetched from elsewhere."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from html import escape
from pathlib import Path

from twofold.config import config
from twofold.demo.charts import line_chart
from twofold.demo.drawing import operations_as_nodes, tensors_as_nodes
from twofold.demo.task import Result, Task, first_difference

_HERE = Path(__file__).parent


def duration(seconds: float) -> str:
    """A time with three digits and the unit that suits it.

    >>> duration(0.0001234), duration(0.0456), duration(12.34)
    ('123 µs', '45.6 ms', '12.3 s')
    """
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if seconds * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def _tile(value: str, label: str, style: str = "") -> str:
    shown = f'<div class="value {style}">{escape(value)}</div><div class="label">{escape(label)}</div>'
    return f'<div class="tile">{shown}</div>'


def _tiles(task: Task, first: Result, second: Result) -> str:
    difference = first_difference(first.weights, second.weights)
    count = sum(array.size for array in first.weights)
    bits = (
        _tile("Equal bit for bit", f"all {count:,} final weights of both programs", "good")
        if difference is None
        else _tile("Weights differ", difference, "bad")
    )
    tiles = [
        bits,
        _tile(f"{first.accuracy:.2%}", f"test accuracy, {len(task.test[1]):,} images not trained on"),
        _tile(duration(first.median_step_seconds), f"a step of {task.batch_size} images, define-by-run"),
        _tile(duration(second.median_step_seconds), f"a step of {task.batch_size} images, define-then-run"),
    ]
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _table(results: Sequence[Result]) -> str:
    head = ("program", "to the end of step 1", "median step", "all steps", "final loss", "test accuracy")
    rows = [
        (
            result.title,
            duration(result.first_step_seconds),
            duration(result.median_step_seconds),
            duration(sum(result.step_seconds)),
            f"{result.losses[-1]:.6f}",
            f"{result.accuracy:.2%}",
        )
        for result in results
    ]
    header = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    table = f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="panel scroll">{table}</div>'


def _graphs(result: Result) -> str:
    panels = [
        ("Operations as nodes, tensors on the edges", operations_as_nodes(result.graph)),
        ("Tensors as nodes, operations where the edges meet", tensors_as_nodes(result.graph)),
    ]
    return "".join(
        f'<div class="panel"><h3>{title}</h3><div class="scroll">{svg}</div></div>' for title, svg in panels
    )


def _program(name: str) -> str:
    text = (_HERE / name).read_text(encoding="utf-8")
    return f'<div class="panel"><h3>twofold/demo/{name}</h3><pre>{escape(text)}</pre></div>'


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Twofold: one graph, two ways to declare it</title>
<style>
{style}</style>
</head>
<body>
<h1>Twofold</h1>
<p class="lead">One network, declared twice: line by line as it runs, and as a graph that is run afterwards.
Both make the same computation graph, so both train to the same weights.</p>
{tiles}
<h2>Loss at each step</h2>
<p>{data}, a network of {sizes} units with ReLU between, Adam with learning rate {rate:g},
{epochs} epochs of {steps} steps. {same_losses}</p>
<div class="panel">{chart}</div>
<h2>Times</h2>
{table}
<p class="note">Wall-clock times of this run on this machine ({machine}). The first step includes building the
network and compiling; the second program finds what the first one compiled. Each step reads its loss.
The median leaves out the first tenth of the steps.</p>
<h2>The graph of the loss</h2>
<p>The same {operations} operations, drawn in the two usual conventions. The compiler adds the gradients and
the update of the weights to this graph.</p>
<div class="pair">{graphs}</div>
<h2>The two programs</h2>
<div class="pair">{programs}</div>
</body>
</html>
"""


def page(task: Task, dynamic: Result, static: Result) -> str:
    """The whole report as HTML text."""
    equal = dynamic.losses == static.losses
    return _PAGE.format(
        style=(_HERE / "style.css").read_text(encoding="utf-8"),
        tiles=_tiles(task, dynamic, static),
        data=escape(task.name),
        sizes=" \N{EN DASH} ".join(map(str, task.sizes)),
        rate=task.learning_rate,
        epochs=task.epochs,
        steps=task.steps // task.epochs,
        same_losses="The curves lie on each other: every loss is the same number." if equal else "",
        chart=line_chart([(result.title, result.losses) for result in (dynamic, static)]),
        table=_table([dynamic, static]),
        machine=escape(f"Python {platform.python_version()}, {config.threads} threads, {platform.machine()}"),
        operations=len(static.graph),
        graphs=_graphs(static),
        programs=_program("dynamic.py") + _program("static.py"),
    )
