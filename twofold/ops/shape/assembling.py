"""Tensors put together from several, or cut into several: stacks, blocks, grids, products of sets, splits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import comb, prod
from typing import Any

import numpy

from twofold.dtypes import Size, int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.bind import constant
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY
from twofold.ir.types import Shape, tensor_type
from twofold.ops.axes import given_once
from twofold.ops.base import (
    Host,
    apply,
    broadcast_shapes,
    common_dtype,
    composite,
    convert,
    host,
    normalize_axis,
    ops,
    public,
)
from twofold.ops.docstrings import shown
from twofold.ops.examples import example
from twofold.ops.shape import shapes
from twofold.ops.shape.movement import slice_axis
from twofold.ops.shape.reshaping import piece


def listed(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors given one by one, or as one sequence."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tuple(tensors[0])
    return tensors


def _at_least(ndim: int, shape: Shape) -> Shape:
    """``shape`` with axes of size 1 up to ``ndim``; a vector lies along the last axis but, of three, the second."""
    if ndim == 3 and len(shape) == 1:
        return (1, *shape, 1)
    if ndim == 3 and len(shape) == 2:
        return (*shape, 1)
    return (1,) * (ndim - len(shape)) + shape


def _raised(ndim: int) -> Callable[..., Any]:
    def raised(*tensors: Any) -> Any:
        given = listed(tensors)
        made = tuple(
            x if len(x.shape) >= ndim else ops.reshape(x, _at_least(ndim, tuple(x.shape))) for x in given
        )
        return made[0] if given is tensors and len(tensors) == 1 else made

    raised.__name__ = f"atleast_{ndim}d"
    raised.__doc__ = shown(
        f"Each input with at least {ndim} axes; the new ones have size 1. One input gives one tensor.",
        f">>> torch.atleast_{ndim}d(torch.tensor(5)).shape",
        f"twofold.Size([{', '.join('1' * ndim)}])",
    )
    return raised


for _ndim in (1, 2, 3):
    public(f"atleast_{_ndim}d")(_raised(_ndim))


@public("vstack", "row_stack")
def vstack(tensors: Sequence[Any]) -> Any:
    """The inputs, each with at least two axes, behind each other along axis 0.

    >>> import twofold as torch
    >>> torch.vstack((torch.tensor([1, 2]), torch.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    return ops.concatenate(ops.atleast_2d(list(tensors)), 0)


@public()
def hstack(tensors: Sequence[Any]) -> Any:
    """The inputs, each with at least one axis, behind each other along axis 1 (vectors: along axis 0).

    >>> import twofold as torch
    >>> torch.hstack((torch.tensor([1, 2]), torch.tensor([3, 4])))
    tensor([1, 2, 3, 4])
    """
    raised = ops.atleast_1d(list(tensors))
    return ops.concatenate(raised, 0 if raised and len(raised[0].shape) == 1 else 1)


@public()
def dstack(tensors: Sequence[Any]) -> Any:
    """The inputs, each with at least three axes, behind each other along axis 2.

    >>> import twofold as torch
    >>> torch.dstack((torch.tensor([1, 2]), torch.tensor([3, 4])))
    tensor([[[1, 3],
             [2, 4]]])
    """
    return ops.concatenate(ops.atleast_3d(list(tensors)), 2)


@public()
def column_stack(tensors: Sequence[Any]) -> Any:
    """The inputs behind each other along axis 1; vectors and scalars are columns.

    >>> import twofold as torch
    >>> torch.column_stack((torch.tensor([1, 2]), torch.tensor([3, 4])))
    tensor([[1, 3],
            [2, 4]])
    """
    columns = [ops.reshape(x, (prod(x.shape), 1)) if len(x.shape) < 2 else x for x in tensors]
    return ops.concatenate(columns, 1)


@composite
class block_diag:
    """A matrix with the inputs as blocks along its diagonal, zero elsewhere; vectors are rows.

    >>> import twofold as torch
    >>> torch.block_diag(torch.tensor([[1, 2], [3, 4]]), torch.tensor([5, 6]))
    tensor([[1, 2, 0, 0],
            [3, 4, 0, 0],
            [0, 0, 5, 6]])
    """

    call = staticmethod(lambda *tensors: apply("block_diag", *listed(tensors)))

    def compute(*tensors: Any) -> Any:
        for x in tensors:
            if x.ndim > 2:
                raise ShapeError(f"a block with {x.ndim} axes", "Use scalars, vectors and matrices.")
        dtype, _ = common_dtype([x.type for x in tensors])
        blocks = [ops.reshape(convert(x, dtype), _at_least(2, x.shape)) for x in tensors]
        width, left, rows = sum(x.shape[1] for x in blocks), 0, []
        for x in blocks:
            attrs = ((x.shape[0], width), (1, 1), (1,))
            rows.append(apply("pad_block", x, 0, constant(left, int64), attrs=attrs))
            left += x.shape[1]
        return ops.concatenate(rows, 0)

    samples = lambda: [
        example((), (2, 3), (4,), (), (1, 5)),
        example((), (2, 2)),
        example((), (2, 0), (1, 17)),
    ]


@public()
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """For every vector the grid of its elements; the grids of ``n`` vectors have ``n`` axes.

    With ``indexing="xy"`` the first two axes are exchanged. Raises ArgumentError for another value.

    >>> import twofold as torch
    >>> torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4, 5]))
    (tensor([[1, 1, 1],
            [2, 2, 2]]), tensor([[3, 4, 5],
            [3, 4, 5]]))
    """
    given = listed(tensors)
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"indexing {indexing!r}", "Use 'ij' or 'xy'.")
    if not given:
        raise ArgumentError("no tensors for a grid", "Give at least one.")
    if any(len(x.shape) > 1 for x in given):
        raise ShapeError("a grid of tensors with more than one axis", "Use vectors and scalars.")
    order = list(range(len(given)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    sizes = [prod(x.shape) for x in given]
    whole = tuple(sizes[k] for k in order)
    grids = []
    for k, x in enumerate(given):
        line = tuple(sizes[k] if position == k else 1 for position in order)
        grids.append(ops.broadcast_to(ops.reshape(x, line), whole))
    return tuple(grids)


@public()
def cartesian_prod(*tensors: Any) -> Any:
    """Every choice of one element from each vector, a row each, in the order of nested loops.

    >>> import twofold as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    if any(len(x.shape) != 1 for x in tensors):
        raise ShapeError("a product of sets that are not vectors", "Use tensors with one axis.")
    if len(tensors) == 1:
        return tensors[0]
    return ops.stack([ops.ravel(grid) for grid in ops.meshgrid(*tensors)], 1)


@host
class chosen_indices(Host):
    """All choices of ``r`` of ``n`` positions in order, int64 ``[choices, r]``; attributes ``(n, r, repeated)``."""

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        n, r, repeated = attrs
        count = comb(n + r - 1 if repeated and n else n, r)
        return make_node(self, attrs, (), tensor_type(int64, (count, r)))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        n, r, repeated = attrs
        choose = itertools.combinations_with_replacement if repeated else itertools.combinations
        return numpy.array(list(choose(range(n), r)), numpy.int64).reshape(-1, r)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs)

    def samples(self) -> Sequence[Any]:
        return [example(attrs) for attrs in ((4, 2, False), (3, 2, True), (2, 3, False), (0, 1, True))]


@composite
class combinations:
    """Every choice of ``r`` elements of a vector in their order, a row each; ``with_replacement`` repeats them.

    >>> import twofold as torch
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """

    def call(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
        if r < 0:
            raise ArgumentError(f"r is {r}", "Choose 0 or more elements.")
        return apply("combinations", input, attrs=(int(r), bool(with_replacement)))

    def compute(x: Any, r: int, repeated: bool) -> Any:
        if x.ndim != 1:
            raise ShapeError(f"combinations of a tensor with {x.ndim} axes", "Use a vector.")
        if r == 0:
            return slice_axis(x, 0, constant(0, int64), 0)
        return ops.index_select(x, 0, REGISTRY["chosen_indices"].build((x.shape[0], r, repeated), ()))

    samples = lambda: [example((2, False), (5,)), example((3, True), (3,)), example((2, False), (0,))]


@public("broadcast_shapes")
def common_shape(*shapes: Any) -> Size:
    """The shape that all shapes (or sizes) broadcast to; raises ShapeError if there is none.

    >>> import twofold as torch
    >>> torch.broadcast_shapes((2, 1), (3,), 1)
    twofold.Size([2, 3])
    """
    whole = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    if any(size < 0 for shape in whole for size in shape):
        raise ShapeError(f"a size is negative in {whole}", "Sizes start at 0.")
    return Size(broadcast_shapes(*whole) if whole else ())


common_shape.__name__ = "broadcast_shapes"


# Splits


@public(
    "split_with_sizes", "unsafe_split_with_sizes", methods=("split_with_sizes", "unsafe_split_with_sizes")
)
def split_with_sizes(input: Any, split_sizes: Sequence[int], dim: int = 0) -> tuple[Any, ...]:
    """The input cut along an axis in pieces of ``split_sizes``, which must add up.

    >>> import twofold as torch
    >>> torch.split_with_sizes(torch.arange(5), (2, 3))
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    return ops.split(input, list(split_sizes), dim)


@public(methods=("unsafe_split",))
def unsafe_split(input: Any, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
    """The same as ``split``.

    >>> import twofold as torch
    >>> torch.unsafe_split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    return ops.split(input, split_size, dim)


@public(methods=("unsafe_chunk",))
def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """The same as ``chunk``.

    >>> import twofold as torch
    >>> torch.unsafe_chunk(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    return ops.chunk(input, chunks, dim)


@public(methods=("tensor_split",))
def tensor_split(
    input: Any, indices_or_sections: Any = None, dim: int = 0, *, sections: Any = None, indices: Any = None
) -> tuple[Any, ...]:
    """The input cut along an axis into so many nearly equal pieces, or before each of the positions given.

    >>> import twofold as torch
    >>> [piece.tolist() for piece in torch.tensor_split(torch.arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    """
    axis = normalize_axis(dim, len(input.shape))
    if not len(input.shape):
        raise ShapeError("a split of a scalar", "Use a tensor with at least one axis.")
    positions = shapes.split_positions(
        input.shape[axis], _given(indices_or_sections=indices_or_sections, sections=sections, indices=indices)
    )
    return tuple(piece(input, axis, start, size) for start, size in positions)


def _given(**ways: Any) -> Any:
    """The one argument that was given; tensors as lists."""
    found = given_once(**ways)
    return found.tolist() if hasattr(found, "tolist") else found


def _axis_split(name: str, axis: int, least: int) -> Callable[..., Any]:
    def split(
        input: Any, indices_or_sections: Any = None, *, sections: Any = None, indices: Any = None
    ) -> tuple[Any, ...]:
        ndim = len(input.shape)
        if ndim < least:
            raise ShapeError(f"{name} of a tensor with {ndim} axes", f"Use one with at least {least}.")
        position = axis if ndim > 1 else 0
        wanted = _given(indices_or_sections=indices_or_sections, sections=sections, indices=indices)
        if isinstance(wanted, int) and (wanted < 1 or input.shape[position] % wanted):
            raise ArgumentError(
                f"{wanted} equal pieces of size {input.shape[position]}",
                "Use a number of pieces that divides it.",
            )
        return ops.tensor_split(input, wanted, position)

    split.__name__ = name
    split.__doc__ = shown(
        f"The input cut along axis {axis} into equal pieces, or before each of the positions given.\n\n"
        "Raises ArgumentError for a number of pieces that does not divide the axis.",
        ">>> x = torch.arange(8).reshape(2, 2, 2)",
        f">>> torch.{name}(x, 2)[1].tolist()",
        str(_SECOND_HALVES[axis]),
    )
    return split


_SECOND_HALVES = {0: [[[4, 5], [6, 7]]], 1: [[[2, 3]], [[6, 7]]], 2: [[[1], [3]], [[5], [7]]]}
"""What the examples print: the second half along each axis."""

for _name, _axis, _least in (("hsplit", 1, 1), ("vsplit", 0, 2), ("dsplit", 2, 3)):
    public(_name, methods=(_name,))(_axis_split(_name, _axis, _least))
