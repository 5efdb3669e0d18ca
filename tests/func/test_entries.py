"""Forward mode, tested for every operation: against differences, and against reverse mode."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

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
    chosen = [sampled.in_float64(s) for s in small[:: max(1, len(small) // 4)]]
    return [s for s in chosen if float64 in s.dtypes and sampled.result_type(op, s).dtype is float64]


def function_of(op: Any, sample: Sample, places: list[int]) -> Any:
    """The call as a function of its floating inputs."""
    given = [compiled.tensor_of(a, d) for a, d in zip(sample.arrays, sample.dtypes, strict=True)]

    def function(*values: Any) -> Any:
        inputs = list(given)
        for place, value in zip(places, values, strict=True):
            inputs[place] = value
        return _core.record(op, sample.attrs, inputs)

    return function


@pytest.mark.parametrize("name", NAMES)
def test_derivative_along_a_direction(name: str) -> None:
    op: Any = REGISTRY[name]
    generator = numpy.random.default_rng(8)
    for sample in smooth_samples(op):
        places = [
            k
            for k, d in enumerate(sample.dtypes)
            if d is float64 and k not in getattr(op, "without_gradient", ())
        ]
        if not places:
            continue
        function = function_of(op, sample, places)
        arrays = [sample.arrays[k] for k in places]
        ways = [generator.normal(size=array.shape) for array in arrays]
        primals, tangents = tuple(map(tensor, arrays)), tuple(map(tensor, ways))
        output, pushed = jvp(function, primals, tangents)
        cotangent = generator.normal(size=output.shape)
        _, pull = vjp(function, *primals)
        pulled = pull(tensor(cotangent))
        ahead, back = (
            function(*[tensor(array + side * way) for array, way in zip(arrays, ways, strict=True)])._numpy()
            for side in (STEP, -STEP)
        )
        slope = (ahead - back) / (2 * STEP)
        if not getattr(op, "differentiable", True):
            slope = numpy.zeros_like(slope)
        near = 1e-5 * (1 + abs(slope).max(initial=0))
        if reaches(op, sample, places):
            numpy.testing.assert_allclose(pushed._numpy(), slope, rtol=1e-5, atol=near)
        across = (cotangent * pushed._numpy()).sum()
        along = sum((part._numpy() * way).sum() for part, way in zip(pulled, ways, strict=True))
        numpy.testing.assert_allclose(across, along, rtol=1e-9, atol=1e-9)
        push = partial(push_forward, function, primals)
        batched = vmap(push)(*[tensor(way[None]) for way in ways])
        assert compiled_equal(batched[0], pushed)


def push_forward(function: Any, primals: tuple[Any, ...], *tangents: Any) -> Any:
    return jvp(function, primals, tangents)[1]


def compiled_equal(one: Any, other: Any) -> bool:
    return bool(numpy.array_equal(one._numpy(), other._numpy(), equal_nan=True))


def reaches(op: Any, sample: Sample, places: list[int]) -> bool:
    """Whether every floating input has a gradient; entries may leave one out on purpose."""
    output, pull = vjp(function_of(op, sample, places), *[tensor(sample.arrays[k]) for k in places])
    return all(part._numpy().any() for part in pull(tensor(numpy.ones(output.shape))))


def tensor(array: Any) -> Any:
    return _core.from_array(numpy.array(array, numpy.float64), False)
