"""Operations that Python computes while a graph runs: ``py_func``, ``Print``, ``Assert``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType
from twofold.errors import InvalidArgumentError
from twofold.ir.shape_inference import UNKNOWN_RANK, new_unknown_size
from twofold.ir.types import tensor_type
from twofold.ops.base import ops
from twofold.runtime.failures import end_at
from twofold.static.api.op_functions import as_dtype, convert_to_tensor, define
from twofold.static.functions.bodies import source_of
from twofold.static.functions.custom_gradients import with_gradient_of
from twofold.static.graph.context import at_once, computed_at_once, followed
from twofold.static.graph.docstrings import example
from twofold.static.graph.eager_execution import call_python
from twofold.static.graph.graph import Operation, Tensor, describe, get_default_graph


def in_python(
    type: str,
    function: Callable[..., Any],
    inputs: Sequence[Any],
    results: Sequence[tuple[DType, Sequence[int | None] | None]],
    name: str | None,
    given_run: bool = False,
    **attributes: Any,
) -> list[Any]:
    """A ``py_func`` whose results have known dtypes, ranks unless the shape is None, and sizes unless one is None.

    With ``given_run`` the function gets the run first, as that of a loop on the host does. ``attributes`` say what the
    function does, for messages of the graph.
    """
    tensors = [convert_to_tensor(value) for value in inputs]
    if at_once() and not given_run:
        values = zip(call_python(function, tensors), results)
        return [convert_to_tensor(value, dtype) for value, (dtype, _) in values]
    types = [
        tensor_type(dtype, UNKNOWN_RANK)
        if sizes is None
        else tensor_type(dtype, tuple(new_unknown_size() if size is None else size for size in sizes))
        for dtype, sizes in results
    ]
    graph = tensors[0].graph if tensors else get_default_graph()
    parts: dict[str, Any] = {"python": function, "is_pure": not given_run, "keywords": attributes}
    if given_run:
        parts["hosted"] = function
    made = graph.add(type, name, types, [source_of(tensor) for tensor in tensors], **parts)
    return list(made.outputs)


@example("tf.Print(tf.constant([1, 2]), [tf.constant(3)], first_n=0)", "[1 2]")
def Print(
    input_: Any,
    data: Sequence[Any],
    message: str = "",
    first_n: int = -1,
    summarize: int = 3,
    name: str | None = None,
) -> Any:
    """``input_``; when a run that needs it is done, ``message`` and the values of ``data`` go to standard error."""
    tensor = convert_to_tensor(input_)
    shown = [convert_to_tensor(item) for item in data]
    options = {"message": message, "first_n": first_n, "summarize": summarize}
    made = define("Print", _first, (tensor, *shown), options, name)
    left = [first_n]

    def observe(value: Any, *arrays: Any) -> None:
        if left[0] == 0:
            return
        left[0] -= 1
        print(message + "".join(_summary(array, summarize) for array in arrays), file=sys.stderr)

    made.observe = observe
    return made.outputs[0]


def _first(value: Any, *rest: Any, **options: Any) -> Any:
    return ops.copied(value)


def _summary(array: Any, count: int) -> str:
    """The first elements of an array, all with -1."""
    flat = numpy.asarray(array).ravel()
    inner = " ".join(str(item) for item in (flat if count < 0 else flat[:count]))
    return f"[{inner}{'...' if 0 <= count < flat.size else ''}]"


@example(
    "x = tf.constant(3)", "with tf.control_dependencies([tf.Assert(x > 2, [x])]):", "    y = x * 2", "y", "6"
)
def Assert(
    condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """An operation that raises InvalidArgumentError with the values of ``data`` unless ``condition`` is true.

    The check is made when the run is done, before any variable changes. Of each value the first ``summarize``
    elements are told (3 unless given, -1: all).
    """
    tensor = convert_to_tensor(condition)
    shown = [convert_to_tensor(item) for item in data if not isinstance(item, str)]
    made = define("Assert", lambda value, *rest: ops.copied(value), (tensor, *shown), {}, name)
    words = [item for item in data if isinstance(item, str)]

    def observe(value: Any, *arrays: Any) -> None:
        if not numpy.all(value):
            texts = " ".join(
                [*words, *[_summary(array, 3 if summarize is None else summarize) for array in arrays]]
            )
            what = f"assertion failed: {describe(tensor)} is false, declared at {made.where}, data: {texts}"
            raise end_at(
                InvalidArgumentError(what, "Give values that meet the condition."),
                _core.location_of(made.outputs[0]),
            )

    made.observe = observe
    return made


@example("tf.py_func(lambda x: x * 2, [tf.constant([1.0, 2.0])], tf.float32)", "[2. 4.]")
def py_func(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """The results of a Python function of NumPy arrays, called once in each run that needs them.

    What the function reads is computed first, then it is called, then the rest of the graph runs. No derivative
    passes through it, unless ``Graph.gradient_override_map`` names one for ``PyFunc``. Raises GraphError if the
    results do not have the dtypes ``Tout``. With ``stateful=False`` the function does nothing besides, so that
    ``twofold.explain`` may call it. With an empty list of dtypes the operation is returned, and the function's result
    left aside.
    """
    return _py_func(func, functools.partial(followed, func), inp, Tout, stateful, name)


def _py_func(
    at_hand: Callable[..., Any],
    in_runs: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,
    stateful: bool,
    name: str | None,
) -> Any:
    """See ``py_func``: what it calls where tensors are computed at once, and what a run calls."""
    several = isinstance(Tout, (list, tuple))
    dtypes = [as_dtype(dtype) for dtype in (Tout if several else [Tout])]
    if at_once():
        made_ = call_python(at_hand, [convert_to_tensor(item) for item in inp])
        results = [convert_to_tensor(value, dtype) for value, dtype in zip(made_, dtypes)]
        return (results or None) if several else results[0]
    sources = [source_of(item) for item in inp]
    graph = sources[0][0].graph if sources else get_default_graph()
    python = in_runs if dtypes else lambda *arrays: (in_runs(*arrays), [])[1]
    types = [tensor_type(dtype, UNKNOWN_RANK) for dtype in dtypes]
    made = graph.add("PyFunc", name, types, sources, python=python, is_pure=not stateful)
    if not dtypes:
        return made
    outputs = with_gradient_of(made)
    return outputs if several else outputs[0]


numpy_function = py_func


@example("tf.py_function(lambda x: x * 2, [tf.constant([1.0, 2.0])], tf.float32)", "[2. 4.]")
def py_function(func: Callable[..., Any], inp: Sequence[Any], Tout: Any, name: str | None = None) -> Any:
    """The results of a Python function of tensors with values, called once in each run that needs them.

    As ``py_func``, but the function takes tensors, whose ``numpy()`` are their values, and what it calls of ``tf`` is
    computed at once. Derivatives pass through it where its arguments are computed at once, too, but not in a graph.
    """
    if at_once():
        given = [convert_to_tensor(item) for item in inp]
        several, found = isinstance(Tout, (list, tuple)), followed(func, *given)
        dtypes = [as_dtype(dtype) for dtype in (Tout if several else [Tout])]
        results = [convert_to_tensor(one, dtype) for one, dtype in zip(found if several else [found], dtypes)]
        return (results or None) if several else results[0]

    def called(*arrays: Any) -> Any:
        with computed_at_once():
            made = followed(func, *[_core.from_array(numpy.array(array), False) for array in arrays])
            if isinstance(made, (list, tuple)):
                return [_value(item) for item in made]
            return _value(made)

    return _py_func(called, called, inp, Tout, True, name or "EagerPyFunc")


def _value(made: Any) -> Any:
    return made.detach().numpy() if isinstance(made, Tensor) else made
