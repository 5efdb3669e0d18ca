"""References of entries that resize and sample images, and of CTC: one element at a time in plain Python."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy
from declare import entry


def keys_cubic(x: float, a: float) -> float:
    """The convolution kernel of Keys (1981, eq. 4) at distance ``x``."""
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def taps(size: int, wanted: int, at: int, mode: str, placing: str, scale: Any, antialias: bool) -> Any:
    """The elements, with their weights, that make one element of a resized axis."""
    step = (size - 1) / (wanted - 1) if placing == "corners" and wanted > 1 else 0.0
    if placing != "corners":
        step = 1 / scale if scale else size / wanted
    if mode == "nearest":
        return [(min(math.floor(at * step), size - 1), 1.0)]
    if mode == "nearest-exact":
        return [(min(math.floor((at + 0.5) * step), size - 1), 1.0)]
    cubic = mode == "bicubic"
    if antialias:
        wide = max(step, 1.0)
        center = (at + 0.5) * step
        support = (2 if cubic else 1) * wide
        first, last = max(int(center - support + 0.5), 0), min(int(center + support + 0.5), size)
        weights = []
        for k in range(first, last):
            distance = (k + 0.5 - center) / wide
            weights.append(keys_cubic(distance, -0.5) if cubic else max(1 - abs(distance), 0.0))
        return [(k, weight / sum(weights)) for k, weight in zip(range(first, last), weights)]
    position = (at + 0.5) * step - 0.5 if placing == "edges" else at * step
    if cubic:
        low = math.floor(position)
        around = range(low - 1, low + 3)
        return [(min(max(k, 0), size - 1), keys_cubic(position - k, -0.75)) for k in around]
    position = max(position, 0.0)
    low = min(math.floor(position), size - 1)
    part = min(position - low, 1.0)
    return [(low, 1 - part), (min(low + 1, size - 1), part)]


@entry("resize")
def _resize(x: Any, mode: str, sizes: Any, placing: str, scales: Any, antialias: bool) -> Any:
    found, first = x, x.ndim - len(sizes)
    for k, (wanted, scale) in enumerate(zip(sizes, scales)):
        size = x.shape[first + k]
        matrix = numpy.zeros((wanted, size), x.dtype if mode.startswith("nearest") else float)
        for at in range(wanted):
            for position, weight in taps(size, wanted, at, mode, placing, scale, antialias):
                matrix[at, position] += weight
        found = numpy.moveaxis(numpy.tensordot(matrix, found, (1, first + k)), 0, first + k)
    return found


def reflected(position: float, low: float, high: float) -> float:
    """``position`` mirrored at ``low`` and ``high`` until it lies between."""
    if low == high:
        return 0.0
    while not low <= position <= high:
        position = 2 * low - position if position < low else 2 * high - position
    return position


def inside(position: float, size: int, padding: str, align: bool) -> float:
    """A position as the padding moves it."""
    if padding == "reflection":
        position = reflected(position, 0, size - 1) if align else reflected(position, -0.5, size - 0.5)
    if padding in ("border", "reflection"):
        position = min(max(position, 0.0), size - 1.0)
    return position


def sampled(image: Any, position: Any, mode: str, padding: str, align: bool) -> Any:
    """All channels of ``image`` at ``position``, whose axes are in the order of the image's."""
    sizes = image.shape[1:]
    lines = []
    for value, size in zip(position, sizes):
        at = (value + 1) / 2 * (size - 1) if align else ((value + 1) * size - 1) / 2
        if mode == "bicubic":
            low = math.floor(at)
            moved = [int(inside(k, size, padding, align)) for k in range(low - 1, low + 3)]
            lines.append(
                [(k, keys_cubic(at - near, -0.75)) for near, k in zip(range(low - 1, low + 3), moved)]
            )
            continue
        at = inside(at, size, padding, align)
        if mode == "nearest":
            lines.append([(round(at), 1.0)])
        else:
            low = math.floor(at)
            lines.append([(low, low + 1 - at), (low + 1, at - low)])
    total = numpy.zeros(len(image))
    for corner in itertools.product(*lines):
        where = tuple(k for k, _ in corner)
        if all(0 <= k < size for k, size in zip(where, sizes)):
            total = total + math.prod(weight for _, weight in corner) * image[(slice(None), *where)]
    return total


@entry("grid_sample")
def _grid_sample(x: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    found = numpy.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in numpy.ndindex(*grid.shape[:-1]):
        position = grid[at][::-1].tolist()
        found[(at[0], slice(None), *at[1:])] = sampled(x[at[0]], position, mode, padding, align)
    return found


@entry("affine_grid")
def _affine_grid(theta: Any, size: Any, align: bool) -> Any:
    sizes = size[2:]
    found = numpy.zeros((size[0], *sizes, len(sizes)))
    for n, *at in numpy.ndindex(size[0], *sizes):
        position = [
            (0.0 if count == 1 else -1 + 2 * k / (count - 1)) if align else (2 * k + 1) / count - 1
            for k, count in zip(at, sizes)
        ]
        found[(n, *at)] = theta[n] @ numpy.array([*position[::-1], 1.0])
    return found


def collapsed(path: Any, blank: int) -> list[int]:
    """What a path of frames says: repeated labels once, and no blanks."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


def ctc_loss(scores: Any, target: Any, blank: int, merges: bool = True) -> float:
    """Minus the logarithm of the sum over all paths that say the target, path by path."""
    said = collapsed if merges else lambda path, blank: [label for label in path if label != blank]
    total = 0.0
    for path in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        if said(path, blank) == list(target):
            total += math.exp(sum(scores[t, label] for t, label in enumerate(path)))
    return -math.log(total) if total else math.inf


@entry("ctc_losses")
def _ctc_losses(
    scores: Any, targets: Any, lengths: Any, counts: Any, blank: int, zero: bool, merges: bool
) -> Any:
    found = [
        ctc_loss(scores[: lengths[n], n], targets[n, : counts[n]].tolist(), blank, merges)
        for n in range(len(targets))
    ]
    return numpy.array([0.0 if zero and loss == math.inf else loss for loss in found])


@entry("ctc_paths")
def _ctc_paths(scores: Any, symbols: Any, skips: Any, lengths: Any, stays: Any = None) -> Any:
    frames, batch = scores.shape[:2]
    count = symbols.shape[1]
    found = numpy.full((batch, frames + 1, 2 + count), -numpy.inf)
    found[:, 0, 2] = 0
    for n, t in itertools.product(range(batch), range(frames)):
        if t >= lengths[n]:
            found[n, t + 1] = found[n, t]
            continue
        for s in range(count):
            stay = 0 if stays is None else stays[n, s]
            ways = found[n, t, s + 2] + stay, found[n, t, s + 1], found[n, t, s] + skips[n, s]
            found[n, t + 1, s + 2] = numpy.logaddexp.reduce(ways) + scores[t, n, symbols[n, s]]
    return found
