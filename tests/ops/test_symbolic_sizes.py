"""Plans for symbolic sizes against plans for each size: types and bits of every operation and of its gradients."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import samples as sampled

from twofold import _core, get_num_threads, set_num_threads
from twofold.compiler import templates, trace_templates
from twofold.compiler.batches import Batch
from twofold.compiler.compile import compile_graph
from twofold.dtypes import bool_, float32
from twofold.errors import TwofoldError
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.ops.samples import Sample
from twofold.transforms.derived import PULLBACK, Pullback, pullbacks_of, stable_graph, traits_of
from twofold.transforms.vmap import batched_type

NAMES = sampled.operations_with_samples()
MOST = 4
"""Samples of an operation; every other test takes all of them."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Rows of a stretched sequence may read those of another one, which several threads compute in any order."""
    before = get_num_threads()
    set_num_threads(1)
    yield
    set_num_threads(before)


def stretched(sample: Sample) -> Sample:
    """The sample with every axis that is longer than 1 three times as long."""
    arrays = [numpy.tile(array, [3 if size > 1 else 1 for size in array.shape]) for array in sample.arrays]
    return Sample(sample.attrs, tuple(arrays), sample.dtypes, smooth=sample.smooth)


def chosen(op: Any) -> list[Sample]:
    shaped = [sample for sample in op.samples() if any(array.ndim for array in sample.arrays)]
    return [sample for sample in shaped if all(array.size <= 4096 for array in sample.arrays)][:MOST]


def values_of(sample: Sample) -> list[int]:
    return [*templates.numbers_in(sample.attrs), *(size for array in sample.arrays for size in array.shape)]


def template_of(op: Any, sample: Sample) -> Any:
    """The plan with every size a symbol, attributes as they are; None where there cannot be one."""
    numbers = len(templates.numbers_in(sample.attrs))
    varies = tuple([k >= numbers for k in range(len(values_of(sample)))])
    return templates.template_of(op, sample.attrs, sample.types, varies)


def instantiated(plan: Any, values: Sequence[int]) -> Any:
    """The program for sizes; None where a guard does not hold."""
    return _core.ProgramTemplate(plan).instantiate(values, None)


def run(program: Any, graph: Graph, arrays: Sequence[Any], filling: int = 0xA5) -> bytes | str:
    """The bits that a program of one result computes in memory that is filled with a byte, or what it refuses."""
    type = graph.outputs[0].type
    given = [numpy.ascontiguousarray(array) for array in arrays]
    result = numpy.full(max(type.nbytes, 1), filling, numpy.uint8)
    try:
        program.run([array.ctypes.data for array in given], [result.ctypes.data])
    except Exception as error:
        return f"{error.__class__.__name__}: {error}"
    return result[: type.nbytes].tobytes()


def compare(template: Any, graph: Graph, values: Sequence[int], arrays: Sequence[Any]) -> bool:
    """Whether the plan holds for these sizes; where it does, its bits must be those of their own plan."""
    plan = templates.template_program(template, template.call.recording.values)
    if plan is None:
        return False
    program = instantiated(plan, values)
    if program is None:
        return False
    concrete = compile_graph(graph)
    assert [type.nbytes for type in concrete.output_types] == [graph.outputs[0].type.nbytes]
    expected = run(concrete.program(), graph, arrays)
    if expected == run(concrete.program(), graph, arrays, 0x5A):  # else the operands make no sense together
        found = run(program, graph, arrays)
        # a program by itself has no words for what it refuses
        assert isinstance(found, str) if isinstance(expected, str) else found == expected
    return True


def check_numbers(found: Sequence[int], op: Any, graph: Graph) -> None:
    """A plan tells the shape of a result and, of calls that it knows to move their operand, how far these do."""
    shape = graph.outputs[0].type.shape
    assert tuple(found[: len(shape)]) == shape
    if len(found) > len(shape):
        moved = traits_of(op, graph).movement
        assert tuple(found[len(shape) :]) == (moved.offset, moved.step)


def check_result(op: Any, made: Any, sample: Sample) -> Graph | None:
    """The shape and flags of the plan for another size; the graph of that size, None where the plan does not hold."""
    _, shape, code, *_ = made
    found = _core.run_size_program(shape, values_of(sample))
    try:
        graph = stable_graph(op, sample.attrs, sample.types)
    except TwofoldError:
        assert found is None
        return None
    if found is None:
        return None
    check_numbers(found, op, graph)
    assert code == graph.outputs[0].type.dtype.code
    return graph


def gradients(op: Any, made: Any, sample: Sample, graph: Graph) -> Iterator[tuple[Any, Graph, list[Any]]]:
    """Plans of the gradients that hold for a sample, with their graphs of that size and their operands."""
    if not getattr(op, "differentiable", True):
        return
    floating = [k for k, type in enumerate(sample.types) if type.dtype.is_differentiable]
    for wanted in [(k,) for k in floating] + ([tuple(floating)] if len(floating) > 1 else []):
        planned = templates.template_gradients(made[0], wanted, made[0].call.recording.values)
        numbers = None if planned is None else _core.run_size_program(planned[0], values_of(sample))
        if numbers is None:
            continue
        known = pullbacks_of(op, sample.attrs, sample.types, wanted, graph)
        assert [piece[0] for piece in planned[1]] == list(known)
        left = iter(numbers)
        for (index, _, attrs, _, count, slots, template, *_), found in zip(
            planned[1], known.values(), strict=True
        ):
            assert isinstance(found, Pullback)
            assert templates.replace_numbers(attrs, left) == found.attrs
            check_numbers(
                [next(left) for _ in range(count - len(templates.numbers_in(attrs)))], PULLBACK, found.graph
            )
            assert slots == found.slots
            if len(wanted) == 1:
                yield from operands_of(template, found, sample, index, graph.outputs[0].type)


def operands_of(
    template: Any, found: Pullback, sample: Sample, index: int, output: Any
) -> Iterator[tuple[Any, Graph, list[Any]]]:
    """A plan of a gradient that reads no result, with its graph and its operands."""
    if -2 in found.slots or not sample.arrays[index].size:
        return
    cotangent = numpy.resize(sample.arrays[index].ravel(), output.shape)
    if cotangent.dtype == output.dtype.numpy:
        yield template, found.graph, [cotangent if k < 0 else sample.arrays[k] for k in found.slots]


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_for_symbolic_sizes_has_the_bits_of_each_size(name: str) -> None:
    op: Any = REGISTRY[name]
    for sample in chosen(op):
        made = template_of(op, sample)
        if made is None:
            continue
        for other in (sample, stretched(sample)):
            graph = check_result(op, made, other)
            assert graph is not None or other is not sample
            if graph is None:
                continue
            compare(made[0], graph, values_of(other), other.arrays)
            for template, own, operands in gradients(op, made, other, graph):
                compare(template, own, values_of(other), operands)


WIDE: dict[str, tuple[Any, list[tuple[int, ...]], list[tuple[int, ...]]]] = {
    "add": ((), [(40, 50), (50,)], [(70, 90), (90,)]),
    "where": ((), [(40, 50), (40, 50), (40, 1)], [(90, 20), (90, 20), (90, 1)]),
    "exp": ((), [(500,)], [(77,)]),
    "matmul": ((), [(40, 60), (60, 100)], [(50, 90), (90, 111)]),
    "linear": ((), [(40, 60), (100, 60), (100,)], [(50, 90), (111, 90), (111,)]),
    "sum": (((1,), False), [(40, 60)], [(70, 90)]),
    "mean": (((0,), False), [(400, 60)], [(300, 50)]),
    "softmax": ((1,), [(40, 60)], [(30, 100)]),
    "concatenate": ((0,), [(40, 7), (30, 7)], [(20, 9), (25, 9)]),
}


@pytest.mark.parametrize("name", WIDE)
def test_a_plan_holds_for_most_other_sizes(name: str) -> None:
    op: Any = REGISTRY[name]
    attrs, *shapes = WIDE[name]
    generator = numpy.random.default_rng(0)
    dtypes = [bool_ if name == "where" and not k else float32 for k in range(len(shapes[0]))]
    first, second = (
        Sample(
            attrs,
            tuple(generator.normal(size=s).astype(d.numpy) for s, d in zip(part, dtypes)),
            tuple(dtypes),
        )
        for part in shapes
    )
    made = template_of(op, first)
    graph = check_result(op, made, second)
    assert graph is not None
    assert compare(made[0], graph, values_of(second), second.arrays)


ALL_CALLS = """
import hashlib, sys
sys.path.insert(0, {folder!r})
import numpy
import samples as sampled
import twofold
from twofold import _core
from twofold.ir.op import REGISTRY
_core.set_templates({mode!r})
_core.set_tier("unfused")
for name in sampled.operations_with_samples():
    digest = hashlib.sha256()
    small = [sample for sample in REGISTRY[name].samples() if all(array.size <= 4096 for array in sample.arrays)]
    for sample in small[:5]:
        pairs = zip(sample.arrays, sample.dtypes)
        given = [_core.from_array(numpy.array(array), False, dtype.code) for array, dtype in pairs]
        digest.update(_core.record(REGISTRY[name], sample.attrs, given)._numpy().tobytes())
    print(name, digest.hexdigest())
"""


def test_calls_of_one_family_have_the_bits_of_calls_that_are_planned_one_by_one() -> None:
    folder = str(Path(__file__).parent)
    found = []
    for mode in ("off", "at_once"):  # in processes of their own, as op instances are kept
        command = [sys.executable, "-c", ALL_CALLS.format(folder=folder, mode=mode)]
        found.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())
    assert [one for one, other in zip(*found, strict=True) if one != other] == []


@pytest.mark.parametrize("count", [25, 40, 300])
def test_a_plan_of_a_batch_serves_other_widths(count: int) -> None:
    op, rng = REGISTRY["linear"], numpy.random.default_rng(count)

    def arrays(given: int, made: int) -> list[Any]:
        return [rng.normal(size=size).astype("f") for size in ((given,), (made, given), (made,))]

    def batch(arrays: list[Any]) -> Batch:
        types = tuple([tensor_type(float32, one.shape) for one in arrays])
        return Batch(((op, (), (~0, ~1, ~2)),), (0,), types, (True, False, False))

    x, *weights = arrays(140, 260)
    own = batch([x, *weights])
    plan = trace_templates.template_batch(batch(arrays(100, 200)), 30)
    program = None if plan is None else instantiated(plan.encoded, [count, *own.numbers])
    assert program is not None
    graph = stable_graph(op, (), own.types)
    rows = rng.normal(size=(count, 140)).astype("f")
    alone = compile_graph(graph).program()
    each = [run(alone, graph, [row, *weights]) for row in rows]
    whole = Graph([], [input_node(0, batched_type(graph.outputs[0].type, count))])
    assert run(program, whole, [rows, *weights]) == b"".join(each)


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_a_batch_have_the_bits_of_calls_alone(name: str) -> None:
    """Of a batch longer than the one planned, for samples of each operand alone: the others are shared."""
    op, planned, rows = REGISTRY[name], 5, 11
    for sample in chosen(op)[:1]:
        graph = stable_graph(op, sample.attrs, sample.types)
        for position in range(min(len(sample.arrays), 3)):
            flags = [k == position for k in range(len(sample.arrays))]
            members = ((op, sample.attrs, tuple([~k for k in range(len(sample.types))])),)
            batch = Batch(members, (0,), tuple(sample.types), tuple(flags))
            found = trace_templates.template_batch(batch, planned)
            program = None if found is None else instantiated(found.encoded, [rows, *batch.numbers])
            if program is None:
                continue
            whole = Graph([], [input_node(0, batched_type(graph.outputs[0].type, rows))])
            by_itself = compile_graph(graph).program()
            for changed in (numpy.roll, lambda array, row: array * (row + 1)):
                alone = [list(sample.arrays) for _ in range(rows)]
                for row, arrays in enumerate(alone):
                    if arrays[position].dtype.kind in "fc":  # others may be positions, or lengths
                        arrays[position] = changed(arrays[position], row).astype(arrays[position].dtype)
                each = [run(by_itself, graph, arrays) for arrays in alone]
                if not any(isinstance(one, str) for one in each):  # a rolled matrix may have no factor
                    break
            together = list(sample.arrays)
            together[position] = numpy.stack([arrays[position] for arrays in alone])
            expected = b"".join(one for one in each if isinstance(one, bytes))
            assert run(program, whole, together) == expected, (sample.attrs, sample.types, position)
