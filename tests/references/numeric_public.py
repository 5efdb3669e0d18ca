"""References of public functions that compute numbers: differences, distances, losses, cells, segments."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy
import scipy.integrate
import scipy.spatial.distance
import scipy.special
import scipy.stats
from declare import call, each_line, integers, normal, public, public_identity, uniform
from internal_entries import gru_step, lstm_step, rnn_step

# Differences and areas


def _diff(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    parts = [part for part in (prepend, x, append) if part is not None]
    x = numpy.concatenate(parts, dim)
    size = x.shape[dim]
    found = 0.0  # the n-th difference by its binomial coefficients
    for k in range(n + 1):
        part = numpy.take(x, range(k, size - n + k), dim)
        found = found + (-1) ** (n - k) * math.comb(n, k) * part
    return found


public(
    "diff",
    _diff,
    lambda: [
        call(normal(3, 5)),
        call(normal(3, 5), 2),
        call(normal(5, 3), 3, 0),
        call(normal(3, 5), prepend=normal(3, 1), append=normal(3, 2)),
    ],
)
public(
    "trapezoid trapz",
    lambda y, x=None, dx=1, dim=-1: scipy.integrate.trapezoid(y, x, dx, dim),
    lambda: [
        call(normal(3, 5)),
        call(normal(3, 5), dx=0.5),
        call(normal(3, 5), numpy.sort(normal(5))),
        call(normal(5, 3), dim=0),
        call(normal(3, 5), numpy.sort(normal(3, 5), -1)),
    ],
)
public(
    "cumulative_trapezoid",
    lambda y, x=None, dx=1, dim=-1: scipy.integrate.cumulative_trapezoid(y, x, dx, dim),
    lambda: [
        call(normal(3, 5)),
        call(normal(3, 5), dx=0.5, dim=0),
        call(normal(3, 5), numpy.sort(normal(5))),
    ],
)


def _gradient(x: Any, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    axes = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    steps = [spacing] * len(axes) if isinstance(spacing, (int, float)) else list(spacing)
    found = numpy.gradient(x, *steps, axis=axes, edge_order=edge_order)
    return list(found) if len(axes) > 1 else [found]


public(
    "gradient",
    _gradient,
    lambda: [
        call(normal(7)),
        call(normal(5, 6)),
        call(normal(5, 6), spacing=0.5, dim=1),
        call(normal(5, 6), spacing=(2.0, 0.5)),
        call(normal(5, 6), dim=0, edge_order=2),
        call(normal(6), spacing=(numpy.array([0.0, 1.0, 1.5, 3.0, 3.1, 5.0]),)),
    ],
)

# Distances


def norm_of(x: Any, p: float) -> float:
    """The p-norm of all elements."""
    x = numpy.abs(x).reshape(-1)
    if p == math.inf:
        return float(x.max())
    return float((x != 0).sum() if p == 0 else (x**p).sum() ** (1 / p))


public(
    "pairwise_distance",
    lambda a, b, p=2.0, eps=1e-6, keepdim=False: each_line(
        lambda line: [norm_of(line, p)] if keepdim else norm_of(line, p), a - b + eps, -1
    ),
    lambda: [
        call(normal(3, 4), normal(3, 4, seed=1)),
        call(normal(3, 4), normal(4), p=1.0),
        call(normal(3, 4), normal(3, 4, seed=1), 3.0, 0.1, True),
    ],
)
public(
    "pdist",
    lambda x, p=2.0: scipy.spatial.distance.pdist(
        x, "minkowski" if p != math.inf else "chebyshev", **({"p": p} if p != math.inf else {})
    ),
    lambda: [
        call(normal(5, 3)),
        call(normal(5, 3), 1.0),
        call(normal(4, 2), 3.0),
        call(normal(4, 2), math.inf),
    ],
)
public(
    "dist",
    lambda a, b, p=2.0: numpy.array(norm_of(a - b, p)),
    lambda: (
        [call(normal(3, 4), normal(3, 4, seed=1), p) for p in (2.0, 1.0, 0.0, 3.0, math.inf)]
        + [call(normal(3, 4), normal(4))]
    ),
)

# Element by element

public(
    "prelu",
    lambda x, w: numpy.where(x > 0, x, x * (w if w.size == 1 else w.reshape(-1, *[1] * (x.ndim - 2)))),
    lambda: [call(normal(2, 3, 4), normal(3)), call(normal(5), normal(1)), call(normal(2, 3), normal(3))],
)


def _frexp(found: Any, x: Any) -> Any:
    mantissa, exponent = found
    yield mantissa * 2.0**exponent, x
    inside = (abs(mantissa) >= 0.5) & (abs(mantissa) < 1)
    yield inside | ((x == 0) & (exponent == 0)), numpy.ones(x.shape, bool)


public_identity(
    "frexp",
    _frexp,
    lambda: [call(normal(9)), call(numpy.array([0.0, 1.0, -8.0, 0.75, 1e300, 5e-324, 1e-310]))],
)
public(
    "rsub",
    lambda x, other, alpha=1: other - alpha * x,
    lambda: [
        call(normal(3), normal(3, seed=1)),
        call(normal(3), 2.0),
        call(normal(3), normal(3, seed=1), alpha=3),
    ],
)
public(
    "fill",
    lambda x, value: numpy.full_like(x, value),
    lambda: [call(normal(2, 3), 4.0), call(integers(0, 3, 4), 7)],
)


def _softmax_share(ct: Any, y: Any, dim: int, dtype: Any) -> Any:
    def one(pair: Any) -> Any:
        ct, y = numpy.split(pair, 2)
        return (numpy.diag(y) - numpy.outer(y, y)) @ ct

    return each_line(one, numpy.concatenate([ct, y], dim), dim)


def softmax_calls() -> Any:
    """A cotangent and probabilities."""
    import twofold

    p = scipy.special.softmax(normal(3, 4), 1)
    return [
        call(normal(3, 4, seed=1), p, 1, twofold.float64),
        call(normal(3, 4, seed=1), p, -1, twofold.float64),
    ]


public("_softmax_backward_data", _softmax_share, softmax_calls)
public(
    "softmax_cross_entropy_with_logits",
    lambda labels, logits, axis=-1: -(labels * scipy.special.log_softmax(logits, axis)).sum(axis),
    lambda: [
        call(labels=scipy.special.softmax(normal(3, 4), 1), logits=normal(3, 4, seed=1)),
        call(labels=scipy.special.softmax(normal(3, 4), 0), logits=normal(3, 4, seed=1), axis=0),
    ],
)
public(
    "sparse_softmax_cross_entropy_with_logits",
    lambda labels, logits: numpy.array(
        [
            -math.log(math.exp(row[k]) / sum(map(math.exp, row)))
            for k, row in zip(labels.reshape(-1), logits.reshape(-1, logits.shape[-1]))
        ]
    ).reshape(labels.shape),
    lambda: [
        call(labels=integers(0, 4, 5), logits=normal(5, 4)),
        call(labels=integers(0, 4, 2, 3), logits=normal(2, 3, 4)),
    ],
)

# Normalisation


def _batch_norm(
    x: Any,
    mean: Any,
    var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    found = numpy.empty_like(x)
    for c in range(x.shape[1]):
        part = x[:, c]
        center, spread = (part.mean(), part.var()) if training else (mean[c], var[c])
        found[:, c] = (part - center) / math.sqrt(spread + eps)
        found[:, c] = found[:, c] * (1 if weight is None else weight[c]) + (0 if bias is None else bias[c])
    return found


public(
    "batch_norm",
    _batch_norm,
    lambda: [
        call(normal(5, 3, 4), normal(3), uniform(0.5, 2, 3)),
        call(normal(5, 3), normal(3), uniform(0.5, 2, 3), normal(3, seed=1), normal(3, seed=2), eps=0.1),
        call(normal(5, 3, 2, 2), None, None, normal(3, seed=1), normal(3, seed=2), True),
        call(normal(5, 3, 4), normal(3), uniform(0.5, 2, 3), training=True, momentum=0.3),
    ],
)


def _instance_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    found = numpy.empty_like(x)
    for n, c in numpy.ndindex(x.shape[:2]):
        part = x[n, c]
        found[n, c] = scipy.stats.zscore(part, None) * math.sqrt(part.var() / (part.var() + eps))
        found[n, c] = found[n, c] * (1 if weight is None else weight[c]) + (0 if bias is None else bias[c])
    return found


public(
    "instance_norm",
    _instance_norm,
    lambda: [
        call(normal(2, 3, 5)),
        call(normal(2, 3, 4, 4), weight=normal(3), bias=normal(3, seed=1), eps=0.5),
    ],
)

# Cells of recurrent networks


def _cell(step: Any, states: int) -> Any:
    def rule(x: Any, hx: Any, w: Any, u: Any, b: Any = None, d: Any = None) -> Any:
        zero = numpy.zeros(len(w))
        weights = (w, u, zero if b is None else b, zero if d is None else d)
        found = step(x, hx if states == 2 else (hx,), weights)
        return found if states == 2 else found[0]

    return rule


def _cell_calls(gates: int, states: int) -> Any:
    def calls() -> Any:
        h = normal(2, 4)
        hx = (h, normal(2, 4, seed=1)) if states == 2 else h
        weights = normal(4 * gates, 3), normal(4 * gates, 4)
        biases = normal(4 * gates), normal(4 * gates, seed=1)
        return [call(normal(2, 3), hx, *weights), call(normal(2, 3), hx, *weights, *biases)]

    return calls


public("lstm_cell", _cell(lstm_step, 2), _cell_calls(4, 2))
public("gru_cell", _cell(gru_step, 1), _cell_calls(3, 1))
public("rnn_tanh_cell", _cell(rnn_step(numpy.tanh), 1), _cell_calls(1, 1))
public("rnn_relu_cell", _cell(rnn_step(lambda x: numpy.maximum(x, 0)), 1), _cell_calls(1, 1))

# Norms of slices


def _norm_except_dim(v: Any, pow: float = 2, dim: int = 0) -> Any:
    axes = None if dim == -1 else tuple(k for k in range(v.ndim) if k != dim)
    return (abs(v) ** pow).sum(axes, keepdims=dim != -1) ** (1 / pow)


public(
    "norm_except_dim",
    _norm_except_dim,
    lambda: [
        call(normal(3, 4)),
        call(normal(3, 4), 2, 1),
        call(normal(2, 3, 4), 1, 1),
        call(normal(3, 4), 2, -1),
    ],
)

public(
    "_weight_norm",
    lambda v, g, dim=0: v * (g / _norm_except_dim(v, 2, dim)),
    lambda: [call(normal(3, 4), normal(3, 1)), call(normal(3, 4, 2), normal(1, 4, 1), 1)],
)

# Convolutions


def _conv_tbc(x: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    x = numpy.pad(x, ((pad, pad), (0, 0), (0, 0)))
    first = range(len(x) - len(weight) + 1)
    return numpy.stack([sum(x[t + k] @ weight[k] for k in range(len(weight))) + bias for t in first])


public(
    "conv_tbc",
    _conv_tbc,
    lambda: [
        call(normal(5, 2, 3), normal(2, 3, 4), normal(4)),
        call(normal(3, 1, 2), normal(3, 2, 2), normal(2), 2),
    ],
)

# Segments


def _segment_reduce(
    x: Any,
    reduce: str,
    lengths: Any = None,
    offsets: Any = None,
    axis: int = 0,
    initial: Any = None,
    **options: Any,
) -> Any:
    if lengths is None:
        lengths = numpy.stack([b - a for a, b in itertools.pairwise(numpy.moveaxis(offsets, -1, 0))], -1)
    empty = {"sum": 0.0, "mean": math.nan, "prod": 1.0, "max": -math.inf, "min": math.inf}[reduce]
    found = numpy.zeros((*x.shape[:axis], lengths.shape[-1], *x.shape[axis + 1 :]))
    for at in numpy.ndindex(*x.shape[:axis]):
        start = 0
        for k, count in enumerate(lengths[at]):
            part = x[at][start : start + count]
            start += count
            if initial is not None and reduce != "mean":
                part = numpy.concatenate([part, numpy.full((1, *part.shape[1:]), initial)])
            if initial is not None and reduce == "mean" and not count:
                found[(*at, k)] = initial
                continue
            value = getattr(numpy, reduce)(part, 0) if len(part) else empty
            if reduce == "mean" and initial is not None:
                value = value + initial / count
            found[(*at, k)] = value
    return found


public(
    "segment_reduce",
    _segment_reduce,
    lambda: (
        [
            call(normal(6, 2), how, lengths=numpy.array([2, 0, 3, 1]))
            for how in ("sum", "mean", "prod", "max", "min")
        ]
        + [
            call(normal(6), "sum", offsets=numpy.array([0, 2, 5])),
            call(normal(6), "max", lengths=numpy.array([4, 2]), initial=0.5),
            call(normal(6), "mean", lengths=numpy.array([4, 2, 0]), initial=0.5),
            call(normal(2, 5), "sum", lengths=numpy.array([[1, 4], [2, 3]]), axis=1),
        ]
    ),
)


def _hash(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    axes = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else dim
    axes = tuple(axis % x.ndim for axis in axes)
    bits = (x if x.dtype.kind == "f" else x.astype(numpy.int64)).view(numpy.uint64)
    found = numpy.zeros([1 if axis in axes else size for axis, size in enumerate(x.shape)], numpy.uint64)
    for at in numpy.ndindex(*x.shape):
        position = tuple(0 if axis in axes else k for axis, k in enumerate(at))
        found[position] = int(found[position]) ^ int(bits[at])
    return found if keepdim else found.squeeze(axes)


public(
    "hash_tensor",
    _hash,
    lambda: [call(normal(3, 4)), call(integers(-9, 9, 3, 4), 1), call(normal(3, 4), 0, keepdim=True)],
)


public("positive", lambda x: x, lambda: [call(normal(3, 4)), call(integers(-9, 9, 3))])


# Numbers by their exponents

public(
    "ldexp", lambda x, n: x * 2.0**n, lambda: [call(normal(3, 4), integers(-3, 4, 3, 4)), call(normal(3), 2)]
)
