"""Batching, tested for every sample call of every operation: a sample of a batch has the bits it has alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))

import samples as sampled
import test_compiled as compiled

from twofold import _core
from twofold.dtypes import DType
from twofold.ir.interpret import evaluate, narrow, widen
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.ir.verify import verify
from twofold.ops.samples import Sample
from twofold.transforms.derived import VMAP, Pullback, pullbacks_of, stable_graph

NAMES = sampled.operations_with_samples()
SIZE = 3
CALLS = 4  # sample calls of an operation that are compiled or differentiated, spread over all of them


def choices(count: int) -> Iterator[tuple[bool, ...]]:
    """All inputs batched, then each alone, of many the first."""
    if count:
        yield (True,) * count
    for position in range(min(count, 8) if count > 1 else 0):
        yield tuple(k == position for k in range(count))


def batches(sample: Sample, flags: tuple[bool, ...]) -> list[Any]:
    """The arrays, flagged ones stacked with halves of themselves (integers are what they are)."""
    found = []
    for array, dtype, flag in zip(sample.arrays, sample.dtypes, flags, strict=True):
        other = narrow(widen(array, dtype) * 0.5, dtype) if dtype.is_differentiable else array
        found.append(numpy.stack([array, other, array]) if flag else array)
    return found


def types_of(arrays: list[Any], dtypes: tuple[DType, ...]) -> list[Any]:
    return [tensor_type(dtype, array.shape) for dtype, array in zip(dtypes, arrays, strict=True)]


def one(arrays: list[Any], flags: tuple[bool, ...], position: int) -> list[Any]:
    return [array[position] if flag else array for array, flag in zip(arrays, flags, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_each_sample_by_the_reference(name: str) -> None:
    op: Any = REGISTRY[name]
    samples = op.samples()
    for sample in sampled.selected(op, samples) if sampled.form(op) == "pointwise" else samples:
        single = stable_graph(op, sample.attrs, sample.types)
        (whole,) = evaluate(single, sample.arrays)
        for flags in choices(len(sample.arrays)):
            arrays = batches(sample, flags)
            attrs = (name, sample.attrs, flags)
            graph = stable_graph(VMAP, attrs, types_of(arrays, sample.dtypes))
            verify(graph)
            (found,) = evaluate(graph, arrays)
            (halved,) = evaluate(single, one(arrays, flags, 1))
            for got, wanted in zip(found, (whole, halved, whole), strict=True):
                assert got.tobytes() == wanted.tobytes(), (sample.types, sample.attrs, flags)


def some(op: Any, samples: list[Sample]) -> list[Sample]:
    """Some of the samples: of a pointwise operation the first and the largest, as one rule batches all of these."""
    if samples and sampled.form(op) == "pointwise":
        return [samples[0], sampled.largest(samples)]
    last = len(samples) - 1
    return samples if last < CALLS else [samples[k * last // (CALLS - 1)] for k in range(CALLS)]


def patterns(count: int) -> Iterator[tuple[bool, ...]]:
    """All inputs batched, then every other one."""
    yield (True,) * count
    if count > 1:
        yield tuple(k % 2 == 0 for k in range(count))


@pytest.mark.parametrize("name", NAMES)
def test_each_sample_on_machine_code(name: str) -> None:
    op: Any = REGISTRY[name]
    samples = some(op, [sample for sample in op.samples() if sample.arrays])
    flagged = [(sample, flags) for sample in samples for flags in patterns(len(sample.arrays))]
    cases = [(sample, flags, batches(sample, flags)) for sample, flags in flagged]
    for tier in ("fused", "unfused"):  # fused first: it compiles the kernels of all samples in one go
        with compiled.tier(tier):
            together = [
                _core.record(VMAP, (name, sample.attrs, flags), tensors(given, sample.dtypes))
                for sample, flags, given in cases
            ]
            together = [value._numpy().copy() for value in together]
            alone = [
                [
                    _core.record(op, sample.attrs, tensors(one(given, flags, k), sample.dtypes))
                    for k in range(SIZE)
                ]
                for sample, flags, given in cases
            ]
            alone = [[value._numpy().copy() for value in row] for row in alone]
        for (sample, flags, _), found, row in zip(cases, together, alone, strict=True):
            for got, wanted in zip(found, row, strict=True):
                assert same_bits(got, wanted), (tier, sample.types, sample.attrs, flags)


def tensors(arrays: list[Any], dtypes: tuple[DType, ...]) -> list[Any]:
    return [compiled.tensor_of(array, dtype) for array, dtype in zip(arrays, dtypes, strict=True)]


def same_bits(got: Any, wanted: Any) -> bool:
    """Equal bytes; a NaN may be another one."""
    if got.dtype.kind == "f":
        got, wanted = (numpy.where(numpy.isnan(x), numpy.nan, x).astype(x.dtype) for x in (got, wanted))
    return bool(numpy.asarray(got).tobytes() == numpy.asarray(wanted).tobytes())


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_a_batch(name: str) -> None:
    """The pullback of a batched call gives each sample its own gradient, and shared inputs their sum."""
    op: Any = REGISTRY[name]
    generator = numpy.random.default_rng(4)
    small = [s for s in op.samples() if s.smooth and 0 < sum(array.size for array in s.arrays) <= 80]
    for sample in map(sampled.in_float64, some(op, small)):
        single = stable_graph(op, sample.attrs, sample.types)
        for flags in choices(len(sample.arrays)):
            arrays = batches(sample, flags)
            types = tuple(types_of(arrays, sample.dtypes))
            attrs = (name, sample.attrs, flags)
            graph = stable_graph(VMAP, attrs, types)
            cotangents = generator.normal(size=graph.outputs[0].shape)
            for index, flag in enumerate(flags):
                if index in op.without_gradient:
                    continue
                own = pullbacks_of(op, sample.attrs, sample.types, (index,), single).get(index)
                whole = pullbacks_of(VMAP, attrs, types, (index,), graph).get(index)
                assert (own is None) == (whole is None)
                if own is None or whole is None:
                    continue
                assert isinstance(own, Pullback) and isinstance(whole, Pullback)
                found = gradient(whole, graph, arrays, cotangents)
                parts = [gradient(own, single, one(arrays, flags, k), cotangents[k]) for k in range(SIZE)]
                wanted = numpy.stack(parts) if flag else sum(parts)
                numpy.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9, err_msg=str(attrs))


def gradient(pullback: Any, graph: Any, arrays: list[Any], cotangent: Any) -> Any:
    known = {-1: cotangent, -2: evaluate(graph, arrays)[0]}
    given = [known[slot] if slot < 0 else arrays[slot] for slot in pullback.slots]
    return evaluate(pullback.graph, given)[0]
