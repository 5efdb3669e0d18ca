"""References of reductions and scans of the elements where a mask is true."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy
import scipy.integrate
import scipy.spatial.distance
import scipy.special
import scipy.stats
from array_entries import median_index
from declare import bools, call, each_line, normal, public
from numeric_public import norm_of

# Where a mask is true


def masked(rule: Any, empty: Any = None) -> Any:
    """A reference by ``rule`` of the kept elements of every line; without a mask all are kept."""

    def reference(x: Any, *rest: Any, dim: Any = None, keepdim: bool = False, mask: Any = None) -> Any:
        if rest:
            *values, dim = rest if len(rest) > 1 or rule.__code__.co_argcount == 1 else (*rest, dim)
        else:
            values = []
        mask = numpy.broadcast_to(True if mask is None else mask, x.shape)
        axes = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else dim
        axes = tuple(axis % x.ndim for axis in axes)
        shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
        made = []
        for at in numpy.ndindex(*shape):
            where = tuple(slice(None) if axis in axes else k for axis, k in enumerate(at))
            part = x[where].reshape(-1)[mask[where].reshape(-1)]
            made.append(rule(part, *values) if part.size else empty)
        found = numpy.array(made).reshape(shape)
        return found if keepdim else found.squeeze(axes)

    return reference


def mask_of(*shape: int) -> Any:
    """A mask with a kept element in every row and column."""
    found = bools(*shape)
    found[..., 0] = True
    found[0] = True
    return found


REDUCED = lambda: [
    call(normal(3, 4), mask=mask_of(3, 4)),
    call(normal(3, 4), 1, mask=mask_of(3, 4)),
    call(normal(3, 4), 0, keepdim=True, mask=mask_of(3, 4)),
    call(normal(2, 3, 4), (0, 2), mask=mask_of(2, 3, 4)),
    call(normal(3, 4), 1),
]
BLANK = lambda: [call(normal(2, 3), 1, mask=numpy.array([[True, False, True], [False] * 3]))]
for _name, _rule, _empty in (
    ("sum", lambda part: math.fsum(part), 0.0),
    ("prod", lambda part: math.prod(part.tolist()), 1.0),
    ("amax", lambda part: max(part.tolist()), -math.inf),
    ("amin", lambda part: min(part.tolist()), math.inf),
    ("logsumexp", lambda part: math.log(sum(math.exp(v) for v in part)), -math.inf),
):
    public(f"masked.{_name}", masked(_rule, _empty), lambda: [*REDUCED(), *BLANK()])
public("masked.mean", masked(lambda part: math.fsum(part) / part.size), REDUCED)


def _spread(power: float) -> Any:
    def rule(x: Any, dim: Any = None, unbiased: Any = None, correction: Any = None, **options: Any) -> Any:
        less = (
            1
            if correction is None and unbiased is None
            else int(unbiased)
            if correction is None
            else correction
        )

        def one(part: Any) -> float:
            mean = math.fsum(part) / part.size
            divisor = part.size - less
            return (math.fsum((part - mean) ** 2) / divisor) ** power if divisor > 0 else math.nan

        return masked(one)(x, dim=dim, **options)

    return rule


DEVIATIONS = lambda: [
    call(normal(3, 4), mask=mask_of(3, 4)),
    call(normal(4, 6), 1, mask=mask_of(4, 6) | (numpy.arange(6) < 3)),
    call(normal(3, 4), 1, False, mask=mask_of(3, 4)),
    call(
        normal(4, 6),
        dim=1,
        correction=2,
        keepdim=True,
        mask=numpy.arange(6) < numpy.array([[4], [3], [6], [5]]),
    ),
    call(normal(3, 4), 0),
]
public("masked.var", _spread(1.0), DEVIATIONS)
public("masked.std", _spread(0.5), DEVIATIONS)


def _masked_norm(x: Any, ord: float = 2.0, dim: Any = None, **options: Any) -> Any:
    return masked(lambda part: norm_of(part, ord), 0.0)(x, dim=dim, **options)


public(
    "masked.norm",
    _masked_norm,
    lambda: [
        call(normal(3, 4), mask=mask_of(3, 4)),
        call(normal(3, 4), 1.0, 1, mask=mask_of(3, 4)),
        call(normal(3, 4), 3.0, dim=0, keepdim=True, mask=mask_of(3, 4)),
        call(normal(3, 4), math.inf, 1, mask=mask_of(3, 4)),
        call(normal(3, 4), 2.0, 1),
    ],
)


def _masked_index(largest: bool) -> Any:
    def rule(x: Any, dim: Any = None, keepdim: bool = False, mask: Any = None) -> Any:
        mask = numpy.broadcast_to(True if mask is None else mask, x.shape)
        wide = numpy.where(mask, x, -numpy.inf if largest else numpy.inf)
        if dim is None:
            wide, dim = wide.reshape(-1), 0
        sign = -1 if largest else 1
        found = each_line(lambda line: [min(range(len(line)), key=lambda k: sign * line[k])], wide, dim)
        found = found.astype(x.dtype)  # PyTorch gives the positions in the dtype of the input
        return found if keepdim else found.squeeze(dim)

    return rule


POSITIOND = lambda: [
    call(normal(3, 4), mask=mask_of(3, 4)),
    call(normal(3, 4), 1, mask=mask_of(3, 4)),
    call(normal(3, 4), 0, keepdim=True, mask=mask_of(3, 4)),
    call(normal(3, 4), 1),
]
public("masked.argmax", _masked_index(True), POSITIOND)
public("masked.argmin", _masked_index(False), POSITIOND)


def _masked_running(start: float, rule: Any) -> Any:
    def reference(x: Any, dim: int, mask: Any = None) -> Any:
        wide = numpy.where(True if mask is None else mask, x, start)
        return each_line(lambda line: list(itertools.accumulate(line.tolist(), rule)), wide, dim)

    return reference


LINES = lambda: [
    call(normal(3, 4), 1, mask=mask_of(3, 4)),
    call(normal(3, 4), 0, mask=mask_of(3, 4)),
    call(normal(3, 4), -1),
]
public("masked.cumsum", _masked_running(0.0, lambda a, b: a + b), LINES)
public("masked.cumprod", _masked_running(1.0, lambda a, b: a * b), LINES)


def _masked_median(x: Any, dim: int = -1, keepdim: bool = False, mask: Any = None) -> Any:
    wide = numpy.where(True if mask is None else mask, x, numpy.nan)
    found = each_line(lambda line: [line[median_index(line, True)]], wide, dim)
    return found if keepdim else found.squeeze(dim)


public(
    "masked.median",
    _masked_median,
    lambda: [
        call(normal(3, 4), mask=mask_of(3, 4)),
        call(normal(3, 4), 0, mask=mask_of(3, 4)),
        call(normal(3, 5), 1, keepdim=True),
    ],
)


def _masked_softmax(transformed: Any, outside: float) -> Any:
    def rule(x: Any, dim: int, mask: Any = None) -> Any:
        mask = numpy.broadcast_to(True if mask is None else mask, x.shape)
        found = numpy.full(x.shape, outside)
        moved, kept, out = (numpy.moveaxis(a, dim, -1) for a in (x, mask, found))
        for at in numpy.ndindex(*moved.shape[:-1]):
            out[at][kept[at]] = transformed(moved[at][kept[at]])
        return found

    return rule


public("masked.softmax", _masked_softmax(scipy.special.softmax, 0.0), LINES)
public("masked.log_softmax", _masked_softmax(scipy.special.log_softmax, -math.inf), LINES)
public("masked.softmin", _masked_softmax(lambda line: scipy.special.softmax(-line), 0.0), LINES)


def _masked_normalize(x: Any, ord: float, dim: int, eps: float = 1e-12, mask: Any = None) -> Any:
    wide = numpy.where(True if mask is None else mask, x, 0.0)
    return each_line(lambda line: line / max(norm_of(line, ord), eps), wide, dim)


public(
    "masked.normalize",
    _masked_normalize,
    lambda: [
        call(normal(3, 4), 2.0, 1, mask=mask_of(3, 4)),
        call(normal(3, 4), 1.0, 0, mask=mask_of(3, 4)),
        call(normal(3, 4), 2.0, 1, eps=100.0),
    ],
)
public(
    "masked.logaddexp",
    lambda a, b, input_mask=None, other_mask=None: scipy.special.logsumexp(
        [
            numpy.where(True if input_mask is None else input_mask, a, -numpy.inf),
            numpy.where(True if other_mask is None else other_mask, b, -numpy.inf),
        ],
        0,
    ),
    lambda: [
        call(normal(3, 4), normal(3, 4, seed=1)),
        call(normal(3, 4), normal(3, 4, seed=1), input_mask=mask_of(3, 4), other_mask=bools(3, 4)),
    ],
)
