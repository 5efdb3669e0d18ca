"""Gradients of graphs by differences of the reference interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.ir.graph import Graph
from twofold.ir.interpret import evaluate
from twofold.transforms.gradient_check import numeric_vjp

STEP = 1e-6


def vjp_by_differences(graph: Graph, arrays: Sequence[Any], cotangent: Any, index: int) -> Any:
    """The cotangent of ``arrays[index]``: of a pointwise graph all its elements are moved at once, else one by one."""
    if is_pointwise(graph):
        return _pointwise_vjp(graph, arrays, cotangent, index)
    return numeric_vjp(lambda values: evaluate(graph, values)[0], arrays, cotangent, index)


def differs_along_directions(
    graph: Graph, arrays: Sequence[Any], cotangent: Any, index: int, found: Any, tolerance: float
) -> str | None:
    """None if the cotangent of ``arrays[index]`` gives the slopes along three random directions."""
    generator = numpy.random.default_rng(arrays[index].size)
    for _ in range(3):
        way = generator.normal(size=arrays[index].shape)
        ends = [
            evaluate(graph, [*arrays[:index], arrays[index] + side * STEP * way, *arrays[index + 1 :]])[0]
            for side in (1, -1)
        ]
        slope = (cotangent * (ends[0] - ends[1])).sum() / (2 * STEP)
        shares = found * way
        if not abs(shares.sum() - slope) <= tolerance * max(1.0, float(numpy.linalg.norm(shares))):
            return f"{shares.sum()} along {way.tolist()}, against {slope} by differences"
    return None


def is_pointwise(graph: Graph) -> bool:
    """Whether each element of the result depends on one element of each operand, broadcast to the result."""
    shape = graph.outputs[0].shape
    return all(
        node.op.kind in ("elementwise", "source") or node.op.name in ("input", "broadcast_to", "ruled")
        for node in graph.nodes()
    ) and all(broadcasts(type.shape, shape) for type in graph.input_types)


def broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(shape) <= len(wanted) and all(a in (1, b) for a, b in zip(shape[::-1], wanted[::-1]))


def _pointwise_vjp(graph: Graph, arrays: Sequence[Any], cotangent: Any, index: int) -> Any:
    target = numpy.asarray(arrays[index])

    def slope(move: complex) -> Any:
        ends = [
            evaluate(graph, [*arrays[:index], target + way * move, *arrays[index + 1 :]])[0]
            for way in (1, -1)
        ]
        products = numpy.real(numpy.conj(cotangent) * (ends[0] - ends[1])) / (2 * STEP)
        repeated = products.ndim - target.ndim
        axes = [k for k, size in enumerate(target.shape, repeated) if size != products.shape[k]]
        return products.sum((*range(repeated), *axes)).reshape(target.shape)

    found = slope(STEP)
    return found + 1j * slope(1j * STEP) if target.dtype.kind == "c" else found
