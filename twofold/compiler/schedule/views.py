"""Where an element of a view lies: index arithmetic on affine forms.

A ``Form`` is an index ``constant + sum(coefficient * i[axis]) + sum(step * value of a scalar node)``. The
elements that a view shows are found by one form per axis of its base, over the view's own axes or, later, over
the axes of the loops that read it.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.ir.node import Node
from twofold.ir.op import ViewOp
from twofold.ir.types import Shape

Form = tuple[int, tuple[tuple[int, int], ...], tuple[tuple[Node, int], ...]]
Forms = tuple[Form, ...]

ZERO: Form = (0, (), ())


class NeedsSplit(Exception):
    """A reshape cuts through loop axis ``axis``: it must become two, the inner one of length ``inner``."""

    def __init__(self, axis: int, inner: int) -> None:
        super().__init__(axis, inner)  # no text, which would fix a symbol
        self.axis = axis
        self.inner = inner


class NotAffine(Exception):
    """The elements that a reshape shows have no affine index: its input must lie in memory."""


def identity(shape: Shape) -> Forms:
    """The forms of a value over its own axes.

    >>> identity((2, 1))
    ((0, ((0, 1),), ()), (0, (), ()))
    """
    return tuple(ZERO if size == 1 else (0, ((axis, 1),), ()) for axis, size in enumerate(shape))


def weighted(parts: Sequence[tuple[int, Form]], constant: int = 0) -> Form:
    """The sum of forms times weights.

    >>> weighted([(4, (1, ((0, 1),), ())), (2, (0, ((0, 1), (1, 3)), ()))])
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


def compose(inner: Forms, outer: Forms) -> Forms:
    """Forms over the axes that ``outer`` describes, rewritten over the axes that ``outer`` uses."""
    result = []
    for form in inner:
        constant, terms, dynamic = form
        if len(terms) == 1 and not constant and not dynamic and terms[0][1] == 1:
            result.append(outer[terms[0][0]])
        elif not terms:
            result.append(form)
        else:
            found = weighted([(coefficient, outer[axis]) for axis, coefficient in terms], constant)
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


def flat(forms: Forms, shape: Shape) -> Form:
    """The element number in a dense buffer of ``shape``."""
    if not forms:
        return ZERO
    if len(forms) == 1:
        return forms[0]
    return weighted(list(zip(row_major(shape), forms)))


def through_reshape(before: Shape, after: Shape, forms: Forms, domain: Sequence[int]) -> Forms:
    """The forms of a reshape's input from those of its result, over loop axes of lengths ``domain``.

    Raises NeedsSplit where a loop axis has to be cut in two first, NotAffine where nothing helps.
    """
    if 0 in before:
        return (ZERO,) * len(before)
    result: list[Form] = [ZERO] * len(before)
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
        segment = weighted(list(zip(row_major(after[right:high]), forms[right:high])))
        _digits(segment, before, left, low, domain, result)
    return tuple(result)


def _digits(
    segment: Form, shape: Shape, first: int, last: int, domain: Sequence[int], result: list[Form]
) -> None:
    """The number ``segment`` written in the mixed radix of axes [first, last) of ``shape``."""
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
                raise NeedsSplit(loop, radix // coefficient)
            digit.append((loop, coefficient))
            largest += coefficient * (length - 1)
        if largest >= radix or any(step % radix for _, step in dynamic):
            raise NotAffine
        result[axis] = (constant % radix, tuple(digit), ())
        segment = (constant // radix, tuple(rest), tuple((node, step // radix) for node, step in dynamic))
    if axes:
        result[axes[0]] = segment


class Views:
    """Resolves chains of views to a base and forms, once per node."""

    def __init__(self, resolve: bool = True) -> None:
        self._found: dict[int, tuple[Node, Forms | None]] = {}
        self._resolve = resolve

    def base(self, node: Node) -> tuple[Node, Forms | None]:
        """The value whose elements ``node`` shows, and where; None for a node that is no view.

        A reshape that cuts through its own axes is returned as it is: only the loops that read it can tell
        whether they may be cut. Inputs of ``node`` must have been resolved before.
        """
        if node.op.kind != "view":
            return node, None
        found = self._found.get(node.id)
        if found is None:
            found = self._found[node.id] = self._step(node) if self._resolve else (node, None)
        return found

    def _step(self, node: Node) -> tuple[Node, Forms | None]:
        below = node.inputs[0]
        try:
            forms = view_forms(node, identity(node.shape), node.shape)
        except (NeedsSplit, NotAffine):
            return node, None
        base, inner = self.base(below)
        return base, forms if inner is None else compose(inner, forms)


def view_forms(node: Node, forms: Forms, domain: Sequence[int]) -> Forms:
    """The forms of a view's input from those of the view."""
    before = node.inputs[0].type.shape
    assert isinstance(node.op, ViewOp)
    mapping = node.op.index_map(node.attrs, before, node.type.shape)
    if mapping is None:
        return through_reshape(before, node.type.shape, forms, domain)
    result: list[Form] = []
    for size, (axis, step, offset) in zip(before, mapping, strict=True):
        if size == 1:
            result.append(ZERO)
            continue
        parts = [(step, forms[axis])] if axis is not None else []
        if not isinstance(offset, tuple):
            result.append(weighted(parts, offset) if offset or step != 1 or axis is None else forms[axis])
        else:
            constant, terms, dynamic = weighted(parts)
            result.append((constant, terms, (*dynamic, (node.inputs[offset[1]], 1))))
    return tuple(result)
