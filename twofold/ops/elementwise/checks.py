"""Operations that return what they are given, or fail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, float16, float64, int8, int64
from twofold.errors import (
    ArgumentError,
    DivisionError,
    IndexRangeError,
    InvalidArgumentError,
    ValueRangeError,
)
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType
from twofold.ops import kernels
from twofold.ops.base import Custom, apply, custom
from twofold.ops.examples import example
from twofold.ops.promotion import limits


@custom
class class_number(Custom):
    """``target`` itself, if each is a class number in ``[0, count)`` or the number to ignore.

    Inputs int64 ``(target, ignored number)``, attributes ``(count,)``.
    """

    functions = ()
    checks = True
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, attrs, tuple(inputs), inputs[0].type)

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return (attrs[0],)

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return output.size, 1 << 16

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b = builder
        ignore = b.load(b.input(1), 0, int64)

        def body(j: Any, lanes: int, mask: Any) -> None:
            at = b.add(b.begin, j)
            number = b.load(b.input(0), at, int64, lanes, mask=mask)
            outside = b.or_(b.cmp("lt", number, 0), b.cmp("ge", number, b.param(0)))
            outside = b.and_(outside, b.cmp("ne", number, ignore))
            outside = outside if mask is None else b.and_(outside, mask)
            with b.if_(b.any_lane(outside)):
                kernels.fail(b, b.reduce_lanes("max", number, outside))
            b.store(b.buffer(2), at, number, mask=mask)

        kernels.run(b, b.sub(b.end, b.begin), body)

    def failure(self, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
        if not attrs[0]:
            return f"class {index} of no classes", "Give scores with at least one class."
        return (
            f"class {index} does not exist, there are {attrs[0]} classes",
            f"Use class numbers from 0 to {attrs[0] - 1}, or a loss its ignore_index for rows to leave out.",
        )

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        target, ignore = arrays
        outside = ((target < 0) | (target >= attrs[0])) & (target != ignore)
        if outside.any():
            raise IndexRangeError(*self.failure(int(target[outside].max()), (), attrs))
        return target

    def samples(self) -> Sequence[Any]:
        return [
            example((5,), numpy.array([4, 0, -100, 1]), numpy.array(-100)),
            example((3,), numpy.arange(33).reshape(3, 11) % 3, numpy.array(-1)),
            example((3,), numpy.array(2), numpy.array(0)),
            example((0,), numpy.zeros((0,), numpy.int64), numpy.array(0)),
        ]


@custom
class number_below(type(class_number)):  # type: ignore[misc]
    """``input`` itself, if each is in ``[0, count)`` or the number to ignore; attributes ``(count, what it is)``."""

    title = "out of range"
    returns_input = True

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return ()

    def failure(self, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
        if not attrs[0]:
            return f"{attrs[1]} {index} where there are none", "Leave it out."
        return f"{attrs[1]} {index} is not from 0 to {attrs[0] - 1}", "Give one in this range."

    def samples(self) -> Sequence[Any]:
        return [
            example((5, "segment"), numpy.array([4, 0, -1, 1]), numpy.array(-1)),
            example((3, "length"), numpy.arange(33).reshape(3, 11) % 3, numpy.array(0)),
        ]


@custom
class unwritten(Custom):
    """``index`` itself, if no element is written that ``written``, int64 like it, is not 0 for."""

    title = "TensorArray.write"
    functions = ()
    checks = True
    signature = "index, written"
    differentiable = False
    error = InvalidArgumentError

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, attrs, tuple(inputs), inputs[0].type)

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return output.size, 1 << 16

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b = builder

        def body(j: Any, lanes: int, mask: Any) -> None:
            at = b.add(b.begin, j)
            index = b.load(b.input(0), at, int64, lanes, mask=mask)
            again = b.cmp("ne", b.load(b.input(1), at, int64, lanes, mask=mask), 0)
            again = again if mask is None else b.and_(again, mask)
            with b.if_(b.any_lane(again)):
                kernels.fail(b, b.reduce_lanes("max", index, again))
            b.store(b.buffer(2), at, index, mask=mask)

        kernels.run(b, b.sub(b.end, b.begin), body)

    def failure(self, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
        return f"index {index} has already been written to", "Write each element once."

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        index, written = arrays
        if written.any():
            raise InvalidArgumentError(*self.failure(int(index[written != 0].max()), (), attrs))
        return index

    def samples(self) -> Sequence[Any]:
        return [example((), numpy.arange(count), numpy.zeros(count, numpy.int64)) for count in (1, 3, 33)]


@custom
class within(Custom):
    """``input`` itself, if each element is from low to high; attributes ``(its name, low, high)``."""

    functions = ()
    checks = True
    kinds = "f"
    error = ValueRangeError

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        self.check_kind(inputs[0].dtype)
        return make_node(self, attrs, tuple(inputs), inputs[0].type)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return (cotangent,)

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return attrs[1:]

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return output.size, 1 << 16

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype = builder, output.dtype

        def body(j: Any, lanes: int, mask: Any) -> None:
            at = b.add(b.begin, j)
            given = b.load(b.input(0), at, dtype, lanes, mask=mask)
            value = b.cast(given, dtype.compute)
            inside = b.and_(b.cmp("ge", value, attrs[1]), b.cmp("le", value, attrs[2]))
            outside = b.not_(inside) if mask is None else b.and_(b.not_(inside), mask)
            with b.if_(b.any_lane(outside)):
                kernels.fail(b, b.reduce_lanes("min", b.iota(at), outside))
            b.store(b.buffer(1), at, given, mask=mask)

        kernels.run(b, b.sub(b.end, b.begin), body)

    def failure(self, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
        name, low, high = attrs
        bounds = f"from {low:g} on" if high == math.inf else f"from {low:g} to {high:g}"
        return f"element {index} of {name} is outside its range", f"Give values {bounds}."

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (value,) = arrays
        outside = ~((value >= attrs[1]) & (value <= attrs[2]))
        if outside.any():
            raise ValueRangeError(*self.failure(int(numpy.argmax(outside.ravel())), (), attrs))
        return value

    def samples(self) -> Sequence[Any]:
        attrs = ("p", -8.0, 8.0)
        return [example(attrs, shape) for shape in ((5,), (3, 11), (), (0,))]


@custom
class nonzero_divisor(Custom):
    """``divisor`` itself, if none of its integers is 0."""

    functions = ()
    checks = True
    signature = "divisor"
    kinds = "iu"
    differentiable = False
    error = DivisionError

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        self.check_kind(inputs[0].dtype)
        return make_node(self, attrs, tuple(inputs), inputs[0].type)

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        return self.build((), values)

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return output.size, 1 << 16

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype = builder, output.dtype

        def body(j: Any, lanes: int, mask: Any) -> None:
            at = b.add(b.begin, j)
            value = b.load(b.input(0), at, dtype, lanes, mask=mask)
            zero = b.cmp("eq", value, 0)
            zero = zero if mask is None else b.and_(zero, mask)
            with b.if_(b.any_lane(zero)):
                kernels.fail(b, b.reduce_lanes("min", b.iota(at), zero))
            b.store(b.buffer(1), at, value, mask=mask)

        kernels.run(b, b.sub(b.end, b.begin), body)

    def failure(self, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
        where = f"element {index} of the divisor" if inputs and inputs[0].shape else "the divisor"
        return f"ZeroDivisionError: {where} is 0", "Divide integers by others than 0, or divide floats."

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (divisor,) = arrays
        if not divisor.all():
            raise DivisionError(*self.failure(int(numpy.argmin(divisor.ravel() != 0)), (), attrs))
        return divisor

    def samples(self) -> Sequence[Any]:
        values = (numpy.arange(1, 34).reshape(3, 11), numpy.array(-7), numpy.zeros((0,), numpy.int64))
        return [example((), value) for value in values]


def fitting(value: Any, dtype: DType) -> Any:
    """A tensor or node that is converted to ``dtype`` next, which fails where a number of it does not fit.

    As for Python numbers: integers wrap round in unsigned dtypes, and floating dtypes hold what is not finite.
    """
    given = value.dtype
    weak = isinstance(value, Node) and value.type.weak
    if weak or given is dtype or given.kind not in "iuf" or dtype.kind not in "iuf":
        return value
    low, high = _bounds(given, dtype)
    least, most = limits(given)
    held = low <= least and most <= high and (given.kind != "f" or dtype.kind == "f")
    return value if held else apply("fitting_values", value, attrs=(dtype,))


def _bounds(given: DType, dtype: DType) -> tuple[Any, Any]:
    """The least and the largest number of one dtype, as such, that another holds."""
    low, high = limits(dtype)
    if given.kind in "iu":
        low, high = (-high if dtype.kind == "u" else low), high
        least, most = limits(given)
        return max(int(low), least), min(int(high), most)
    if dtype.kind in "iu" and float(high) > high:
        high = math.nextafter(float(high), 0.0)
    return float(low), float(high)


@custom
class fitting_values(Custom):
    """``input`` itself, if its numbers fit a dtype; attributes ``(dtype,)``."""

    functions = ()
    checks = True
    kinds = "iuf"
    signature = "input"
    error = ArgumentError

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        self.check_kind(inputs[0].dtype)
        return make_node(self, attrs, tuple(inputs), inputs[0].type)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return (cotangent,)

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        return self.build(node.attrs, values)

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return (attrs[0].name,)

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return output.size, 1 << 16

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype = builder, output.dtype
        low, high = _bounds(dtype, attrs[0])

        def body(j: Any, lanes: int, mask: Any) -> None:
            at = b.add(b.begin, j)
            given = b.load(b.input(0), at, dtype, lanes, mask=mask)
            value = b.cast(given, float64) if dtype.kind == "f" else given
            inside = b.and_(b.cmp("ge", value, low), b.cmp("le", value, high))
            if dtype.kind == attrs[0].kind == "f":
                size = b.abs(value)
                inside = b.or_(inside, b.not_(b.cmp("lt", size, math.inf)))
            outside = b.not_(inside) if mask is None else b.and_(b.not_(inside), mask)
            with b.if_(b.any_lane(outside)):
                kernels.fail(b, b.reduce_lanes("min", b.iota(at), outside))
            b.store(b.buffer(1), at, given, mask=mask)

        kernels.run(b, b.sub(b.end, b.begin), body)

    def failure(self, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
        return f"value cannot be converted to type {attrs[0].name} without overflow", "Use a wider dtype."

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (value,) = arrays
        low, high = limits(attrs[0])
        inside = (value >= (-high if attrs[0].kind == "u" and value.dtype.kind in "iu" else low)) & (
            value <= high
        )
        if not (inside | ~numpy.isfinite(value) & (attrs[0].kind == "f")).all():
            raise ArgumentError(*self.failure(0, (), attrs))
        return value

    def samples(self) -> Sequence[Any]:
        values = (numpy.arange(-16, 17).reshape(3, 11), numpy.array(-7.5), numpy.zeros((0,)))
        return [example((dtype,), value) for value in values for dtype in (int8, float16)]
