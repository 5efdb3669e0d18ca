"""References of the public functions that join, cut and reshape arrays."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy
from declare import call, complexes, normal, public, public_identity

# Joining and cutting


def _at_least(x: Any, count: int) -> Any:
    """With as many axes: one before a vector, one behind a matrix."""
    if x.ndim == 0:
        return x.reshape((1,) * count)
    if count > 1 and x.ndim == 1:
        x = x[None, :]
    return x[:, :, None] if count == 3 and x.ndim == 2 else x


def _each(count: int) -> Any:
    return lambda *tensors: (
        _at_least(tensors[0], count) if len(tensors) == 1 else tuple(_at_least(x, count) for x in tensors)
    )


for _count in (1, 2, 3):
    public(
        f"atleast_{_count}d",
        _each(_count),
        lambda: (
            [call(normal(*shape)) for shape in ((), (3,), (2, 3), (2, 3, 4))] + [call(normal(), normal(2))]
        ),
    )


def _filled(axis: int, count: int) -> Any:
    def rule(tensors: Any) -> Any:
        parts = [_at_least(x, count) for x in tensors]
        along = 0 if axis == 1 and parts[0].ndim == 1 else axis
        sizes = [x.shape[along] for x in parts]
        shape = list(parts[0].shape)
        shape[along] = sum(sizes)
        found, start = numpy.zeros(shape, parts[0].dtype), 0
        for part, size in zip(parts, sizes):
            found[(slice(None),) * along + (slice(start, start + size),)] = part
            start += size
        return found

    return rule


JOINED = lambda: [
    call([normal(2, 3), normal(2, 3, seed=1)]),
    call([normal(3), normal(3, seed=1), normal(3, seed=2)]),
    call((normal(2, 3, 4), normal(2, 3, 4, seed=1))),
]
public("vstack", _filled(0, 2), JOINED)
public("hstack", _filled(1, 1), JOINED)
public("dstack", _filled(2, 3), JOINED)
public(
    "column_stack",
    lambda tensors: _filled(1, 2)([x.reshape(-1, 1) if x.ndim < 2 else x for x in tensors]),
    lambda: [call([normal(3), normal(3, 2), normal(3, seed=1)]), call([normal(), normal()])],
)
public(
    "stack",
    lambda tensors, dim=0, axis=None: numpy.moveaxis(numpy.array(tensors), 0, dim if axis is None else axis),
    lambda: [
        call([normal(2, 3), normal(2, 3, seed=1)]),
        call([normal(2, 3), normal(2, 3, seed=1)], 1),
        call((normal(2, 3), normal(2, 3, seed=1)), dim=-1),
        call([normal(2), normal(2, seed=1)], axis=1),
    ],
)


def _meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    tensors = tensors[0] if isinstance(tensors[0], (list, tuple)) else tensors
    shape = [x.size for x in tensors]
    found = [
        numpy.broadcast_to(x.reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape)
        for axis, x in enumerate(tensors)
    ]
    return tuple(numpy.swapaxes(x, 0, 1) if indexing == "xy" and len(shape) > 1 else x for x in found)


public(
    "meshgrid",
    _meshgrid,
    lambda: [
        call(normal(2), normal(3), indexing="ij"),
        call(normal(2), normal(3), normal(4), indexing="xy"),
        call([normal(2), normal(3)]),
    ],
)
public(
    "cartesian_prod",
    lambda *tensors: (
        tensors[0] if len(tensors) == 1 else numpy.array(list(itertools.product(*map(list, tensors))))
    ),
    lambda: [call(normal(2), normal(3)), call(normal(2), normal(3), normal(2)), call(normal(3))],
)
public(
    "broadcast_shapes",
    lambda *shapes: list(numpy.broadcast_shapes(*shapes)),
    lambda: [call((2, 1), (3,)), call((4, 1, 5), (3, 1), ()), call((0, 3), (1,))],
)
public(
    "broadcast_tensors",
    lambda *tensors: tuple(
        x + numpy.zeros(numpy.broadcast_shapes(*[y.shape for y in tensors])) for x in tensors
    ),
    lambda: [call(normal(2, 1), normal(3)), call(normal(2), normal(3, 1), normal())],
)


def _cut(x: Any, sizes: Any, dim: int) -> Any:
    ends = list(itertools.accumulate(sizes))
    return tuple(numpy.take(x, range(end - size, end), dim) for size, end in zip(sizes, ends))


def _split(x: Any, size: Any, dim: int = 0) -> Any:
    total = x.shape[dim]
    if isinstance(size, int):
        size = [min(size, total - k) for k in range(0, total, size)]
    return _cut(x, size, dim)


def _chunk(x: Any, chunks: int, dim: int = 0) -> Any:
    return _split(x, math.ceil(x.shape[dim] / chunks), dim)


SPLIT = lambda: [call(normal(5, 3), 2), call(normal(5, 3), 2, 1), call(normal(4, 6), 3, dim=-1)]
public("split unsafe_split split_copy", _split, SPLIT)
public("split", _split, lambda: [call(normal(5, 3), [1, 4]), call(normal(2, 6), (1, 2, 3), dim=1)])
public(
    "split_with_sizes split_with_sizes_copy",
    _split,
    lambda: [call(normal(5, 3), [1, 4]), call(normal(2, 6), [1, 0, 5], dim=1)],
)
public("chunk unsafe_chunk", _chunk, lambda: [*SPLIT(), call(normal(7), 3), call(normal(2), 5)])


def _tensor_split(x: Any, parts: Any, dim: int = 0) -> Any:
    size = x.shape[dim]
    if isinstance(parts, int):
        return _cut(x, [size // parts + (k < size % parts) for k in range(parts)], dim)
    positions = [0, *parts, size]
    ends = [(min(a, size), min(b, size)) for a, b in itertools.pairwise(positions)]
    return tuple(numpy.take(x, range(a, b), dim) for a, b in ends)


TENSOR_SPLIT = lambda: [
    call(normal(7, 4, 6), 3),
    call(normal(7, 4, 6), [2, 5]),
    call(normal(7, 4, 6), (1, 9)),
]
public("tensor_split", _tensor_split, TENSOR_SPLIT)
public("tensor_split", _tensor_split, lambda: [call(normal(3, 8), 3, dim=1), call(normal(3, 8), [1, 1], -1)])
EVEN = lambda: [call(normal(4, 4, 6), 2), call(normal(6, 6, 6), [2, 5])]
public("vsplit", lambda x, parts: _tensor_split(x, parts, 0), EVEN)
public("hsplit", lambda x, parts: _tensor_split(x, parts, 1 if x.ndim > 1 else 0), EVEN)
public(
    "hsplit", lambda x, parts: _tensor_split(x, parts, 0), lambda: [call(normal(6), 2), call(normal(6), [1])]
)
public("dsplit", lambda x, parts: _tensor_split(x, parts, 2), EVEN)
public(
    "unbind unbind_copy",
    lambda x, dim=0: tuple(numpy.take(x, k, dim) for k in range(x.shape[dim])),
    lambda: [call(normal(2, 3)), call(normal(2, 3), 1), call(normal(2, 3, 4), dim=-1)],
)


def _chunk_cat(tensors: Any, dim: int, count: int) -> Any:
    rows = []
    for x in tensors:
        size = math.ceil(x.shape[dim] / count)
        missing = size * count - x.shape[dim]
        wide = numpy.pad(x, [(0, missing if axis == dim else 0) for axis in range(x.ndim)])
        parts = numpy.stack(numpy.split(wide, count, dim), dim)
        rows.append(parts.reshape(*parts.shape[: dim + 1], -1))
    return numpy.concatenate(rows, -1)


public(
    "_chunk_cat",
    _chunk_cat,
    lambda: [call([normal(3, 4), normal(5, 2)], 0, 2), call([normal(2, 3, 4), normal(2, 5)], 1, 3)],
)

# Shapes


def _flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    if not x.ndim:
        return x.reshape(1)
    start, end = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :])


public(
    "flatten",
    _flatten,
    lambda: [
        call(normal(2, 3, 4)),
        call(normal(2, 3, 4), 1),
        call(normal(2, 3, 4), start_dim=0, end_dim=1),
        call(normal(2, 3, 4, 2), 1, -2),
        call(normal()),
    ],
)
public("ravel", lambda x: x.reshape(-1), lambda: [call(normal(2, 3)), call(normal())])


def _unflatten(x: Any, dim: int, sizes: Any) -> Any:
    dim = dim % x.ndim
    return x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :])


public(
    "unflatten",
    _unflatten,
    lambda: [call(normal(6, 4), 0, (2, 3)), call(normal(6, 4), -1, [2, -1])],
)


def _squeeze(x: Any, dim: Any = None) -> Any:
    dims = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    gone = {axis % x.ndim for axis in dims if x.shape[axis] == 1}
    return x.reshape([size for axis, size in enumerate(x.shape) if axis not in gone])


public(
    "squeeze squeeze_copy",
    _squeeze,
    lambda: [
        call(normal(1, 3, 1)),
        call(normal(1, 3, 1), 0),
        call(normal(1, 3, 1), 1),
        call(normal(1, 3, 1), -1),
        call(normal(1, 3, 1), (0, 1, 2)),
    ],
)


def _unsqueeze(x: Any, dim: int) -> Any:
    dim = dim % (x.ndim + 1)
    return x.reshape(*x.shape[:dim], 1, *x.shape[dim:])


public(
    "unsqueeze unsqueeze_copy",
    _unsqueeze,
    lambda: [call(normal(2, 3), k) for k in (0, 1, 2, -1, -3)],
)
public(
    "expand_dims", lambda x, axis=0: _unsqueeze(x, axis), lambda: [call(normal(2)), call(normal(2), axis=-1)]
)
public("reshape_as", lambda x, y: x.reshape(y.shape), lambda: [call(normal(2, 6), normal(3, 4))])
public("view_copy", lambda x, shape: x.reshape(shape), lambda: [call(normal(2, 6), (3, -1))])


def _swapped(x: Any, first: int, second: int) -> Any:
    order = list(range(x.ndim))
    order[first], order[second] = order[second], order[first]
    return numpy.einsum(x, list(range(x.ndim)), order)


public(
    "transpose transpose_copy swapaxes",
    _swapped,
    lambda: [call(normal(2, 3, 4), 0, 2), call(normal(2, 3), 1, -2), call(complexes(2, 3), 0, 1)],
)
public(
    "t t_copy",
    lambda x: x if x.ndim < 2 else _swapped(x, 0, 1),
    lambda: [call(normal(2, 3)), call(normal(3))],
)
public(
    "matrix_transpose",
    lambda x: numpy.einsum("...ij->...ji", x),
    lambda: [call(normal(2, 3)), call(normal(4, 2, 3))],
)
public(
    "adjoint",
    lambda x: numpy.conj(numpy.einsum("...ij->...ji", x)),
    lambda: [call(normal(2, 3)), call(complexes(4, 2, 3))],
)
public(
    "movedim moveaxis",
    numpy.moveaxis,
    lambda: [call(normal(2, 3, 4), 0, 2), call(normal(2, 3, 4), (0, 1), (2, 0)), call(normal(2, 3), -1, 0)],
)
public(
    "permute_copy",
    lambda x, dims: numpy.einsum(x, list(range(x.ndim)), [axis % x.ndim for axis in dims]),
    lambda: [call(normal(2, 3, 4), (2, 0, 1)), call(normal(2, 3), (-1, 0))],
)


def _expand(x: Any, *sizes: Any) -> Any:
    sizes = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    extra = len(sizes) - x.ndim
    shape = [x.shape[k - extra] if size == -1 else size for k, size in enumerate(sizes)]
    return x + numpy.zeros(shape)


public(
    "expand", _expand, lambda: [call(normal(3, 1), 3, 4), call(normal(3, 1), (2, -1, 4)), call(normal(1), 5)]
)
public("expand_copy", _expand, lambda: [call(normal(3, 1), (3, 4)), call(normal(3, 1), (2, -1, 4))])
public("expand_as", lambda x, y: _expand(x, y.shape), lambda: [call(normal(3, 1), normal(2, 3, 4))])
public("fliplr", lambda x: x[:, ::-1], lambda: [call(normal(2, 3)), call(normal(2, 3, 4))])
public("flipud", lambda x: x[::-1], lambda: [call(normal(3)), call(normal(2, 3))])
public(
    "narrow narrow_copy",
    lambda x, dim, start, length: numpy.take(
        x, range(start % x.shape[dim], start % x.shape[dim] + length), dim
    ),
    lambda: [call(normal(5, 4), 0, 1, 3), call(normal(5, 4), -1, 2, 2), call(normal(5, 4), 0, -2, 1)],
)
public(
    "select select_copy",
    lambda x, dim, index: numpy.take(x, index, dim),
    lambda: [call(normal(5, 4), 0, 1), call(normal(5, 4), 1, -1)],
)
public(
    "tile",
    lambda x, *reps: numpy.tile(x, reps[0] if len(reps) == 1 else reps),
    lambda: [
        call(normal(2, 3), 2),
        call(normal(2, 3), (2, 1)),
        call(normal(2, 3), (2, 1, 3)),
        call(normal(3), 2, 2),
    ],
)


def _repeat_interleave(x: Any, repeats: Any, dim: Any = None, output_size: Any = None) -> Any:
    flat = x.reshape(-1) if dim is None else x
    axis = 0 if dim is None else dim
    counts = numpy.broadcast_to(repeats, flat.shape[axis])
    positions = [k for k, count in enumerate(counts) for _ in range(count)]
    return numpy.take(flat, positions, axis)


public(
    "repeat_interleave",
    _repeat_interleave,
    lambda: [
        call(normal(3), 2),
        call(normal(2, 3), 2, 1),
        call(normal(2, 3), numpy.array([1, 0, 3]), dim=1),
        call(normal(2, 3), numpy.array([2, 1]), 0, output_size=3),
    ],
)
public(
    "rot90",
    lambda x, k=1, dims=(0, 1): numpy.rot90(x, k, dims),
    lambda: (
        [call(normal(2, 3), k) for k in (0, 1, 2, 3, -1)]
        + [call(normal(2, 3, 4), 1, (1, 2)), call(normal(2, 3))]
    ),
)


def _sum_to_size(x: Any, *size: Any) -> Any:
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    extra = x.ndim - len(size)
    x = x.sum(tuple(range(extra)))
    return x.sum(tuple(k for k, n in enumerate(size) if n == 1 and x.shape[k] != 1), keepdims=True)


public("sum_to_size", _sum_to_size, lambda: [call(normal(4, 2, 3), 1, 3), call(normal(4, 2, 3), (2, 1))])
public(
    "pixel_shuffle",
    lambda x, r: numpy.block([[[x[0, 0]]]]) if r == 1 else _pixels(x, r),
    lambda: [call(normal(2, 8, 3, 2), 2), call(normal(1, 9, 2, 2), 3)],
)


def _pixels(x: Any, r: int) -> Any:
    n, c, h, w = x.shape
    found = numpy.zeros((n, c // r**2, h * r, w * r))
    for k in range(c // r**2):
        for i, j in numpy.ndindex(r, r):
            found[:, k, i::r, j::r] = x[:, k * r * r + i * r + j]
    return found


public_identity(
    "pixel_unshuffle",
    lambda found, x, r: [(_pixels(found, r), x)],
    lambda: [call(normal(2, 2, 6, 4), 2), call(normal(1, 1, 6, 9), 3)],
)


def _channel_shuffle(x: Any, groups: int) -> Any:
    count = x.shape[1] // groups
    return x[:, [g * count + k for k in range(count) for g in range(groups)]]


public("channel_shuffle", _channel_shuffle, lambda: [call(normal(2, 6, 3), 3), call(normal(1, 4, 2, 2), 2)])

# Views that are copied


def _strided(x: Any, size: Any, stride: Any, storage_offset: int = 0) -> Any:
    positions = numpy.full(size, storage_offset)
    for axis, step in enumerate(stride):
        positions = positions + (numpy.arange(size[axis]) * step).reshape(
            [-1 if k == axis else 1 for k in range(len(size))]
        )
    return x.reshape(-1)[positions]


public(
    "as_strided_copy",
    _strided,
    lambda: [
        call(normal(3, 4), (2, 2), (4, 1)),
        call(normal(12), (3, 4), (1, 3)),
        call(normal(12), (2, 2), (2, 1), 3),
    ],
)


def _strided_scatter(x: Any, src: Any, size: Any, stride: Any, storage_offset: int = 0) -> Any:
    positions = _strided(numpy.arange(x.size), size, stride, storage_offset)
    found = x.reshape(-1).copy()
    found[positions] = src
    return found.reshape(x.shape)


public(
    "as_strided_scatter",
    _strided_scatter,
    lambda: [
        call(normal(3, 4), normal(2, 2), (2, 2), (4, 1)),
        call(normal(12), normal(2, 2), (2, 2), (5, 1), 1),
    ],
)
public("alias alias_copy", lambda x: x, lambda: [call(normal(2, 3))])
public(
    "diagonal_copy",
    lambda x, offset=0, dim1=0, dim2=1: numpy.diagonal(x, offset, dim1, dim2),
    lambda: [call(normal(3, 4)), call(normal(2, 3, 4), 1, 1, 2), call(normal(3, 4), offset=-1)],
)


def _unfold(x: Any, dim: int, size: int, step: int) -> Any:
    moved = numpy.moveaxis(x, dim, -1)
    count = (moved.shape[-1] - size) // step + 1
    parts = numpy.stack([moved[..., k * step : k * step + size] for k in range(count)], -2)
    return numpy.moveaxis(parts, -2, dim)


public("unfold_copy", _unfold, lambda: [call(normal(7, 2), 0, 3, 2), call(normal(2, 5), 1, 2, 1)])
public("resolve_conj resolve_neg", lambda x: x, lambda: [call(complexes(3)), call(normal(3))])
