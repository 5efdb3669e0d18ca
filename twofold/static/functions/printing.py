"""Values that are printed while a graph runs: ``tf.print``."""

from __future__ import annotations

import pprint
import sys
from collections.abc import Callable
from typing import Any

import numpy

from twofold.runtime.tracing import here
from twofold.static import nest
from twofold.static.api.op_functions import convert_to_tensor, is_tensor_like
from twofold.static.functions.bodies import source_of
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.eager_execution import call_python
from twofold.static.graph.graph import get_default_graph
from twofold.static.platform import logs
from twofold.static.sparse import SparseTensor

_MARK = "'\ue000'"
"""What stands for a value in the text of a structure, where strings have quotation marks."""


class _Shown:
    """A value in a structure, whose text has a mark for each of its tensors."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


@example(
    "x = tf.constant([1.0, 2.5])",
    "with tf.control_dependencies([tf.print('x:', x, output_stream=tf.logging.info)]):",
    "    y = tf.identity(x)",
    "y",
    "[1.  2.5]",
)
def print_(*inputs: Any, **kwargs: Any) -> Any:
    """An operation that prints values each time a run needs it; where operations are computed at once, prints now.

    Tensors may stand inside of lists, tuples and dicts. Put the operation among ``tf.control_dependencies`` to have
    it run before others.

    Args:
        *inputs: What is printed, in this order.
        output_stream: ``sys.stderr`` (the default), ``sys.stdout``, ``"file://"`` with a path, to which lines are
            added, or ``tf.logging.info``, ``warning`` or ``error``.
        summarize: How many elements are shown at either end of each axis, 3 unless given; -1 for all.
        sep: What stands between the values.
        end: What follows them, a new line unless given.
        name: The name of the operation.
    """
    options: dict[str, Any] = {
        "output_stream": sys.stderr,
        "summarize": 3,
        "sep": " ",
        "end": None,
        "name": None,
    }
    if unknown := kwargs.keys() - options.keys():
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {sorted(unknown)}, at {here()}.")
    options |= kwargs
    write = _writer(options["output_stream"], "\n" if options["end"] is None else options["end"])
    tensors: list[Any] = []
    pieces = options["sep"].join(_template(value, tensors) for value in inputs).split(_MARK)
    alone = len(inputs) == 1 and len(tensors) == 1 and is_tensor_like(inputs[0])
    most = 3 if options["summarize"] is None else options["summarize"]

    def show(*arrays: Any) -> list[Any]:
        texts = [value_text(array, most, quoted=not (alone and numpy.ndim(array) == 0)) for array in arrays]
        write("".join(piece + text for piece, text in zip(pieces, [*texts, ""])))
        return []

    if at_once():
        return call_python(show, tensors) and None
    graph = tensors[0].graph if tensors else get_default_graph()
    sources = [source_of(tensor) for tensor in tensors]
    return graph.add("PrintV2", options["name"] or "PrintV2", [], sources, python=show, is_pure=False)


def _template(value: Any, tensors: list[Any]) -> str:
    """The text of a value with a mark for each tensor in it, which are added to ``tensors``."""

    def shown(leaf: Any) -> Any:
        if isinstance(leaf, SparseTensor):
            tensors.extend([leaf.indices, leaf.values, leaf.dense_shape])
            return _Shown(f"'SparseTensor(indices={_MARK}, values={_MARK}, shape={_MARK})'")
        if is_tensor_like(leaf) or (at_once() and hasattr(leaf, "numpy")):
            tensors.append(convert_to_tensor(leaf))
            return _Shown(_MARK)
        return leaf

    if isinstance(value, (str, bytes)):
        return value if isinstance(value, str) else value.decode()
    return pprint.pformat(nest.map_structure(shown, value) if nest.is_nested(value) else shown(value))


def _writer(stream: Any, end: str) -> Callable[[str], None]:
    for name in ("stderr", "stdout"):
        if stream is getattr(sys, name):
            return lambda text: print(text, end=end, file=getattr(sys, name), flush=True)
    if isinstance(stream, str) and stream.startswith("file://"):
        path = stream.removeprefix("file://")

        def append(text: str) -> None:
            with open(path, "a", encoding="utf-8") as file:
                file.write(text + end)

        return append
    for log in (logs.info, logs.warning, logs.error):
        if getattr(stream, "__wrapped__", stream) is getattr(log, "__wrapped__", log):
            return lambda text: log("%s", text)
    raise ValueError(
        f"Unsupported output stream, logging level, or file: {stream!r}, at {here()}. Use sys.stderr or sys.stdout."
    )


def value_text(array: Any, most: int, quoted: bool = True) -> str:
    """The elements of an array, of each axis ``most`` at either end."""
    values = numpy.asarray(array)
    return _axis(values, most, values.ndim, quoted)


def _axis(values: numpy.ndarray, most: int, axes: int, quoted: bool) -> str:
    if not values.ndim:
        return _element(values.item() if values.dtype == object else values[()], quoted)
    size, depth = len(values), axes - values.ndim
    apart = " " if values.ndim == 1 else "\n" * (values.ndim - 1) + " " * (depth + 1)
    ends = size if most < 0 else most
    first, last = range(min(ends, size)), range(max(ends, size - ends), size)
    parts = [_axis(values[k, ...], most, axes, quoted) for k in first]
    parts += ["..."] if size > 2 * ends else []
    parts += [_axis(values[k, ...], most, axes, quoted) for k in last]
    return f"[{apart.join(parts)}]"


def _element(value: Any, quoted: bool) -> str:
    if isinstance(value, (bytes, str)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return f'"{text}"' if quoted else text
    if isinstance(value, (bool, numpy.bool_)):
        return str(int(value))
    if isinstance(value, numpy.complexfloating):
        return f"({_element(value.real, quoted)},{_element(value.imag, quoted)})"
    if not isinstance(value, numpy.floating):
        return str(value)
    short, long = ("%.15g", "%.17g") if value.itemsize == 8 else ("%.6g", "%.9g")
    text = short % value
    return text if type(value)(text) == value or value != value else long % value
