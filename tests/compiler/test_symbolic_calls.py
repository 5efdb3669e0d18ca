"""A call over symbolic sizes is said to be what it is over concrete ones, for every sample call of every operation.

Else a program would run other kernels, or sum gradients in another order, once it has a plan for symbolic sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold.compiler.templates import numbers_in, template_gradients, template_of
from twofold.ir.op import REGISTRY
from twofold.transforms.derived import PULLBACK, Traits, pullbacks_of, stable_graph, traits_of

OPERATIONS = [
    name for name, op in REGISTRY.items() if op.kind not in ("host", "control_flow") and op.samples()
]
MOST_SAMPLES = 8  # of an operation

ONE_ROW_LESS = {"block_diag"}
"""Blocks of one row lie in one piece, which symbols do not tell."""


def said(traits: Sequence[Any]) -> tuple[Any, ...]:
    """Traits without the offsets of a movement, which may be symbols."""
    defers, checks, movement = traits
    return bool(defers), bool(checks), movement and tuple(movement[:3])


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_said_of_a_call_over_symbols(name: str) -> None:
    op = REGISTRY[name]
    for sample in islice(op.samples(), MOST_SAMPLES):
        attrs, types = sample.attrs, tuple(sample.types)
        values = (*numbers_in(attrs), *(size for type in types for size in type.shape))
        found = template_of(op, attrs, types, (True,) * len(values))
        if found is None:
            continue
        assert said(found[-3:]) == said(traits_of(op, stable_graph(op, attrs, types))), (attrs, types)
        wrt = tuple(
            [k for k, type in enumerate(types) if type.dtype.name.startswith(("float", "bfloat", "complex"))]
        )
        gradients = (
            template_gradients(found[0], wrt, values) if wrt and getattr(op, "differentiable", True) else None
        )
        if gradients is None:
            continue
        concrete = pullbacks_of(op, attrs, types, wrt)
        for index, *_, defers, checks, movement, form in gradients[1]:
            expected: Any = concrete[index]
            own: Traits = traits_of(PULLBACK, expected.graph)
            assert form == expected.form, (attrs, types, index)
            assert said((defers, checks, movement)) == said(own) or name in ONE_ROW_LESS, (
                attrs,
                types,
                index,
            )


def test_attributes_that_are_none_are_not_taken_for_integers_that_vary() -> None:
    generator = numpy.random.default_rng(0)
    weight = generator.normal(size=(10, 3)).astype(numpy.float32)
    for rows in range(12, 18):
        index = generator.integers(0, 10, rows)
        for padding in (None, 2, 3, 4):
            for offsets in ([0, rows // 3], [0, 2, 5], [0]):
                found = torch.nn.functional.embedding_bag(
                    torch.tensor(index),
                    torch.tensor(weight),
                    torch.tensor(offsets),
                    mode="sum",
                    padding_idx=padding,
                )
                bags = zip(offsets, [*offsets[1:], rows])
                expected = [weight[[k for k in index[a:b] if k != padding]].sum(0) for a, b in bags]
                numpy.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)
