"""Gradients of every sample call on machine code: against the interpreter, and against finite differences."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import samples as sampled
from differences import differs_along_directions
from test_compiled import EPSILON, check_bits, tensor_of, tier
from test_undefined_gradients_raise import dense

import twofold as torch
from twofold import _core
from twofold.dtypes import DType, bfloat16, float32, float64
from twofold.frontend.gradients import grad
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.interpret import evaluate, narrow, widen
from twofold.ir.op import REGISTRY
from twofold.ops.base import apply
from twofold.ops.samples import Sample
from twofold.transforms.reverse import closed_graph, vjp_graph, vjp_of

NAMES = [
    name for name in sampled.operations_with_samples() if getattr(REGISTRY[name], "differentiable", True)
]


def floating(op: Any, sample: Sample) -> list[int]:
    """The numbers of the inputs that may have gradients."""
    return [k for k, d in enumerate(sample.dtypes) if d.kind == "f" and k not in op.without_gradient]


def differentiable_samples(op: Any) -> list[tuple[Sample, Any]]:
    """Calls with a floating result and a floating input, each with a cotangent in storage form."""
    generator = numpy.random.default_rng(8)
    found = []
    for sample in sampled.to_compile(op):
        type = sampled.result_type(op, sample)
        if type.dtype.kind == "f" and floating(op, sample):
            found.append((sample, narrow(generator.normal(size=type.shape), type.dtype)))
    return found


def by_interpreter(op: Any, sample: Sample, cotangent: Any) -> list[Any]:
    """The cotangent of each floating input by reverse mode and the reference rules; None for a zero."""
    graph = closed_graph(op, sample.attrs, sample.types)
    value = evaluate(graph, sample.arrays)[0]
    known = {"cotangent": cotangent, "output": value}
    found = []
    for index in floating(op, sample):
        made = vjp_of(op, sample.attrs, graph, index)
        if made is None:
            found.append(None)
            continue
        vjp, used = made
        given = [known[what] if isinstance(what, str) else sample.arrays[what] for what in used]
        found.append(evaluate(vjp, given)[0])
    return found


def leaves(op: Any, sample: Sample) -> list[torch.Tensor]:
    made = [tensor_of(a, d) for a, d in zip(sample.arrays, sample.dtypes)]
    for index in floating(op, sample):
        made[index].requires_grad = True
    return made


def by_running(
    op: Any, cases: Sequence[tuple[Sample, Any]], shares: Sequence[Any], way: str
) -> list[list[Any]]:
    """What ``backward`` leaves in ``.grad`` of every floating input, where any of ``shares`` is more than None."""
    with tier(way):
        inputs = [leaves(op, sample) for sample, _ in cases]
        for given, (sample, cotangent), known in zip(inputs, cases, shares, strict=True):
            result = _core.record(op, sample.attrs, given)
            if result.requires_grad and any(share is not None for share in known):
                result.backward(tensor_of(cotangent, result.dtype))
        grads = [[given[k].grad for k in floating(op, sample)] for given, (sample, _) in zip(inputs, cases)]
        return [[None if g is None else dense(g)._numpy().copy() for g in part] for part in grads]


def by_declaring(op: Any, cases: Sequence[tuple[Sample, Any]], way: str) -> list[list[Any]]:
    """The same gradients declared before anything runs; a structural zero is an array of zeros."""
    inputs, outputs, arrays = [], [], []
    for sample, cotangent in cases:
        given = [_core.placeholder(type) for type in sample.types]
        result = _core.record(op, sample.attrs, given)
        seed = _core.placeholder(result.type_)
        outputs.append(_core.gradients(result, seed, tuple(given[k] for k in floating(op, sample))))
        inputs += [*given, seed]
        arrays += [*map(tensor_of, sample.arrays, sample.dtypes), tensor_of(cotangent, result.dtype)]
    function = _core.function(tuple(inputs), tuple(g for part in outputs for g in part), False, None)
    with tier(way):
        found = iter(function(*arrays))
        return [[next(found)._numpy().copy() for _ in part] for part in outputs]


def check_near(found: Any, wanted: Any, dtype: DType, coarsest: float, where: Any) -> None:
    """Close to the interpreter, which rounds every node as the compiled code does."""
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, where
    got, exact = widen(found, dtype), widen(wanted, dtype)
    with numpy.errstate(all="ignore"):
        typical = numpy.abs(exact[numpy.isfinite(exact)]).mean() if numpy.isfinite(exact).any() else 0
        good = numpy.abs(got - exact) <= 32 * coarsest * (numpy.abs(exact) + min(typical, 1e3) + 1)
        good |= (got == exact) | (numpy.isnan(got) & numpy.isnan(exact))
    position = tuple(numpy.argwhere(~good)[0]) if not good.all() else ()
    assert good.all(), (where, position, got[position], exact[position])


@pytest.mark.parametrize("name", NAMES)
def test_gradient_against_the_interpreter(name: str) -> None:
    op: Any = REGISTRY[name]
    cases = differentiable_samples(op)
    shares = [by_interpreter(op, sample, cotangent) for sample, cotangent in cases]
    # fused first: it compiles the kernels of all samples in one go
    fused = by_running(op, cases, shares, "fused")
    plain = by_running(op, cases, shares, "unfused")
    for (sample, _), found, wanted in zip(cases, plain, shares):
        dtypes = (*sample.dtypes, sampled.result_type(op, sample).dtype)
        coarsest = max(EPSILON[dtype] for dtype in dtypes if dtype.kind == "f")
        for index, one, other in zip(floating(op, sample), found, wanted, strict=True):
            where = (name, sample.attrs, sample.types, index)
            assert (one is None) == (other is None), where
            if one is not None:
                check_near(one, other, sample.dtypes[index], coarsest, where)
    samples = [sample for sample, _ in cases]
    zeros = [
        [numpy.zeros_like(sample.arrays[k]) if g is None else g for k, g in zip(floating(op, sample), part)]
        for sample, part in zip(samples, plain)
    ]
    for way in ("unfused", "fused"):
        check_bits(by_declaring(op, cases, way), zeros, samples, f"declared, {way}")
    check_bits([[g for g in part if g is not None] for part in fused],
               [[g for g in part if g is not None] for part in plain], samples, "fused")  # fmt: skip


def smooth_cases(op: Any, most: int) -> list[Sample]:
    """Some small calls that finite differences may be taken of, in float64; of a pointwise operation the largest."""
    found = [s for s in op.samples() if s.smooth and any(d is float32 for d in s.dtypes)]
    found = [s for s in found if 0 < sum(array.size for array in s.arrays) <= 80]
    if found and sampled.form(op) == "pointwise" and op.name not in sampled.THROUGHOUT:
        by_attrs = {sample.attrs: [s for s in found if s.attrs == sample.attrs] for sample in found}
        found = [sampled.largest(group) for group in by_attrs.values()]
    small = [sampled.in_float64(s) for s in found]
    kept = [s for s in small if sampled.result_type(op, s).dtype is float64]
    return kept[:: max(1, len(kept) // most)]


def gradient_function(op: Any, sample: Sample, index: int) -> Graph | None:
    """The closed graph from the inputs and a cotangent of the result to the gradient of one input."""
    graph = closed_graph(op, sample.attrs, sample.types)
    found = vjp_of(op, sample.attrs, graph, index)
    if found is None:
        return None
    vjp, used = found
    inputs = [input_node(k, type) for k, type in enumerate(graph.input_types)]
    (output,) = graph.inline(inputs)
    known = {"cotangent": input_node(len(inputs), graph.outputs[0].type), "output": output}
    actual = [known[what] if isinstance(what, str) else inputs[what] for what in used]
    return Graph([*graph.input_types, graph.outputs[0].type], vjp.inline(actual))


Second = tuple[Sample, Any, Any, int, Graph]
"""A call, a cotangent of its result and of the gradient of an input, which input, and the graph of that gradient."""


def second_cases(op: Any) -> list[Second]:
    """The gradients that are differentiated once more."""
    generator = numpy.random.default_rng(6)
    found = []
    for sample in smooth_cases(op, 4):
        cotangent = generator.normal(size=sampled.result_type(op, sample).shape)
        for index in floating(op, sample):
            whole = gradient_function(op, sample, index)
            if whole is not None:
                direction = generator.normal(size=whole.outputs[0].shape)
                found.append((sample, cotangent, direction, index, whole))
    return found


def second_by_running(op: Any, cases: Sequence[Second], way: str) -> list[list[Any]]:
    """Gradients with respect to every floating input of the gradients of one."""
    with tier(way):
        made = [second_of(op, *case[:4]) for case in cases]
        return [[None if g is None else g._numpy().copy() for g in part] for part in made]


def second_of(op: Any, sample: Sample, cotangent: Any, direction: Any, index: int) -> Sequence[Any]:
    given = leaves(op, sample)
    result = _core.record(op, sample.attrs, given)
    (first,) = grad(result, given[index], tensor_of(cotangent, float64), create_graph=True)
    targets = [given[k] for k in floating(op, sample)]
    if not first.requires_grad:
        return [None] * len(targets)
    return grad(first, targets, tensor_of(direction, float64), allow_unused=True)


@pytest.mark.parametrize("name", NAMES)
def test_second_gradient_against_differences(name: str) -> None:
    """First gradients against differences: tests/ops/test_generated.py, for the interpreter's."""
    op: Any = REGISTRY[name]
    cases = second_cases(op)
    plain = second_by_running(op, cases, "unfused")
    first = [case for case in cases if case[0] is cases[0][0]]
    for case, some, others in zip(first, second_by_running(op, first, "fused"), plain):
        assert [one is None for one in some] == [one is None for one in others]
        pair = [[one for one in part if one is not None] for part in (some, others)]
        check_bits([pair[0]], [pair[1]], [case[0]], "second derivative, fused")
    for (sample, cotangent, direction, index, whole), some in zip(cases, plain, strict=True):
        for k, one in zip(floating(op, sample), some, strict=True):
            where = (name, sample.attrs, sample.types, index, k)
            found = numpy.zeros(sample.arrays[k].shape) if one is None else one
            given = whole, [*sample.arrays, cotangent], direction, k
            assert differs_along_directions(*given, found, 1e-4) is None, where


RULED = [
    name
    for name in NAMES
    if REGISTRY[name].kind == "composite" and getattr(REGISTRY[name], "rule_vjp", None) is not None
]


@pytest.mark.parametrize("name", RULED)
def test_the_rule_of_a_composite_holds_inside_others(name: str) -> None:
    """Also at zeros, where the parts of a composite may give NaN."""
    op: Any = REGISTRY[name]
    for sample, cotangent in differentiable_samples(op):
        zeros = tuple(
            numpy.zeros_like(a) if d.kind == "f" else a for a, d in zip(sample.arrays, sample.dtypes)
        )
        graph = closed_graph(op, sample.attrs, sample.types)
        around = Graph(graph.input_types, [apply("negative", graph.outputs[0])])
        for index in floating(op, sample):
            alone, inside = vjp_of(op, sample.attrs, graph, index), vjp_graph(around, index)
            assert (alone is None) == (inside is None)
            for arrays in (sample.arrays, zeros):
                value = evaluate(graph, arrays)[0]
                found = []
                for made, result, seed in ((alone, value, cotangent), (inside, -value, -cotangent)):
                    if made is not None and graph.outputs[0].dtype is not bfloat16:
                        known = {"cotangent": seed, "output": result}
                        given = [known[what] if isinstance(what, str) else arrays[what] for what in made[1]]
                        found.append(evaluate(made[0], given)[0])
                numpy.testing.assert_array_equal(*found or (0, 0))


@pytest.mark.parametrize("values", [(2, 0, 3, 0.5), (0, 0, 1, 2), (0, 0, 0, 1), (1, 2, 3, 4), (0,)])
def test_derivatives_of_products_at_zeros(values: tuple[float, ...]) -> None:
    x = torch.tensor(numpy.array([values, values[::-1]], float), requires_grad=True)
    generator = numpy.random.default_rng(3)
    weight = torch.tensor(generator.normal(size=x.shape))
    for function in (lambda x: torch.prod(x, 1), lambda x: torch.cumprod(x, 1)[:, -1:].sum(1)):
        (first,) = grad(function(x).sum(), x, create_graph=True)
        (second,) = grad((first * weight).sum(), x, create_graph=True)
        (third,) = grad((second * weight).sum(), x)
        others = [products_without(values, (k,)) for k in range(len(values))]
        numpy.testing.assert_allclose(first.numpy(force=True)[0], others, atol=1e-12)
        w = weight.numpy()[0]
        pairs = [
            sum(w[j] * products_without(values, (j, k)) for j in range(len(values)) if j != k)
            for k in range(len(values))
        ]
        numpy.testing.assert_allclose(second.numpy(force=True)[0], pairs, atol=1e-12)
        triples = [
            sum(
                w[i] * w[j] * products_without(values, (i, j, k))
                for i in range(len(values))
                for j in range(len(values))
                if len({i, j, k}) == 3
            )
            for k in range(len(values))
        ]
        numpy.testing.assert_allclose(third.numpy()[0], triples, atol=1e-12)


def products_without(values: Sequence[float], left_out: Sequence[int]) -> float:
    return float(numpy.prod([value for k, value in enumerate(values) if k not in left_out]))
