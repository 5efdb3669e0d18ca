"""Discrete Fourier transforms.

Three primitives carry them all: the complex transform over some axes, the half of it that a real input needs, and
the way back from that half. The gradient of each is again such a transform, as they are linear: the adjoint of a
transform runs the other way with the same scale (Cooley, Lewis and Welch, The finite Fourier transform, 1969).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy

from twofold.dtypes import complex64
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import Host, apply, host, ops, strong
from twofold.ops.examples import example
from twofold.ops.host_threads import over_rows
from twofold.ops.samples import Sample
from twofold.ops.shape.movement import slice_axis

TURNED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


_NANOSECONDS = 8
"""Rough time of a transform for each of its elements."""


def along(axis: int, x: Any, transform: Callable[[Any], Any]) -> Any:
    """``transform``, which works along one axis, on several threads along the first other axis."""
    if x.ndim == 1:
        return transform(x)
    across = 0 if axis else 1
    if not across:
        return over_rows(transform, [x], _NANOSECONDS * x.size)
    along_columns = lambda part: transform(part.swapaxes(0, 1)).swapaxes(0, 1)
    return over_rows(along_columns, [x.swapaxes(0, 1)], _NANOSECONDS * x.size).swapaxes(0, 1)


class Transform(Host):
    """A linear map of arrays by ``numpy.fft``."""

    functions: tuple[str, ...] = ()
    library = "numpy.fft"
    signature = "input"

    def type_of(self, attrs: Attributes, type: TensorType) -> TensorType:
        """The type of the result."""
        raise NotImplementedError(self.name)

    def adjoint(self, ct: Any, size: int, attrs: Attributes) -> Any:
        """The cotangent of the input, whose transformed axis had ``size`` elements."""
        raise NotImplementedError(self.name)

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x = strong(inputs[0])
        return make_node(self, attrs, (x,), self.type_of(attrs, x.type))

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return (self.adjoint(cotangent, inputs[0].shape[attrs[0][-1]] if attrs[0] else 0, attrs),)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs, *arrays)

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """The axes move up by one."""
        axes, *rest = node.attrs
        moved = (tuple(axis + 1 for axis in axes), *rest)
        return make_node(self, moved, tuple(values), tensor_type(node.dtype, (size, *node.shape)))


@host
class complex_transform(Transform):
    """The transform of complex values: attributes ``(axes, forward, which way is scaled)``."""

    def type_of(self, attrs: Attributes, type: TensorType) -> TensorType:
        return type

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        axes, forward, norm = attrs
        transform = numpy.fft.fft if forward else numpy.fft.ifft
        (x,) = arrays
        for axis in reversed(axes):
            x = along(axis, x, partial(transform, axis=axis, norm=norm))
        return x

    def adjoint(self, ct: Any, size: int, attrs: Attributes) -> Any:
        axes, forward, norm = attrs
        return apply("complex_transform", ct, attrs=(axes, not forward, TURNED[norm]))

    def samples(self) -> Sequence[Sample]:
        calls = (((3,), (0,)), ((2, 4), (1,)), ((2, 3, 4), (0, 2)), ((0, 2), (1,)), ((1,), (0,)))
        return [
            example((axes, forward, norm), shape, dtype=complex64)
            for shape, axes in calls
            for forward, norm in (
                (True, "backward"),
                (False, "backward"),
                (True, "ortho"),
                (False, "forward"),
            )
        ]


@host
class half_transform(Transform):
    """The first half of the transform of real values along an axis: attributes ``((axis,), scaling)``."""

    def type_of(self, attrs: Attributes, type: TensorType) -> TensorType:
        ((axis,), _) = attrs
        shape = (*type.shape[:axis], type.shape[axis] // 2 + 1, *type.shape[axis + 1 :])
        return tensor_type(type.dtype.complex, shape)

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        ((axis,), norm) = attrs
        return along(axis, arrays[0], lambda part: numpy.fft.rfft(part, axis=axis, norm=norm))

    def adjoint(self, ct: Any, size: int, attrs: Attributes) -> Any:
        ((axis,), norm) = attrs
        whole = resized(ct, axis, size)
        return ops.real(apply("complex_transform", whole, attrs=((axis,), False, TURNED[norm])))

    def samples(self) -> Sequence[Sample]:
        calls = (((4,), 0), ((2, 5), 1), ((4, 2), 0), ((0, 3), 1), ((1,), 0))
        return [
            example(((axis,), norm), shape)
            for shape, axis in calls
            for norm in ("backward", "ortho", "forward")
        ]


@host
class real_transform(Transform):
    """Real values from the first half of their transform: attributes ``((axis,), scaling, their number)``.

    The half has ``number // 2 + 1`` elements; imaginary parts that a real input cannot have are not read.
    """

    def type_of(self, attrs: Attributes, type: TensorType) -> TensorType:
        ((axis,), _, size) = attrs
        return tensor_type(type.dtype.real, (*type.shape[:axis], size, *type.shape[axis + 1 :]))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        ((axis,), norm, size) = attrs
        return along(axis, arrays[0], lambda part: numpy.fft.irfft(part, size, axis=axis, norm=norm))

    def adjoint(self, ct: Any, size: int, attrs: Attributes) -> Any:
        ((axis,), norm, number) = attrs
        half = apply("half_transform", ct, attrs=((axis,), TURNED[norm]))
        # every element but the first, and the middle one of an even number, also stands for its conjugate
        twice = number - size
        first, rest = slice_axis(half, axis, 0, 1), slice_axis(half, axis, 1, twice)
        pieces = [first, rest * 2]
        if 1 + twice < size:
            pieces.append(slice_axis(half, axis, size - 1, 1))
        return ops.cat(pieces, axis)

    def samples(self) -> Sequence[Sample]:
        calls = (((3,), 0, 4), ((2, 3), 1, 5), ((4, 2), 0, 6), ((0, 2), 1, 3), ((1,), 0, 1), ((2,), 0, 2))
        return [
            example(((axis,), norm, size), shape, dtype=complex64)
            for shape, axis, size in calls
            for norm in ("backward", "ortho", "forward")
        ]


def resized(x: Any, axis: int, size: int) -> Any:
    """``x`` with ``size`` elements along an axis: cut off, or filled up with zeros, at the end."""
    own = x.shape[axis]
    if size <= own:
        return slice_axis(x, axis, 0, size)
    return ops.pad(x, (*(0, 0) * (len(x.shape) - 1 - axis), 0, size - own))
