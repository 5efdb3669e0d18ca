"""Einstein summation written with permutations, reshapes, sums and matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from twofold.errors import ArgumentError, ShapeError
from twofold.ir.node import Node
from twofold.ops.base import apply, broadcast, ops

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def with_equation(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """The equation and the operands of ``operand, axes, operand, axes, ..., axes of the result``.

    >>> with_equation(["a", [0, 1], "b", [1, ...], [0, ...]])
    ('ab,b...->a...', ('a', 'b'))
    """

    def term(axes: Any) -> str:
        if not isinstance(axes, (list, tuple)) or not all(
            axis is ... or (isinstance(axis, int) and 0 <= axis < len(_LETTERS)) for axis in axes
        ):
            raise ArgumentError(
                f"axes {axes!r}", f"Give a list of numbers from 0 to {len(_LETTERS) - 1}, or '...'."
            )
        return "".join("..." if axis is ... else _LETTERS[axis] for axis in axes)

    paired = len(arguments) // 2 * 2
    equation = ",".join(term(axes) for axes in arguments[1:paired:2])
    if len(arguments) > paired:
        equation += "->" + term(arguments[-1])
    return equation, tuple(arguments[:paired:2])


def parse(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, with ``...`` replaced by unused letters.

    Raises ArgumentError for an equation that is malformed or does not fit the operands.
    """
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ArgumentError(
            f"{equation!r} names {len(terms)} operands, not {len(ranks)}", "Write one term for each."
        )
    unused = [letter for letter in _LETTERS if letter not in equation]
    hidden = [rank - len(term) + 3 if "..." in term else 0 for term, rank in zip(terms, ranks, strict=True)]
    dots = "".join(unused[: max(hidden, default=0)])
    full = [
        term.replace("...", dots[len(dots) - count :] if count > 0 else "")
        for term, count in zip(terms, hidden, strict=True)
    ]
    for term, rank in zip(full, ranks, strict=True):
        if len(term) != rank or not all(letter in _LETTERS for letter in term):
            raise ArgumentError(
                f"term {term!r} for a tensor with {rank} axes", "Write one letter per axis, or '...'."
            )
    if arrow:
        result = right.replace("...", dots)
    else:
        free = sorted(letter for letter in set(left) & set(_LETTERS) if left.count(letter) == 1)
        result = dots + "".join(free)
    if len(set(result)) != len(result) or not set(result) <= set("".join(full)):
        raise ArgumentError(
            f"result {result!r} of {equation!r}", "Name each axis of the result once, all from operands."
        )
    return full, result


def reordered(equation: str, x: Any) -> Any:
    """The view of ``x`` that has its axes in another order, or diagonals of it; None where elements are computed."""
    try:
        (term,), result = parse(equation, [x.ndim])
    except ArgumentError:
        return None  # the error of the operation names its operands alone
    sizes = dict(zip(term, x.shape, strict=True))
    if set(term) != set(result) or tuple(sizes[letter] for letter in term) != tuple(x.shape):
        return None
    x, term = _without_repeats(x, term, sizes)
    return ops.permute(x, tuple(term.index(letter) for letter in result))


def contract(equation: str, operands: Sequence[Node]) -> Node:
    """The value of ``equation``, two operands at a time from the left."""
    labels, result = parse(equation, [x.ndim for x in operands])
    sizes: dict[str, int] = {}
    for term, x in zip(labels, operands, strict=True):
        for letter, size in zip(term, x.shape, strict=True):
            known = sizes.setdefault(letter, size)
            if 1 not in (known, size) and known != size:
                raise ShapeError(f"axis {letter} has sizes {known} and {size}", "Make them equal.")
            sizes[letter] = max(known, size) if 0 not in (known, size) else 0
    pending = [_without_repeats(x, term, sizes) for x, term in zip(operands, labels, strict=True)]
    value, term = pending[0]
    for position in range(1, len(pending)):
        later = "".join(other for _, other in pending[position + 1 :])
        value, term = _pair(value, term, *pending[position], result + later, sizes)
    value, term = _summed(value, term, result)
    order = tuple(term.index(letter) for letter in result)
    permuted: Node = ops.permute(value, order)
    return broadcast(permuted, tuple(sizes[letter] for letter in result))


def _without_repeats(x: Node, term: str, sizes: dict[str, int]) -> tuple[Node, str]:
    """Diagonals of axes that share a letter; axes of size 1 broadcast where a letter occurs twice."""
    while len(set(term)) != len(term):
        letter = next(letter for letter in term if term.count(letter) > 1)
        first = term.index(letter)
        second = term.index(letter, first + 1)
        shape = tuple(sizes[letter] if axis in (first, second) else size for axis, size in enumerate(x.shape))
        x = ops.diagonal(x if shape == tuple(x.shape) else broadcast(x, shape), 0, first, second)
        term = "".join(other for axis, other in enumerate(term) if axis not in (first, second)) + letter
    return x, term


def _summed(x: Node, term: str, keep: str) -> tuple[Node, str]:
    """``x`` summed over the letters that nobody keeps."""
    axes = tuple(axis for axis, letter in enumerate(term) if letter not in keep)
    if not axes:
        return x, term
    return apply("sum", x, attrs=(axes, False)), "".join(letter for letter in term if letter in keep)


def _pair(a: Node, left: str, b: Node, right: str, keep: str, sizes: dict[str, int]) -> tuple[Node, str]:
    """The contraction of two operands as one batched matrix product."""
    a, left = _summed(a, left, keep + right)
    b, right = _summed(b, right, keep + left)
    batch = [letter for letter in left if letter in right and letter in keep]
    inner = [letter for letter in left if letter in right and letter not in keep]
    rows = [letter for letter in left if letter not in right]
    columns = [letter for letter in right if letter not in left]
    if not inner:
        return _products(a, left, b, right, [*batch, *rows, *columns]), "".join([*batch, *rows, *columns])
    shared = [*batch, *inner]
    a = broadcast(a, tuple(sizes[x] if x in shared else n for x, n in zip(left, a.shape, strict=True)))
    b = broadcast(b, tuple(sizes[x] if x in shared else n for x, n in zip(right, b.shape, strict=True)))
    own = dict(zip(left, a.shape, strict=True)) | dict(zip(right, b.shape, strict=True))

    def group(x: Node, term: str, *groups: list[str]) -> Node:
        order = tuple(term.index(letter) for letters in (batch, *groups) for letter in letters)
        shape = [own[letter] for letter in batch] + [
            prod(own[letter] for letter in letters) for letters in groups
        ]
        result: Node = ops.reshape(ops.permute(x, order), tuple(shape))
        return result

    product = ops.matmul(group(a, left, rows, inner), group(b, right, inner, columns))
    letters = [*batch, *rows, *columns]
    return ops.reshape(product, tuple(own[letter] for letter in letters)), "".join(letters)


def _products(a: Node, left: str, b: Node, right: str, letters: Sequence[str]) -> Any:
    """Element-wise products over the union of the axes."""

    def aligned(x: Node, term: str) -> Any:
        present = [letter for letter in letters if letter in term]
        ordered = ops.permute(x, tuple(term.index(letter) for letter in present))
        own = dict(zip(term, x.shape, strict=True))
        return ops.reshape(ordered, tuple(own.get(letter, 1) for letter in letters))

    return aligned(a, left) * aligned(b, right)
