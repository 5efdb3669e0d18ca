"""What the operations of linear algebra share: their base class, checks, packed results and small helpers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import DType, int32
from twofold.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY, Op
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import (
    Custom,
    Host,
    apply,
    broadcast,
    broadcast_shapes,
    composite,
    convert,
    filled,
    normalize_axis,
    ops,
    publish,
    strong,
)
from twofold.ops.building_blocks import NoGradient
from twofold.ops.contraction.matrix_products import transposed
from twofold.ops.examples import example
from twofold.ops.host_threads import one_blas_thread, over_matrices
from twofold.ops.shape.movement import axis_numbers, slice_axis

Pieces = Sequence[Shape]

_NANOSECONDS = 0.5
"""Rough time of one of the ``rows * columns * min(rows, columns)`` steps of a computation on a matrix."""


def observed(function: Any) -> Any:
    """Mark a public function that may fail on values: they are computed before it returns, as programs handle that."""
    function.observed = True
    return function


def linalg_function(
    *also: str, methods: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Publish a function in the namespace ``linalg``, and under the names ``also`` in that of all functions."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        name = "linalg." + function.__name__.rstrip("_")
        publish(function, (name, *also), methods)
        function.__name__ = name
        return function

    return decorate


def check_matrix(x: Any, square: bool = False, name: str = "input") -> None:
    """Raise unless ``x`` holds matrices (``square``: of as many rows as columns) of a dtype that is computed in."""
    check_dtype(x, name)
    if len(x.shape) < 2:
        raise ShapeError(f"{name} has {len(x.shape)} axes, a matrix at least 2", "Reshape or unsqueeze it.")
    if square and x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"{name} holds matrices of {x.shape[-2]} by {x.shape[-1]}, which are not square",
            "Give as many rows as columns.",
        )


def check_dtype(x: Any, name: str = "input") -> None:
    """Raise DTypeError unless ``x`` is of a dtype that factorisations are computed in."""
    dtype = x.dtype
    if dtype.kind not in "fc" or dtype.itemsize < 4:
        raise DTypeError(f"{name} is {dtype.name}", "Cast it with .to() to float32 or float64 first.")


def check_same_dtype(a: Any, b: Any) -> None:
    """Raise DTypeError unless both operands have one dtype."""
    if a.dtype is not b.dtype:
        raise DTypeError(f"dtypes differ, {a.dtype.name} against {b.dtype.name}", "Cast one with .to().")


_LARGEST = 768


def by_kernel(a: Any) -> bool:
    """Whether kernels factor ``a``: real matrices that caches hold; NumPy's routines others, in blocks."""
    return bool(a.dtype.kind != "c" and (not a.shape or a.shape[-1] <= _LARGEST))


class OnMatrices(Op):
    """What operations on batches of matrices share, whatever computes them."""

    signature = "A"
    square = True

    def type_of(self, attrs: Attributes, types: Sequence[TensorType]) -> TensorType:
        """The type of the result; that of the first operand unless a subclass says otherwise."""
        return types[0]

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        values = [strong(node) for node in inputs]
        check_matrix(values[0], self.square)
        for other in values[1:]:
            check_same_dtype(values[0], other)
        return make_node(self, attrs, values, self.type_of(attrs, [value.type for value in values]))

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """Samples are one more batch axis."""
        expanded = [
            value if flag else broadcast(value, (size, *value.shape))
            for value, flag in zip(values, flags, strict=True)
        ]
        return make_node(self, node.attrs, expanded, tensor_type(node.dtype, (size, *node.shape)))


class MatrixKernel(OnMatrices, Custom):
    """A computation on batches of real matrices by a kernel, which may find one that it cannot take.

    It reports the number of the matrix and that of a row, from 1 on; subclasses say what is wrong in ``wrong``.
    """

    functions: tuple[str, ...] = ()
    kinds = "f"
    half_types = False
    error = LinAlgError
    fix = ""
    wrong: Callable[[str, int], str]

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return attrs

    def report(self, b: Any, matrix: Any, size: Any, row: Any) -> None:
        """Emit the failure of a matrix with so many rows at one of these."""
        kernels.fail(b, b.add(b.mul(matrix, b.add(size, 1)), row))

    def failure(self, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
        """What is wrong with the matrix."""
        shape = inputs[0].shape
        matrix, row = divmod(index, shape[-1] + 1)
        return self.wrong(batch_element(matrix, shape[:-2]), row), self.fix


class MatrixOperation(OnMatrices, Host):
    """A computation on batches of matrices by NumPy.

    Subclasses give ``compute(*arrays, *attrs)``, the type of the result and the gradient rule.
    """

    functions: tuple[str, ...] = ()
    library = "NumPy's library of linear algebra, with one thread for each matrix"
    compute: Callable[..., Any]

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        """Cotangents of the operands, from the cotangent and value of the result, the operands, the attributes.

        An error for whoever asks for them unless a subclass says otherwise.
        """
        return [NoGradient(self.title or self.name, operand) for operand in self.parameter_names()]

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        def compute(*parts: Any) -> Any:
            with numpy.errstate(all="ignore"):
                return self.compute(*parts, *attrs)

        with one_blas_thread:
            return over_matrices(compute, arrays, _NANOSECONDS * arrays[0].size * min(arrays[0].shape[-2:]))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs, *arrays)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        if not self.differentiable:
            return (None,) * len(inputs)
        return self.gradient(cotangent, output, *inputs, *attrs)


class Unpacked:
    """What operations with several results share, which are laid one after another along the last axis of one array."""

    name: str
    differentiable: Any

    def pieces(self, attrs: Attributes, shape: Shape) -> Pieces:
        """Shapes of the results, without batch axes, for an operand of ``shape``."""
        raise NotImplementedError(self.name)

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        """As of ``MatrixOperation``, on lists of cotangents and of values."""
        raise NotImplementedError(self.name)

    def type_of(self, attrs: Attributes, types: Sequence[TensorType]) -> TensorType:
        """All results of a matrix in a row."""
        total = sum(map(prod, self.pieces(attrs, types[0].shape)))
        return tensor_type(self.packed_dtype(types[0].dtype), (*types[0].shape[:-2], total))

    def packed_dtype(self, dtype: DType) -> DType:
        """The dtype that all results fit in."""
        return dtype

    def unpack(self, packed: Any, attrs: Attributes, shape: Shape) -> list[Any]:
        """The results, from what this operation gave for an operand of ``shape``."""
        found, start = [], 0
        for piece in self.pieces(attrs, shape):
            found.append(apply("piece", packed, attrs=(start, piece)))
            start += prod(piece)
        return found

    def results(self, *operands: Any, attrs: Attributes = ()) -> list[Any]:
        """The results for ``operands``, each a value of its own."""
        return self.unpack(apply(self.name, *operands, attrs=attrs), attrs, tuple(operands[0].shape))

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        """The gradients, from those of each result."""
        if not self.differentiable:
            return (None,) * len(inputs)
        shape = inputs[0].shape
        cotangents, values = self.unpack(cotangent, attrs, shape), self.unpack(output, attrs, shape)
        return self.gradient(cotangents, values, *inputs, *attrs)


class Packed(Unpacked, MatrixOperation):
    """A computation by NumPy with several results; ``compute`` returns them as a sequence."""

    gradient = MatrixOperation.gradient

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        found = super().host(attrs, *arrays)
        batch = arrays[0].shape[:-2]
        sizes = [prod(shape) for shape in self.pieces(attrs, arrays[0].shape)]
        flat = [numpy.reshape(part, (*batch, size)) for part, size in zip(found, sizes, strict=True)]
        return numpy.concatenate(flat, -1)


@composite
class piece:
    """One result of a packed computation: attributes ``(start, shape)`` of it in the last axis."""

    autograd_name = None
    functions = ()
    signature = "packed"
    methods = ()

    @staticmethod
    def compute(packed: Any, start: int, shape: Shape) -> Any:
        found = slice_axis(packed, packed.ndim - 1, start, prod(shape)) if prod(shape) else packed
        if not prod(shape):
            return filled(0, packed.dtype, (*packed.shape[:-1], *shape))
        return ops.reshape(found, (*packed.shape[:-1], *shape))

    reference = lambda packed, start, shape: packed[..., start : start + prod(shape)].reshape(
        *packed.shape[:-1], *shape
    )
    samples = lambda: [example((2, (2, 2)), (3, 7)), example((0, ()), (3, 7)), example((5, (2,)), (7,))]


def adjoint(x: Any) -> Any:
    """The last two axes exchanged and the elements conjugated."""
    swapped = transposed(x)
    return ops.conj(swapped) if x.dtype.kind == "c" else swapped


def conjugate(x: Any) -> Any:
    """The conjugated elements."""
    return ops.conj(x) if x.dtype.kind == "c" else x


def real(x: Any) -> Any:
    """The real parts."""
    return ops.real(x) if x.dtype.kind == "c" else x


def identity_like(x: Any) -> Any:
    """An identity matrix of the size and dtype of the square matrices ``x``."""
    return eye_like(x, x.shape[-1], x.shape[-1])


def eye_like(x: Any, rows: int, columns: int) -> Any:
    """Ones on the diagonal of a matrix of the dtype of ``x``, zeros elsewhere."""
    made: Any = REGISTRY["eye"].build((rows, columns, 0, x.dtype), ())
    return made


def diagonal_of(x: Any) -> Any:
    """The diagonals of matrices."""
    return ops.diagonal(x, 0, -2, -1)


def scaled_diagonal(x: Any, factor: float) -> Any:
    """Matrices with their diagonals multiplied by ``factor``."""
    shape = x.shape
    on_diagonal = ops.equal(axis_numbers(len(shape) - 2, shape), axis_numbers(len(shape) - 1, shape))
    return ops.where(on_diagonal, x * factor, x)


def diagonal_matrix(values: Any) -> Any:
    """Square matrices with ``values`` on the diagonal and zeros elsewhere."""
    shape = (*values.shape, values.shape[-1])
    on_diagonal = ops.equal(axis_numbers(len(shape) - 2, shape), axis_numbers(len(shape) - 1, shape))
    return ops.where(on_diagonal, ops.unsqueeze(values, -1), 0)


def safe_reciprocal(x: Any) -> Any:
    """``1 / x``, and 0 where x is 0."""
    zero = ops.equal(x, 0)
    return ops.where(zero, 0, 1 / ops.where(zero, 1, x))


def with_batch(x: Any, batch: Shape) -> Any:
    """Matrices broadcast to the batch axes ``batch``."""
    return broadcast(x, (*batch, *x.shape[-2:]))


def common_batch(*values: Any) -> Shape:
    """The batch axes that matrices broadcast to."""
    return broadcast_shapes(*[tuple(value.shape[:-2]) for value in values])


def as_int32(x: Any) -> Any:
    """Whole numbers held in floats as int32."""
    return apply("cast", real(x), attrs=(int32,))


def batch_element(flat: int, batch: Shape) -> str:
    """How a message names one matrix of a batch: nothing where there is no batch."""
    if not batch:
        return "the matrix"
    position = tuple(int(k) for k in numpy.unravel_index(flat, batch))
    return f"batch element {position[0] if len(position) == 1 else position}"


def raise_first(bad: Any, what: Callable[[str, int], str], fix: str) -> None:
    """Raise LinAlgError for the first matrix whose number in ``bad`` is not 0."""
    flat = numpy.reshape(bad, -1)
    if flat.any():
        first = int(numpy.flatnonzero(flat)[0])
        raise LinAlgError(what(batch_element(first, numpy.shape(bad)), int(flat[first])), fix)


def matrix_axes(dim: Any, ndim: int) -> tuple[int, int]:
    """Two different axes from the front; raises ArgumentError for any other number of them."""
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise ArgumentError(f"dim={dim!r} does not name two axes", "Give two, such as (-2, -1).")
    first, second = (normalize_axis(axis, ndim) for axis in dim)
    if first == second:
        raise ArgumentError(f"dim={dim!r} names one axis twice", "Give two different axes.")
    return first, second


def to_dtype(x: Any, dtype: DType) -> Any:
    """``x`` in ``dtype``; itself if it is."""
    if isinstance(x, Node):
        return convert(x, dtype)
    return x if x.dtype is dtype else apply("cast", x, attrs=(dtype,))
