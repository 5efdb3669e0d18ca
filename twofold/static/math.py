"""Arithmetic, comparisons, reductions and matrix products under TensorFlow's names.

Thin wrappers: each declares one operation whose body calls the operations of define-by-run.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod as _prod
from typing import Any

from twofold.dtypes import DType, bfloat16, complex64, complex128, float32, float64, int32, int64, string
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.sizes import index
from twofold.ops.axes import given_once
from twofold.ops.base import apply, normalize_axis, ops
from twofold.runtime.tracing import here
from twofold.static.api.aliases import renamed
from twofold.static.api.namespaces import look_up
from twofold.static.api.op_functions import (
    Alone,
    Dtype,
    Number,
    Tensors,
    as_dtype,
    axis_of,
    convert_to_tensor,
    full_of,
    limits_of,
    numbers,
    operation,
    whole,
)
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.graph import describe as _describe
from twofold.static.graph.graph_elements import check_same_dtype as _check_same_dtype
from twofold.static.graph.string_table import holds_strings as _holds_strings
from twofold.static.strings.string_functions import string_join as _string_join

abs = renamed("Abs", "abs")
negative = neg = renamed("Neg", "negative")
sign = renamed("Sign", "sign")
square = renamed("Square", "square")
sqrt = renamed("Sqrt", "sqrt")
rsqrt = renamed("Rsqrt", "rsqrt")
reciprocal = inv = renamed("Reciprocal", "reciprocal")
exp = renamed("Exp", "exp")
expm1 = renamed("Expm1", "expm1")
log = renamed("Log", "log")
log1p = renamed("Log1p", "log1p")
sin = renamed("Sin", "sin")
cos = renamed("Cos", "cos")
tan = renamed("Tan", "tan")
asin = renamed("Asin", "asin")
acos = renamed("Acos", "acos")
atan = renamed("Atan", "atan")
sinh = renamed("Sinh", "sinh")
cosh = renamed("Cosh", "cosh")
tanh = renamed("Tanh", "tanh")
sigmoid = renamed("Sigmoid", "sigmoid")
log_sigmoid = renamed("LogSigmoid", "logsigmoid")
softplus = renamed("Softplus", "softplus", "features")
erf = renamed("Erf", "erf")
erfc = renamed("Erfc", "erfc")
floor = renamed("Floor", "floor")
ceil = renamed("Ceil", "ceil")
round = renamed("Round", "round")
rint = renamed("Rint", "round")
is_nan = renamed("IsNan", "isnan")
is_inf = renamed("IsInf", "isinf")
is_finite = renamed("IsFinite", "isfinite")
logical_not = renamed("LogicalNot", "logical_not")
stop_gradient = renamed("StopGradient", "stop_gradient", "input")

_add = renamed("Add", "add", "x y")
subtract = sub = renamed("Sub", "subtract", "x y")
multiply = mul = renamed("Mul", "multiply", "x y")
realdiv = renamed("RealDiv", "divide", "x y")
floordiv = floor_div = renamed("FloorDiv", "floor_divide", "x y")
floormod = mod = renamed("FloorMod", "remainder", "x y")
truncatediv = renamed("TruncateDiv", "div", "x y", rounding_mode="trunc")
truncatemod = renamed("TruncateMod", "fmod", "x y")
pow = renamed("Pow", "pow", "x y")
atan2 = renamed("Atan2", "atan2", "y x")
equal = renamed("Equal", "equal", "x y")
not_equal = renamed("NotEqual", "not_equal", "x y")
less = renamed("Less", "less", "x y")
less_equal = renamed("LessEqual", "less_equal", "x y")
greater = renamed("Greater", "greater", "x y")
greater_equal = renamed("GreaterEqual", "greater_equal", "x y")
logical_and = renamed("LogicalAnd", "logical_and", "x y")
logical_or = renamed("LogicalOr", "logical_or", "x y")
logical_xor = renamed("LogicalXor", "logical_xor", "x y")


@operation("Maximum")
@example("tf.maximum([1.0, 5.0], [3.0, 2.0])", "[3. 5.]")
def maximum(x: Any, y: Any) -> Any:
    """The larger of the two; NaN if either is. Where they are equal, ``x`` has the gradient."""
    return apply("first_maximum", *_check_same_dtype(x, y))


@operation("Minimum")
@example("tf.minimum([1.0, 5.0], [3.0, 2.0])", "[1. 2.]")
def minimum(x: Any, y: Any) -> Any:
    """The smaller of the two; NaN if either is. Where they are equal, ``x`` has the gradient."""
    return apply("first_minimum", *_check_same_dtype(x, y))


@example(
    'print(session.run(tf.add([1, 2], 3)), session.run(tf.add("Hello", [" you", " World"])))',
    "[4 5] [b'Hello you' b'Hello World']",
)
def add(x: Any, y: Any, name: str | None = None) -> Any:
    """Sum of two tensors; of strings, the first followed by the second."""
    if any(_holds_strings(value) or getattr(value, "dtype", None) is string for value in (x, y)):
        return _string_join([x, y], name=name or "Add")
    return _add(x, y, name=name)


@operation("SquaredDifference")
@example("tf.squared_difference([1.0, 2.0], [4.0, 0.0])", "[9. 4.]")
def squared_difference(x: Any, y: Any) -> Any:
    """``(x - y)`` squared."""
    return ops.square(apply("subtract", *_check_same_dtype(x, y)))


@operation("TrueDiv")
@example("tf.divide([7, -7], [2, 2])", "[ 3.5 -3.5]")
def truediv(x: Any, y: Any) -> Any:
    """Quotient; int32 and int64 become float64 first."""
    values = []
    for value in _check_same_dtype(x, y):
        dtype = getattr(value, "dtype", None)
        whole = dtype is not None and dtype.kind in "iu"
        values.append(ops.cast(value, float64 if dtype in (int32, int64) else float32) if whole else value)
    return apply("divide", *values)


divide = truediv


@operation("Div")
@example("tf.div([7, -7], [2, 2])", "[ 3 -4]")
def div(x: Any, y: Any) -> Any:
    """Quotient; of integers rounded down, as Python 2 did."""
    dtypes = [getattr(value, "dtype", None) for value in _check_same_dtype(x, y)]
    whole = all(
        dtype.kind in "iu" if dtype is not None else isinstance(value, int)
        for dtype, value in zip(dtypes, (x, y))
    )
    return ops.floor_divide(x, y) if whole else apply("divide", x, y)


@operation("DivNoNan")
@example("tf.math.divide_no_nan([1.0, 2.0], [0.0, 4.0])", "[0.  0.5]")
def divide_no_nan(x: Any, y: Any) -> Any:
    """Quotient, 0 where ``y`` is 0."""
    zero = ops.equal(y, 0)
    return ops.where(zero, 0.0, apply("divide", x, ops.where(zero, 1.0, y)))


def _reduction(
    type: str, function: str, doc: str, given: str, result: str, keeps_dtype: bool = False, **fixed: Any
) -> Callable[..., Any]:
    """A reduction by a public function with ``fixed`` arguments; its example is a call with those of ``given``."""

    def body(input_tensor: Any, axis: Number = None, keepdims: Number = None) -> Any:
        found = axis_of(axis)
        axes = tuple(range(input_tensor.ndim)) if found is None else found
        if type == "Mean" and input_tensor.dtype.kind in "iu":
            return _whole_mean(input_tensor, axes, bool(keepdims))
        made = getattr(ops, function)(input_tensor, axes, keepdim=bool(keepdims), **fixed)
        return (
            ops.cast(made, input_tensor.dtype)
            if keeps_dtype and made.dtype is not input_tensor.dtype
            else made
        )

    name = f"reduce_{type.lower()}"
    text = f"{doc} ``axis`` names the axes to reduce (None: all); ``keepdims`` keeps them at size 1."
    described(body, name, text, f"tf.math.{name}({given})", result)
    return operation(type, older={"reduction_indices": "axis", "keep_dims": "keepdims"})(body)


def _whole_mean(x: Any, axes: Any, keepdims: bool) -> Any:
    count = _prod(index(x.shape[axis]) for axis in ((axes,) if isinstance(axes, int) else axes))
    return ops.cast(ops.floor_divide(ops.sum(x, axes, keepdims), max(count, 1)), x.dtype)


reduce_sum = _reduction("Sum", "sum", "Sum.", "[[1, 2], [3, 4]], axis=1", "[3 7]", True)
reduce_prod = _reduction("Prod", "prod", "Product.", "[[1, 2], [3, 4]], axis=0", "[3 8]", True)
reduce_mean = _reduction(
    "Mean", "mean", "Mean; of integers rounded down.", "[[1.0, 2.0], [3.0, 6.0]], axis=1", "[1.5 4.5]"
)
reduce_max = _reduction("Max", "amax", "Largest element.", "[[1, 5], [7, 4]], axis=1", "[5 7]")
reduce_min = _reduction("Min", "amin", "Smallest element.", "[[1, 5], [7, 4]], axis=1", "[1 4]")
reduce_all = _reduction(
    "All", "all", "Whether all elements are true.", "[[True, True], [True, False]], axis=1", "[ True False]"
)
reduce_any = _reduction(
    "Any", "any", "Whether an element is true.", "[[True, False], [False, False]], axis=1", "[ True False]"
)
reduce_logsumexp = _reduction("LogSumExp", "logsumexp", "log(sum(exp(x))).", "[1000.0, 1000.0]", "1000.6932")
reduce_variance = _reduction("Variance", "var", "Variance.", "[1.0, 2.0, 3.0, 6.0]", "3.5", correction=0)
reduce_std = _reduction("Std", "std", "Standard deviation.", "[1.0, 3.0]", "1.0", correction=0)


def _extreme(type: str, adjective: str, result: str) -> Callable[..., Any]:
    own = type.lower()

    def body(input: Any, axis: Number = None, dimension: Number = None, output_type: Dtype = int64) -> Any:
        along = given_once(dimension=dimension, axis=axis)
        return ops.cast(getattr(ops, own)(input, 0 if along is None else axis_of(along)), output_type)

    text = f"Number of the {adjective} element along ``axis`` (0 unless given)."
    described(body, own, text, f"tf.{own}([[1, 5], [7, 4]], axis=1)", result)
    return operation(type, name_at=2)(body)


argmax = arg_max = _extreme("ArgMax", "largest", "[1 0]")
argmin = arg_min = _extreme("ArgMin", "smallest", "[0 1]")


def _transposed(matrix: Any, transpose: bool, adjoint: bool) -> Any:
    if transpose or adjoint:
        matrix = ops.transpose(matrix, -2, -1)
    return ops.conj(matrix) if adjoint and matrix.dtype.kind == "c" else matrix


@operation("MatMul")
@example("tf.matmul([[1.0, 2.0]], [[3.0, 4.0]], transpose_b=True)", "[[11.]]")
def matmul(
    a: Any,
    b: Any,
    transpose_a: Number = False,
    transpose_b: Number = False,
    adjoint_a: Number = False,
    adjoint_b: Number = False,
    a_is_sparse: Number = False,
    b_is_sparse: Number = False,
) -> Any:
    """Matrix product of the last two axes, after transposing either operand, and conjugating it for an adjoint.

    ``a_is_sparse`` and ``b_is_sparse`` change nothing.
    """
    if a.ndim < 2 or b.ndim < 2:
        raise ArgumentError(
            f"operands of {a.ndim} and {b.ndim} axes", "Give matrices; tf.expand_dims adds an axis."
        )
    _check_same_dtype(a, b)
    return ops.matmul(_transposed(a, transpose_a, adjoint_a), _transposed(b, transpose_b, adjoint_b))


@example("tf.batch_matmul([[[1.0, 2.0]]], [[[3.0], [4.0]]])", "[[[11.]]]")
def batch_matmul(x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None) -> Any:
    """``matmul`` under its older name."""
    return matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


@operation("Tensordot")
@example("tf.tensordot([[1.0, 2.0]], [[3.0], [4.0]], 1)", "[[11.]]")
def tensordot(a: Any, b: Any, axes: Number) -> Any:
    """Sum of products over ``axes``: a number of trailing and leading axes, or two lists of axes."""
    found = numbers(axes)
    if isinstance(found, list) and isinstance(found[0], int):
        found = [[found[0]], [found[1]]]
    return ops.tensordot(a, b, found)


@example('tf.einsum("ij,jk->ik", [[1.0, 2.0]], [[3.0], [4.0]])', "[[11.]]")
def einsum(equation: str, *inputs: Any, name: str | None = None) -> Any:
    """Sums of products by Einstein's notation."""
    return _einsum(list(inputs), equation, name=name)


@operation("Einsum")
def _einsum(inputs: Tensors, equation: Number) -> Any:
    return ops.einsum(equation, *inputs)


@operation("AddN")
@example("tf.add_n([tf.constant([1, 2]), tf.constant([10, 20])])", "[11 22]")
def add_n(inputs: Tensors) -> Any:
    """Sum of a list of tensors."""
    total, *rest = _check_same_dtype(*inputs)
    for value in rest:
        if tuple(value.shape) != tuple(total.shape):
            what = f"a tensor of shape {tuple(value.shape)} beside {tuple(total.shape)}"
            raise ShapeError(what, "Give tensors of one shape, or add them with +, which broadcasts.")
        total = apply("add", total, value)
    return total


@example("tf.accumulate_n([tf.constant([1, 2]), tf.constant([10, 20])])", "[11 22]")
def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Any:
    """Sum of a list of tensors, which are checked to be of ``shape`` and ``tensor_dtype`` if these are given."""
    for value in map(convert_to_tensor, inputs):
        if not value.get_shape().is_compatible_with(shape):
            raise ValueError(f"accumulate_n: {_describe(value)} is not of shape {shape}, at {here()}.")
        if tensor_dtype is not None and value.dtype is not as_dtype(tensor_dtype):
            raise TypeError(f"accumulate_n: {_describe(value)} is not of {tensor_dtype}, at {here()}.")
    return add_n(inputs, name=name)


def _cumulative(type: str, first: str, noun: str, result: str) -> Callable[..., Any]:
    own = type.lower()

    def body(x: Any, axis: Number = 0, exclusive: Number = False, reverse: Number = False) -> Any:
        along = whole(axis)
        value = ops.flip(x, along) if reverse else x
        made = getattr(ops, own)(value, along, dtype=x.dtype)
        size = value.shape[along]
        if exclusive and size:
            start, rest = ops.narrow(value, along, 0, 1), ops.narrow(made, along, 0, size - 1)
            made = ops.cat([getattr(ops, first)(start), rest], along)
        return ops.flip(made, along) if reverse else made

    text = f"Running {noun} along ``axis``; ``exclusive`` leaves out the element itself."
    return operation(type)(described(body, own, text, f"tf.{own}([1, 2, 3, 4])", result))


cumsum = _cumulative("Cumsum", "zeros_like", "sums", "[ 1  3  6 10]")
cumprod = _cumulative("Cumprod", "ones_like", "products", "[ 1  2  6 24]")


_cast = renamed("Cast", "cast", "x dtype:dtype")


@example("tf.cast([1.7, -1.7], tf.int32)", "[ 1 -1]")
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """``x`` with elements of ``dtype``; a tensor that has it already is returned as it is."""
    wanted = as_dtype(dtype)
    value = x if hasattr(x, "with_values") else convert_to_tensor(x)
    return value if getattr(value, "dtype", None) is wanted else _cast(x, wanted, name)


def _cast_to(dtype: DType, title: str) -> Callable[..., Any]:
    """``cast`` to one dtype; ``title`` names its operations, and in lower case the function."""
    own = "to_" + title.removeprefix("To").lower()

    def function(x: Any, name: str = title) -> Any:
        return cast(x, dtype, name)

    return described(
        function,
        own,
        f"``x`` as {dtype.name}.",
        f"print(tf.{own}([1.0, 2.0]).dtype)",
        f"twofold.{dtype.name}",
    )


to_float, to_double = _cast_to(float32, "ToFloat"), _cast_to(float64, "ToDouble")
to_int32, to_int64 = _cast_to(int32, "ToInt32"), _cast_to(int64, "ToInt64")
to_complex64, to_complex128 = _cast_to(complex64, "ToComplex64"), _cast_to(complex128, "ToComplex128")
to_bfloat16 = _cast_to(bfloat16, "ToBFloat16")


@operation("LinSpace")
@example("tf.linspace(0.0, 1.0, 5)", "[0.   0.25 0.5  0.75 1.  ]")
def linspace(start: Number, stop: Number, num: Number) -> Any:
    """``num`` evenly spaced numbers, both ends included."""
    return ops.linspace(float(numbers(start)), float(numbers(stop)), whole(num))


lin_space = linspace


@operation("Trace")
@example("tf.trace([[1.0, 2.0], [3.0, 4.0]])", "5.0")
def trace(x: Any) -> Any:
    """Sum of the diagonal of each matrix."""
    return ops.sum(ops.diagonal(x, 0, -2, -1), -1, dtype=x.dtype)


@operation("Cross")
@example("tf.cross([1, 0, 0], [0, 1, 0])", "[0 0 1]")
def cross(a: Any, b: Any) -> Any:
    """Cross product of vectors of three elements on the last axis."""
    left = [ops.roll(value, shift, -1) for value in (a, b) for shift in (-1, -2)]
    return apply("subtract", apply("multiply", left[0], left[3]), apply("multiply", left[1], left[2]))


acosh = renamed("Acosh", "acosh")
asinh = renamed("Asinh", "asinh")
atanh = renamed("Atanh", "atanh")
lgamma = renamed("Lgamma", "lgamma")
digamma = renamed("Digamma", "digamma")
igamma = renamed("Igamma", "igamma", "a x")
igammac = renamed("Igammac", "igammac", "a x")
zeta = renamed("Zeta", "special.zeta", "x q")
complex = renamed("Complex", "complex", "real imag")
conj = renamed("Conj", "conj", "x")
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
    return multiply(scalar, x, name=name)


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


__getattr__, __dir__ = look_up(__name__)
