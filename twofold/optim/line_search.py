"""A line search for points that fulfil the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple


class Conditions(NamedTuple):
    """The strong Wolfe conditions: how much of the slope the loss must fall by, and how much of it may be left."""

    sufficient: float = 1e-4
    curvature: float = 0.9


class Point(NamedTuple):
    """A point of the line: the step to it, the loss, the gradient there, and its product with the direction."""

    step: float
    loss: float
    gradient: Any
    slope: float


def cubic_minimum(one: Point, other: Point, low: float, high: float) -> float:
    """The minimum within limits of the cubic through two points with their slopes.

    Source: Nocedal, Wright, Numerical Optimization, 2006, equation 3.59.
    """
    left, right = (one, other) if one.step <= other.step else (other, one)
    d1 = one.slope + other.slope - 3 * (one.loss - other.loss) / (one.step - other.step)
    square = d1 * d1 - one.slope * other.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    part = (right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2)
    return min(max(right.step - (right.step - left.step) * part, low), high)


def strong_wolfe(
    evaluate: Callable[[float], Point],
    step: float,
    start: Point,
    largest: float,
    tolerance: float,
    limit: int,
    conditions: Conditions = Conditions(),  # noqa: B008
) -> tuple[Point, int]:
    """A point along a direction that fulfils the strong Wolfe conditions, and how often ``evaluate`` was called.

    Source: Nocedal, Wright, Numerical Optimization, 2006, algorithms 3.5 and 3.6, with cubic interpolation.

    Args:
        evaluate: Gives the point of a step.
        step: The step to begin with.
        start: The point of step 0.
        largest: Absolute size of the largest component of the direction.
        tolerance: Length below which an interval is not divided further.
        limit: How often the interval may be changed.
        conditions: What is asked of the point.
    """
    points, done, rounds = _bracket(evaluate, step, start, limit, conditions)
    calls, stuck = rounds + 1, False
    while not done and rounds < limit and len(points) == 2:
        one, other = points
        least, most = min(one.step, other.step), max(one.step, other.step)
        if (most - least) * largest < tolerance:
            break
        step = cubic_minimum(one, other, least, most)
        # a minimum close to an end, twice or beyond it, is moved inwards
        margin = 0.1 * (most - least)
        if min(most - step, step - least) < margin:
            if stuck or step >= most or step <= least:
                step = most - margin if abs(step - most) < abs(step - least) else least + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = evaluate(step)
        calls, rounds = calls + 1, rounds + 1
        low = 0 if one.loss <= other.loss else 1
        if new.loss > start.loss + conditions.sufficient * step * start.slope or new.loss >= points[low].loss:
            points[1 - low] = new
            continue
        if abs(new.slope) <= -conditions.curvature * start.slope:
            done = True
        elif new.slope * (points[1 - low].step - points[low].step) >= 0:
            points[1 - low] = points[low]
        points[low] = new
        if done:
            return new, calls
    return min(points, key=lambda point: point.loss), calls


def _bracket(
    evaluate: Callable[[float], Point], step: float, start: Point, limit: int, conditions: Conditions
) -> tuple[list[Point], bool, int]:
    """Points around a good one, or the good one alone; whether it is good; how many steps were tried."""
    before, new, rounds = start, evaluate(step), 0
    while rounds < limit:
        rises = new.loss > start.loss + conditions.sufficient * new.step * start.slope
        if rises or (rounds > 1 and new.loss >= before.loss):
            return [before, new], False, rounds
        if abs(new.slope) <= -conditions.curvature * start.slope:
            return [new], True, rounds
        if new.slope >= 0:
            return [before, new], False, rounds
        low, high = new.step + 0.01 * (new.step - before.step), new.step * 10
        step = cubic_minimum(before, new, low, high)
        before, new, rounds = new, evaluate(step), rounds + 1
    return [start, new], False, rounds
