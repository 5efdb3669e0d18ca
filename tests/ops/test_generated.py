"""Tests derived from the operation entries: values, types and gradients of every sample call."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import samples as sampled
from differences import vjp_by_differences

from twofold.dtypes import complex64, complex128, float32, float64
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.interpret import evaluate, narrow, widen
from twofold.ir.op import REGISTRY
from twofold.transforms.gradient_check import compare_gradients
from twofold.transforms.reverse import closed_graph, vjp_graph, vjp_of

NAMES = sampled.operations_with_samples()
DIFFERENTIABLE = (float64, complex128)


def normal(generator: numpy.random.Generator, node: Any) -> Any:
    """A cotangent of the type of ``node``."""
    drawn = generator.normal(size=node.shape)
    return drawn + 1j * generator.normal(size=node.shape) if node.dtype is complex128 else drawn


def closeness(dtype: Any) -> float:
    return {"float16": 3e-3, "bfloat16": 3e-2, "float32": 2e-6, "float64": 1e-12}.get(dtype.real.name, 0)


def without_overflow(arrays: Any, got: Any, wanted: Any) -> tuple[Any, Any]:
    """Without the elements whose operands are finite but so large that a formula in float32 overflows."""
    huge = False
    for array in arrays:
        if array.dtype.kind in "fc" and array.shape in ((), got.shape):
            huge = huge | (numpy.isfinite(array) & (abs(array) > 1e30))
    return numpy.where(huge, 0, got), numpy.where(huge, 0, wanted)


def check_own_reference(op: Any, sample: Any, graph: Graph, value: Any) -> None:
    """A composite's formula against the one it says it computes."""
    arrays = [widen(array, dtype) for array, dtype in zip(sample.arrays, sample.dtypes)]
    with numpy.errstate(all="ignore"):
        expected = numpy.asarray(op.reference(sample.attrs, *arrays))
    type = graph.outputs[0].type
    wide = numpy.complex128 if type.dtype.kind == "c" else numpy.float64
    got = numpy.asarray(widen(value, type.dtype), wide)
    assert got.shape == expected.shape
    factor = 1 + numpy.abs(expected[numpy.isfinite(expected)]).max(initial=0)
    wanted = widen(narrow(expected, type.dtype), type.dtype).astype(wide)
    near = max(map(closeness, (type.dtype, *sample.dtypes)))
    if not sample.smooth:
        got, wanted = without_overflow(arrays, got, wanted)
    numpy.testing.assert_allclose(got, wanted, rtol=8 * near, atol=factor * near)


@pytest.mark.parametrize("name", NAMES)
def test_value_and_type(name: str) -> None:
    op: Any = REGISTRY[name]
    for sample in op.samples():
        graph = closed_graph(op, sample.attrs, sample.types)
        (value,) = evaluate(graph, sample.arrays)
        assert value.shape == graph.outputs[0].shape
        assert value.dtype == graph.outputs[0].dtype.numpy
        assert all(node.op.kind != "composite" for node in graph.nodes())
        composed = op.kind == "composite" or any(dtype.kind == "c" for dtype in sample.dtypes)
        if composed and getattr(op, "rule_reference", None) is not None:
            check_own_reference(op, sample, graph, value)


def arguments(sample: Any, used: Any, cotangent: Any, value: Any) -> list[Any]:
    known = {"cotangent": cotangent, "output": value}
    return [known[what] if isinstance(what, str) else sample.arrays[what] for what in used]


def gradient(op: Any, sample: Any, index: int, cotangent: Any) -> tuple[Graph, Any, Any] | None:
    if index in op.without_gradient:
        return None
    graph = closed_graph(op, sample.attrs, sample.types)
    found = vjp_of(op, sample.attrs, graph, index)
    if found is None:
        return None
    vjp, used = found
    value = evaluate(graph, sample.arrays)[0]
    return vjp, used, evaluate(vjp, arguments(sample, used, cotangent, value))[0]


def smooth_samples(op: Any, most: int) -> list[Any]:
    """Some calls that finite differences may be taken of, in float64."""
    found = [s for s in op.samples() if s.smooth and any(d in (float32, complex64) for d in s.dtypes)]
    small = [s for s in found if 0 < sum(array.size for array in s.arrays) <= 80]
    step = max(1, len(small) // most)
    return [sampled.in_float64(s) for s in small[::step]]


@pytest.mark.parametrize("name", NAMES)
def test_gradient_against_differences(name: str) -> None:
    op: Any = REGISTRY[name]
    generator = numpy.random.default_rng(5)
    for sample in smooth_samples(op, 12):
        graph = closed_graph(op, sample.attrs, sample.types)
        if graph.outputs[0].dtype not in DIFFERENTIABLE:
            continue
        cotangent = normal(generator, graph.outputs[0])
        for index, dtype in enumerate(sample.dtypes):
            if dtype not in DIFFERENTIABLE:
                assert vjp_of(op, sample.attrs, graph, index) is None
                continue
            numeric = vjp_by_differences(graph, sample.arrays, cotangent, index)
            found = gradient(op, sample, index, cotangent)
            if index in op.without_gradient:
                continue
            if found is None:
                own = getattr(op, "differentiable", True)
                continuous = not own or not numeric.any() or not op_is_differentiable(op, index)
                assert continuous, f"no gradient for input {index}, but it matters"
                continue
            assert compare_gradients(found[2], numeric) is None, (name, sample.attrs, sample.types, index)


def op_is_differentiable(op: Any, index: int) -> bool:
    """Entries may leave out the gradient of a parameter (a limit, a sign) on purpose by giving None."""
    return getattr(op, "rule_vjp", None) is None and op.kind == "composite"


@pytest.mark.parametrize("name", NAMES)
def test_second_gradient_against_differences(name: str) -> None:
    op: Any = REGISTRY[name]
    generator = numpy.random.default_rng(6)
    for sample in smooth_samples(op, 3):
        graph = closed_graph(op, sample.attrs, sample.types)
        if graph.outputs[0].dtype not in DIFFERENTIABLE or sample.dtypes[0] not in DIFFERENTIABLE:
            continue
        cotangent = normal(generator, graph.outputs[0])
        found = gradient(op, sample, 0, cotangent)
        if found is None:
            continue
        vjp, used, _ = found
        if 0 not in used and "output" not in used:
            continue
        check_second(op, sample, graph, vjp, used, cotangent, normal(generator, found[0].outputs[0]))


def check_second(
    op: Any, sample: Any, graph: Graph, vjp: Graph, used: Any, cotangent: Any, direction: Any
) -> None:
    """Differentiate the gradient graph, with the output written as the function of the inputs that it is."""
    count = len(sample.arrays)
    inputs = [input_node(k, type) for k, type in enumerate(graph.input_types)]
    (output,) = graph.inline(inputs)
    known = {"cotangent": input_node(count, graph.outputs[0].type), "output": output}
    actual = [known[what] if isinstance(what, str) else inputs[what] for what in used]
    whole = Graph([*graph.input_types, graph.outputs[0].type], vjp.inline(actual))
    second = vjp_graph(whole, 0)
    arrays = [*sample.arrays, cotangent]
    numeric = vjp_by_differences(whole, arrays, direction, 0)
    if second is None:
        assert compare_gradients(numpy.zeros(numeric.shape), numeric, 1e-4) is None
        return
    value = evaluate(whole, arrays)[0]
    given = {"cotangent": direction, "output": value}
    got = evaluate(second[0], [given[w] if isinstance(w, str) else arrays[w] for w in second[1]])[0]
    assert compare_gradients(got, numeric, 1e-4) is None, (op.name, sample.attrs, sample.types)


@pytest.mark.parametrize("name", NAMES)
def test_gradient_has_the_type_of_its_input(name: str) -> None:
    op: Any = REGISTRY[name]
    for sample in op.samples():
        graph = closed_graph(op, sample.attrs, sample.types)
        for index, type in enumerate(sample.types):
            if index in op.without_gradient:
                continue
            found = vjp_of(op, sample.attrs, graph, index)
            if found is not None:
                assert found[0].outputs[0].type is type
