"""Control: dependencies, groups, choices, and operations that call back into Python."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import bool_
from twofold.errors import InvalidArgumentError
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ir.types import tensor_type
from twofold.ops.axes import given_once
from twofold.ops.base import ops
from twofold.runtime.failures import end_at
from twofold.runtime.tracing import here
from twofold.static.array import identity, stack
from twofold.static.at_once import call_python
from twofold.static.custom_gradients import with_gradient_of
from twofold.static.define import as_dtype, as_tensor, convert_to_tensor, define
from twofold.static.docstrings import example
from twofold.static.flow import choose
from twofold.static.graph import (
    Operation,
    Tensor,
    at_once,
    check_one_graph,
    describe,
    get_default_graph,
    operation_of,
    owner_of,
)
from twofold.static.values import Source


def control_dependencies(control_inputs: Any) -> Any:
    """Inside, operations of the default graph run after these, and read the variables as these left them.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     v = tf.Variable(0)
    ...     session.run(tf.global_variables_initializer())
    ...     with tf.control_dependencies([tf.assign(v, 5)]):
    ...         read = tf.identity(v)
    ...     print(session.run(read))
    5
    """
    return get_default_graph().control_dependencies(control_inputs)


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing but run what it depends on.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.no_op()))
    None
    """
    return get_default_graph().add("NoOp", name, (), ())


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that runs all of ``inputs``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     v, w = tf.Variable(0), tf.Variable(0)
    ...     session.run(tf.global_variables_initializer())
    ...     session.run(tf.group(tf.assign(v, 1), tf.assign(w, 2)))
    ...     print(session.run([v, w]))
    [np.int32(1), np.int32(2)]
    """
    if at_once():
        return no_op(name)
    flat: list[Any] = []
    for item in inputs:
        flat += item if isinstance(item, (list, tuple)) else [item]
    graph = get_default_graph()
    controls = [graph.as_graph_element(item) for item in flat if item is not None]
    operations = [item if isinstance(item, Operation) else operation_of(item) for item in controls]
    made = graph.add("NoOp", name or "group_deps", (), ())
    made.control_inputs = tuple(dict.fromkeys((*made.control_inputs, *operations)))
    return made


def tuple_(tensors: Sequence[Any], name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """The tensors, each available only once all are computed; the operations are in the scope ``name``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.tuple([tf.constant(1), tf.constant(2)])))
    [np.int32(1), np.int32(2)]
    """
    controls = [operation_of(as_tensor(tensor)) for tensor in tensors if tensor is not None] + list(
        control_inputs or []
    )
    with name_scope(name, "tuple"), control_dependencies(controls):
        return [None if tensor is None else identity(tensor) for tensor in tensors]


def with_dependencies(dependencies: Sequence[Any], output_tensor: Any, name: str | None = None) -> Any:
    """``output_tensor`` after ``dependencies`` have run.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     v = tf.Variable(0)
    ...     session.run(tf.global_variables_initializer())
    ...     session.run(tf.control.with_dependencies([tf.assign(v, 5)], tf.constant(1)))
    ...     print(session.run(v))
    np.int32(1)
    5
    """
    with control_dependencies(dependencies):
        return identity(output_tensor, name=name)


@contextmanager
def name_scope(name: str | None, default_name: str | None = None, values: Any = None) -> Iterator[str]:
    """Inside, names of operations start with ``name/``; the graph is that of ``values`` if any are given.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     with tf.name_scope("layer"):
    ...         x = tf.constant(1.0, name="x")
    ...     print(x.name)
    layer/x:0
    """
    if name is None and default_name is None and values is not None:
        raise ValueError(f"name_scope: values without a name, at {here()}. Give name or default_name.")
    if at_once():
        with get_default_graph().name_scope(default_name if name is None else name) as scope:
            yield scope
        return
    graph = _graph_of("name_scope", values)
    with graph.as_default(), graph.name_scope(default_name if name is None else name) as scope:
        yield scope


def _graph_of(what: str, values: Any) -> Any:
    """The graph of the tensors among ``values``, else the default one."""
    check_one_graph(what, values)
    given = [getattr(value, "_as_graph_element", lambda value=value: value)() for value in values or ()]
    owners = [owner_of(value) for value in given if isinstance(value, Tensor)]
    return next((owner[0].graph for owner in owners if owner is not None), get_default_graph())


@contextmanager
def op_scope(values: Any, name: str | None, default_name: str | None = None) -> Iterator[str]:
    """``name_scope`` with its older order of arguments.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     with tf.op_scope([], "layer"):
    ...         x = tf.constant(1.0, name="x")
    ...     print(x.name)
    layer/x:0
    """
    with name_scope(name, default_name, values) as scope:
        yield scope


def device(device_name_or_function: Any) -> Any:
    """Inside, operations are for a device: a string such as ``"/cpu:0"``, or a function of an operation.

    The processor is the only device. A run of an operation for another one raises InvalidArgumentError, unless
    ``tf.ConfigProto(allow_soft_placement=True)`` lets the processor stand for it; ValueError for what is no device.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     with tf.device("/cpu:0"):
    ...         x = tf.constant(1.0)
    ...     print(session.run(x))
    1.0
    """
    return get_default_graph().device(device_name_or_function)


def Print(
    input_: Any,
    data: Sequence[Any],
    message: str = "",
    first_n: int = -1,
    summarize: int = 3,
    name: str | None = None,
) -> Any:
    """``input_``; when a run that needs it is done, ``message`` and the values of ``data`` go to standard error.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.Print(tf.constant([1, 2]), [tf.constant(3)], first_n=0)))
    [1 2]
    """
    tensor = convert_to_tensor(input_)
    shown = [convert_to_tensor(item) for item in data]
    made = define("Print", lambda value, *rest: ops.positive(value), (tensor, *shown), {}, name)
    left = [first_n]

    def observe(value: Any, *arrays: Any) -> None:
        if left[0] == 0:
            return
        left[0] -= 1
        print(message + "".join(_summary(array, summarize) for array in arrays), file=sys.stderr)

    made.observe = observe
    return made.outputs[0]


def _summary(array: Any, count: int) -> str:
    """The first elements of an array, all with -1."""
    flat = numpy.asarray(array).ravel()
    inner = " ".join(str(item) for item in (flat if count < 0 else flat[:count]))
    return f"[{inner}{'...' if 0 <= count < flat.size else ''}]"


def Assert(
    condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """An operation that raises InvalidArgumentError with the values of ``data`` unless ``condition`` is true.

    The check is made when the run is done, before any variable changes. Of each value the first ``summarize``
    elements are told (3 unless given, -1: all).

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.constant(3)
    ...     with tf.control_dependencies([tf.Assert(x > 2, [x])]):
    ...         y = x * 2
    ...     print(session.run(y))
    6
    """
    tensor = convert_to_tensor(condition)
    shown = [convert_to_tensor(item) for item in data if not isinstance(item, str)]
    made = define("Assert", lambda value, *rest: ops.positive(value), (tensor, *shown), {}, name)
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


def py_func(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """The results of a Python function of NumPy arrays, called once in each run that needs them.

    What the function reads is computed first, then it is called, then the rest of the graph runs. No derivative
    passes through it, unless ``Graph.gradient_override_map`` names one for ``PyFunc``. Raises GraphError if the
    results do not have the dtypes ``Tout``. ``stateful`` changes nothing. With an empty list of dtypes the operation is
    returned, and the function's result left aside.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.py_func(lambda x: x * 2, [tf.constant([1.0, 2.0])], tf.float32)))
    [2. 4.]
    """
    several = isinstance(Tout, (list, tuple))
    dtypes = [as_dtype(dtype) for dtype in (Tout if several else [Tout])]
    if at_once():
        made_ = call_python(func, [convert_to_tensor(item) for item in inp])
        results = [convert_to_tensor(value, dtype) for value, dtype in zip(made_, dtypes)]
        return (results or None) if several else results[0]
    sources = [_source(item) for item in inp]
    graph = sources[0][0].graph if sources else get_default_graph()
    python = func if dtypes else lambda *arrays: (func(*arrays), [])[1]
    types = [tensor_type(dtype, UNKNOWN_RANK) for dtype in dtypes]
    made = graph.add("PyFunc", name, types, sources, python=python)
    if not dtypes:
        return made
    outputs = with_gradient_of(made)
    return outputs if several else outputs[0]


def _source(value: Any) -> Source:
    found = owner_of(convert_to_tensor(value))
    assert found is not None
    return found


@example(
    "x = tf.constant(1.0)",
    "with tf.colocate_with(x):",
    "    y = x + 1.0",
    "y",
    "2.0",
)
def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """A block that changes nothing: there is one device, so all operations share it already."""
    return nullcontext()


@example("with tf.init_scope():", "    y = tf.constant(2.0)", "y", "2.0")
@contextmanager
def init_scope() -> Iterator[None]:
    """A block whose operations depend on none of the surrounding ``control_dependencies``."""
    with control_dependencies(None):
        yield


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Any = None,
    fn2: Any = None,
) -> Any:
    """What ``true_fn`` or ``false_fn`` declares, whichever ``pred`` chooses in a run; only that one is computed.

    Both functions return the same structure of tensors of the same dtypes; operations count as a number. If one
    writes variables or calls Python, ``pred`` is computed first, in a run of its own.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.constant(3.0)
    ...     print(session.run(tf.cond(x > 2.0, lambda: x * 10, lambda: x)))
    30.0
    """
    true_fn, false_fn = given_once(true_fn=true_fn, fn1=fn1), given_once(false_fn=false_fn, fn2=fn2)
    if true_fn is None or false_fn is None:
        raise TypeError(f"cond: true_fn or false_fn is missing, at {here()}. Give both functions.")
    predicate = convert_to_tensor(pred)
    if predicate.dtype is not bool_:
        raise TypeError(
            f"cond: the predicate {describe(predicate)} is not of bool, at {here()}. Compare it with something."
        )
    result = choose("cond", predicate, (false_fn, true_fn), ("false_fn", "true_fn"), name or "cond")
    return result[0] if isinstance(result, list) and len(result) == 1 and not strict else result


def case(
    pred_fn_pairs: Any,
    default: Any = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """What the function of the first true predicate declares, else ``default`` (without it the last function).

    With ``exclusive`` a run raises InvalidArgumentError if several predicates are true.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.constant(3.0)
    ...     print(session.run(tf.case([(x > 5.0, lambda: x), (x > 2.0, lambda: x * 10)], default=lambda: x * 0)))
    30.0
    """
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    if not pairs:
        if default is None:
            raise ValueError(f"case: no functions, at {here()}. Give pairs of predicate and function.")
        return default()
    controls = []
    if exclusive and len(pairs) > 1:
        truths = stack([convert_to_tensor(predicate) for predicate, _ in pairs])
        alone = define("All", lambda t: ops.sum(t) <= 1, (truths,), {}, None).outputs[0]
        controls = [Assert(alone, ["case: more than one predicate is true:", truths])]
    with control_dependencies(controls):
        return _first_true(pairs, default, strict, name)


def _first_true(pairs: list[Any], default: Any, strict: bool, name: str) -> Any:
    (predicate, function), rest = pairs[0], pairs[1:]
    if not rest and default is None:
        found = function()
        return found[0] if isinstance(found, list) and len(found) == 1 and not strict else found
    return cond(
        predicate,
        function,
        lambda: _first_true(rest, default, True, name) if rest else default(),
        strict,
        name,
    )


def switch_case(branch_index: Any, branch_fns: Any, default: Any = None, name: str = "switch_case") -> Any:
    """What function number ``branch_index`` declares, ``default`` (else the last) for any other number.

    ``branch_fns`` is a list of functions, of pairs ``(number, function)``, or a dict of them.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.switch_case(tf.constant(1), [lambda: tf.constant(10), lambda: tf.constant(20)])))
    20
    """
    index = convert_to_tensor(branch_index)
    items = list(branch_fns.items()) if isinstance(branch_fns, dict) else list(branch_fns)
    pairs = items if items and isinstance(items[0], tuple) else list(enumerate(items))
    pairs.sort(key=lambda pair: pair[0])
    numbers = [int(number) for number, _ in pairs]
    if not pairs or len(set(numbers)) != len(numbers) or index.dtype.kind not in "iu":
        what = f"switch_case: branches {numbers} for an index {describe(index)}"
        raise ValueError(f"{what}, at {here()}. Give an integer and functions with different numbers.")
    functions: list[Any] = [function for _, function in pairs]
    functions += [] if default is None else [default]
    if numbers != list(range(len(numbers))):

        def position(value: Any) -> Any:
            found = ops.full_like(value, len(numbers))
            for k, number in enumerate(numbers):
                found = ops.where(ops.equal(value, number), k, found)
            return found

        index = define("switch_case", position, (index,), {}, None).outputs[0]
    return choose("switch_case", index, functions, [f"branch {k}" for k in range(len(functions))], name)
