"""Operation entries against independent references and identities, on the entries' own samples."""

from __future__ import annotations

from typing import Any

import every_one
import numpy
import pytest
from compare import assert_agree, assert_pairs
from declare import ENTRIES, INTERNAL
from samples import in_float64

from twofold.dtypes import bfloat16
from twofold.ir.interpret import evaluate, widen
from twofold.ir.op import REGISTRY
from twofold.transforms.reverse import closed_graph

assert every_one
OF_RULE: dict[Any, list[str]] = {}
for _name, _check in INTERNAL.items():
    OF_RULE.setdefault(_check.rule, []).append(_name)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_entry(name: str) -> None:
    op: Any = REGISTRY[name]
    check = ENTRIES[name]
    for sample in map(in_float64, op.samples()):
        graph = closed_graph(op, sample.attrs, sample.types)
        (found,) = evaluate(graph, sample.arrays)
        dtype = graph.outputs[0].dtype
        near = 1e-2 if dtype is bfloat16 else 0.0
        found = widen(found, dtype) if dtype is bfloat16 else found
        what = f"{name}{sample.attrs} of {[array.shape for array in sample.arrays]}"
        with numpy.errstate(all="ignore"):
            if check.identity:
                assert_pairs(check.rule(found, *sample.arrays, *sample.attrs), what)
            else:
                assert_agree(found, check.rule(*sample.arrays, *sample.attrs), what, near)


@pytest.mark.parametrize("names", OF_RULE.values(), ids="-".join)
def test_internal_entries(names: list[str]) -> None:
    assert_pairs(INTERNAL[names[0]].rule(), names[0])
