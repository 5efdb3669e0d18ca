"""Special functions, and those that give 0 where others have no value: names of ``tf.math``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.ops.base import apply, ops
from twofold.static.api.aliases import renamed
from twofold.static.api.op_functions import Number, axis_of, convert_to_tensor, operation
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph_elements import check_same_dtype as _check_same_dtype
from twofold.static.graph.scopes import name_scope

erfinv = renamed("Erfinv", "erfinv")
ndtri = renamed("Ndtri", "special.ndtri")
bessel_i0 = renamed("BesselI0", "special.i0")
bessel_i0e = renamed("BesselI0e", "special.i0e")
bessel_i1 = renamed("BesselI1", "special.i1")
bessel_i1e = renamed("BesselI1e", "special.i1e")
nextafter = renamed("NextAfter", "nextafter", "x1 x2")


def _zero_where_zero(one: Any, value: Any) -> Any:
    """``value`` where ``one`` is not 0, and 0 elsewhere, in its derivatives, too."""
    return ops.where(ops.equal(one, 0), ops.zeros_like(value), value)


@operation("Xdivy")
@example("tf.math.xdivy([0.0, 1.0], [0.0, 2.0])", "[0.  0.5]")
def xdivy(x: Any, y: Any) -> Any:
    """``x / y``, and 0 where ``x`` is 0."""
    return _zero_where_zero(x, ops.divide(x, ops.where(ops.equal(x, 0), ops.ones_like(y), y)))


@operation("Xlogy")
@example("tf.math.xlogy([0.0, 2.0], [0.0, 1.0])", "[0. 0.]")
def xlogy(x: Any, y: Any) -> Any:
    """``x * log(y)``, and 0 where ``x`` is 0, in its derivatives, too."""
    x, y = _check_same_dtype(x, y)
    return ops.xlogy(x, ops.where(ops.equal(x, 0), 1, y))


@operation("Xlog1py")
@example("tf.math.xlog1py([0.0, 2.0], [-1.0, 0.0])", "[0. 0.]")
def xlog1py(x: Any, y: Any) -> Any:
    """``x * log(1 + y)``, and 0 where ``x`` is 0, in its derivatives, too."""
    x, y = _check_same_dtype(x, y)
    return apply("xlog1py", x, ops.where(ops.equal(x, 0), 0, y))


@operation("MulNoNan")
@example("tf.math.multiply_no_nan([float('inf'), 3.0], [0.0, 2.0])", "[0. 6.]")
def multiply_no_nan(x: Any, y: Any) -> Any:
    """``x * y``, and 0 where ``y`` is 0, whatever ``x`` is."""
    return _zero_where_zero(y, ops.multiply(ops.where(ops.equal(y, 0), ops.zeros_like(x), x), y))


@operation("ReciprocalNoNan")
@example("tf.math.reciprocal_no_nan([0.0, 2.0])", "[0.  0.5]")
def reciprocal_no_nan(x: Any) -> Any:
    """``1 / x``, and 0 where ``x`` is 0."""
    return _zero_where_zero(x, ops.reciprocal(ops.where(ops.equal(x, 0), ops.ones_like(x), x)))


@operation("EuclideanNorm", name_at=3)
@example("tf.math.reduce_euclidean_norm([[3.0, 4.0], [6.0, 8.0]], 1)", "[ 5. 10.]")
def reduce_euclidean_norm(input_tensor: Any, axis: Number = None, keepdims: Number = False) -> Any:
    """The roots of the sums of squares along axes, or of all elements."""
    dim = axis_of(axis)
    squares = ops.square(ops.abs(input_tensor))
    total = (
        ops.sum(squares)
        if dim is None and not keepdims
        else ops.sum(squares, _axes(squares, dim), bool(keepdims))
    )
    return ops.sqrt(total)


def _axes(value: Any, dim: Any) -> Any:
    return tuple(range(value.ndim)) if dim is None else dim


@example("tf.math.polyval([1.0, 2.0, 3.0], tf.constant(2.0))", "11.0")
def polyval(coeffs: Sequence[Any], x: Any, name: str | None = None) -> Any:
    """The polynomial in ``x`` of these coefficients, that of the highest power first."""
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type found {type(coeffs)}.")
    with name_scope(name, "polyval"):
        value = convert_to_tensor(x)
        if not coeffs:
            return value * 0
        total = convert_to_tensor(coeffs[0], value.dtype)
        for coefficient in coeffs[1:]:
            total = coefficient + total * value
        return total
