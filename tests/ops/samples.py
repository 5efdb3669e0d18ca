"""Every sample call of every registered operation, and how to run one on the reference interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

import twofold.ops  # noqa: F401  (registers all operations)
from twofold.autodiff.reverse import closed_graph
from twofold.dtypes import complex128, float64
from twofold.ir.interpret import evaluate, widen
from twofold.ir.op import REGISTRY, Op
from twofold.ops.base import Composite, Operation
from twofold.ops.samples import Sample


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
