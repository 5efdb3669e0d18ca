"""What ``build`` rules are written with: calls of other operations, and the nodes that most of them need.

They return Any, as type checkers do not see the operators of nodes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, default_float, int64
from twofold.errors import ArgumentError, DTypeError, ShapeError, UndefinedGradientError
from twofold.ir.bind import bind, constant, is_constant
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY, Op
from twofold.ir.types import Shape, tensor_type
from twofold.ops.promotion import common_dtype
from twofold.ops.tables import FUNCTIONS


class Functions:
    """All public functions as attributes, found when used, so that entries may refer to later ones."""

    def __getattr__(self, name: str) -> Any:
        function = FUNCTIONS.get(name) or getattr(REGISTRY.get(name), "call", None)
        if function is None:
            raise AttributeError(f"no operation named {name!r}")
        setattr(self, name, function)
        return function


ops: Any = Functions()


def apply(name: str, *inputs: Any, attrs: Attributes = ()) -> Any:
    """Bind the operation called ``name``."""
    return bind(REGISTRY[name], inputs, attrs)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that all ``shapes`` broadcast to; raises ShapeError if there is none.

    >>> broadcast_shapes((2, 1, 3), (4, 1), ())
    (2, 4, 3)
    """
    first = shapes[0]
    # ranks first, so that sizes of different axes are not compared: for symbols that would be a guard
    if all(len(shape) == len(first) and shape == first for shape in shapes):
        return first
    ndim = max(map(len, shapes))
    result = [1] * ndim
    for shape in shapes:
        for position, size in enumerate(shape, ndim - len(shape)):
            if size != 1 and size != result[position]:
                if result[position] != 1:
                    raise _unlike_sizes(shapes, position - ndim, result[position], size)
                result[position] = size
    return tuple(result)


def _unlike_sizes(shapes: Sequence[Shape], axis: int, *sizes: Any) -> ShapeError:
    """The error for sizes that differ on an axis, or rather on one where they are known."""
    if any(type(size) is not int for size in sizes):
        for other in range(-1, -max(map(len, shapes)) - 1, -1):
            there = [shape[other] for shape in shapes if len(shape) >= -other]
            known = list(dict.fromkeys(size for size in there if type(size) is int and size != 1))
            if len(known) > 1:
                axis, sizes = other, tuple(known[:2])
                break
    what = f"sizes on axis {axis} differ, {sizes[0]} against {sizes[1]}"
    return ShapeError(what, "Make them equal, or one of them 1 (unsqueeze adds such an axis).")


def convert(node: Node, dtype: DType) -> Any:
    """``node`` as a value of ``dtype`` that is not weak; a ``cast`` node only where needed."""
    type = node.type
    if type.dtype is dtype and not type.weak:
        return node
    if "c" in (dtype.kind, type.dtype.kind):
        return _convert_complex(node, dtype)
    if "S" in (dtype.kind, type.dtype.kind):
        what = f"{type.dtype.name} cannot be cast to {dtype.name}"
        raise DTypeError(what, "Use tf.as_string or tf.string_to_number.")
    if is_constant(node) and (dtype.kind == "f" or type.dtype.kind != "f"):
        return constant(node.attrs[0], dtype)
    return make_node(REGISTRY["cast"], (dtype,), (node,), tensor_type(dtype, type.shape))


def _convert_complex(node: Node, dtype: DType) -> Any:
    """From or to a complex dtype, part by part; a complex number is true where either part is."""
    if is_constant(node) and dtype.kind == "c":
        return constant(node.attrs[0], dtype)
    if node.type.dtype.kind != "c":
        real = convert(node, dtype.real)
        return ops.complex(real, filled(0, dtype.real, node.type.shape))
    real, imag = apply("real", node), apply("imag", node)
    if dtype.kind == "b":
        return ops.logical_or(real, imag)
    if dtype.kind == "c":
        return ops.complex(convert(real, dtype.real), convert(imag, dtype.real))
    return convert(real, dtype)


def broadcast(node: Node, shape: Shape) -> Any:
    """``node`` broadcast to ``shape``; a ``broadcast_to`` node only where needed.

    Raises ShapeError where the shapes do not fit: the kernels would read beyond the node's memory.
    """
    type = node.type
    extra = len(shape) - len(type.shape)
    if not extra and type.shape == shape:
        return node
    if extra < 0 or any(size not in (1, shape[extra + axis]) for axis, size in enumerate(type.shape)):
        raise ShapeError(
            f"shape {type.shape} does not broadcast to {shape}",
            "Make the sizes equal, or 1 where they repeat.",
        )
    return make_node(REGISTRY["broadcast_to"], (shape,), (node,), tensor_type(type.dtype, shape, type.weak))


def filled(value: bool | int | float | complex, dtype: DType, shape: Shape) -> Any:
    """A node of ``shape`` whose every element is ``value``."""
    return broadcast(constant(value, dtype), shape)


def iota(shape: Shape) -> Any:
    """The int64 node whose elements are their own flat row-major numbers."""
    return make_node(REGISTRY["iota"], (), (), tensor_type(int64, shape))


def weakly(node: Node, dtype: DType) -> Node:
    """A weak operand of an all-weak expression in ``dtype``, still weak."""
    if node.type.dtype is dtype:
        return node
    return make_node(REGISTRY["cast"], (dtype,), (node,), tensor_type(dtype, node.type.shape, True))


def strong(node: Node) -> Node:
    """A weak value as a tensor of the default dtype of its kind; any other as it is."""
    if not node.type.weak:
        return node
    default = {"f": default_float(), "c": default_float().complex}
    return convert(node, default.get(node.type.dtype.kind, node.type.dtype))


def restore_axes(reduced: Node, axes: tuple[int, ...], shape: Shape) -> Node:
    """``reduced`` with the reduced axes of ``shape`` put back at size 1."""
    return ops.reshape(reduced, tuple(1 if axis in axes else size for axis, size in enumerate(shape)))


def no_slope(cotangent: Node, output: Node, *inputs: Node) -> tuple[Node, ...]:
    """The ``vjp`` of a function that is constant between its jumps: zeros."""
    broadcast = REGISTRY["broadcast_to"]
    return tuple(
        make_node(broadcast, (x.shape,), (constant(0, x.dtype),), tensor_type(x.dtype, x.shape))
        for x in inputs
    )


def with_own_gradient(op: Op, attrs: Attributes, value: Node, inputs: Sequence[Node]) -> Node:
    """``value``, which parts of ``op`` computed from ``inputs``, with the gradient rule of ``op`` itself."""
    return make_node(REGISTRY["ruled"], (op.name, attrs), (value, *inputs), value.type)


class NoGradient:
    """Stands for the cotangent of an operand whose gradient has no formula; whoever uses it gets the error."""

    def __init__(self, operation: str, operand: str, fix: str = "") -> None:
        self._error = UndefinedGradientError(
            f"{operation} has no gradient with respect to {operand}", fix or f"Use {operand}.detach()."
        )

    def _raise(self) -> Any:
        raise self._error

    shape = property(_raise)
    type = property(_raise)


def rounded_once(compute: Callable[..., Any]) -> Callable[..., Any]:
    """``compute``, but where its result would be of a half type, from float32 operands, and rounded at the end."""

    @functools.wraps(compute)
    def made(*given: Any) -> Any:
        dtype = common_dtype([one.type for one in given if isinstance(one, Node)])[0]
        if dtype.compute is dtype:
            return compute(*given)
        wide = [convert(one, dtype.compute) if isinstance(one, Node) else one for one in given]
        return convert(compute(*wide), dtype)

    return made


def known_value(value: Any, what: str) -> Any:
    """A value that the shape of a result depends on, as a NumPy array.

    Raises ArgumentError for one inside a graph, which ``what`` names.
    """
    if isinstance(value, Node):
        raise ArgumentError(f"{what} decides the shape of the result", "Call this where values are known.")
    return value._read() if hasattr(value, "detach") else numpy.asarray(value)
