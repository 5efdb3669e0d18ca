"""What notebooks show: tensors as tables of values, modules and graphs as trees, optimisers and sessions as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import prod
from typing import Any

from twofold import _core

Tensor = _core.Tensor
_ROWS, _COLUMNS = 8, 8
_CHILDREN = 200
_TEXT = 200


def _cells(values: Iterable[Any], tag: str) -> str:
    return "".join(f"<{tag}>{escape(str(value))}</{tag}>" for value in values)


def _table(rows: Sequence[str]) -> str:
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _numbers(size: int, most: int) -> list[int | None]:
    """Indices that are shown; None stands for those left out."""
    if size <= most:
        return list(range(size))
    half = most // 2
    return [*range(half), None, *range(size - half, size)]


def _element(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, (float, complex)) else str(value)


def tensor_html(tensor: Tensor) -> str:
    """The dtype and shape of a tensor over a table of its first matrix: at most eight rows and columns."""
    shape = tensor.type_.shape
    known = "requires grad" if tensor.requires_grad else ""
    sizes = ", ".join("?" if size < 0 else str(size) for size in shape)
    title = f"{type(tensor).__name__} {tensor.dtype.name} [{sizes}] {known}".rstrip()
    if tensor._is_symbolic:
        return f"<b>{escape(title)}</b>, not yet bound"
    shown, part = tensor.detach(), ""
    if len(shape) > 2 and 0 not in shape:
        index = (0,) * (len(shape) - 2)
        shown, part = shown[index], f", at [{', '.join(map(str, index))}]"
    rows, columns = (1, *shown.shape)[-2:] if shown.ndim else (1, 1)
    across = _numbers(columns, _COLUMNS)
    lines = [_cells(["", *("…" if k is None else k for k in across)], "th")] if shown.ndim else []
    array = shown._read().reshape(rows, columns)
    for row in _numbers(rows, _ROWS):
        picked = ["…" if row is None or k is None else _element(array[row, k].item()) for k in across]
        head = _cells(["…" if row is None else row], "th") if shown.ndim else ""
        lines.append(head + _cells(picked, "td"))
    return f"<div><b>{escape(title)}</b>{part}{_table(lines)}</div>"


def module_html(module: Any) -> str:
    """A module as a tree that opens and closes, with the number of parameters at each branch."""
    return _branch("", module, 0, [0])


def _branch(name: str, module: Any, depth: int, written: list[int]) -> str:
    written[0] += 1
    extra = module.extra_repr()
    settings = escape(extra if len(extra) <= _TEXT else extra[:_TEXT] + "…")
    count = sum(parameter.numel() for parameter in module.parameters())
    label = escape(f"{name}: " if name else "") + f"<b>{escape(module._get_name())}</b>"
    label += f"({settings})" if settings else ""
    label += f" <small>{count:,} parameters</small>" if count else ""
    inside = []
    for number, (child, below) in enumerate(module._modules.items()):
        if written[0] >= _CHILDREN:
            inside.append(f"<div>… {len(module._modules) - number} more</div>")
            break
        if below is not None:
            inside.append(_branch(child, below, depth + 1, written))
    if not inside:
        return f"<div>{label}</div>"
    body = f'<div style="margin-left:1.5em">{"".join(inside)}</div>'
    opened = ' open=""' if depth < 2 else ""
    return f"<details{opened}><summary>{label}</summary>{body}</details>"


def optimizer_html(name: str, groups: Sequence[dict[str, Any]]) -> str:
    """An optimiser as a table: its settings, with a column for each group of parameters."""
    shown = [groups[k] for k in _numbers(len(groups), _COLUMNS) if k is not None]
    keys = sorted({key for group in shown for key in group if key != "params"})
    rows = [_cells(["", *(f"group {k}" for k in _numbers(len(groups), _COLUMNS) if k is not None)], "th")]
    sizes = [f"{sum(one.numel() for one in group['params']):,}" for group in shown]
    rows.append(_cells(["parameters"], "th") + _cells(sizes, "td"))
    rows += [
        _cells([key], "th") + _cells([str(group.get(key, ""))[:_TEXT] for group in shown], "td")
        for key in keys
    ]
    return f"<div><b>{escape(name)}</b>{_table(rows)}</div>"


def collection_html(title: str, parameters: Sequence[Any]) -> str:
    """A collection of parameters as a table of their names and shapes, with how many numbers each has."""
    rows = [_cells(["parameter", "shape", "numbers"], "th")]
    for k in _numbers(len(parameters), _CHILDREN):
        one = None if k is None else parameters[k]
        rows.append(
            _cells(
                ["…"] * 3 if one is None else [one.name(), str(one.shape()), f"{prod(one.shape()):,}"], "td"
            )
        )
    return f"<div><b>{escape(title)}</b>{_table(rows)}</div>"


def variable_html(variable: Any, value: Any) -> str:
    """The repr of a variable, whether it is trained, and its value where there is one."""
    title = f"<b>{escape(repr(variable))}</b>" + (", trainable" if variable.trainable else "")
    return f"<div>{title}{', without a value here' if value is None else tensor_html(value)}</div>"


def graph_html(graph: Any) -> str:
    """A declared graph as a tree of its name scopes, with the number of operations at each branch."""
    operations = graph.get_operations()
    found = [(operation.name.split("/"), operation) for operation in operations]
    return f"<div><b>Graph</b> <small>{len(operations):,} operations</small>{_scope(found, 0, [0])}</div>"


def _scope(found: Sequence[tuple[list[str], Any]], depth: int, written: list[int]) -> str:
    inside: dict[str, list[tuple[list[str], Any]]] = {}
    for path, operation in found:
        inside.setdefault(path[depth], []).append((path, operation))
    lines = []
    for number, (name, members) in enumerate(inside.items()):
        if written[0] >= _CHILDREN:
            lines.append(f"<div>… {len(inside) - number} more</div>")
            break
        written[0] += 1
        here = [operation for path, operation in members if len(path) == depth + 1]
        below = [item for item in members if len(item[0]) > depth + 1]
        label = escape(name) + "".join(f": <b>{escape(one.type)}</b>{_results(one)}" for one in here)
        if not below:
            lines.append(f"<div>{label}</div>")
            continue
        label += f" <small>{len(members):,} operations</small>"
        lines.append(f"<details><summary>{label}</summary>{_scope(below, depth + 1, written)}</details>")
    return f'<div style="margin-left:1.5em">{"".join(lines)}</div>'


def _results(operation: Any) -> str:
    return "".join(f" {escape(str(one.dtype.name) + str(one.shape))}" for one in operation.outputs)


def session_html(session: Any, held: Sequence[tuple[str, Any]], closed: bool) -> str:
    """A session as a table of the variables that have values, over its graph."""
    rows = [_cells(["variable", "dtype", "shape"], "th")]
    for name, value in held[:_CHILDREN]:
        rows.append(_cells([name, value.dtype.name, list(value.shape)], "td"))
    more = f"<div>… {len(held) - _CHILDREN} more</div>" if len(held) > _CHILDREN else ""
    state = ", closed" if closed else ""
    table = _table(rows) + more if held else "<div>no variable has a value</div>"
    return f"<div><b>{type(session).__name__}</b>{state}{table}{graph_html(session.graph)}</div>"
