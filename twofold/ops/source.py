"""Values from nothing: constants, inputs of graphs, element numbers, filled tensors and ranges."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, as_dtype, bool_, complex64, complex128, float32, float64, int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.node import Attributes, Node
from twofold.ir.op import ConstantOp, InputOp
from twofold.ir.sizes import maximum, real
from twofold.ir.types import Shape, TensorType
from twofold.ops.base import Source, apply, broadcast, composite, convert, filled, ops, source, whole_number
from twofold.ops.base import iota as iota_node
from twofold.ops.promotion import need_fitting
from twofold.ops.samples import Sample


@source
class constant(Source, ConstantOp):
    """A 0-d value written into the graph."""

    functions = ()

    def materialize(self, attrs: Attributes, type: TensorType) -> Any:
        """The value."""
        return numpy.asarray(attrs[0])


@source
class input(Source, InputOp):
    """The input of a closed graph with this number."""

    functions = ()


@source
class iota(Source):
    """The flat row-major number of each element, int64; as a call the attribute is the shape."""

    functions = ()

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The node, whose shape is that of its type."""
        return iota_node(attrs[0])

    def materialize(self, attrs: Attributes, type: TensorType) -> Any:
        """The numbers in order."""
        return numpy.arange(type.size).reshape(type.shape)

    @staticmethod
    def samples() -> Sequence[Any]:
        """Some shapes."""
        return [Sample((shape,), (), ()) for shape in ((), (5,), (2, 3), (0, 4))]


def shape_of(size: Sequence[Any]) -> Shape:
    """A shape from ``(2, 3)`` or ``((2, 3),)``; raises ShapeError for a negative size."""
    if len(size) == 1 and not isinstance(size[0], int):
        several = hasattr(size[0], "__iter__") and getattr(size[0], "shape", None) != ()
        size = tuple(size[0]) if several else size
    for length in size:
        if type(length) is not int or length < 0:
            break
    else:
        return tuple(size)
    shape = tuple(whole_number(length, "a size") for length in size)
    if any(length < 0 for length in shape):
        raise ShapeError(f"a size is negative in {shape}", "Sizes start at 0.")
    return shape


def dtype_of_scalar(value: Any) -> DType:
    """The default dtype of a Python scalar, or the dtype of a tensor."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    return complex64 if isinstance(value, complex) else getattr(value, "dtype", float32)


_SHAPES: tuple[Shape, ...] = ((), (5,), (2, 3), (0, 4))


def _call(attrs: Attributes, *values: Any) -> Sample:
    """A sample with float64 or int64 operands."""
    arrays = tuple(numpy.asarray(value) for value in values)
    return Sample(attrs, arrays, tuple(as_dtype(array.dtype) for array in arrays), smooth=False)


@composite
class full:
    """A tensor of shape ``size`` whose every element is ``fill_value``.

    >>> import twofold as torch
    >>> torch.full((2,), 7)
    tensor([7, 7])
    """

    creates = "value"
    signature = "fill_value"
    samples = lambda: [_call((shape, dtype), 2.5) for shape in _SHAPES for dtype in (float32, float64, int64)]
    compute = lambda value, shape, dtype: broadcast(convert(value, dtype), shape)

    @staticmethod
    def call(size: Any, fill_value: Any, *, dtype: Any = None) -> Any:
        if math.prod(getattr(fill_value, "shape", ())) != 1:
            raise ArgumentError(
                f"a value of shape {tuple(fill_value.shape)}", "Give one number to fill with."
            )
        found = dtype_of_scalar(fill_value) if dtype is None else as_dtype(dtype)
        need_fitting(fill_value, found)
        return apply("full", fill_value, attrs=(shape_of((size,)), found))


@composite
class zeros:
    """A tensor of zeros.

    >>> import twofold as torch
    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """

    creates = "default"
    samples = lambda: [_call((shape, dtype)) for shape in _SHAPES for dtype in (float32, int64, bool_)]
    compute = lambda shape, dtype: filled(0, dtype, shape)

    @staticmethod
    def call(*size: Any, dtype: Any = float32) -> Any:
        return apply("zeros", attrs=(shape_of(size), as_dtype(dtype or float32)))


@composite
class ones:
    """A tensor of ones.

    >>> import twofold as torch
    >>> torch.ones(2, dtype=torch.int64)
    tensor([1, 1])
    """

    creates = "default"
    samples = lambda: [_call((shape, dtype)) for shape in _SHAPES for dtype in (float32, int64, bool_)]
    compute = lambda shape, dtype: filled(1, dtype, shape)

    @staticmethod
    def call(*size: Any, dtype: Any = float32) -> Any:
        return apply("ones", attrs=(shape_of(size), as_dtype(dtype or float32)))


@composite
class zeros_like:
    """Zeros with the shape and, unless given, the dtype of ``input``.

    >>> import twofold as torch
    >>> torch.zeros_like(torch.tensor([1, 2]))
    tensor([0, 0])
    """

    creates = "value"
    differentiable = False
    functions = ("zeros_like", "empty_like")
    signature = "input"
    samples = lambda: [_call((dtype,), numpy.ones(shape)) for shape in _SHAPES for dtype in (float32, int64)]
    compute = lambda x, dtype: filled(0, dtype, x.shape)

    @staticmethod
    def call(input: Any, *, dtype: Any = None) -> Any:
        return apply("zeros_like", input, attrs=(input.dtype if dtype is None else as_dtype(dtype),))


@composite
class ones_like:
    """Ones with the shape and, unless given, the dtype of ``input``.

    >>> import twofold as torch
    >>> torch.ones_like(torch.tensor([3.0, 4.0]))
    tensor([1., 1.])
    """

    creates = "value"
    differentiable = False
    signature = "input"
    samples = lambda: [_call((dtype,), numpy.ones(shape)) for shape in _SHAPES for dtype in (float32, int64)]
    compute = lambda x, dtype: filled(1, dtype, x.shape)

    @staticmethod
    def call(input: Any, *, dtype: Any = None) -> Any:
        return apply("ones_like", input, attrs=(input.dtype if dtype is None else as_dtype(dtype),))


@composite
class full_like:
    """``fill_value`` everywhere, with the shape and, unless given, the dtype of ``input``.

    >>> import twofold as torch
    >>> torch.full_like(torch.tensor([1.0, 2.0]), 7)
    tensor([7., 7.])
    """

    creates = "value"
    signature = "input, fill_value"
    samples = lambda: [
        _call((dtype,), numpy.ones(shape), 2.5) for shape in _SHAPES for dtype in (float32, int64)
    ]

    def compute(x: Any, value: Any, dtype: Any) -> Any:
        if value.ndim:
            raise ShapeError(f"a fill value with {value.ndim} axes", "Give a number or a 0-d tensor.")
        return broadcast(convert(value, dtype), x.shape)

    @staticmethod
    def call(input: Any, fill_value: Any, *, dtype: Any = None) -> Any:
        found = input.dtype if dtype is None else as_dtype(dtype)
        need_fitting(fill_value, found)
        input = input.detach() if getattr(input, "requires_grad", False) else input
        return apply("full_like", input, fill_value, attrs=(found,))


def _arange(start: Any, step: Any, length: int, dtype: DType) -> Any:
    """Computed wide, and rounded once."""
    wide = float64 if dtype.kind == "f" else int64
    number = convert(iota_node((length,)), wide)
    return convert(convert(start, wide) + number * convert(step, wide), dtype)


@composite
class arange:
    """``start``, ``start + step``, ... up to but not including ``end``.

    >>> import twofold as torch
    >>> torch.arange(5)
    tensor([0, 1, 2, 3, 4])
    >>> torch.arange(1, 2, 0.25)
    tensor([1.0000, 1.2500, 1.5000, 1.7500])
    """

    creates = "value"
    methods = ()
    signature = "start, step"
    samples = lambda: [_call((5, int64), 3, -2), _call((7, float32), 0.5, 0.1), _call((0, int64), 0, 1)]
    compute = _arange

    @staticmethod
    def call(start: Any = None, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
        if start is None and end is None:
            raise ArgumentError("no end", "Give it, as in arange(5).")
        start, end = (0, start) if end is None else (0 if start is None else start, end)
        if step == 0:
            raise ArgumentError("step is 0", "Use a positive or negative step.")
        if any(isinstance(x, float) and not math.isfinite(x) for x in (start, end, step)):
            raise ArgumentError(f"from {start} to {end} by {step}", "Use finite numbers.")
        if (end - start) * step < 0:
            raise ArgumentError(f"step {step} leads away from {start} to {end}", "Change the sign of step.")
        whole = all(isinstance(value, int) for value in (start, end, step))
        found = (int64 if whole else float32) if dtype is None else as_dtype(dtype)
        if found is int64 and not whole:
            start, end, step = int(start), int(end), int(step)
            if step == 0:
                raise ArgumentError(
                    "step is 0 as an integer", "Use a step of at least 1, or a floating dtype."
                )
        length = max(0, math.ceil((end - start) / step))
        return apply("arange", start, step, attrs=(length, found))


def _linspace(start: Any, end: Any, length: int, endpoint: bool, dtype: DType) -> Any:
    """From both ends, so that both are exact."""
    if dtype.kind != "f":
        start, end = convert(start, dtype), convert(end, dtype)
    first, last = convert(start, float64), convert(end, float64)
    number = convert(iota_node((length,)), float64)
    count = real(maximum(length - 1 if endpoint else length, 1))
    step = (last - first) / count
    forward, backward = first + number * step, last - (count - number) * step
    return convert(ops.where(number * 2.0 < count, forward, backward) if length > 1 else forward, dtype)


def _count_of(steps: Any) -> int:
    count = operator.index(steps)
    if count < 0:
        raise ArgumentError(f"steps is {count}", "Use 0 or more.")
    return count


def _need_scalars(*ends: Any) -> None:
    for end in ends:
        if getattr(end, "shape", ()):
            raise ShapeError(f"an end of shape {tuple(end.shape)}", "Use numbers or tensors without axes.")


@composite
class linspace:
    """``steps`` equally spaced values from ``start`` to ``end``, both included.

    >>> import twofold as torch
    >>> torch.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """

    creates = "default"
    signature = "start, end"
    samples = lambda: [
        _call((steps, end, float32), -1.0, 2.0) for steps in (0, 1, 2, 11) for end in (True, False)
    ]
    compute = _linspace

    @staticmethod
    def call(start: Any, end: Any, steps: int, *, endpoint: bool = True, dtype: Any = float32) -> Any:
        _need_scalars(start, end)
        found = as_dtype(dtype or float32)
        if isinstance(start, complex) or isinstance(end, complex):
            part = float64 if found in (float64, complex128) else float32
            start, end = complex(start), complex(end)
            parts = ((start.real, end.real), (start.imag, end.imag))
            return ops.complex(
                *(linspace.call(*ends, steps, endpoint=endpoint, dtype=part) for ends in parts)
            )
        return apply("linspace", start, end, attrs=(_count_of(steps), bool(endpoint), found))


@composite
class logspace:
    """``base`` to the power of ``steps`` equally spaced exponents from ``start`` to ``end``, both included.

    >>> import twofold as torch
    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """

    creates = "default"
    signature = "start, end, base"
    samples = lambda: [_call((steps, float32), -1.0, 2.0, 10.0) for steps in (0, 1, 11)]

    @staticmethod
    def compute(start: Any, end: Any, base: Any, length: int, dtype: DType) -> Any:
        if dtype.kind != "f":
            start, end = convert(start, dtype), convert(end, dtype)
        exponents = _linspace(start, end, length, True, float64)
        return convert(ops.pow(convert(base, float64), exponents), dtype)

    @staticmethod
    def call(start: Any, end: Any, steps: int, base: Any = 10.0, *, dtype: Any = float32) -> Any:
        _need_scalars(start, end)
        return apply("logspace", start, end, base, attrs=(_count_of(steps), as_dtype(dtype or float32)))


def _eye(rows: int, columns: int, k: int, dtype: DType) -> Any:
    row = ops.unsqueeze(iota_node((rows,)), 1)
    return convert(ops.equal(iota_node((columns,)), row + k), dtype)


@composite
class eye:
    """Ones on the ``k``-th diagonal, zeros elsewhere.

    >>> import twofold as torch
    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """

    creates = "default"
    samples = lambda: [
        _call((3, 3, 0, float32)),
        _call((2, 4, 1, int64)),
        _call((4, 2, -1, bool_)),
        _call((0, 2, 0, float32)),
    ]
    compute = _eye

    @staticmethod
    def call(n: int, m: int | None = None, *, k: int = 0, dtype: Any = float32) -> Any:
        rows, columns = whole_number(n, "n"), whole_number(n if m is None else m, "m")
        if min(rows, columns) < 0:
            raise ArgumentError(f"{rows} rows and {columns} columns", "Use sizes from 0.")
        return apply("eye", attrs=(rows, columns, whole_number(k, "k"), as_dtype(dtype or float32)))
