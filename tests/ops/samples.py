"""Every sample call of every registered operation, and how to run one on the reference interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

import twofold.ops  # noqa: F401  (registers all operations)
from twofold.compiler.lower.expression import operation_cost
from twofold.dtypes import complex128, float64
from twofold.ir.interpret import evaluate, widen
from twofold.ir.op import REGISTRY, Op
from twofold.ops.base import Composite, Operation
from twofold.ops.samples import Sample
from twofold.transforms.reverse import closed_graph


def cases() -> Iterator[tuple[Any, Sample]]:
    """All pairs of an operation and a sample call of it, in the order of registration."""
    for op in list(REGISTRY.values()):
        for sample in op.samples():
            yield op, sample


def has_samples(op: Any) -> bool:
    """Whether an operation states samples, or its kind has some; none of them is made."""
    if getattr(op, "rule_samples", None) is not None:
        return True
    stated = type(op).samples
    if stated is Composite.samples:
        return bool(op.parameter_names())
    return stated not in (Op.samples, Operation.samples)


def operations_with_samples() -> list[str]:
    """Names of the operations that have sample calls."""
    return [name for name, op in REGISTRY.items() if has_samples(op)]


def reference(op: Any, sample: Sample) -> Any:
    """The value of a call by the interpreter, in storage form."""
    return evaluate(closed_graph(op, sample.attrs, sample.types), sample.arrays)[0]


def in_float64(sample: Sample) -> Sample:
    """The same call with every float in float64 (complex128), for finite differences."""
    pairs = list(zip(sample.arrays, sample.dtypes))
    arrays = tuple(numpy.array(widen(array, dtype)) for array, dtype in pairs)
    return Sample(
        sample.attrs,
        arrays,
        tuple({"f": float64, "c": complex128}.get(d.kind, d) for d in sample.dtypes),
        sample.smooth,
    )


def result_type(op: Any, sample: Sample) -> Any:
    """The type of the result of a call."""
    return closed_graph(op, sample.attrs, sample.types).outputs[0].type


# Which samples are compiled. Compiling is most of the time of the tests. One loop nest serves all element-wise
# operations, another all reductions: they see of an operation only the code for a vector, and that code sees neither
# the loop nor what was cast before. So every shape in one dtype and every dtype in one shape find what their product
# would find. Some operations are run on the product, for the sake of the loop nests: alone, not on views, and, but for
# casts, of which each pair of dtypes is one of its own, not among others.

THROUGHOUT = (
    "abs",
    "add",
    "amax",
    "argmax",
    "atan2",
    "cast",
    "cos",
    "equal",
    "negative",
    "sum",
    "tanh",
    "where",
)
LONG = 48  # instructions, from which on a loop has one masked body: the other shapes of the loop add nothing
LOOPED = {"elementwise": "pointwise", "reduction": "reducing"}
MOVES = ("input", "broadcast_to", "reshape", "permute", "ruled")


def form(op: Any) -> str:
    """``pointwise``: of element-wise nodes alone; ``reducing``: of reductions and those; empty for all others.

    Also empty where there are no operands.
    """
    if op.kind not in (*LOOPED, "composite") or not op.parameter_names():
        return ""
    if op.kind in LOOPED:
        return LOOPED[op.kind]
    first = next(iter(op.samples()))
    nodes = closed_graph(op, first.attrs, first.types).nodes()
    kinds = {node.op.kind for node in nodes if node.op.kind != "source" and node.op.name not in MOVES}
    return ("reducing" if "reduction" in kinds else "pointwise") if kinds <= set(LOOPED) else ""


def computed(op: Any, attrs: Any, types: Any) -> tuple[Any, ...]:
    """What a call of such an operation computes, casts and axes aside: its nodes with their dtypes."""
    return tuple(
        (
            node.op.name,
            node.op.kind == "elementwise" and node.attrs,
            node.dtype,
            *[v.dtype for v in node.inputs],
        )
        for node in closed_graph(op, attrs, types).nodes()
        if node.op.kind in LOOPED and node.op.name != "cast"
    )


def to_compile(op: Any) -> list[Sample]:
    """The samples on which ways of running are compared: all, or every shape and every dtype."""
    samples = list(op.samples())
    return samples if op.name in THROUGHOUT else selected(op, samples)


def selected(op: Any, samples: Sequence[Sample]) -> list[Sample]:
    """Every shape and every dtype of element-wise operations and reductions, all samples of others."""
    how = form(op) if samples else ""
    if not how:
        return list(samples)
    own = [sample for sample in samples if sample.dtypes == samples[0].dtypes]
    by_computation: dict[Any, list[Sample]] = {}
    for sample in samples:
        attrs = sample.attrs if how == "pointwise" else ()
        what = (attrs, computed(op, sample.attrs, sample.types))
        by_computation.setdefault(what, []).append(sample)
    kept = {id(sample) for sample in (own if how == "reducing" else in_every_shape(op, own))}
    kept |= {id(largest(group, how == "reducing")) for group in by_computation.values()}
    if how == "reducing" or weight(op, samples[0]) <= LONG:
        kept |= {id(sample) for sample in {sample.dtypes: sample for sample in reversed(samples)}.values()}
    return [sample for sample in samples if id(sample) in kept]


def in_every_shape(op: Any, samples: Sequence[Sample]) -> list[Sample]:
    """Of a pointwise operation's samples in one dtype those with the first attributes, and those of special values."""
    first = samples[0]
    own = [sample for sample in samples if sample.attrs == first.attrs or sample.smooth < first.smooth]
    if weight(op, first) <= LONG:
        return own
    return [
        first,
        largest(own),
        largest(own, False),
        *[sample for sample in own if sample.smooth < first.smooth],
    ]


def weight(op: Any, sample: Sample) -> int:
    """About how many instructions a pointwise call takes."""
    nodes = closed_graph(op, sample.attrs, sample.types).nodes()
    return sum(operation_cost(node) for node in nodes if node.op.kind == "elementwise")


def to_fuse(op: Any, samples: Sequence[Sample]) -> list[Sample]:
    """Those that are also compiled among other operations: of a pointwise one a sample of each computation."""
    if op.name in THROUGHOUT and op.name != "cast":
        return selected(op, samples)
    if op.name == "cast" or not samples or form(op) != "pointwise":
        return list(samples)
    found: dict[Any, list[Sample]] = {}
    for sample in samples:
        found.setdefault(computed(op, sample.attrs, sample.types), []).append(sample)
    kept = {id(largest(group)) for group in found.values()}
    return [sample for sample in samples if id(sample) in kept]


def to_view(op: Any) -> list[Sample]:
    """The samples that are compiled with views as operands: one of a pointwise operation, one dtype of a reduction."""
    samples = [sample for sample in op.samples() if sample.arrays]
    if op.name in THROUGHOUT:
        return selected(op, samples)
    how = form(op) if samples else ""
    own = [sample for sample in samples if sample.dtypes == samples[0].dtypes] if how else samples
    return [largest(own)] if how == "pointwise" else own


def largest(samples: Sequence[Sample], by_axes: bool = True) -> Sample:
    """The first of the smooth samples with the most axes, or else with the most elements."""

    def size(sample: Sample) -> tuple[bool, bool, int, int]:
        total = sum(array.size for array in sample.arrays)
        axes = max(array.ndim for array in sample.arrays)
        return sample.smooth, total > 0, axes if by_axes else total, total

    return max(samples, key=size)
