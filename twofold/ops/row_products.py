"""Products over rows, and cotangents that are sums of them.

The gradient of a weight is a product whose contracted axis runs over the rows of a call. The sum of such gradients over
several calls is defined as one product over the rows of all calls, in their order.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.errors import ShapeError
from twofold.ir.node import Node
from twofold.ops.base import apply, composite, ops
from twofold.ops.examples import example


def _rows(x: Any) -> Any:
    """All rows along the last axis as a matrix."""
    return x if x.ndim == 2 else ops.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))


def _flat(x: Any) -> Any:
    return x.reshape(-1, x.shape[-1])


@composite
class concatenate_rows:
    """The rows along the last axis of all inputs behind each other, as one matrix.

    Inputs have any number of leading axes. Raises ShapeError where their last axes differ.
    """

    functions = ()
    methods = ()

    def compute(*values: Any) -> Any:
        for value in values:
            if value.shape[-1] != values[0].shape[-1]:
                what = f"rows of {value.shape[-1]} elements beside rows of {values[0].shape[-1]}"
                raise ShapeError(what, "Make the last axes equal.")
        return ops.cat([_rows(value) for value in values])

    reference = lambda *values: numpy.concatenate([_flat(value) for value in values])
    samples = lambda: [
        example((), (3,), (3,)),
        example((), (17,), (2, 17), (2, 1, 17)),
        example((), (2, 3), (0, 3), (1, 3)),
    ]


@composite
class product_over_rows:
    """The rows of one matrix transposed times those of another: the sum of the outer products of their rows.

    Inputs have any number of leading axes, which are rows.
    """

    functions = ()
    methods = ()

    def compute(left: Any, right: Any) -> Any:
        return ops.matmul(ops.permute(_rows(left), (1, 0)), _rows(right))

    reference = lambda left, right: _flat(left).T @ _flat(right)
    samples = lambda: [
        example((), (5, 3), (5, 4)),
        example((), (3,), (17,)),
        example((), (2, 3, 4), (6, 5)),
        example((), (0, 3), (0, 4)),
    ]


class Factors(NamedTuple):
    """Two matrices with as many rows; ``left`` transposed times ``right`` is the gradient."""

    left: Node
    right: Node

    def swapped(self) -> Factors:
        """The factors of the transposed gradient."""
        return Factors(self.right, self.left)


class Cotangent:
    """What arrives at a value in a backward pass: plain contributions, added as they come, and products over rows.

    The products of all calls are one, over the rows of the calls in the order of the graph. It is added last.
    """

    __slots__ = ("plain", "terms")

    def __init__(self, plain: Node | None = None) -> None:
        self.plain = plain
        self.terms: list[tuple[int, Factors]] = []  # with the position of the call, latest first

    def add(self, share: Node) -> None:
        """One more plain contribution."""
        self.plain = share if self.plain is None else apply("add", self.plain, share)

    def keep(self, position: int, factors: Factors) -> None:
        """One more product, of the call at a position of the graph."""
        self.terms.append((position, factors))

    def join(self, position: int, other: Cotangent) -> None:
        """What the call at a position of the graph passes on, its products in their order."""
        if other.plain is not None:
            self.add(other.plain)
        self.terms += [(position, factors) for factors in reversed(other.in_order())]

    def in_order(self) -> list[Factors]:
        """The products in the order of their calls."""
        ordered = self.terms[::-1]
        ordered.sort(key=lambda term: term[0])
        return [factors for _, factors in ordered]

    def total(self) -> Node | None:
        """The sum; None if nothing arrived."""
        terms = self.in_order()
        if not terms:
            return self.plain
        left, right = (
            side[0] if len(side) == 1 else apply("concatenate_rows", *side)
            for side in ([term.left for term in terms], [term.right for term in terms])
        )
        product: Node = apply("product_over_rows", left, right)
        return product if self.plain is None else apply("add", self.plain, product)


def transposes(node: Node) -> bool:
    """Whether a node is the transpose of its input, a matrix."""
    return node.op.name == "permute" and node.attrs[0] == (1, 0)


def is_column(node: Node) -> bool:
    """Whether a node is a vector as a matrix of one column."""
    return node.op.name == "reshape" and node.inputs[0].ndim == 1 and node.ndim == 2 and is_one(node.shape[1])


def is_one(size: Any) -> bool:
    """Whether a size is the number 1."""
    return isinstance(size, int) and size == 1


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
