"""References of the public functions that take, scatter, order and count elements."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
from declare import bools, call, each_line, integers, normal, public

# Taking and scattering


def _written(x: Any, positions: Any, values: Any) -> Any:
    found = x.copy()
    for position, value in zip(positions, values):
        found[position] = value
    return found


def _take_along(x: Any, index: Any, dim: Any = None) -> Any:
    if dim is None:
        return x.reshape(-1)[index.reshape(-1)]
    shape = [
        i if k != dim % x.ndim else x.shape[k]
        for k, i in enumerate(
            numpy.broadcast_shapes(
                [1 if k == dim % x.ndim else n for k, n in enumerate(x.shape)],
                [1 if k == dim % x.ndim else n for k, n in enumerate(index.shape)],
            )
        )
    ]
    x = numpy.broadcast_to(x, shape)
    index = numpy.broadcast_to(
        index, [index.shape[k] if k == dim % x.ndim else n for k, n in enumerate(shape)]
    )
    return numpy.take_along_axis(x, index, dim)


public(
    "take_along_dim",
    _take_along,
    lambda: [
        call(normal(3, 4), integers(0, 4, 3, 2), 1),
        call(normal(3, 4), integers(0, 12, 5)),
        call(normal(3, 4), integers(0, 3, 1, 4), dim=0),
    ],
)
public(
    "take",
    lambda x, index, axis=None: numpy.take(x, index, axis),
    lambda: [call(normal(3, 4), integers(0, 12, 2, 2)), call(normal(3, 4), integers(0, 4, 3), axis=1)],
)
public(
    "index_put",
    lambda x, indices, values, accumulate=False: _put(x, indices, values, accumulate),
    lambda: [
        call(normal(3, 4), (numpy.array([0, 2]), numpy.array([1, 3])), normal(2)),
        call(normal(3, 4), (numpy.array([1, 1, 0]),), normal(3, 4, seed=1), True),
        call(normal(3, 4), (bools(3, 4),), numpy.array(2.0)),
    ],
)


def _put(x: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    found = x.copy()
    if accumulate:
        for k, position in enumerate(zip(*indices)):
            found[position] += values[k]
    else:
        found[tuple(indices)] = values
    return found


def _scatter(x: Any, dim: int, index: Any, src: Any = None, value: Any = None, reduce: Any = None) -> Any:
    src = value if src is None else src
    src = numpy.broadcast_to(src, index.shape) if numpy.ndim(src) == 0 else src
    found = x.copy()
    for at in numpy.ndindex(*index.shape):
        position = list(at)
        position[dim] = index[at]
        there = found[tuple(position)]
        found[tuple(position)] = {"add": there + src[at], "multiply": there * src[at], None: src[at]}[reduce]
    return found


UNIQUE = numpy.array([[2, 0, 1], [0, 1, 2]])
public(
    "scatter",
    _scatter,
    lambda: [
        call(normal(3, 4), 0, UNIQUE, normal(2, 3)),
        call(normal(3, 4), 1, UNIQUE, normal(2, 3)),
        call(normal(3, 4), 0, UNIQUE, value=5.0),
        call(normal(3, 4), 1, integers(0, 4, 2, 3), normal(2, 3), reduce="add"),
        call(normal(3, 4), -1, integers(0, 4, 2, 3), normal(3, 4), reduce="multiply"),
    ],
)
public(
    "scatter_add",
    lambda x, dim, index, src: _scatter(x, dim, index, src, reduce="add"),
    lambda: [
        call(normal(3, 4), 0, integers(0, 3, 2, 4), normal(2, 4)),
        call(normal(3), 0, integers(0, 3, 7), normal(7)),
    ],
)


def _by_index(x: Any, dim: int, index: Any, source: Any, rule: Any) -> Any:
    found = numpy.moveaxis(x.copy(), dim, 0)
    lines = numpy.moveaxis(numpy.broadcast_to(source, source.shape), dim, 0)
    for k, position in enumerate(index):
        found[position] = rule(found[position], lines[k])
    return numpy.moveaxis(found, 0, dim)


public(
    "index_add",
    lambda x, dim, index, source, alpha=1: _by_index(x, dim, index, source, lambda a, b: a + alpha * b),
    lambda: [
        call(normal(3, 4), 0, numpy.array([2, 0, 2]), normal(3, 4, seed=1)),
        call(normal(3, 4), 1, numpy.array([1, 3]), normal(3, 2), alpha=-2),
    ],
)
public(
    "index_copy",
    lambda x, dim, index, source: _by_index(x, dim, index, source, lambda a, b: b),
    lambda: [
        call(normal(3, 4), 0, numpy.array([2, 0]), normal(2, 4)),
        call(normal(3, 4), -1, numpy.array([1, 3]), normal(3, 2)),
    ],
)
public(
    "index_fill",
    lambda x, dim, index, value: _by_index(
        x,
        dim,
        index,
        numpy.zeros([len(index) if k == dim % x.ndim else n for k, n in enumerate(x.shape)]),
        lambda a, b: numpy.full_like(a, value),
    ),
    lambda: [
        call(normal(3, 4), 0, numpy.array([2, 0]), 7.0),
        call(normal(3, 4), 1, numpy.array([1, 1]), -1.5),
    ],
)


def _diagonal_scatter(x: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    found = x.copy()
    numpy.moveaxis(found, (dim1, dim2), (-2, -1))[
        (..., numpy.arange(src.shape[-1]) + max(-offset, 0), numpy.arange(src.shape[-1]) + max(offset, 0))
    ] = src
    return found


public(
    "diagonal_scatter",
    _diagonal_scatter,
    lambda: [
        call(normal(3, 4), normal(3)),
        call(normal(3, 4), normal(2), -1),
        call(normal(2, 3, 4), normal(2, 3), 1, 1, 2),
    ],
)


def _slice_scatter(x: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    found = x.copy()
    numpy.moveaxis(found, dim, 0)[start:end:step] = numpy.moveaxis(src, dim, 0)
    return found


public(
    "slice_scatter",
    _slice_scatter,
    lambda: [
        call(normal(5, 3), normal(2, 3), 0, 1, 3),
        call(normal(3, 6), normal(3, 3), dim=1, start=0, end=6, step=2),
        call(normal(5, 3), normal(5, 3, seed=1)),
        call(normal(5, 3), normal(2, 3), start=-2),
    ],
)
public(
    "diag",
    lambda x, diagonal=0: numpy.diag(x, diagonal),
    lambda: [call(normal(3)), call(normal(3), 1), call(normal(3, 4), -1), call(normal(3, 4))],
)
public(
    "diagflat",
    lambda x, offset=0: numpy.diag(x.reshape(-1), offset),
    lambda: [call(normal(2, 2)), call(normal(3), -1), call(normal())],
)
public(
    "masked_select",
    lambda x, mask: numpy.array(
        [v for v, keep in zip(*map(numpy.ravel, numpy.broadcast_arrays(x, mask))) if keep]
    ),
    lambda: [call(normal(3, 4), bools(3, 4)), call(normal(3, 4), bools(4))],
)


def _positions(x: Any) -> Any:
    found = [at for at in numpy.ndindex(*x.shape) if x[at]]
    return numpy.array(found, numpy.int64).reshape(-1, x.ndim)


SPARSE = lambda: [
    call(bools(3, 4)),
    call(normal(5) * bools(5)),
    call(numpy.zeros((2, 0))),
    call(integers(0, 2, 2, 2, 3)),
]
public("nonzero argwhere", _positions, SPARSE)
public("nonzero", lambda x, as_tuple: tuple(_positions(x).T), lambda: [call(bools(3, 4), as_tuple=True)])


def _nonzero_static(x: Any, size: int, fill_value: int = -1) -> Any:
    found = _positions(x)[:size]
    return numpy.concatenate([found, numpy.full((size - len(found), x.ndim), fill_value)])


public(
    "nonzero_static",
    _nonzero_static,
    lambda: [call(bools(3, 4), size=3), call(bools(3), size=5), call(bools(2, 2), size=6, fill_value=9)],
)
public(
    "unravel_index",
    lambda index, shape: tuple(numpy.unravel_index(index, shape)),
    lambda: [call(integers(0, 24, 5), (2, 3, 4)), call(integers(0, 6, 2, 2), (2, 3))],
)


def _masked_index(x: Any, mask: Any, indices: Any, fill: Any) -> Any:
    mask, *lines = numpy.broadcast_arrays(mask, *indices)
    found = numpy.full(mask.shape, float(fill))
    for at in numpy.ndindex(*mask.shape):
        if mask[at]:
            found[at] = x[tuple(line[at] for line in lines)]
    return found


def _masked_put(x: Any, mask: Any, indices: Any, values: Any) -> Any:
    mask, values, *lines = numpy.broadcast_arrays(mask, values, *indices)
    found = x.copy()
    for at in numpy.ndindex(*mask.shape):
        if mask[at]:
            found[tuple(line[at] for line in lines)] += values[at]
    return found


INDICES = [integers(0, 3, 5), integers(0, 4, 5)]
public("_unsafe_masked_index", _masked_index, lambda: [call(normal(3, 4), bools(5), INDICES, 2.5)])
public(
    "_unsafe_masked_index_put_accumulate",
    _masked_put,
    lambda: [call(normal(3, 4), bools(5), INDICES, normal(5))],
)

# Order, sets and counts


def _sorted(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    if not x.ndim:
        return x, numpy.array(0)

    def order(line: Any) -> Any:
        values = line.tolist()
        return sorted(range(len(values)), key=lambda k: -values[k] if descending else values[k])

    positions = each_line(order, x, dim)
    return numpy.take_along_axis(x, positions, dim), positions


public(
    "sort",
    _sorted,
    lambda: [
        call(normal(3, 5)),
        call(normal(3, 5), 0),
        call(normal(3, 5), -1, True),
        call(integers(0, 4, 9), descending=True, stable=True),
        call(integers(0, 4, 9), stable=True),
        call(normal()),
    ],
)


def _topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    values, positions = _sorted(x, dim, largest)
    return numpy.take(values, range(k), dim), numpy.take(positions, range(k), dim)


public(
    "topk",
    _topk,
    lambda: [
        call(normal(3, 7), 3),
        call(normal(7, 3), 2, 0),
        call(normal(3, 7), 4, largest=False),
        call(normal(9), 9),
        call(normal(5), 0),
    ],
)
public("msort", lambda x: _sorted(x, 0)[0], lambda: [call(normal(5, 3)), call(normal(5))])


def _kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    values, positions = _sorted(x, dim)
    found = numpy.take(values, [k - 1], dim), numpy.take(positions, [k - 1], dim)
    return found if keepdim else tuple(one.squeeze(dim) for one in found)


public(
    "kthvalue",
    _kthvalue,
    lambda: [call(normal(3, 7), 1), call(normal(3, 7), 7), call(normal(7, 3), 2, 0, True)],
)


def _unique(
    x: Any,
    sorted_: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
    **options: Any,
) -> Any:
    lines = [x.reshape(-1)[k] for k in range(x.size)] if dim is None else list(numpy.moveaxis(x, dim, 0))
    keys = [tuple(numpy.ravel(line).tolist()) for line in lines]
    distinct = sorted(set(keys))
    first = [keys.index(key) for key in distinct]
    found = [numpy.stack([lines[k] for k in first], 0 if dim is None else dim)]
    if return_inverse:
        inverse = numpy.array([distinct.index(key) for key in keys])
        found.append(inverse.reshape(x.shape) if dim is None else inverse)
    if return_counts:
        found.append(numpy.array([keys.count(key) for key in distinct]))
    return found[0] if len(found) == 1 else tuple(found)


public(
    "unique",
    _unique,
    lambda: [
        call(integers(0, 5, 3, 4)),
        call(integers(0, 5, 3, 4), return_inverse=True, return_counts=True),
        call(integers(0, 2, 6, 2), dim=0, return_inverse=True, return_counts=True),
        call(integers(0, 2, 2, 5), dim=1, return_counts=True),
        call(normal(4)),
    ],
)


def _consecutive(x: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None) -> Any:
    lines = list(x.reshape(-1)) if dim is None else list(numpy.moveaxis(x, dim, 0))
    groups = [
        list(group)
        for _, group in itertools.groupby(lines, key=lambda line: tuple(numpy.ravel(line).tolist()))
    ]
    found = [numpy.stack([group[0] for group in groups], 0 if dim is None else dim)]
    if return_inverse:
        inverse = numpy.array([k for k, group in enumerate(groups) for _ in group])
        found.append(inverse.reshape(x.shape) if dim is None else inverse)
    if return_counts:
        found.append(numpy.array([len(group) for group in groups]))
    return found[0] if len(found) == 1 else tuple(found)


public(
    "unique_consecutive",
    _consecutive,
    lambda: [
        call(integers(0, 2, 9)),
        call(integers(0, 2, 3, 4), return_inverse=True, return_counts=True),
        call(integers(0, 2, 6, 1), dim=0, return_counts=True),
    ],
)
public(
    "isin",
    lambda x, tests, invert=False, assume_unique=False: numpy.vectorize(
        lambda value: (value in set(numpy.ravel(tests).tolist())) != invert, otypes=[bool]
    )(x),
    lambda: [
        call(integers(0, 6, 3, 4), numpy.array([1, 4])),
        call(integers(0, 6, 5), numpy.array([[0, 5]]), invert=True),
    ],
)


def _bucketize(x: Any, boundaries: Any, out_int32: bool = False, right: bool = False) -> Any:
    count = lambda value: sum(b <= value if right else b < value for b in boundaries)
    return numpy.vectorize(count, otypes=[numpy.int32 if out_int32 else numpy.int64])(x)


EDGES = numpy.array([-1.0, 0.0, 0.5])
public(
    "bucketize",
    _bucketize,
    lambda: [
        call(normal(3, 4), EDGES),
        call(EDGES, EDGES),
        call(EDGES, EDGES, right=True),
        call(normal(4), EDGES, out_int32=True),
    ],
)
public(
    "bincount",
    lambda x, weights=None, minlength=0: numpy.array(
        [
            sum((x == k) if weights is None else weights[x == k])
            for k in range(max(int(x.max(initial=-1)) + 1, minlength))
        ]
    ),
    lambda: [
        call(integers(0, 6, 9)),
        call(integers(0, 4, 5), minlength=9),
        call(integers(0, 4, 5), normal(5)),
    ],
)
