"""Every sample call of every operation on machine code: define-by-run, declared and fused, against NumPy."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import samples as sampled

import twofold as torch
from twofold import _core
from twofold.compiler.compile import compile_graph
from twofold.dtypes import (
    ALL,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int32,
    int64,
    uint8,
)  # fmt: skip
from twofold.errors import TwofoldError
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.interpret import evaluate, narrow, widen
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, filled, ops
from twofold.ops.samples import Sample
from twofold.transforms.reverse import closed_graph

NAMES = sampled.operations_with_samples()
ELEMENTWISE = [name for name in NAMES if REGISTRY[name].kind == "elementwise"]

EPSILON = {float16: 2.0**-10, bfloat16: 2.0**-7, float32: 2.0**-23, float64: 2.0**-52}
SMALLEST = {float16: 2.0**-24, bfloat16: 2.0**-133, float32: 2.0**-149, float64: 5e-324}
LARGEST = {
    float16: 65504.0,
    bfloat16: 3.3895313892515355e38,
    float32: 3.4028234663852886e38,
    float64: 1.79e308,
}


@contextmanager
def tier(name: str) -> Iterator[None]:
    """Run everything inside on one tier."""
    _core.flush()
    _core.set_tier(name)
    try:
        yield
        _core.flush()
    finally:
        _core.set_tier("auto")


def tensor_of(array: Any, dtype: DType) -> torch.Tensor:
    """A leaf from an array in storage form."""
    return _core.from_array(numpy.array(array), False, dtype.code)


def tensors(samples: Sequence[Sample]) -> list[list[torch.Tensor]]:
    return [[tensor_of(a, d) for a, d in zip(sample.arrays, sample.dtypes)] for sample in samples]


Program = Callable[[Sample, Sequence[torch.Tensor]], list[torch.Tensor]]


def define_by_run(program: Program, samples: Sequence[Sample], name: str = "unfused") -> list[list[Any]]:
    """What ``program`` gives for each sample, recorded as it runs; arrays in storage form."""
    with tier(name):
        made = [program(sample, given) for sample, given in zip(samples, tensors(samples))]
        return [[output._numpy().copy() for output in outputs] for outputs in made]


def declared(program: Program, samples: Sequence[Sample], name: str) -> list[list[Any]]:
    """What ``program`` gives for each sample, all samples declared before running as one graph."""
    inputs = [[_core.placeholder(type) for type in sample.types] for sample in samples]
    outputs = [program(sample, given) for sample, given in zip(samples, inputs)]
    flat = tuple(output for part in outputs for output in part)
    function = _core.function(tuple(value for part in inputs for value in part), flat, False, None)
    with tier(name):
        found = iter(function(*[value for part in tensors(samples) for value in part]))
        return [[next(found)._numpy().copy() for _ in part] for part in outputs]


def call(op: Any) -> Program:
    """The operation alone."""
    return lambda sample, given: [_core.record(op, sample.attrs, given)]


def identity(x: torch.Tensor) -> torch.Tensor:
    """An element-wise neighbour that keeps every bit (of a NaN only that it is one)."""
    if x.dtype.is_complex:
        return torch.complex(x.real * 1, x.imag * 1)
    return x ^ False if x.dtype is bool_ else x * 1


def among_neighbours(op: Any) -> Program:
    """The operation between element-wise neighbours, its result used twice more by reductions."""

    def program(sample: Sample, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        result = _core.record(op, sample.attrs, [identity(x) for x in given])
        found = [identity(result)]
        if result.ndim:
            found += [
                torch.sum(result, -1),
                torch.amax(torch.abs(result) if result.dtype.is_complex else result * 2, 0)
                if result.shape[0]
                else result,
            ]
        return found

    return program


def embedded(array: Any) -> Any:
    """A bigger array of which ``shown`` shows ``array``, as far from dense as views go."""
    turned = numpy.flip(array.transpose())
    whole = numpy.ones([2 * size + 1 for size in turned.shape] or [3], array.dtype)
    whole[(slice(1, None, 2),) * turned.ndim if turned.ndim else 1] = turned
    return whole


def shown(whole: torch.Tensor, rank: int) -> torch.Tensor:
    """The view of ``whole`` that is the array that was embedded in it."""
    if rank == 0:
        return whole[1]
    picked = whole[(slice(1, None, 2),) * rank]
    return torch.flip(picked, tuple(range(rank))).permute(*reversed(range(rank)))


def through_views(op: Any, ranks: dict[int, list[int]]) -> Program:
    """The operation on permuted, flipped and stepped views of bigger tensors."""

    def program(sample: Sample, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [_core.record(op, sample.attrs, [shown(x, r) for x, r in zip(given, ranks[id(sample)])])]

    return program


def check_bits(found: Sequence[Any], wanted: Sequence[Any], samples: Sequence[Sample], what: str) -> None:
    """Equal to the bit, but for the payload and sign of a NaN."""
    for sample, some, others in zip(samples, found, wanted, strict=True):
        for one, other in zip(some, others, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            if one.tobytes() == other.tobytes():
                continue
            differ = one.view(f"u{one.itemsize}") != other.view(f"u{one.itemsize}")
            if one.dtype.kind == "f":
                differ &= ~(numpy.isnan(one) & numpy.isnan(other))
            else:
                differ &= ~((one.dtype == numpy.uint16) & is_nan_bits(one) & is_nan_bits(other))
            position = tuple(numpy.argwhere(differ)[0]) if differ.any() else ()
            assert not differ.any(), (
                what,
                sample.attrs,
                sample.types,
                position,
                one[position],
                other[position],
            )


def is_nan_bits(bits: Any) -> Any:
    """Which numbers would be NaN if they were bfloat16 in storage form."""
    return (bits & 0x7FFF) > 0x7F80


def in_float64(sample: Sample) -> list[Any]:
    """The operands, of complex numbers their size."""
    wide = [widen(a, d) for a, d in zip(sample.arrays, sample.dtypes)]
    return [numpy.asarray(numpy.abs(a) if numpy.iscomplexobj(a) else a, float) for a in wide]


def allowance(op: Any, sample: Sample, dtype: DType, wanted: Any) -> Any:
    """How far a result may be from the reference, element by element."""
    finite = numpy.abs(wanted[numpy.isfinite(wanted)])
    coarsest = max(EPSILON.get(d, 0.0) for d in (dtype, *sample.dtypes))
    if op.kind == "elementwise":
        # the reference is rounded once; code computes half types in float32
        ulps = 1 if dtype in (float16, bfloat16) else max(4, op.accuracy[dtype is float64])
        size = numpy.abs(wanted)
        if op.amplitude is not None:
            size = numpy.maximum(size, op.amplitude(*in_float64(sample)))
        return ulps * (EPSILON[dtype] * size + SMALLEST[dtype])
    if not sample.smooth:
        return 16 * coarsest * (numpy.abs(wanted) + 1)
    return 16 * coarsest * (numpy.abs(wanted) + finite.max(initial=0) + 1)


def check_reference(op: Any, sample: Sample, dtype: DType, found: Any, wanted: Any) -> None:
    """Close to the reference; integers and bools equal to it."""
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, (op.name, sample.types)
    if not dtype.is_differentiable:
        numpy.testing.assert_array_equal(found, wanted, err_msg=f"{op.name} {sample.attrs} {sample.types}")
        return
    got, exact = widen(found, dtype), widen(wanted, dtype)
    with numpy.errstate(all="ignore"):
        if dtype.kind == "c":  # several real operations on each part
            good = numpy.abs(got - exact) <= 48 * allowance(op, sample, dtype.real, numpy.abs(exact))
        else:
            good = numpy.abs(got - exact) <= allowance(op, sample, dtype, exact)
    good |= (got == exact) | (numpy.isnan(got) & numpy.isnan(exact))
    if getattr(op, "accurate_where", None) is not None:
        with numpy.errstate(all="ignore"):
            good |= ~op.accurate_where(*in_float64(sample))
    if not good.all():
        position = tuple(numpy.argwhere(~good)[0])
        at = (
            [a[position] for a in numpy.broadcast_arrays(*sample.arrays)]
            if op.kind == "elementwise"
            else position
        )
        raise AssertionError(
            f"{op.name} {sample.attrs} {sample.types}: {got[position]}, not {exact[position]}, at {at}"
        )


@pytest.mark.parametrize("name", NAMES)
def test_every_way_gives_the_same_bits_near_the_reference(name: str) -> None:
    op: Any = REGISTRY[name]
    samples = sampled.to_compile(op)
    few = sampled.to_fuse(op, samples)
    # fused first: it compiles the kernels of all samples in one go
    fused = define_by_run(call(op), samples, "fused"), define_by_run(among_neighbours(op), few, "fused")
    plain = define_by_run(call(op), samples)
    for sample, (found,) in zip(samples, plain):
        dtype = sampled.result_type(op, sample).dtype
        check_reference(op, sample, dtype, found, sampled.reference(op, sample))
    alone = define_by_run(among_neighbours(op), few)
    by_id = {id(sample): found for sample, found in zip(samples, plain)}
    check_bits([part[:1] for part in alone], [by_id[id(s)] for s in few], few, "neighbours that keep bits")
    check_bits(fused[0], plain, samples, "fused")
    check_bits(fused[1], alone, few, "fused among neighbours")
    if all(sample.arrays for sample in samples):
        for way in ("unfused", "fused"):
            check_bits(declared(call(op), samples, way), plain, samples, f"declared, {way}")
            check_bits(declared(among_neighbours(op), few, way), alone, few, f"declared, {way}")


SPECIAL = (0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 1.0, -1.0, 0.5, -2.5, 3.0, 10.0, -88.0)


def special_values(dtype: DType) -> Any:
    """NaN, infinities, zeros, denormals, neighbours of one, and the ends of the range, in storage form."""
    small, large, near = SMALLEST[dtype], LARGEST[dtype], 1 + EPSILON[dtype]
    normal = small / EPSILON[dtype]
    ends = [small, 3 * small, normal, normal * 0.75, large, large / 3, near, large**0.5, normal**0.5]
    return narrow(numpy.array([*SPECIAL, *ends, *(-end for end in ends)]), dtype)


def accepted(op: Any, sample: Sample) -> bool:
    """Whether the operation takes these dtypes with these attributes."""
    try:
        sampled.result_type(op, sample)
    except TwofoldError:
        return False
    return True


def without_zero_divisors(op: Any, sample: Sample) -> Sample:
    """A sample without the elements that an integer division refuses."""
    try:
        sampled.reference(op, sample)
    except ZeroDivisionError:
        kept = sample.arrays[-1] != 0
        return Sample(sample.attrs, tuple(a[kept] for a in sample.arrays), sample.dtypes, smooth=False)
    return sample


def special_integers(dtype: DType) -> Any:
    """The ends of the range, and numbers around zero and around a vector's bits."""
    low, high = numpy.iinfo(dtype.numpy).min, numpy.iinfo(dtype.numpy).max
    found = {low, low + 1, low // 2, high // 2, high - 1, high, *range(-3, 9), 31, 32, 63, 64, 100}
    return numpy.array([value for value in sorted(found) if low <= value <= high], dtype.numpy)


def special_samples(op: Any) -> Iterator[Sample]:
    """Calls on all pairs of special values (of more operands: on many triples) in every dtype of numbers.

    Dtypes that are only cast to one that was before are left out.
    """
    count = len(op.parameter_names())
    fixed = op.operand_dtypes or (None,) * count
    generator = numpy.random.default_rng(count)
    seen = set()
    for dtype in sorted((dtype for dtype in ALL if dtype.kind in "iuf"), key=lambda dtype: dtype.kind):
        values = special_values(dtype) if dtype.kind == "f" else special_integers(dtype)
        if count < 3 and not any(fixed):
            arrays = [axis.reshape(-1) for axis in numpy.meshgrid(*[values] * count, indexing="ij")]
        else:
            whole = numpy.arange(400)
            arrays = [whole % 3 == 0 if own else generator.choice(values, 400) for own in fixed]
            arrays = [a.astype(own.numpy) if own else a for a, own in zip(arrays, fixed)]
        dtypes = tuple(own or dtype for own in fixed)
        for attrs in dict.fromkeys(sample.attrs for sample in op.samples()):
            sample = Sample(attrs, tuple(arrays), dtypes, smooth=False)
            if accepted(op, sample):
                what = sampled.computed(op, attrs, sample.types)
                if what not in seen or op.name == "cast":
                    yield without_zero_divisors(op, sample)
                seen.add(what)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_special_values(name: str) -> None:
    op: Any = REGISTRY[name]
    samples = list(special_samples(op))
    if not samples:
        pytest.skip("takes only bools")
    fused = declared(among_neighbours(op), samples, "fused")
    plain = define_by_run(call(op), samples)
    for sample, (found,) in zip(samples, plain):
        dtype = sampled.result_type(op, sample).dtype
        check_reference(op, sample, dtype, found, sampled.reference(op, sample))
    alone = define_by_run(among_neighbours(op), samples)
    check_bits([part[:1] for part in alone], plain, samples, "neighbours that keep bits")
    check_bits(fused, alone, samples, "fused among neighbours")


NUMBERS: tuple[Any, ...] = (True, 2, 0, -1, 0.5, -3.0, numpy.inf)


def scalar_calls(op: Any) -> Iterator[tuple[Sample, list[Any], Any, Any]]:
    """Calls with a Python number in the position of each operand in turn, as arguments, with the reference's result.

    All numbers in two dtypes, as rules for some numbers speak of short operations; else an integer and a float, of
    long operations in one dtype. Dtypes that are only cast to one before are left out.
    """
    count, first = len(op.parameter_names()), next(iter(op.samples()))
    attributes = list(dict.fromkeys(sample.attrs for sample in op.samples()))[:2]
    long, seen = sampled.weight(op, first) > sampled.LONG, set()
    for dtype in (float32, int32, float64, float16, bfloat16, uint8, bool_):
        array = narrow(numpy.array([0.5, 1.5, -0.25, 3.0, 0.0]), dtype)
        numbers = (NUMBERS if not long else (2, 0.5)) if dtype in (float32, int32) else (2, 0.5)[long:]
        for position, number, attrs in itertools.product(range(count), numbers, attributes):
            kind = {bool: bool_, int: int64, float: float64}[type(number)]
            arguments = [number if k == position else array for k in range(count)]
            types = [
                tensor_type(kind, (), True) if a is number else tensor_type(dtype, a.shape) for a in arguments
            ]
            sample = Sample(attrs, tuple(map(numpy.asarray, arguments)), tuple(type.dtype for type in types))
            try:
                graph = closed_graph(op, attrs, types)
                value = evaluate(graph, sample.arrays)[0]
            except TwofoldError:  # not of these dtypes, or divided by the integer 0
                continue
            what = (position, number, sampled.computed(op, attrs, types))
            if what not in seen:
                seen.add(what)
                operands = [a if a is number else tensor_of(a, dtype) for a in arguments]
                yield sample, operands, graph.outputs[0].dtype, value


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE if len(REGISTRY[name].parameter_names()) > 1])
def test_python_numbers_as_operands(name: str) -> None:
    op: Any = REGISTRY[name]
    calls = list(scalar_calls(op))
    samples = [sample for sample, *_ in calls]
    found = []
    for way in ("fused", "unfused"):
        with tier(way):
            made = [_core.record(op, sample.attrs, operands) for sample, operands, *_ in calls]
            found.append([[result._numpy().copy()] for result in made])
    check_bits(found[0], found[1], samples, "fused")
    for (sample, _, dtype, wanted), (value,) in zip(calls, found[1]):
        check_reference(op, sample, dtype, value, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_views_as_inputs(name: str) -> None:
    op: Any = REGISTRY[name]
    samples = sampled.to_view(op)
    bigger = [Sample(s.attrs, tuple(embedded(a) for a in s.arrays), s.dtypes, s.smooth) for s in samples]
    ranks = {id(big): [a.ndim for a in s.arrays] for big, s in zip(bigger, samples)}
    plain = define_by_run(call(op), samples)
    check_bits(declared(through_views(op, ranks), bigger, "fused"), plain, samples, "fused with views")


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_neighbours_share_a_kernel(name: str) -> None:
    op: Any = REGISTRY[name]
    sample = max(op.samples(), key=lambda found: sampled.result_type(op, found).size)
    inputs = [input_node(k, type) for k, type in enumerate(sample.types)]
    one = filled(1, sampled.result_type(op, sample).dtype, ())
    result = op.build(sample.attrs, inputs)
    total = apply("sum", ops.multiply(result, one), attrs=((result.ndim - 1,),))
    program = compile_graph(Graph(sample.types, [result, total]))
    assert len(program.instructions) == 1
