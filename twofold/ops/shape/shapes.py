"""Arithmetic of axes, shapes and slices, which movement and indexing share."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from twofold.errors import ArgumentError, AxisError, IndexRangeError, ShapeError
from twofold.ir.sizes import index
from twofold.ir.types import Shape
from twofold.ops.base import normalize_axis


def many_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """``axes`` (one, several, or None for all) counted from the front, in the order given, each once.

    Raises AxisError for an axis outside the tensor and ArgumentError for one that occurs twice.
    """
    if axes is None:
        return tuple(range(ndim))
    given = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    found = tuple(normalize_axis(axis, ndim) for axis in given)
    if len(set(found)) != len(found):
        raise ArgumentError(f"an axis occurs twice in {given}", "Name each axis once.")
    return found


def integers(values: Sequence[Any]) -> tuple[int, ...]:
    """Integers given one by one, as ``f(2, 3)``, or as one sequence, as ``f((2, 3))``."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = values[0]
    return tuple(index(value) for value in values)


def given_integers(values: Sequence[Any], **named: Any) -> tuple[int, ...]:
    """Integers given by position or, as one sequence, by a name; ArgumentError where both are.

    >>> given_integers((2, 3), shape=None), given_integers((), shape=(2, 3))
    ((2, 3), (2, 3))
    """
    ((name, given),) = named.items()
    if given is None:
        return integers(values)
    if values:
        raise ArgumentError(f"{name} is given by position and by name", "Give it once.")
    return integers((given,))


def infer_shape(shape: Sequence[int], size: int) -> Shape:
    """``shape`` with its one -1 replaced by what makes ``size`` elements.

    Raises ShapeError when no shape fits.

    >>> infer_shape((2, -1), 12)
    (2, 6)
    """
    unknown = [axis for axis, length in enumerate(shape) if length == -1]
    if len(unknown) > 1 or any(length < -1 for length in shape):
        raise ShapeError(
            f"shape {tuple(shape)} does not say one size per axis", "Give sizes, of which one may be -1."
        )
    known = prod(length for length in shape if length != -1)
    result = list(shape)
    if unknown and known and size % known == 0:
        result[unknown[0]] = size // known
    elif unknown and not known:
        raise ShapeError(
            f"-1 in shape {tuple(shape)} could be anything, as another axis is 0", "Write the size out."
        )
    if prod(result) != size or -1 in result:
        raise ShapeError(f"{size} elements do not fill shape {tuple(shape)}", _fitting(shape, size))
    return tuple(result)


def _fitting(shape: Sequence[int], size: int) -> str:
    """What would make ``shape`` hold ``size`` elements."""
    for axis in range(len(shape) - 1, -1, -1):
        rest = prod(length for position, length in enumerate(shape) if position != axis and length != -1)
        if -1 not in shape and rest and size % rest == 0:
            return f"Make axis {axis} {size // rest}."
    return "Use a shape whose sizes multiply to the number of elements."


def unsqueezed(shape: Shape, axes: Any) -> Shape:
    """``shape`` with an axis of size 1 at each of ``axes``, counted in the result."""
    count = len(axes) if isinstance(axes, (tuple, list)) else 1
    chosen = many_axes(axes, len(shape) + count)
    new = [any(axis == one for one in chosen) for axis in range(len(shape) + count)]  # one may be a symbol
    if sum(new) != count:
        raise AxisError(f"axes {chosen} among {len(new)}", "Name axes of the result.")
    sizes = iter(shape)
    return tuple(1 if added else next(sizes) for added in new)


def flattened(shape: Shape, start: int, end: int) -> Shape:
    """``shape`` with the axes ``start … end`` (inclusive) merged into one."""
    if not shape:
        return (1,)
    first, last = normalize_axis(start, len(shape)), normalize_axis(end, len(shape))
    if first > last:
        raise AxisError(f"flatten from axis {first} back to axis {last}", "Give the first axis first.")
    return (*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :])


def moved(ndim: int, source: Any, destination: Any) -> tuple[int, ...]:
    """The permutation that puts the axes ``source`` at ``destination`` and keeps the order of the others."""
    before, after = many_axes(source, ndim), many_axes(destination, ndim)
    if len(before) != len(after):
        raise ArgumentError(
            f"{len(before)} axes to {len(after)} positions", "Give as many positions as axes."
        )
    position = dict(zip(after, before, strict=True))
    rest = iter([axis for axis in range(ndim) if axis not in before])
    return tuple(position[axis] if axis in position else next(rest) for axis in range(ndim))


def swapped(ndim: int, first: int, second: int) -> tuple[int, ...]:
    """The permutation that exchanges two axes."""
    order = list(range(ndim))
    a, b = normalize_axis(first, max(ndim, 1)), normalize_axis(second, max(ndim, 1))
    if ndim:
        order[a], order[b] = order[b], order[a]
    return tuple(order)


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes ``order``."""
    result = [0] * len(order)
    for position, axis in enumerate(order):
        result[axis] = position
    return tuple(result)


def expanded(shape: Shape, target: Sequence[int]) -> Shape:
    """The shape of ``shape`` expanded to ``target``, in which -1 keeps a size.

    Raises ShapeError where a size other than 1 would change.
    """
    extra = len(target) - len(shape)
    if extra < 0:
        raise ShapeError(
            f"{len(shape)} axes do not broadcast to the {len(target)} of {tuple(target)}",
            "Give at least as many sizes as the tensor has axes.",
        )
    result = []
    for axis, size in enumerate(target):
        own = shape[axis - extra] if axis >= extra else 1
        size = own if size == -1 and axis >= extra else size
        if size < 0 or own not in (1, size):
            raise ShapeError(
                f"size {own} of axis {axis - extra} does not broadcast to {size}",
                f"Only an axis of size 1 expands: use {own} or -1 there.",
            )
        result.append(size)
    return tuple(result)


def one_index(index: int, size: int, axis: int) -> int:
    """An index counted from the front.

    Raises IndexRangeError outside ``-size … size - 1``.
    """
    if not -size <= index < size:
        fix = f"Use an index from {-size} to {size - 1}." if size else "An axis of size 0 has no elements."
        raise IndexRangeError(f"index {index} of axis {axis} with size {size}", fix)
    return index if index >= 0 else index + size


def split_sizes(size: int, sections: Any, axis: int) -> tuple[int, ...]:
    """The sizes of the pieces of ``split``: pieces of ``sections`` elements, or exactly the sizes in it."""
    if isinstance(sections, (tuple, list)):
        sizes = tuple([index(section) for section in sections])
        if sum(sizes) != size or min(sizes, default=0) < 0:
            raise ShapeError(
                f"pieces {sizes} do not add up to size {size} of axis {axis}", f"Make their sum {size}."
            )
        return sizes
    step = operator.index(sections)
    if step < 0 or (step == 0 and size):
        raise ArgumentError(f"pieces of {step} elements", "Use a positive size.")
    return tuple(min(step, size - start) for start in range(0, size, step)) if size else (0,)


def chunk_sizes(size: int, chunks: int, axis: int) -> tuple[int, ...]:
    """The sizes of the pieces of ``chunk``: equal, save that the last is smaller or missing."""
    if chunks < 1:
        raise ArgumentError(f"{chunks} chunks", "Use at least one.")
    return split_sizes(size, max(-(-size // chunks), 1), axis) if size else (0,) * chunks


def split_positions(size: int, cuts: Any) -> list[tuple[int, int]]:
    """``(start, size)`` of the pieces of ``tensor_split``: so many, or cut before each of the positions in ``cuts``."""
    if isinstance(cuts, (tuple, list)):
        edges = [0, *(operator.index(position) for position in cuts), size]
        ends = [slice(a, b).indices(size) for a, b in pairwise(edges)]
        return [(start, max(stop - start, 0)) for start, stop, _ in ends]
    count = operator.index(cuts)
    if count < 1:
        raise ArgumentError(f"{count} pieces", "Use at least one.")
    small, larger = divmod(size, count)
    starts = [k * small + min(k, larger) for k in range(count + 1)]
    return [(a, b - a) for a, b in pairwise(starts)]
