"""Linear algebra: the matrix product and what is written with it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.dtypes import complex64, float64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import AccumulatingOp
from twofold.ir.sizes import is_symbolic
from twofold.ir.types import Shape, tensor_type
from twofold.ops.autograd_names import of_linear, of_product
from twofold.ops.base import (
    Contraction,
    apply,
    broadcast,
    broadcast_shapes,
    common_dtype,
    composite,
    contraction,
    convert,
    ops,
    public,
    strong,
)
from twofold.ops.building_blocks import rounded_once
from twofold.ops.contraction.einsum import contract, reordered, with_equation
from twofold.ops.docstrings import shown
from twofold.ops.elementwise import complex_functions
from twofold.ops.examples import example
from twofold.ops.indexing.row_products import factors_of, matrix_shares
from twofold.ops.promotion import autocast, need_fitting, need_one_dtype
from twofold.ops.shape import shapes
from twofold.ops.signatures import scales_first, with_names


def transposed(x: Node) -> Node:
    """The last two axes exchanged."""
    order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    node: Node = apply("permute", x, attrs=(order,))
    return node


def sizes_differ(left: int, other: Shape) -> ShapeError:
    """The error of a product whose inner sizes do not fit: of ``left`` columns with a tensor of shape ``other``."""
    advice = f"Make the first axis of other {left}."
    known = not is_symbolic((left, *other))  # a comparison of symbols would be a guard
    if known and len(other) > 1 and other[-1] == left:
        advice = f"Transpose other or make its first axis {left}."
    return ShapeError(f"inner sizes differ, {left} against {other[-2:][0]}", advice)


@contraction
class matmul(Contraction, AccumulatingOp):
    """The matrix product of the last two axes; other axes broadcast, and a vector is a row or a column.

    The products of one element are accumulated by fused multiply-add in the order of the inner axis.
    Raises ShapeError where the inner sizes differ.

    >>> import twofold as torch
    >>> torch.matmul(torch.tensor([[1, 2], [3, 4]]), torch.tensor([10, 1]))
    tensor([12, 34])
    """

    autograd_name = staticmethod(of_product)
    autocast = "lower"
    memory = (4, "both operands are packed, whole with vectors of 256 bits")

    methods = ("matmul",)
    operators = ("__matmul__",)
    reflected = True
    kinds = "iufc"
    arity = 2
    signature = "input, other"

    @staticmethod
    def call(input: Any, other: Any) -> Any:
        return apply("matmul", input, other)

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        need_one_dtype(input=inputs[0].type, other=inputs[1].type)
        dtype, _ = common_dtype([node.type for node in inputs])
        self.check_kind(dtype)
        a, b = (strong(convert(node, dtype)) for node in inputs)
        if dtype.kind == "c":
            return self._complex_product(a, b)
        if not a.ndim or not b.ndim:
            raise ShapeError("a matrix product with a scalar", "Multiply with * instead.")
        if a.ndim == 2 and b.ndim == 2:  # by far the most frequent
            return self._product(a, b)
        if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
            raise sizes_differ(a.shape[-1], b.shape)
        row, column = a.ndim == 1, b.ndim == 1
        left = ops.unsqueeze(a, 0) if row else a
        right = ops.unsqueeze(b, 1) if column else b
        if right.ndim == 2 and left.ndim > 2:
            product = self._many_rows(left, right)
        else:
            batch = broadcast_shapes(left.shape[:-2], right.shape[:-2])
            product = self._product(
                broadcast(left, (*batch, *left.shape[-2:])), broadcast(right, (*batch, *right.shape[-2:]))
            )
        if row or column:
            kept = product.shape[:-2] + product.shape[-2:][int(row) : 2 - int(column)]
            product = ops.reshape(product, kept)
        return product

    def _complex_product(self, a: Node, b: Node) -> Node:
        (x, y), (u, v) = complex_functions.parts(a), complex_functions.parts(b)
        product: Node = ops.complex(x @ u - y @ v, x @ v + y @ u)
        return product

    def _many_rows(self, a: Node, b: Node) -> Node:
        """Batches of rows by one matrix: one product with all the rows."""
        rows = 1
        for size in a.shape[:-1]:
            rows *= size
        flat: Node = ops.reshape(a, (rows, a.shape[-1]))
        result: Node = ops.reshape(self._product(flat, b), (*a.shape[:-1], b.shape[-1]))
        return result

    def _product(self, a: Node, b: Node) -> Node:
        """The primitive node: equal batch axes, one dtype."""
        if a.shape[-1] != b.shape[-2]:
            raise sizes_differ(a.shape[-1], b.shape)
        return make_node(self, (), (a, b), tensor_type(a.dtype, (*a.shape[:-1], b.shape[-1])))

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        a, b = inputs
        return self._product(cotangent, transposed(b)), self._product(transposed(a), cotangent)

    def shares(self, cotangent: Node, node: Node, inputs: tuple[Node, ...]) -> Sequence[Any] | None:
        return matrix_shares(cotangent, *inputs) if node.ndim == 2 else None

    def accumulates(self, node: Node) -> bool:
        return factors_of(node) is not None

    def accumulated(self, node: Node, start: Node) -> Node:
        left, right = node.inputs
        made: Node = apply("accumulate_product", transposed(left), right, start)
        return made

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return numpy.matmul(*arrays)

    def samples(self) -> Sequence[Any]:
        calls = (
            ((2, 3), (3, 4)),
            ((17, 33), (33, 5)),
            ((3,), (3,)),
            ((3,), (3, 2)),
            ((2, 3), (3,)),
            ((4, 2, 3), (3, 5)),
            ((4, 2, 3), (4, 3, 5)),
            ((2, 1, 2, 3), (4, 3, 2)),
            ((3,), (2, 3, 4)),
            ((0, 3), (3, 4)),
            ((2, 0), (0, 4)),
            ((1, 1), (1, 1)),
        )
        return [
            *(example((), *pair) for pair in calls),
            example((), (3, 4), (4, 2), dtype=float64),
            example((), (3, 4), (2, 4, 2), dtype=complex64),
        ]


def need_axes(name: str, value: Any, ndim: int) -> None:
    """Raise ShapeError unless ``value`` has ``ndim`` axes."""
    if len(value.shape) != ndim:
        raise ShapeError(
            f"{name} has {len(value.shape)} axes, not {ndim}", "Use matmul, which takes any number."
        )


def _restricted(name: str, second: str, left: int, right: int, doc: str, *lines: str) -> None:
    """Publish a product that takes operands with exactly these numbers of axes."""

    def product(input: Any, other: Any) -> Any:
        need_axes("input", input, left)
        need_axes(second, other, right)
        if left == 3 and input.shape[0] != other.shape[0]:
            raise ShapeError(
                f"batch sizes differ, {input.shape[0]} against {other.shape[0]}", "Make them equal."
            )
        return apply("matmul", input, other)

    with_names(product, ("input", second))
    product.__name__ = product.__qualname__ = name
    product.__doc__ = shown(f"{doc}; raises ShapeError for other numbers of axes.", *lines)
    public(name, methods=(name,))(autocast("lower" if right > 1 else "own")(product))


_restricted(
    "mm",
    "mat2",
    2,
    2,
    "The product of two matrices",
    ">>> torch.mm(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[10, 0], [1, 1]]))",
    "tensor([[12,  2],",
    "        [34,  4]])",
)
_restricted(
    "bmm",
    "mat2",
    3,
    3,
    "The products of two batches of matrices",
    ">>> torch.bmm(torch.ones(5, 2, 3), torch.ones(5, 3, 4)).shape",
    "twofold.Size([5, 2, 4])",
)
_restricted(
    "mv",
    "vec",
    2,
    1,
    "The product of a matrix and a vector",
    ">>> torch.mv(torch.tensor([[1, 2], [3, 4]]), torch.tensor([10, 1]))",
    "tensor([12, 34])",
)
_restricted(
    "dot",
    "tensor",
    1,
    1,
    "The inner product of two vectors",
    ">>> torch.dot(torch.tensor([1, 2]), torch.tensor([3, 4]))",
    "tensor(11)",
)


@public("vdot", methods=("vdot",))
@autocast("own")
def vdot(input: Any, other: Any) -> Any:
    """The inner product of two vectors, the first conjugated.

    >>> import twofold as torch
    >>> torch.vdot(torch.tensor([1 + 1j, 2j]), torch.tensor([1.0, 1.0]) + 0j)
    tensor(1.-3.j)
    """
    return ops.dot(ops.conj(input) if input.dtype.kind == "c" else input, other)


@composite
class outer:
    """All products of an element of one vector with an element of another.

    >>> import twofold as torch
    >>> torch.outer(torch.tensor([1, 2]), torch.tensor([3, 4, 5]))
    tensor([[ 3,  4,  5],
            [ 6,  8, 10]])
    """

    autograd_name = "MulBackward0"
    functions = ("outer", "ger")
    methods = ("outer", "ger")
    signature = "input, vec2"

    @staticmethod
    def compute(a: Any, b: Any) -> Any:
        need_axes("input", a, 1)
        need_axes("vec2", b, 1)
        return ops.unsqueeze(a, 1) * ops.unsqueeze(b, 0)

    reference = numpy.outer
    samples = lambda: [example((), (3,), (17,)), example((), (1,), (2,))]


@composite
class linear:
    """``input @ weight.T + bias``: a fully connected layer.

    >>> import twofold as torch
    >>> weight = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> torch.nn.functional.linear(torch.tensor([1.0, 2.0]), weight, torch.tensor([0.5, 0.5]))
    tensor([1.5000, 3.5000])
    """

    autograd_name = of_linear
    autocast = "lower"
    reads_views = True

    call = staticmethod(
        lambda input, weight, bias=None: (
            apply("linear", input, weight) if bias is None else apply("linear", input, weight, bias)
        )
    )

    @staticmethod
    def compute(x: Any, weight: Any, bias: Any = None) -> Any:
        need_one_dtype(input=x.type, weight=weight.type, bias=None if bias is None else bias.type)
        if weight.ndim not in (1, 2):
            raise ShapeError(
                f"a weight with {weight.ndim} axes", "Use one of shape (out_features, in_features)."
            )
        if not x.ndim or x.shape[-1] != weight.shape[-1]:
            size = x.shape[-1] if x.ndim else "none"
            raise ShapeError(
                f"in_features differ, {size} against {weight.shape[-1]}",
                f"Make the last axis of the input {weight.shape[-1]}.",
            )
        factor = transposed(weight) if weight.ndim == 2 else weight
        if bias is None:
            return ops.matmul(x, factor)
        return rounded_once(lambda one, two, three: ops.matmul(one, two) + three)(x, factor, bias)

    reference = lambda x, w, b=None: x @ w.T if b is None else x @ w.T + b
    samples = lambda: [
        example((), (4, 3), (5, 3), (5,)),
        example((), (2, 4, 3), (5, 3)),
        example((), (3,), (17, 3), (17,)),
    ]


def scaled_sum(x: Any, beta: Any, alpha: Any, multiply: Callable[..., Any], *factors: Any) -> Any:
    """``beta * x + alpha * multiply(*factors)``; with beta 0 a NaN or an infinity in x does not matter.

    Beside integers the scales are integers, too, as in PyTorch: a fraction is cut off.
    """

    @rounded_once
    def compute(x: Any, *factors: Any) -> Any:
        product = multiply(*factors)
        shapes.expanded(x.shape, product.shape)  # raises where the input does not broadcast to the product
        dtype = common_dtype([x.type, product.type])[0]
        scales = (
            [beta, alpha] if dtype.kind in "fc" else [convert(strong(one), dtype) for one in (beta, alpha)]
        )
        return ops.where(ops.equal(scales[0], 0), 0, x * scales[0]) + product * scales[1]

    return compute(x, *factors)


@composite
class addmm:
    """``beta * input + alpha * (mat1 @ mat2)``.

    >>> import twofold as torch
    >>> torch.addmm(torch.tensor([100]), torch.tensor([[1, 2]]), torch.tensor([[3], [4]]), alpha=2)
    tensor([[122]])
    """

    autocast = "lower"
    methods = ("addmm",)
    inplace = True

    @staticmethod
    @scales_first("beta", "alpha")
    def call(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        need_fitting(beta, input.dtype.compute)
        need_fitting(alpha, input.dtype.compute)
        return apply("addmm", input, mat1, mat2, beta, alpha)

    @staticmethod
    def compute(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
        need_one_dtype(input=x.type, mat1=a.type, mat2=b.type)
        need_axes("mat1", a, 2)
        need_axes("mat2", b, 2)
        return scaled_sum(x, beta, alpha, ops.matmul, a, b)

    reference = lambda x, a, b, beta, alpha: beta * x + alpha * (a @ b)
    samples = lambda: [example((), (5,), (2, 3), (3, 5), 1, 2), example((), (2, 5), (2, 3), (3, 5), 0, 1)]


@composite
class tensordot:
    """Products summed over pairs of axes, one of each tensor.

    >>> import twofold as torch
    >>> torch.tensordot(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 0], [0, 1]]))
    tensor(5)
    >>> torch.tensordot(torch.zeros(2, 3, 5), torch.zeros(5, 3, 7), dims=([1, 2], [1, 0])).shape
    twofold.Size([2, 7])
    """

    autocast = "lower"

    @staticmethod
    def call(a: Any, b: Any, dims: Any = 2) -> Any:
        left_ndim, right_ndim = len(a.shape), len(b.shape)
        if isinstance(dims, (tuple, list)):
            left, right = (tuple(d) if isinstance(d, (tuple, list)) else (d,) for d in dims)
        else:
            count = operator.index(dims)
            if not 0 <= count <= min(left_ndim, right_ndim):
                raise ArgumentError(f"{count} axes to contract", "Use no more than both tensors have.")
            left, right = tuple(range(left_ndim - count, left_ndim)), tuple(range(count))
        left, right = shapes.many_axes(left, left_ndim), shapes.many_axes(right, right_ndim)
        if len(left) != len(right):
            raise ArgumentError(f"{len(left)} axes against {len(right)}", "Name as many of each tensor.")
        return apply("tensordot", a, b, attrs=(left, right))

    @staticmethod
    def compute(a: Any, b: Any, left: Sequence[int], right: Sequence[int]) -> Any:
        for first, second in zip(left, right, strict=True):
            if a.shape[first] == 1:  # as if it were repeated
                b = ops.sum(b, second, True, dtype=b.dtype)
            elif b.shape[second] == 1:
                a = ops.sum(a, first, True, dtype=a.dtype)
            if a.shape[first] != b.shape[second]:
                raise ShapeError(
                    f"axis {first} of a and {second} of b differ, {a.shape[first]} against {b.shape[second]}",
                    "Contract axes of one size.",
                )
        rows = [axis for axis in range(a.ndim) if axis not in left]
        columns = [axis for axis in range(b.ndim) if axis not in right]
        inner = 1
        for axis in left:
            inner *= a.shape[axis]
        kept = [a.shape[axis] for axis in rows], [b.shape[axis] for axis in columns]
        flat_a = ops.reshape(ops.permute(a, (*rows, *left)), (_product(kept[0]), inner))
        flat_b = ops.reshape(ops.permute(b, (*right, *columns)), (inner, _product(kept[1])))
        return ops.reshape(ops.matmul(flat_a, flat_b), (*kept[0], *kept[1]))

    reference = lambda a, b, left, right: numpy.tensordot(a, b, (left, right))
    samples = lambda: [
        example(((1, 2), (0, 1)), (2, 3, 4), (3, 4, 5)),
        example(((), ()), (2,), (3,)),
        example(((0,), (1,)), (3, 2), (4, 3)),
    ]


def _product(sizes: Sequence[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


@composite
class einsum:
    """Einstein summation: ``einsum("ij,jk->ik", a, b)`` is the matrix product.

    Operands are contracted two at a time from the left; ``...`` stands for axes that broadcast. In place of the
    equation, each operand may be followed by the numbers of its axes, the last by those of the result. What only
    reorders the axes of one operand, or takes diagonals of it, is a view.

    >>> import twofold as torch
    >>> a, b = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[5, 6], [7, 8]])
    >>> torch.einsum("ij,jk->ik", a, b)
    tensor([[19, 22],
            [43, 50]])
    >>> torch.einsum("ii->i", a)
    tensor([1, 4])
    """

    autocast = "lower"
    reads_views = True

    @staticmethod
    def call(equation: str, *operands: Any) -> Any:
        if not isinstance(equation, str):
            equation, operands = with_equation((equation, *operands))
        given = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
        equation = equation.replace(" ", "")
        view = reordered(equation, given[0]) if len(given) == 1 else None
        return apply("einsum", *given, attrs=(equation,)) if view is None else view

    compute = lambda *values: contract(values[-1], values[:-1])
    reference = lambda *values: numpy.einsum(values[-1], *values[:-1])
    samples = lambda: [
        example(("ij,jk->ik",), (2, 3), (3, 4)),
        example(("bij,bkj->bik",), (2, 3, 4), (2, 5, 4)),
        example(("ii->i",), (3, 3)),
        example(("ii",), (3, 3)),
        example(("ij->ji",), (2, 17)),
        example(("...ij,jk->...ik",), (2, 2, 3), (3, 4)),
        example(("i,j,k->kji",), (2,), (3,), (4,)),
        example(("bhqd,bhkd->bhqk",), (2, 2, 3, 4), (2, 2, 5, 4)),
        example(("ij,ij->i",), (2, 3), (2, 3)),
    ]


@public(methods=("kron",))
def kron(input: Any, other: Any) -> Any:
    """The Kronecker product: each element of one tensor times the whole other.

    >>> import twofold as torch
    >>> torch.kron(torch.tensor([1, 10]), torch.tensor([1, 2, 3]))
    tensor([ 1,  2,  3, 10, 20, 30])
    """
    ndim = max(len(input.shape), len(other.shape))
    a, b = ((1,) * (ndim - len(x.shape)) + tuple(x.shape) for x in (input, other))
    apart = ops.reshape(input, tuple(size for length in a for size in (length, 1)))
    within = ops.reshape(other, tuple(size for length in b for size in (1, length)))
    return ops.reshape(ops.multiply(apart, within), tuple(x * y for x, y in zip(a, b, strict=True)))


@public(methods=("trace",))
@autocast("float32")
def trace(input: Any) -> Any:
    """The sum of the elements on the main diagonal of a matrix.

    >>> import twofold as torch
    >>> torch.trace(torch.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    need_axes("input", input, 2)
    return ops.sum(ops.diagonal(input))
