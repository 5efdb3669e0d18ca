"""Checks: of what is known while declaring, at once; of values, when the graph runs: ``tf.debugging``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import finfo, string
from twofold.errors import InvalidArgumentError
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ops.axes import given_once
from twofold.ops.base import ops
from twofold.runtime.failures import end_at
from twofold.static import math
from twofold.static.api.namespaces import look_up
from twofold.static.api.op_functions import (
    as_dtype,
    as_tensor,
    convert_to_tensor,
    define,
    is_tensor_like,
    operation,
)
from twofold.static.api.signatures import REQUIRED, with_parameters
from twofold.static.arrays import shape_ops
from twofold.static.control_flow.dependencies import group, no_op
from twofold.static.functions.host_calls import Assert
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.graph import Operation, Tensor, describe, get_default_graph
from twofold.static.graph.graph_elements import check_same_dtype
from twofold.static.graph.scopes import control_dependencies, name_scope
from twofold.static.session.cached_run import CHECK_NUMERICS

_SHOWN = {"data": None, "summarize": None, "message": None, "name": None}


def _assertion(
    own: str, holds: Callable[..., Any], text: str, given: str, **more: Any
) -> Callable[..., Operation]:
    """An ``Assert`` that ``holds`` of all elements of the tensors that are its parameters, beside those of ``more``.

    ``given`` are the arguments of its example.
    """
    operands = [one for one in inspect.signature(holds).parameters if one not in more]

    def check(data: Any, summarize: Any, message: str | None, name: str | None, **values: Any) -> Operation:
        with name_scope(name or own):
            tensors = [convert_to_tensor(values.pop(operands[0]))]
            floating = tensors[0].dtype if tensors[0].dtype.kind == "f" else None
            for value in [values.pop(one) for one in operands[1:]]:
                kept = isinstance(value, (int, float)) or is_tensor_like(value)
                tensors.append(as_tensor(value) if kept else convert_to_tensor(value, floating))
            made = define(
                "All", lambda *a, **b: ops.all(holds(*check_same_dtype(*a), **b)), tensors, values, None
            )
            shown = [one for one in tensors if isinstance(one, Tensor)] if data is None else list(data)
            return Assert(made.outputs[0], [message or own, *shown], summarize)

    made = with_parameters(check, {**dict.fromkeys(operands, REQUIRED), **more, **_SHOWN})
    return described(made, own, f"An ``Assert`` that {text}.", f"tf.{own}({given})", "None")


def _compared(own: str, function: str, given: str) -> Callable[..., Operation]:
    text = f"{own.removeprefix('assert_').replace('_', ' ')} holds for all elements"
    return _assertion(own, lambda x, y: getattr(ops, function)(x, y), text, given)


assert_equal = _compared("assert_equal", "equal", "[1, 2], [1, 2]")
assert_less = _compared("assert_less", "less", "[1, 2], 3")
assert_less_equal = _compared("assert_less_equal", "less_equal", "[1, 2], 2")
assert_greater = _compared("assert_greater", "greater", "[1, 2], 0")
assert_greater_equal = _compared("assert_greater_equal", "greater_equal", "[1, 2], 1")
assert_none_equal = _assertion(
    "assert_none_equal", lambda x, y: ops.not_equal(x, y), "no elements are equal", "[1, 2], [2, 1]"
)


def _sign(own: str, function: str, words: str, given: str) -> Callable[..., Operation]:
    return _assertion(own, lambda x: getattr(ops, function)(x, 0), f"all elements are {words}", given)


assert_positive = _sign("assert_positive", "greater", "above zero", "2.0")
assert_negative = _sign("assert_negative", "less", "below zero", "-2.0")
assert_non_negative = _sign("assert_non_negative", "greater_equal", "not below zero", "0.0")
assert_non_positive = _sign("assert_non_positive", "less_equal", "not above zero", "0.0")


def _near(x: Any, y: Any, rtol: float | None, atol: float | None) -> Any:
    default = 10 * finfo(x.dtype).eps
    relative, absolute = (default if given is None else given for given in (rtol, atol))
    bound = ops.add(ops.multiply(ops.abs(y), relative), absolute)
    return ops.less_equal(ops.abs(ops.subtract(x, y)), bound)


def _rising(own: str, comparison: str, words: str) -> Callable[..., Any]:
    """Whether each element, in the order of the flattened tensor, is ``comparison`` of the one behind it."""

    def body(x: Any) -> Any:
        flat = ops.reshape(x, (-1,))
        count = flat.shape[0]
        if count < 2:
            return ops.all(ops.equal(ops.narrow(flat, 0, 0, 0), 0))
        before, behind = ops.narrow(flat, 0, 0, count - 1), ops.narrow(flat, 0, 1, count - 1)
        return ops.all(getattr(ops, comparison)(before, behind))

    text = f"Whether the elements are {words} one after the other."
    return operation(own)(described(body, own, text, f"tf.{own}([1, 2, 2])", str(comparison == "less_equal")))


is_non_decreasing = _rising("is_non_decreasing", "less_equal", "no smaller")
is_strictly_increasing = _rising("is_strictly_increasing", "less", "larger")


@example("print(tf.is_numeric_tensor(tf.constant(1.0)))", "True")
def is_numeric_tensor(tensor: Any) -> bool:
    """Whether a value is a tensor of numbers: not of strings, not of booleans."""
    found = as_tensor(tensor)
    return isinstance(found, Tensor) and found.dtype is not string and found.dtype.kind in "iufc"


assert_near = _assertion(
    "assert_near",
    _near,
    "``abs(x - y) <= atol + rtol * abs(y)``; by default both are ten times ``finfo(x.dtype).eps``",
    "[1.0], [1.0000001]",
    rtol=None,
    atol=None,
)


def _ranked(own: str, fits: Callable[[int, int], bool], words: str) -> Callable[..., Operation]:
    """What raises ValueError, or makes a run raise where it is not known yet, unless a rank ``fits`` another."""

    def check(
        x: Any,
        rank: Any,
        data: Any = None,
        summarize: Any = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        tensor, wanted = convert_to_tensor(x), int(rank)
        if tensor.type_.shape == UNKNOWN_RANK:
            good = define(own, lambda value: numpy.array(fits(value.ndim, wanted)), (tensor,), {}, None)
            return Assert(good.outputs[0], [message or own, *(data or [])], summarize, name or own)
        if not fits(tensor.type_.ndim, wanted):
            raise ValueError(f"{message or own}: {describe(tensor)} is not of {words} {wanted}. Reshape it.")
        return no_op(name or own)

    text = "where that is not known yet, a run checks and shows ``data``."
    return described(
        check,
        own,
        f"Raise ValueError unless ``x`` is of {words} ``rank``; {text}",
        f"tf.{own}([1.0, 2.0], 1)",
        "None",
    )


assert_rank = _ranked("assert_rank", lambda have, want: have == want, "rank")
assert_rank_at_least = _ranked("assert_rank_at_least", lambda have, want: have >= want, "a rank of at least")


@example("tf.assert_rank_in([1.0, 2.0], [1, 2])", "None")
def assert_rank_in(
    x: Any,
    ranks: Sequence[int],
    data: Any = None,
    summarize: Any = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Raise ValueError unless ``x`` has one of the ``ranks``; where that is not known yet, a run checks it."""
    tensor, wanted = convert_to_tensor(x), [int(rank) for rank in ranks]
    words = message or "assert_rank_in"
    if tensor.type_.shape == UNKNOWN_RANK:
        good = define("assert_rank_in", lambda value: numpy.array(value.ndim in wanted), (tensor,), {}, None)
        return Assert(good.outputs[0], [words, *(data or [])], summarize, name or "assert_rank_in")
    if tensor.type_.ndim not in wanted:
        raise ValueError(f"{words}: {describe(tensor)} is of none of the ranks {wanted}. Reshape it.")
    return no_op(name or "assert_rank_in")


@example("print(tf.assert_proper_iterable([1, 2]))", "None")
def assert_proper_iterable(values: Any) -> None:
    """Raise TypeError unless ``values`` is iterable, and neither a tensor, an array nor a string."""
    wrong = isinstance(values, (str, bytes, numpy.ndarray)) or is_tensor_like(values)
    if wrong or not hasattr(values, "__iter__"):
        what = f"assert_proper_iterable: a value of type {type(values).__name__}"
        raise TypeError(f"{what} where a list of values is needed. Put it in a list.")


@example("tf.assert_scalar(tf.constant(1.0))", "1.0")
def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """``tensor``; raises ValueError if it has axes."""
    found = convert_to_tensor(tensor)
    assert_rank(found, 0, message=message or "assert_scalar", name=name or "assert_scalar")
    return found


@example("tf.assert_type(tf.constant(1.0), tf.float32)", "None")
def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Raise TypeError unless ``tensor`` has a dtype."""
    found = convert_to_tensor(tensor)
    if found.dtype is not as_dtype(tf_type):
        raise TypeError(
            f"{message or 'assert_type'}: {describe(found)} is not of {as_dtype(tf_type).name}. Cast it."
        )
    return no_op(name or "assert_type")


@example("tf.assert_integer(tf.constant(1))", "None")
def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Raise TypeError unless ``x`` is of an integer dtype."""
    found = convert_to_tensor(x)
    if found.dtype.kind not in "iu":
        raise TypeError(f"{message or 'assert_integer'}: {describe(found)} is not of integers. Cast it.")
    return no_op(name or "assert_integer")


@example('tf.verify_tensor_all_finite([1.0, 2.0], "not finite")', "[1. 2.]")
def verify_tensor_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None, message: str | None = None
) -> Any:
    """``t``; a run raises InvalidArgumentError where it holds NaN or infinity.

    ``x`` and ``message`` are later names of ``t`` and ``msg``.
    """
    tensor = convert_to_tensor(given_once(t=t, x=x))
    what = f"{given_once(msg=msg, message=message)} : Tensor {describe(tensor)} had Inf or NaN values"
    with control_dependencies([Assert(math.reduce_all(math.is_finite(tensor)), [what])]):
        return shape_ops.identity(tensor, name=name or "VerifyFinite")


@example('tf.check_numerics([1.0, 2.0], "not finite")', "[1. 2.]")
def check_numerics(tensor: Any, message: str, name: str | None = None) -> Any:
    """``tensor``; a run raises InvalidArgumentError where it holds NaN or infinity."""
    return verify_tensor_all_finite(tensor, message, name or "CheckNumerics")


@example(
    "x = tf.constant([1.0, 0.0])",
    "y = tf.log(x)",
    "check = tf.add_check_numerics_ops()",
    "try:",
    "    session.run(check)",
    "except tf.errors.InvalidArgumentError as error:",
    "    print(str(error)[:66])",
    "log: the first value that is not finite: -inf at index [1], log(0)",
)
def add_check_numerics_ops() -> Any:
    """An operation that checks every floating tensor of the graph; a run of it raises where one is not finite.

    Such a run looks for the first value that is not finite as one in ``twofold.detect_anomaly`` does: the error is an
    InvalidArgumentError whose traceback ends at the line that made it of finite values, in the body of a loop or choice
    and in the gradient of a line as well. Infinity that the program gives itself ends at the line of its tensor. What
    stands in bodies is checked as far as it reaches a result. Operations that write to variables, such as initializers,
    are left out, as a check would run them: what a run writes is checked where that runs them.
    """
    outside = _outside_of_bodies(get_default_graph().get_operations())
    tensors = [
        tensor for op in outside if not op.updates for tensor in op.outputs if tensor.dtype.kind in "fc"
    ]
    if not tensors:
        return group()
    made = define(CHECK_NUMERICS, lambda value, *rest: ops.copied(value), tuple(tensors), {}, "CheckNumerics")

    def observe(*arrays: Any) -> None:
        for tensor, value in zip(tensors, arrays):
            if not numpy.isfinite(value).all():
                what = f"check_numerics: {describe(tensor)} is not finite"
                raise end_at(
                    InvalidArgumentError(what, "Keep its operands in range."), _core.location_of(tensor)
                )

    made.observe = observe
    return group(made)


def _outside_of_bodies(operations: Sequence[Operation]) -> list[Operation]:
    """Those that do not stand in the body of a loop or choice, which has a name scope of its own."""
    scopes = {op: op.name.rpartition("/")[0] + "/" for op in operations if op.branches or op.flow is not None}
    return [
        op
        for op in operations
        if not any(op.name.startswith(scope) and scopes.get(op) != scope for scope in scopes.values())
    ]


__getattr__, __dir__ = look_up(__name__)
