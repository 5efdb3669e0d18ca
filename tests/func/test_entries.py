"""Forward mode, tested for every operation: against differences, and against reverse mode."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))

import samples as sampled
import test_compiled as compiled

from twofold import _core
from twofold.dtypes import float64
from twofold.func import jvp, vjp, vmap
from twofold.ir.op import REGISTRY
from twofold.ops.samples import Sample

NAMES = sampled.operations_with_samples()
STEP = 1e-6


def smooth_samples(op: Any) -> list[Sample]:
    small = [s for s in op.samples() if s.smooth and 0 < sum(array.size for array in s.arrays) <= 80]
    if small and sampled.form(op) == "pointwise":
        small = [sampled.largest(small)]
    chosen = [sampled.in_float64(s) for s in small[:: max(1, len(small) // 4)]]
    return [s for s in chosen if float64 in s.dtypes and sampled.result_type(op, s).dtype is float64]


def function_of(op: Any, sample: Sample, positions: list[int]) -> Any:
    """The call as a function of its floating inputs."""
    given = [compiled.tensor_of(a, d) for a, d in zip(sample.arrays, sample.dtypes, strict=True)]

    def function(*values: Any) -> Any:
        inputs = list(given)
        for position, value in zip(positions, values, strict=True):
            inputs[position] = value
        return _core.record(op, sample.attrs, inputs)

    return function


class Derivatives(NamedTuple):
    """What a call and its derivatives give at one position; every part is a tensor, or a list of some."""

    ahead: Any
    back: Any
    pushed: Any
    batched: Any
    pulled: Any
    reached: Any


def derivatives(
    op: Any, sample: Sample, generator: numpy.random.Generator
) -> tuple[Derivatives, Any, Any] | None:
    """All of a call, its directions and a cotangent; None without a floating input."""
    positions = [
        k
        for k, d in enumerate(sample.dtypes)
        if d is float64 and k not in getattr(op, "without_gradient", ())
    ]
    if not positions:
        return None
    function = function_of(op, sample, positions)
    arrays = [sample.arrays[k] for k in positions]
    ways = [generator.normal(size=array.shape) for array in arrays]
    primals = tuple(map(tensor, arrays))
    push, (output, pull) = partial(push_forward, function, primals), vjp(function, *primals)
    cotangent = generator.normal(size=output.shape)
    ahead, back = (
        function(*[tensor(array + side * way) for array, way in zip(arrays, ways, strict=True)])
        for side in (STEP, -STEP)
    )
    batched = vmap(push)(*[tensor(way[None]) for way in ways])[0]
    pulled, reached = pull(tensor(cotangent)), pull(tensor(numpy.ones(output.shape)))
    return Derivatives(ahead, back, push(*map(tensor, ways)), batched, pulled, reached), ways, cotangent


@pytest.mark.parametrize("name", NAMES)
def test_derivative_along_a_direction(name: str) -> None:
    op: Any = REGISTRY[name]
    generator = numpy.random.default_rng(8)
    with compiled.tier("fused"):  # it compiles the kernels of all samples in one go
        made = [derivatives(op, sample, generator) for sample in smooth_samples(op)]
        found = [(Derivatives(*map(values, tensors)), *rest) for tensors, *rest in filter(None, made)]
    for at, ways, cotangent in found:
        slope = (at.ahead - at.back) / (2 * STEP)
        if not getattr(op, "differentiable", True):
            slope = numpy.zeros_like(slope)
        near = 1e-5 * (1 + abs(slope).max(initial=0))
        if all(part.any() for part in at.reached):  # entries may leave a gradient out on purpose
            numpy.testing.assert_allclose(at.pushed, slope, rtol=1e-5, atol=near)
        across = (cotangent * at.pushed).sum()
        along = sum((part * way).sum() for part, way in zip(at.pulled, ways, strict=True))
        numpy.testing.assert_allclose(across, along, rtol=1e-9, atol=1e-9)
        assert numpy.array_equal(at.batched, at.pushed, equal_nan=True)


def values(tensors: Any) -> Any:
    """The arrays of a tensor or of several."""
    return (
        tensors._numpy().copy()
        if isinstance(tensors, _core.Tensor)
        else [part._numpy().copy() for part in tensors]
    )


def push_forward(function: Any, primals: tuple[Any, ...], *tangents: Any) -> Any:
    return jvp(function, primals, tangents)[1]


def tensor(array: Any) -> Any:
    return _core.from_array(numpy.array(array, numpy.float64), False)
