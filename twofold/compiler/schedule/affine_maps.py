"""Affine maps from loop axes to the indices of values, and their composition through chains of views, as in MLIR.

An ``AffineExpr`` is an index ``constant + sum(coefficient * i[axis]) + sum(step * value of a scalar node)``. The map of
a view has one expression for each axis of its base: over the axes of the view or, later, of the loops that read it.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.ir.node import Node
from twofold.ir.op import ViewOp
from twofold.ir.types import Shape

AffineExpr = tuple[int, tuple[tuple[int, int], ...], tuple[tuple[Node, int], ...]]
AffineMap = tuple[AffineExpr, ...]

ZERO: AffineExpr = (0, (), ())


class NeedsLoopSplit(Exception):
    """A reshape is affine only if loop axis ``axis`` is split in two, the inner one of length ``inner``."""

    def __init__(self, axis: int, inner: int) -> None:
        super().__init__(axis, inner)  # no text, as formatting a symbol adds a guard
        self.axis = axis
        self.inner = inner


class NotAffine(Exception):
    """A reshape has no affine map: its input must be materialised."""


def identity(shape: Shape) -> AffineMap:
    """The identity map of a shape.

    >>> identity((2, 1))
    ((0, ((0, 1),), ()), (0, (), ()))
    """
    return tuple(ZERO if size == 1 else (0, ((axis, 1),), ()) for axis, size in enumerate(shape))


def linear_combination(parts: Sequence[tuple[int, AffineExpr]], constant: int = 0) -> AffineExpr:
    """The sum of affine expressions times weights.

    >>> linear_combination([(4, (1, ((0, 1),), ())), (2, (0, ((0, 1), (1, 3)), ()))])
    (4, ((0, 6), (1, 6)), ())
    """
    terms: dict[int, int] = {}
    dynamic: tuple[tuple[Node, int], ...] = ()
    for weight, (offset, own, run_time) in parts:
        constant += weight * offset
        for axis, coefficient in own:
            terms[axis] = terms.get(axis, 0) + weight * coefficient
        if run_time:
            dynamic += tuple((node, weight * step) for node, step in run_time)
    return constant, tuple(sorted(item for item in terms.items() if item[1])), dynamic


def compose(inner: AffineMap, outer: AffineMap) -> AffineMap:
    """The composition of two maps: ``inner`` is over the axes that the expressions of ``outer`` are for."""
    result = []
    for index in inner:
        constant, terms, dynamic = index
        if len(terms) == 1 and not constant and not dynamic and terms[0][1] == 1:
            result.append(outer[terms[0][0]])
        elif not terms:
            result.append(index)
        else:
            found = linear_combination([(coefficient, outer[axis]) for axis, coefficient in terms], constant)
            result.append((found[0], found[1], found[2] + dynamic))
    return tuple(result)


def row_major(shape: Shape) -> list[int]:
    """The strides of a dense value.

    >>> row_major((2, 3, 4))
    [12, 4, 1]
    """
    strides, stride = [1] * len(shape), 1
    for axis in range(len(shape) - 1, -1, -1):
        strides[axis] = stride
        stride *= shape[axis]
    return strides


def linearized(indices: AffineMap, shape: Shape) -> AffineExpr:
    """The linear index in a dense buffer of ``shape``."""
    if not indices:
        return ZERO
    if len(indices) == 1:
        return indices[0]
    return linear_combination(list(zip(row_major(shape), indices)))


def through_reshape(before: Shape, after: Shape, indices: AffineMap, domain: Sequence[int]) -> AffineMap:
    """The map of the input of a reshape.

    Args:
        before: The shape of the input.
        after: The shape of the result.
        indices: The map of the result.
        domain: The lengths of the loop axes.

    Raises:
        NeedsLoopSplit: A loop axis has to be split first.
        NotAffine: The map is not affine.
    """
    if 0 in before:
        return (ZERO,) * len(before)
    result: list[AffineExpr] = [ZERO] * len(before)
    left, right = len(before), len(after)
    while left > 0 or right > 0:
        low, high = left, right
        left_size = right_size = 1
        while (low == left and high == right) or left_size != right_size:
            if (left_size <= right_size and left > 0) or right == 0:
                left -= 1
                left_size *= before[left]
            else:
                right -= 1
                right_size *= after[right]
        segment = linear_combination(list(zip(row_major(after[right:high]), indices[right:high])))
        _digits(segment, before, left, low, domain, result)
    return tuple(result)


def _digits(
    segment: AffineExpr, shape: Shape, first: int, last: int, domain: Sequence[int], result: list[AffineExpr]
) -> None:
    """Delinearise an index into the axes ``[first, last)`` of a shape, in mixed radix.

    Args:
        segment: The linear index.
        shape: The shape.
        first: The first axis.
        last: The end of the axes.
        domain: The lengths of the loop axes.
        result: The indices of all axes, of which these are set.
    """
    axes = [axis for axis in range(first, last) if shape[axis] != 1]
    for axis in reversed(axes[1:]):
        radix = shape[axis]
        constant, terms, dynamic = segment
        digit, rest, largest = [], [], constant % radix
        for loop, coefficient in terms:
            if coefficient % radix == 0:
                rest.append((loop, coefficient // radix))
                continue
            if not 0 < coefficient < radix or radix % coefficient:
                raise NotAffine
            length = domain[loop]
            if coefficient * length > radix:
                if length % (radix // coefficient):
                    raise NotAffine
                raise NeedsLoopSplit(loop, radix // coefficient)
            digit.append((loop, coefficient))
            largest += coefficient * (length - 1)
        if largest >= radix or any(step % radix for _, step in dynamic):
            raise NotAffine
        result[axis] = (constant % radix, tuple(digit), ())
        segment = (constant // radix, tuple(rest), tuple((node, step // radix) for node, step in dynamic))
    if axes:
        result[axes[0]] = segment


class ViewResolver:
    """Resolves chains of views to a base and an affine map, once for each node."""

    def __init__(self, resolve: bool = True) -> None:
        self._found: dict[int, tuple[Node, AffineMap | None]] = {}
        self._resolve = resolve

    def base(self, node: Node) -> tuple[Node, AffineMap | None]:
        """The base of which ``node`` is a view, and the map; None in place of the map for a node that is no view.

        A reshape that would split its axes is returned as it is: only the loops that read it can tell whether they may
        be split. Inputs of ``node`` must have been resolved before.
        """
        if node.op.kind != "view":
            return node, None
        found = self._found.get(node.id)
        if found is None:
            found = self._found[node.id] = self._step(node) if self._resolve else (node, None)
        return found

    def _step(self, node: Node) -> tuple[Node, AffineMap | None]:
        below = node.inputs[0]
        try:
            indices = input_map(node, identity(node.shape), node.shape)
        except (NeedsLoopSplit, NotAffine):
            return node, None
        base, inner = self.base(below)
        return base, indices if inner is None else compose(inner, indices)


def input_map(node: Node, indices: AffineMap, domain: Sequence[int]) -> AffineMap:
    """The map of the input of a view.

    Args:
        node: The view.
        indices: The map of the view.
        domain: The lengths of the loop axes.
    """
    before = node.inputs[0].type.shape
    assert isinstance(node.op, ViewOp)
    mapping = node.op.index_map(node.attrs, before, node.type.shape)
    if mapping is None:
        return through_reshape(before, node.type.shape, indices, domain)
    result: list[AffineExpr] = []
    for size, (axis, step, offset) in zip(before, mapping, strict=True):
        if size == 1:
            result.append(ZERO)
            continue
        terms = [(step, indices[axis])] if axis is not None else []
        if not isinstance(offset, tuple):
            result.append(
                linear_combination(terms, offset) if offset or step != 1 or axis is None else indices[axis]
            )
        else:
            constant, strided, dynamic = linear_combination(terms)
            result.append((constant, strided, (*dynamic, (node.inputs[offset[1]], 1))))
    return tuple(result)
