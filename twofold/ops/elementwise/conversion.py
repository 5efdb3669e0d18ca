"""Conversion of elements to other dtypes: by value and by bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)  # fmt: skip
from twofold.errors import DTypeError
from twofold.ir.layout import Layout
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import tensor_type
from twofold.ops.base import Elementwise, apply, convert, elementwise
from twofold.ops.samples import Sample


def _cast_reference(x: Any, dtype: DType) -> Any:
    if dtype.kind == "b":
        return x != 0
    if dtype.kind == "f":
        # integers reach the half types through float32
        wide = x.astype(numpy.float32) if x.dtype.kind in "biu" and dtype.itemsize == 2 else x
        return wide if dtype is bfloat16 else wide.astype(dtype.numpy)
    if x.dtype.kind != "f":
        return x.astype(dtype.numpy)
    limits = numpy.iinfo(dtype.numpy)
    inside = (x >= float(limits.min)) & (x < float(limits.max) + (1.0 if dtype.itemsize < 8 else 0.0))
    whole = numpy.where(inside, x, 0).astype(dtype.numpy)
    saturated = numpy.where(x > 0, limits.max, limits.min).astype(dtype.numpy)
    return numpy.where(inside, whole, numpy.where(numpy.isnan(x), dtype.numpy.type(0), saturated))


@elementwise
class cast(Elementwise):
    """``input`` converted to ``dtype``.

    Floats become integers by truncation, saturating, NaN giving 0; integers wrap; to bool, non-zero is true.

    >>> import twofold as torch
    >>> torch.cast(torch.tensor([1.9, -1.9, float("nan")]), torch.int32)
    tensor([ 1, -1,  0], dtype=twofold.int32)
    """

    autograd_name = "ToCopyBackward0"
    converts = True
    functions = ("cast",)
    methods = ()
    attribute_samples = tuple(
        (dtype,) for dtype in (bool_, int8, int64, uint8, float16, bfloat16, float32, float64)
    )
    inplace = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The node of the conversion, if one is needed."""
        return convert(inputs[0], attrs[0])

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        """The cotangent converted back, between floats."""
        dtype = inputs[0].dtype
        return (convert(cotangent, dtype) if dtype.kind == "f" and attrs[0].kind == "f" else None,)

    def lower(self, builder: Any, attrs: Attributes, dtype: Any, *values: Any) -> Any:
        """One conversion instruction (or the few that stand for it)."""
        return builder.cast(values[0], attrs[0])

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        """The conversion by NumPy."""
        return _cast_reference(numpy.asarray(arrays[0]), attrs[0])

    @staticmethod
    def call(input: Any, dtype: Any) -> Any:
        """Bind the conversion; a dtype is anything that ``as_dtype`` takes."""
        return apply("cast", input, attrs=(as_dtype(dtype),))


@elementwise
class bitcast(Elementwise):
    """The bits of each element read as ``dtype``, which has the same size; a computed NaN has the canonical ones.

    The result shares the memory of the input.

    >>> import twofold as torch
    >>> torch.bitcast(torch.tensor([1.0]), torch.int32).tolist() == [0x3F800000]
    True
    """

    functions = ("bitcast",)
    methods = ()
    keeps_nan = reads_bits = True
    differentiable = False
    exact_reference = True
    inplace = False
    is_view = True

    def layout(self, attrs: Attributes, source: Layout, inputs: Sequence[Any]) -> Layout | None:
        """The same elements of another dtype."""
        return source._replace(dtype=attrs[0])

    def write(self, base: Any, value: Any, dtype: Any) -> Any:
        """The bits of the value."""
        return apply("bitcast", value, attrs=(base.dtype,))

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The node; raises DTypeError if the sizes differ."""
        (node,), (dtype,) = inputs, attrs
        if dtype.itemsize != node.dtype.itemsize:
            raise DTypeError(
                f"{node.dtype.name} cannot be read as {dtype.name}", "Use a dtype of the same size."
            )
        return make_node(self, attrs, (node,), tensor_type(dtype, node.shape))

    def lower(self, builder: Any, attrs: Attributes, dtype: Any, *values: Any) -> Any:
        """No instruction at all; a bool, which is one bit in a kernel, is a byte of 0 or 1."""
        if attrs[0].kind == "b":
            return builder.cast(values[0], attrs[0])
        if values[0].dtype.kind == "b":
            return builder.bitcast(builder.cast(values[0], uint8), attrs[0])
        return builder.bitcast(values[0], attrs[0])

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        """The same bytes under another dtype."""
        array = numpy.asarray(arrays[0])
        return array != 0 if attrs[0] is bool_ else array.view(attrs[0].numpy)

    def samples(self) -> Sequence[Any]:
        """Between a float and the integer of its size."""
        values = numpy.array([[0.0, -0.0, 1.5], [numpy.inf, -2e-40, 3e38]])
        pairs = ((float32, int32), (float64, uint64), (float32, uint32), (float16, int16), (bool_, uint8))
        return [Sample((to,), (values.astype(of.numpy),), (of,), smooth=False) for of, to in pairs]

    @staticmethod
    def call(input: Any, dtype: Any) -> Any:
        """Bind it; a dtype is anything that ``as_dtype`` takes."""
        return apply("bitcast", input, attrs=(as_dtype(dtype),))
