"""Random programs of views, copies and in-place operations, for several kinds of handles at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy
from hypothesis import strategies as st

Shape = tuple[int, ...]


def strided(x: Any, size: Shape, stride: Shape) -> Any:
    """A writable NumPy view; strides in bytes."""
    return numpy.lib.stride_tricks.as_strided(x, size, stride, writeable=True)


def dense(x: Any) -> Any:
    return x if x.flags.c_contiguous else x.copy(order="C")


def reshaped(x: Any, shape: Shape) -> Any:
    """As PyTorch's reshape: NumPy's, which shares where it can."""
    return x.reshape(shape)


def viewed(x: Any, shape: Shape) -> Any:
    made = x.reshape(shape)
    if made.size and not numpy.shares_memory(made, x):
        raise RuntimeError("copied")
    return made


def expanded(x: Any, shape: Shape) -> Any:
    return strided(x, shape, numpy.broadcast_to(x, shape).strides)


def unfolded(x: Any, axis: int, size: int, step: int) -> Any:
    if not x.ndim:
        return x.reshape(1)[:size]
    shape, steps = list(x.shape), list(x.strides)
    within = steps[axis]
    shape[axis], steps[axis] = (shape[axis] - size) // step + 1, within * step
    return strided(x, (*shape, size), (*steps, within))


def diagonal(x: Any, offset: int, first: int, second: int) -> Any:
    made = numpy.diagonal(x, offset, first, second)
    if not made.size:
        return strided(x, made.shape, made.strides)
    moved = numpy.moveaxis(x, (first, second), (-2, -1))
    moved = moved[..., :, offset:] if offset >= 0 else moved[..., -offset:, :]
    return strided(moved, made.shape, made.strides)


def axes(shape: Shape) -> Any:
    return st.integers(0, len(shape) - 1) if shape else st.none()


def shapes_of(size: int) -> Any:
    """Shapes of so many elements."""
    found = [
        shape
        for ndim in range(4)
        for shape in itertools.product((0, 1, 2, 3, 4, 6), repeat=ndim)
        if prod(shape) == size
    ]
    return st.sampled_from(found) if found else st.just((size,))


@st.composite
def keys(draw: Any, shape: Shape) -> Any:
    key: list[Any] = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        if draw(st.booleans()) and size:
            key.append(draw(st.integers(-size, size - 1)))
        else:
            ends = st.none() | st.integers(-size - 1, size + 1)
            key.append(slice(draw(ends), draw(ends), draw(st.sampled_from([None, 1, 2, 3]))))
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    if draw(st.booleans()):
        key.append(Ellipsis)
    return tuple(key)


def _unsqueezed(shape: Shape) -> Any:
    return st.tuples(st.integers(0, len(shape)))


def _pair(shape: Shape) -> Any:
    return st.tuples(axes(shape), axes(shape)) if shape else st.none()


@st.composite
def _narrowed(draw: Any, shape: Shape) -> Any:
    axis = draw(axes(shape))
    if axis is None:
        return None
    start = draw(st.integers(0, shape[axis]))
    return axis, start, draw(st.integers(0, shape[axis] - start))


@st.composite
def _expansions(draw: Any, shape: Shape) -> Any:
    front = draw(st.lists(st.integers(1, 3), max_size=1))
    return ((*front, *(draw(st.integers(1, 3)) if size == 1 else size for size in shape)),)


@st.composite
def _windows(draw: Any, shape: Shape) -> Any:
    whole = [axis for axis, size in enumerate(shape) if size]
    if not whole:
        return None
    axis = draw(st.sampled_from(whole))
    return axis, draw(st.integers(1, shape[axis])), draw(st.integers(1, 3))


@st.composite
def _diagonals(draw: Any, shape: Shape) -> Any:
    if len(shape) < 2:
        return None
    first, second = draw(st.permutations(range(len(shape))))[:2]
    return draw(st.integers(-2, 2)), first, second


def _selections(shape: Shape) -> Any:
    whole = [axis for axis, size in enumerate(shape) if size]
    return (
        st.sampled_from(whole).flatmap(lambda axis: st.tuples(st.just(axis), st.integers(0, shape[axis] - 1)))
        if whole
        else st.none()
    )


View = tuple[Callable[[Shape], Any], Callable[..., Any], Callable[..., Any]]

VIEWS: dict[str, View] = {
    "reshape": (lambda s: st.tuples(shapes_of(prod(s))), lambda x, shape: x.reshape(shape), reshaped),
    "view": (lambda s: st.tuples(shapes_of(prod(s))), lambda x, shape: x.view(shape), viewed),
    "flatten": (lambda s: st.just(()), lambda x: x.flatten(), lambda x: x.reshape(-1)),
    "ravel": (lambda s: st.just(()), lambda x: x.ravel(), lambda x: dense(x).reshape(-1)),
    "contiguous": (lambda s: st.just(()), lambda x: x.contiguous(), dense),
    "permute": (
        lambda s: st.tuples(st.permutations(range(len(s))).map(tuple)),
        lambda x, order: x.permute(order),
        lambda x, order: x.transpose(order),
    ),
    "transpose": (_pair, lambda x, a, b: x.transpose(a, b), lambda x, a, b: x.swapaxes(a, b)),
    "movedim": (_pair, lambda x, a, b: x.movedim(a, b), lambda x, a, b: numpy.moveaxis(x, a, b)),
    "index": (
        lambda s: st.tuples(keys(s)),
        lambda x, key: x[key],
        lambda x, key: x[(*key, ...)] if Ellipsis not in key else x[key],
    ),
    "select": (_selections, lambda x, a, i: x.select(a, i), lambda x, a, i: numpy.moveaxis(x, a, 0)[i, ...]),
    "narrow": (
        _narrowed,
        lambda x, a, i, n: x.narrow(a, i, n),
        lambda x, a, i, n: x[(*(slice(None),) * a, slice(i, i + n))],
    ),
    "squeeze": (lambda s: st.just(()), lambda x: x.squeeze(), lambda x: x.squeeze()),
    "unsqueeze": (_unsqueezed, lambda x, a: x.unsqueeze(a), lambda x, a: numpy.expand_dims(x, a)),
    "expand": (_expansions, lambda x, shape: x.expand(shape), expanded),
    "unfold": (_windows, lambda x, a, n, k: x.unfold(a, n, k), unfolded),
    "diagonal": (_diagonals, lambda x, k, a, b: x.diagonal(k, a, b), diagonal),
    "detach": (lambda s: st.just(()), lambda x: x.detach(), lambda x: x),
    "unbind": (
        lambda s: st.just(()) if s and s[0] else st.none(),
        lambda x: x.unbind()[-1],
        lambda x: x[-1, ...],
    ),
    "chunk": (
        axes,
        lambda x, a: x.chunk(2, a)[0],
        lambda x, a: x[(*(slice(None),) * a, slice(0, -(-x.shape[a] // 2)))],
    ),
}
"""By name: how arguments are drawn for a shape (None: there are none), the call on tensors, and on NumPy arrays."""


def added(x: Any, number: Any) -> None:
    """In-place."""
    if isinstance(x, numpy.ndarray):
        x += number
    else:
        x.add_(number)


def assigned(x: Any, number: Any) -> None:
    """In-place."""
    x[...] = number


def multiplied(x: Any, number: Any) -> None:
    """In-place."""
    x *= number


WRITES = (added, assigned, multiplied)


def overlaps(size: Shape, stride: Shape) -> bool:
    """Whether several indices show one element."""
    positions = [sum(i * s for i, s in zip(index, stride)) for index in itertools.product(*map(range, size))]
    return len(set(positions)) != len(positions)
