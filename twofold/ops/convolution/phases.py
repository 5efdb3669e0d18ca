"""The phases of a strided axis: positions of an image by their number modulo the stride of the windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import NamedTuple


class Reach(NamedTuple):
    """Which positions of a kernel axis a phase meets (but for the first), and where in the result.

    Later positions of the kernel meet earlier ones of the result, so ``dilation`` is negative.
    """

    taps: int
    step: int
    low: int
    dilation: int


@dataclass(frozen=True)
class Run:
    """Adjacent phases of an axis, from ``first`` on, that reach alike; ``starts`` are their first kernel positions."""

    first: int
    starts: tuple[int, ...]
    reach: Reach

    @property
    def count(self) -> int:
        """How many phases."""
        return len(self.starts)


def phases(stride: int, low: int, dilation: int, kernel: int, size: int) -> list[Run]:
    """The positions of an image axis by their number modulo the stride; those that meet nothing are left out.

    Position ``p`` of the image meets position ``o = (p + low - k * dilation) / stride`` of the result, if that is
    whole. With ``g = gcd(stride, dilation)``, ``k`` advances by ``stride / g`` and ``o`` by ``-dilation / g``.

    >>> [(run.first, run.starts, run.reach.taps) for run in phases(2, 1, 1, 3, 8)]
    [(0, (1,), 1), (1, (0,), 2)]
    """
    common = gcd(stride, dilation)
    step, back = stride // common, dilation // common
    runs: list[Run] = []
    for phase in range(min(stride, size)):
        start = next(
            (k for k in range(min(step, kernel)) if (phase + low - k * dilation) % stride == 0), None
        )
        if start is None:
            continue
        taps = -(-(kernel - start) // step)
        reach = Reach(taps, step, -((phase + low - start * dilation) // stride), -back)
        last = runs[-1] if runs else None
        if last is not None and last.first + last.count == phase and last.reach == reach:
            runs[-1] = replace(last, starts=(*last.starts, start))
        else:
            runs.append(Run(phase, (start,), reach))
    return runs
