"""Functions of analysis, complex numbers, and conversions of whole tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import float64, int32
from twofold.errors import InvalidArgumentError
from twofold.ops.base import normalize_axis, ops
from twofold.runtime.failures import end_at
from twofold.static import array, math
from twofold.static.control import Assert, control_dependencies, group
from twofold.static.define import (
    Alone,
    Dtype,
    Number,
    axis_of,
    convert_to_tensor,
    define,
    full_of,
    limits_of,
    operation,
    sizes,
)
from twofold.static.docstrings import example
from twofold.static.graph import Operation, describe, get_default_graph
from twofold.static.plan import CHECK_NUMERICS
from twofold.static.renamed import renamed
from twofold.static.scopes import VariableScope, variable_scope
from twofold.static.shapes import TensorShape

acosh = renamed("Acosh", "acosh")
asinh = renamed("Asinh", "asinh")
atanh = renamed("Atanh", "atanh")
lgamma = renamed("Lgamma", "lgamma")
digamma = renamed("Digamma", "digamma")
igamma = renamed("Igamma", "igamma", "a x")
igammac = renamed("Igammac", "igammac", "a x")
zeta = renamed("Zeta", "special.zeta", "x q")
complex = renamed("Complex", "complex", "real imag")
conj = renamed("Conj", "conj", "input")
angle = renamed("Angle", "angle", "input")


polygamma = renamed("Polygamma", "polygamma", "a:whole x")


@operation("Real")
@example("tf.real([1 + 2j])", "[1.]")
def real(input: Any) -> Any:
    """The real part; real numbers as they are."""
    return ops.real(input) if input.dtype.kind == "c" else input


@operation("Imag")
@example("tf.imag([1 + 2j])", "[2.]")
def imag(input: Any) -> Any:
    """The imaginary part; zeros for real numbers."""
    return ops.imag(input) if input.dtype.kind == "c" else ops.full_like(input, 0)


bitcast = renamed("Bitcast", "bitcast", "input type:dtype")


@operation("SaturateCast", default="saturate_cast")
@example("tf.saturate_cast([-1.0, 300.0], tf.uint8)", "[  0 255]")
def saturate_cast(value: Alone, dtype: Dtype) -> Any:
    """``value`` in another dtype, limited to what that can hold."""
    low, high = limits_of(dtype)
    first, last = limits_of(value.dtype)
    # the largest float that is not above a limit that it cannot hold itself
    if value.dtype.kind == "f" and dtype.kind != "f":
        wide = ops.cast(value, float64) if value.dtype is not float64 else value
        inside = ops.clamp(wide, float(low), float(high) if high < 2**53 else float(high // 1024 * 1024))
        return ops.cast(inside, dtype)
    return ops.cast(ops.clamp(value, max(low, first), min(high, last)), dtype)


@example("tf.scalar_mul(3.0, [1.0, 2.0])", "[3. 6.]")
def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """``scalar * x``."""
    return math.multiply(scalar, x, name=name)


@operation("Lbeta")
@example("tf.lbeta([1.0, 1.0, 1.0])", "-0.6931472")
def lbeta(x: Any) -> Any:
    """The logarithm of the absolute value of the beta function of the last axis."""
    return ops.subtract(ops.sum(ops.lgamma(x), -1), ops.lgamma(ops.sum(x, -1)))


@operation("CumulativeLogsumexp")
@example("tf.cumulative_logsumexp([0.0, 0.0])", "[0.        0.6931472]")
def cumulative_logsumexp(x: Any, axis: Number = 0, exclusive: Number = False, reverse: Number = False) -> Any:
    """The logarithms of cumulative sums of exponentials along ``axis``."""
    position = normalize_axis(int(axis_of(axis)), x.ndim)
    given = ops.flip(x, (position,)) if reverse else x
    made = ops.logcumsumexp(given, position)
    if exclusive:
        shape = (*x.shape[:position], 1, *x.shape[position + 1 :])
        first = full_of(-float("inf"), shape, x.dtype, x)
        made = ops.concat([first, ops.narrow(made, position, 0, x.shape[position] - 1)], position)
    return ops.flip(made, (position,)) if reverse else made


@example(
    "tf.shape_n([tf.zeros([2, 3]), tf.zeros([4])])", "[array([2, 3], dtype=int32), array([4], dtype=int32)]"
)
def shape_n(input: Any, out_type: Any = int32, name: str | None = None) -> list[Any]:
    """The shapes of several tensors."""
    return [array.shape(value, name, out_type) for value in input]


@example("tf.identity_n([tf.constant(1), tf.constant(2)])", "[np.int32(1), np.int32(2)]")
def identity_n(input: Any, name: str | None = None) -> list[Any]:
    """The tensors themselves, under new names."""
    return [array.identity(value, name=name or "IdentityN") for value in input]


@example('tf.verify_tensor_all_finite([1.0, 2.0], "not finite")', "[1. 2.]")
def verify_tensor_all_finite(t: Any, msg: str, name: str | None = None) -> Any:
    """``t``; a run raises InvalidArgumentError where it holds NaN or infinity."""
    tensor = convert_to_tensor(t)
    with control_dependencies([Assert(math.reduce_all(math.is_finite(tensor)), [msg])]):
        return array.identity(tensor, name=name or "VerifyFinite")


@example('tf.check_numerics([1.0, 2.0], "not finite")', "[1. 2.]")
def check_numerics(tensor: Any, message: str, name: str | None = None) -> Any:
    """``tensor``; a run raises InvalidArgumentError where it holds NaN or infinity."""
    return verify_tensor_all_finite(tensor, message, name or "CheckNumerics")


def add_check_numerics_ops() -> Any:
    """An operation that checks every floating tensor of the graph; a run of it raises where one is not finite.

    Such a run looks for the first value that is not finite as one in ``twofold.detect_anomaly`` does: the error is an
    InvalidArgumentError whose traceback ends at the line that made it of finite values, in the body of a loop or choice
    and in the gradient of a line as well. Infinity that the program gives itself ends at the line of its tensor. What
    stands in bodies is checked as far as it reaches a result.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.constant([1.0, 0.0])
    ...     y = tf.log(x)
    ...     check = tf.add_check_numerics_ops()
    ...     try:
    ...         session.run(check)
    ...     except tf.errors.InvalidArgumentError as error:
    ...         print(str(error)[:66])
    log: the first value that is not finite: -inf at index [1], log(0)
    """
    outside = _outside_of_bodies(get_default_graph().get_operations())
    tensors = [tensor for op in outside for tensor in op.outputs if tensor.dtype.kind in "fc"]
    if not tensors:
        return group()
    made = define(
        CHECK_NUMERICS, lambda value, *rest: ops.positive(value), tuple(tensors), {}, "CheckNumerics"
    )

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


@example("print(tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([3])))", "(2, 3)")
def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape of an element-wise result; raises ValueError for shapes that do not broadcast."""
    one, two = list(reversed(TensorShape(shape_x).as_list())), list(reversed(TensorShape(shape_y).as_list()))
    found: list[int | None] = []
    for k in range(max(len(one), len(two))):
        sizes = [side[k] if k < len(side) else 1 for side in (one, two)]
        known = [size for size in sizes if size not in (None, 1)]
        if len(set(known)) > 1:
            raise ValueError(f"broadcast_static_shape: {shape_x} and {shape_y} do not broadcast.")
        found.append(known[0] if known else None if None in sizes else 1)
    return TensorShape(found[::-1])


@operation("BroadcastArgs")
@example("tf.broadcast_dynamic_shape(tf.constant([2, 1]), tf.constant([3]))", "[2 3]")
def broadcast_dynamic_shape(shape_x: Number, shape_y: Number) -> Any:
    """``broadcast_static_shape`` of shapes that are known when the graph runs."""
    return numpy.array(numpy.broadcast_shapes(sizes(shape_x), sizes(shape_y)), numpy.int32)


@example(
    'scaled = tf.make_template("scaled", lambda x: x * tf.get_variable("w", initializer=2.0))',
    "y = scaled(1.0) + scaled(3.0)",
    "session.run(tf.global_variables_initializer())",
    "y",
    "8.0",
)
def make_template(
    name_: str,
    func_: Any,
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Any:
    """``func_`` in a variable scope of its own: it makes its variables when first called, and shares them then.

    The scope gets its name, ``name_`` made unique or exactly ``unique_name_``, at the first call; with
    ``create_scope_now_`` at once. ``custom_getter_`` is called as that of ``variable_scope``.
    """
    scopes: list[VariableScope] = []
    called = False
    if create_scope_now_:
        with variable_scope(unique_name_, name_, custom_getter=custom_getter_) as made:
            scopes.append(made)

    def template(*args: Any, **more: Any) -> Any:
        nonlocal called
        if scopes:
            with variable_scope(scopes[0], reuse=called):
                found = func_(*args, **{**kwargs, **more})
                called = True
                return found
        with variable_scope(unique_name_, name_, custom_getter=custom_getter_) as made:
            found = func_(*args, **{**kwargs, **more})
        scopes.append(made)
        called = True
        return found

    return template
