"""Products and sums over rows, and cotangents that are sums of them.

The gradient of a weight is a product whose contracted axis runs over the rows of a call, that of a bias a sum of rows.
The sum of gradients over several calls is defined as one product, or one sum, over the rows of all calls, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import int64
from twofold.errors import ShapeError
from twofold.ir.node import Node
from twofold.ir.sizes import Symbol
from twofold.ir.types import Shape
from twofold.ir.views import below_reshapes
from twofold.ops.base import apply, composite, convert, ops
from twofold.ops.examples import example


def _rows(x: Any, axes: int) -> Any:
    """All rows as a matrix; the last ``axes`` axes are those of a row."""
    cut = x.ndim - axes
    shape = x.shape
    return x if x.ndim == 2 and axes == 1 else ops.reshape(x, (prod(shape[:cut]), prod(shape[cut:])))


def _flat(x: Any, axes: int = 1) -> Any:
    cut = x.ndim - axes
    return x.reshape(prod(x.shape[:cut]), prod(x.shape[cut:]))


def _begun(rest: Sequence[Any]) -> tuple[Sequence[Any], Shape]:
    """What a sum begins with, if it is given, and the shape behind it."""
    count = bool(rest) and not isinstance(rest[0], (int, Symbol))
    return rest[:count], tuple(rest[count:])


@composite
class concatenate_rows:
    """The rows of all inputs behind each other, as one matrix; attributes ``(axes of a row,)``, the last ones.

    Inputs have any number of axes before these. Raises ShapeError where their rows differ in size.
    """

    functions = ()
    methods = ()

    def compute(*arguments: Any) -> Any:
        *values, axes = arguments
        rows = [_rows(value, axes) for value in values]
        for matrix in rows:
            if matrix.shape[1] != rows[0].shape[1]:
                what = f"rows of {matrix.shape[1]} elements beside rows of {rows[0].shape[1]}"
                raise ShapeError(what, "Make them equal.")
        return ops.cat(rows)

    def reference(*arguments: Any) -> Any:
        *values, axes = arguments
        return numpy.concatenate([_flat(value, axes) for value in values])

    samples = lambda: [
        example((1,), (3,), (3,)),
        example((1,), (17,), (2, 17), (2, 1, 17)),
        example((1,), (2, 3), (0, 3), (1, 3)),
        example((2,), (2, 3), (4, 2, 3)),
        example((0,), (), (4,), (2, 3)),
    ]


@composite
class product_over_rows:
    """The rows of one matrix transposed times those of another: the sum of the outer products of their rows.

    Inputs have any number of leading axes, which are rows. A third input is what the sum begins with.
    """

    functions = ()
    methods = ()
    accumulates = True

    def compute(left: Any, right: Any, *start: Any) -> Any:
        if start:
            return apply("accumulate_product", _rows(left, 1), _rows(right, 1), *start)
        return ops.matmul(ops.permute(_rows(left, 1), (1, 0)), _rows(right, 1))

    reference = lambda left, right, *start: sum(start, _flat(left).T @ _flat(right))
    samples = lambda: [
        example((), (5, 3), (5, 4)),
        example((), (3,), (17,)),
        example((), (2, 3, 4), (6, 5)),
        example((), (0, 3), (0, 4)),
        example((), (2, 3, 4), (6, 5), (4, 5)),
    ]


@composite
class rows_added_at:
    """Zeros with rows added at an index along the first axis, in the order of the index; attributes the shape.

    Inputs ``(index, rows)``: a number for each row. A third input takes the place of the zeros.
    """

    functions = ()
    methods = ()
    accumulates = True
    checked_above = True

    def compute(index: Any, rows: Any, *rest: Any) -> Any:
        start, shape = _begun(rest)
        count, width = index.type.size, prod(shape[1:])
        positions = convert(ops.reshape(index, (1, count, 1)), int64)
        updates = ops.reshape(rows, (1, count, width))
        if start:
            table = ops.reshape(start[0], (1, shape[0], width))
            return ops.reshape(apply("accumulate_at", table, positions, updates), shape)
        return ops.reshape(apply("scatter_sum", positions, updates, attrs=(shape[0],)), shape)

    def reference(index: Any, rows: Any, *rest: Any) -> Any:
        start, shape = _begun(rest)
        result = sum(start, numpy.zeros(shape, rows.dtype))
        numpy.add.at(result, index.reshape(-1), rows.reshape(-1, *shape[1:]))
        return result

    samples = lambda: [
        example((5, 3), numpy.array([[4], [1], [4]]), (3, 3)),
        example((5,), numpy.array([[0], [1], [0]]), (3, 1)),
        example((4, 2, 3), numpy.array([3, 1]), (2, 6)),
        example((4, 2, 3), numpy.array([3, 1]), (2, 6), (4, 2, 3)),
    ]


@composite
class sum_of_rows:
    """The rows of a matrix, added one after another; attributes the shape of the result, which is that of a row.

    A second input is what the sum begins with. Source: the order of sums over calls, in docs/numbers.md.
    """

    functions = ()
    methods = ()
    accumulates = True

    def compute(rows: Any, *rest: Any) -> Any:
        start, shape = _begun(rest)
        rows = _rows(rows, 1)
        if start:
            first = ops.reshape(start[0], (rows.shape[1],))
            return ops.reshape(apply("accumulate_rows", first, rows), shape)
        return ops.reshape(apply("ordered_sum", rows, attrs=((0,),)), shape)

    def reference(rows: Any, *rest: Any) -> Any:
        start, shape = _begun(rest)
        return sum(start, rows.sum(0).reshape(shape))

    samples = lambda: [
        example((3,), (5, 3)),
        example((2, 17), (4, 34)),
        example((1, 2), (0, 2)),
        example((2, 17), (4, 34), (2, 17)),
    ]


class Factors(NamedTuple):
    """A contribution told by two matrices with as many rows, of which several contributions make one.

    Without a shape it is ``left`` transposed times ``right``. With one it is zeros of this shape with the rows of
    ``right`` added at the numbers in ``left`` along the first axis; of a ``block`` ``[1, rows, width]`` the second.
    Without ``left`` it is the sum of the rows, each of which has the shape. ``alone`` is the contribution by itself,
    if known.
    """

    left: Node | None
    right: Node
    shape: Shape | None = None
    alone: Node | None = None
    block: bool = False

    @property
    def kind(self) -> tuple[bool, bool, bool]:
        """What contributions must agree in to make one."""
        return self.left is None, self.shape is not None, self.block


class Cotangent:
    """What arrives at a value in a backward pass: plain contributions, added as they come, and what factors tell.

    The products of all calls are one, over the rows of the calls in the order of the graph; so are the rows that are
    added to a table, and those that are added up. The table goes on from the product, and the sum of rows from the
    table; the plain contributions are added last.
    """

    __slots__ = ("plain", "terms")

    def __init__(self, plain: Node | None = None) -> None:
        self.plain = plain
        self.terms: list[tuple[int, Factors]] = []  # with the position of the call, latest first

    def add(self, share: Node) -> None:
        """One more plain contribution."""
        self.plain = share if self.plain is None else apply("add", self.plain, share)

    def keep(self, position: int, factors: Factors) -> None:
        """The factors of one more contribution, of the call at a position of the graph."""
        self.terms.append((position, factors))

    def join(self, position: int, other: Cotangent) -> None:
        """What the call at a position of the graph passes on, its factors in their order."""
        if other.plain is not None:
            self.add(other.plain)
        self.terms += [(position, factors) for factors in reversed(other.in_order())]

    def in_order(self) -> list[Factors]:
        """The factors in the order of their calls."""
        ordered = self.terms[::-1]
        ordered.sort(key=lambda term: term[0])
        return [factors for _, factors in ordered]

    def total(self) -> Node | None:
        """The sum; None if nothing arrived."""
        factors, found = self.in_order(), None
        for kind in sorted({one.kind for one in factors}):
            group = [one for one in factors if one.kind == kind]
            alone = group[0].alone if len(group) == 1 and found is None else None
            found = _sum_of(group, found) if alone is None else alone
        return (
            found if self.plain is None else self.plain if found is None else apply("add", self.plain, found)
        )

    def through_view(self, node: Node, above: Cotangent) -> Cotangent:
        """Of the cotangent of a view, give to that of its input what the factors tell of it; returns the rest."""
        products, same, rows = transposes(node), _is_identity(node), _numbers_rows(node)
        rest = Cotangent(self.plain)
        for position, one in self.terms:
            if products and one.shape is None and one.left is not None:
                above.keep(position, Factors(one.right, one.left))
            elif same and one.shape is not None and one.left is not None:
                above.keep(position, one)
            elif rows and one.block:
                alone = None if one.alone is None else ops.reshape(one.alone, node.inputs[0].shape)
                above.keep(position, one._replace(shape=node.inputs[0].shape, alone=alone, block=False))
            else:
                rest.keep(position, one)
        return rest


def _sum_of(group: list[Factors], start: Node | None) -> Node:
    """The sum of contributions of one kind, which begins with ``start``."""
    left, right = ([one.left for one in group if one.left is not None], [one.right for one in group])
    sides = [
        side[0] if len(side) == 1 else apply("concatenate_rows", *side, attrs=(1,))
        for side in (left, right)
        if side
    ]
    shape, block = group[0].shape, group[0].block
    own = shape if shape is None or not block else shape[1:]
    begin = () if start is None else (ops.reshape(start, own) if block else start,)
    made: Node
    if own is None:
        made = apply("product_over_rows", *sides, *begin)
    elif not left:
        made = apply("sum_of_rows", *sides, *begin, attrs=own)
    else:
        made = apply("rows_added_at", *sides, *begin, attrs=own)
    return ops.reshape(made, shape) if block else made


def transposes(node: Node) -> bool:
    """Whether a node is the transpose of its input, a matrix."""
    return node.op.name == "permute" and node.attrs[0] == (1, 0)


def _is_identity(node: Node) -> bool:
    return node.op.name == "permute" and node.attrs[0] == tuple(range(node.ndim))


def _numbers_rows(node: Node) -> bool:
    """Whether a node shows a table as one block of rows ``[1, rows, width]``."""
    if node.op.name != "reshape" or node.ndim != 3 or not node.inputs[0].ndim:
        return False
    return is_one(node.shape[0]) and same_size(node.shape[1], node.inputs[0].shape[0])


def is_column(node: Node) -> bool:
    """Whether a node is a vector as a matrix of one column."""
    return node.op.name == "reshape" and node.inputs[0].ndim == 1 and node.ndim == 2 and is_one(node.shape[1])


def is_one(size: Any) -> bool:
    """Whether a size is the number 1."""
    return isinstance(size, int) and size == 1


def same_size(one: Any, other: Any) -> bool:
    """Whether two sizes are known to be equal."""
    return one is other or (isinstance(one, int) and isinstance(other, int) and one == other)


Share = Node | Cotangent | None
"""What a call passes on to one of its inputs."""


def matrix_shares(cotangent: Node, a: Node, b: Node) -> list[Share]:
    """What a product of matrices passes on: products over rows to the right, and to the left where b is a vector."""
    left = Cotangent()
    if is_column(b):
        columns = Factors(ops.reshape(cotangent, (1, a.shape[0])), ops.reshape(b.inputs[0], (1, a.shape[1])))
        left.keep(0, columns)
    else:
        left.add(ops.matmul(cotangent, ops.permute(b, (1, 0))))
    right = Cotangent()
    right.keep(0, Factors(a, cotangent))
    return [left, right]


def summed_rows(node: Node) -> Node | None:
    """The ordered sum along leading axes that a node shows; None for others."""
    node = below_reshapes(node)
    if node.op.name != "ordered_sum":
        return None
    (axes,) = node.attrs
    return node if axes == tuple(range(len(axes))) else None


def rows_share(cotangent: Node, share: Share, node: Node) -> Share:
    """What an operation passes on to a vector that it adds, and to what it repeats."""
    if not isinstance(share, Node):
        return share
    repeats = node.op.name in ("broadcast_to", "ruled")
    if share is cotangent:
        if (node.op.kind != "elementwise" and not repeats) or share.ndim != 1 or share.dtype.kind != "f":
            return share
        kept = Cotangent()
        kept.keep(0, Factors(None, ops.reshape(share, (1, share.shape[0])), share.shape, share))
        return kept
    own = repeats and summed_rows(share) is not summed_rows(cotangent)  # not one that arrived
    return (_kept_rows(share) if own else None) or share


def through_broadcast(node: Node, share: Node, repeated: Node) -> Cotangent | None:
    """What an element-wise operation passes on through a broadcast operand: a call of its own, in its own position.

    Bodies have one node for equal broadcasts of several calls.
    """
    if node.op.kind != "elementwise" or share.dtype.kind != "f":
        return None
    (narrow,) = repeated.op.vjp(repeated.attrs, share, repeated, repeated.inputs)
    assert narrow is not None
    return _kept_rows(narrow)


def _kept_rows(share: Node) -> Cotangent | None:
    total = summed_rows(share)
    if total is None:
        return None
    (wide,) = total.inputs
    rows = ops.reshape(wide, (prod(wide.shape[: wide.ndim - total.ndim]), prod(share.shape)))
    kept = Cotangent()
    kept.keep(0, Factors(None, rows, share.shape, share))
    return kept


def block_share(cotangent: Node, own: Node | None, table: Node, index: Node) -> Share:
    """What a look-up of rows in a block passes on to its table, where ``own`` is that by its own rule."""
    if not (is_one(table.shape[0]) and is_one(index.shape[2])):
        return own
    count, width = index.shape[1], table.shape[2]
    positions, rows = ops.reshape(index, (count, 1)), ops.reshape(cotangent, (count, width))
    kept = Cotangent()
    kept.keep(0, Factors(positions, rows, table.shape, own, block=True))
    return kept


def row_share(cotangent: Node, own: Node | None, node: Node, table: Node, start: Node) -> Share:
    """What a view of one row at ``start`` passes on to its table, where ``own`` is that by its own rule."""
    sizes, steps, axes = node.attrs
    if axes != (0,) or sizes[0] != 1 or any(step != 1 for step in steps):
        return own
    rows = ops.reshape(cotangent, (1, prod(table.shape[1:])))
    kept = Cotangent()
    kept.keep(0, Factors(ops.reshape(start, (1, 1)), rows, table.shape, own))
    return kept


def factors_of(node: Node) -> Factors | None:
    """The factors of a node that is a product over rows, perhaps transposed; None for others."""
    if transposes(node):
        below = factors_of(node.inputs[0])
        return None if below is None or below.left is None else Factors(below.right, below.left)
    if node.op.name != "matmul" or node.ndim != 2:
        return None
    first, right = node.inputs
    if transposes(first):
        return Factors(first.inputs[0], right)
    if is_column(first):
        return Factors(ops.reshape(first.inputs[0], (1, first.shape[0])), right)
    return None
