"""Values and choices that are known when a graph is declared: ``tensor_util`` and ``layers.utils``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from twofold.dtypes import string
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import convert_to_tensor, is_tensor_like
from twofold.static.control_flow.conditional import cond
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.string_table import decode
from twofold.static.graph_util import make_ndarray as make_ndarray
from twofold.static.graph_util import make_tensor_proto as make_tensor_proto


@example("print(tf.contrib.util.constant_value(tf.shape(tf.zeros([2, 3]))))", "[2 3]")
def constant_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a constant, or of a shape that is known, as an array; None where it is only known in a run.

    With ``partial`` a stack of values of which some are known is an array with None for the others.
    """
    value = convert_to_tensor(tensor)
    if at_once():
        return value.numpy()
    operation = value.op
    if operation.constant is not None:
        found = operation.constant.detach().numpy()
        return decode(found) if value.dtype is string else found
    if operation.type in ("Shape", "Size", "Rank"):
        shape = operation.inputs[0].get_shape()
        if operation.type == "Rank":
            return None if shape.ndims is None else value.dtype.numpy.type(shape.ndims)
        if not shape.is_fully_defined():
            return None
        sizes = numpy.array(shape.as_list(), value.dtype.numpy)
        return sizes if operation.type == "Shape" else sizes.prod(dtype=value.dtype.numpy)
    if operation.type in ("Pack", "Identity", "Cast"):
        parts = [constant_value(one) for one in operation.inputs]
        if operation.type != "Pack":
            return None if parts[0] is None else parts[0].astype(value.dtype.numpy)
        if all(one is not None for one in parts):
            return numpy.stack(parts) if operation.inputs[0].get_shape().ndims else numpy.array(parts)
        return numpy.array(parts, object) if partial else None
    return None


def smart_constant_value(pred: Any) -> Any:
    """Whether a condition is true, or None where that is only known in a run."""
    if isinstance(pred, (bool, numpy.bool_)) or (isinstance(pred, int) and pred in (0, 1)):
        return bool(pred)
    if not is_tensor_like(pred):
        raise TypeError(f"smart_cond: pred is {pred!r}, at {here()}. Give a boolean or a tensor.")
    found = constant_value(pred)
    return None if found is None else bool(found)


constant_pred = smart_constant_value


@example("tf.contrib.framework.smart_cond(True, lambda: tf.constant(1), lambda: tf.constant(2))", "1")
def smart_cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """``tf.cond`` that declares one branch alone where the condition is known already."""
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError(
            f"smart_cond: true_fn and false_fn must be callable, at {here()}. Give two functions."
        )
    known = smart_constant_value(pred)
    if known is None:
        return cond(pred, true_fn=true_fn, false_fn=false_fn, name=name)
    return true_fn() if known else false_fn()
