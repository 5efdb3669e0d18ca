"""Line charts as SVG, drawn in the page's own colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 1000.0, 360.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 18.0, 40.0, 46.0


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About ``count`` round numbers from ``low`` to ``high``, in steps of 1, 2 or 5 times a power of ten.

    >>> nice_ticks(0.0, 2.4), nice_ticks(0.0, 460.0)
    ([0.0, 0.5, 1.0, 1.5, 2.0], [0.0, 100.0, 200.0, 300.0, 400.0])
    """
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 12) for index in range(first, math.floor(high / step + 1e-9) + 1)]


def _thin(values: Sequence[float], most: int = 1000) -> list[tuple[int, float]]:
    """At most ``most`` (step, value) pairs: evenly chosen steps, the last one always."""
    stride = max(1, math.ceil(len(values) / most))
    points = [(index, values[index]) for index in range(0, len(values), stride)]
    if values and points[-1][0] != len(values) - 1:
        points.append((len(values) - 1, values[-1]))
    return [(index, value) for index, value in points if math.isfinite(value)]


def _axes(last: int, top: float) -> tuple[list[str], float, float]:
    """Grid lines and numbers, and the two factors from data to the drawing."""
    across = (WIDTH - LEFT - RIGHT) / max(1, last)
    up = (HEIGHT - TOP - BOTTOM) / top
    base = HEIGHT - BOTTOM
    parts = []
    for value in nice_ticks(0, top):
        y = base - value * up
        parts.append(
            f'<path d="M{LEFT:.1f},{y:.1f} H{WIDTH - RIGHT:.1f}" class="{"axis" if value == 0 else "grid"}"/>'
        )
        parts.append(
            f'<text x="{LEFT - 9:.1f}" y="{y + 4:.1f}" class="tick" text-anchor="end">{value:g}</text>'
        )
    for value in nice_ticks(0, last, 8):
        x = LEFT + value * across
        parts.append(f'<path d="M{x:.1f},{base:.1f} v5" class="axis"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{base + 19:.1f}" class="tick" text-anchor="middle">{value:g}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle:.1f}" y="{HEIGHT - 7:.1f}" class="tick" text-anchor="middle">training step</text>'
    )
    parts.append(f'<text x="{LEFT - 9:.1f}" y="{TOP - 20:.1f}" class="tick" text-anchor="end">loss</text>')
    return parts, across, up


def line_chart(curves: Sequence[tuple[str, Sequence[float]]]) -> str:
    """SVG of several curves over the step number; a later one is drawn thinner, so equal ones stay visible.

    >>> line_chart([("a", [2.0, 1.0]), ("b", [2.0, 1.0])]).count("<polyline")
    2
    """
    last = max((len(values) - 1 for _, values in curves), default=0)
    finite = [value for _, values in curves for value in values if math.isfinite(value)]
    top = max(finite, default=1.0) * 1.04 or 1.0
    parts, across, up = _axes(last, top)
    base = HEIGHT - BOTTOM
    legend = WIDTH - RIGHT - 10
    for index, (_, values) in enumerate(curves):
        points = " ".join(
            f"{LEFT + step * across:.1f},{base - value * up:.1f}" for step, value in _thin(values)
        )
        parts.append(f'<polyline points="{points}" class="curve curve-{index}"/>')
    for index, (name, _) in reversed(list(enumerate(curves))):
        position = f'x="{legend:.1f}" y="{TOP - 16:.1f}"'
        parts.append(f'<text {position} class="legend" text-anchor="end">{escape(name)}</text>')
        start = legend - 7.6 * len(name) - 44
        parts.append(f'<path d="M{start:.1f},{TOP - 20:.1f} h34" class="curve curve-{index}"/>')
        legend = start - 26
    return (
        f'<svg class="chart" role="img" aria-label="Loss at each training step" '
        f'viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
