"""Checks: of what is known while declaring, at once; of values, when the graph runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from twofold.dtypes import finfo
from twofold.ir.unknown import UNKNOWN_RANK
from twofold.ops.base import ops
from twofold.static.control import Assert, no_op
from twofold.static.define import as_dtype, convert_to_tensor, define
from twofold.static.graph import Operation, Tensor, describe


def _sign(name: str, holds: Callable[[Any], Any], words: str, example: float) -> Callable[..., Operation]:
    def check(
        x: Any, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None
    ) -> Operation:
        tensor = convert_to_tensor(x)
        result = define("All", lambda value: ops.all(holds(value)), (tensor,), {}, None).outputs[0]
        return Assert(
            result, [message or label, *([tensor] if data is None else data)], summarize, name or label
        )

    label = name
    check.__name__ = check.__qualname__ = name
    check.__doc__ = (
        f"An ``Assert`` that all elements are {words}.\n\n"
        "    >>> import twofold.static as tf\n"
        f"    >>> check = tf.{name}({example})\n"
        "    >>> with tf.Session() as session:\n"
        "    ...     session.run(check)"
    )
    return check


assert_positive = _sign("assert_positive", lambda value: ops.greater(value, 0), "above zero", 2.0)
assert_negative = _sign("assert_negative", lambda value: ops.less(value, 0), "below zero", -2.0)
assert_non_negative = _sign(
    "assert_non_negative", lambda value: ops.greater_equal(value, 0), "not below zero", 0.0
)
assert_non_positive = _sign(
    "assert_non_positive", lambda value: ops.less_equal(value, 0), "not above zero", 0.0
)


def _close(a: Any, b: Any, rtol: float, atol: float) -> Any:
    bound = ops.add(ops.multiply(ops.abs(b), rtol), atol)
    return ops.all(ops.less_equal(ops.abs(ops.subtract(a, b)), bound))


def assert_near(
    x: Any,
    y: Any,
    rtol: float | None = None,
    atol: float | None = None,
    data: Any = None,
    summarize: Any = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """An ``Assert`` that ``abs(x - y) <= atol + rtol * abs(y)``; by default ten times ``finfo(x.dtype).eps``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.assert_near([1.0], [1.0000001])))
    None
    """
    a = convert_to_tensor(x)
    b = convert_to_tensor(y, a.dtype)
    step = 10 * finfo(a.dtype).eps
    keywords = {"rtol": step if rtol is None else rtol, "atol": step if atol is None else atol}
    result = define("All", _close, (a, b), keywords, None).outputs[0]
    shown = [a, b] if data is None else list(data)
    return Assert(result, [message or "assert_near", *shown], summarize, name or "assert_near")


def assert_none_equal(
    x: Any,
    y: Any,
    data: Any = None,
    summarize: Any = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """An ``Assert`` that no elements are equal."""
    a = convert_to_tensor(x)
    b = convert_to_tensor(y, a.dtype)
    different = define("All", lambda a, b: ops.all(ops.not_equal(a, b)), (a, b), {}, None)
    shown = [message or "assert_none_equal", *([a, b] if data is None else data)]
    return Assert(different.outputs[0], shown, summarize, name or "assert_none_equal")


def _ranked(
    name: str,
    x: Any,
    rank: Any,
    fits: Callable[[int, int], bool],
    words: str,
    message: str | None,
    data: Any = None,
    summarize: Any = None,
    label: str | None = None,
) -> Operation:
    tensor, wanted = convert_to_tensor(x), int(rank)
    if tensor.type_.shape == UNKNOWN_RANK:
        good = define(name, lambda value: numpy.array(fits(value.ndim, wanted)), (tensor,), {}, None)
        return Assert(good.outputs[0], [message or name, *(data or [])], summarize, label or name)
    if not fits(tensor.type_.ndim, wanted):
        raise ValueError(f"{message or name}: {describe(tensor)} is not of {words} {wanted}. Reshape it.")
    return no_op(label or name)


def assert_rank(
    x: Any,
    rank: Any,
    data: Any = None,
    summarize: Any = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Raise ValueError unless ``x`` has ``rank`` axes; where that is not known yet, a run checks it and shows ``data``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.assert_rank([1.0, 2.0], 1)))
    None
    """
    return _ranked(
        "assert_rank", x, rank, lambda have, want: have == want, "rank", message, data, summarize, name
    )


def assert_rank_at_least(
    x: Any,
    rank: Any,
    data: Any = None,
    summarize: Any = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Raise ValueError unless ``x`` has at least ``rank`` axes.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.assert_rank_at_least([1.0, 2.0], 1)))
    None
    """
    words = "a rank of at least"
    return _ranked(
        "assert_rank_at_least",
        x,
        rank,
        lambda have, want: have >= want,
        words,
        message,
        data,
        summarize,
        name,
    )


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """``tensor``; raises ValueError if it has axes.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.assert_scalar(tf.constant(1.0))))
    1.0
    """
    found = convert_to_tensor(tensor)
    _ranked("assert_scalar", found, 0, lambda have, want: have == want, "rank", message, label=name)
    return found


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Raise TypeError unless ``tensor`` has a dtype.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.assert_type(tf.constant(1.0), tf.float32)))
    None
    """
    found = convert_to_tensor(tensor)
    if found.dtype is not as_dtype(tf_type):
        raise TypeError(
            f"{message or 'assert_type'}: {describe(found)} is not of {as_dtype(tf_type).name}. Cast it."
        )
    return no_op(name or "assert_type")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Raise TypeError unless ``x`` is of an integer dtype.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.assert_integer(tf.constant(1))))
    None
    """
    found = convert_to_tensor(x)
    if found.dtype.kind not in "iu":
        raise TypeError(f"{message or 'assert_integer'}: {describe(found)} is not of integers. Cast it.")
    return no_op(name or "assert_integer")
