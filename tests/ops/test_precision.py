"""Python numbers beside float64 tensors are computed with in float64, in results and in gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import twofold as torch
from tests.ops.samples import has_samples, in_float64
from twofold.dtypes import complex64, complex128, float32, float64
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.transforms.derived import Pullback, pullbacks_of
from twofold.transforms.reverse import closed_graph

# of which a scalar of the samples is a tensor, or what is computed in float32 is no part of the result
SINGLE = (
    "addmv",
    "complex",
    "concatenate_rows",
    "ctc_losses",
    "fake_quantize",
    "least_squares_packed",
    "random_dropout",
)


def _with_numbers() -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """Sample calls on float64 tensors with Python numbers for the operands without axes."""
    for name, op in list(REGISTRY.items()):
        if not has_samples(op) or name in SINGLE or op.kind not in ("composite", "elementwise"):
            continue
        seen = set()
        for sample in op.samples():
            is_number = [a.ndim == 0 and d.kind == "f" for a, d in zip(sample.arrays, sample.dtypes)]
            if not any(is_number) or all(is_number) or sample.attrs in seen:
                continue
            seen.add(sample.attrs)
            own = in_float64(sample)
            types = [
                tensor_type(float32 if number else d, a.shape, number)
                for number, a, d in zip(is_number, own.arrays, own.dtypes)
            ]
            if any(t.dtype in (float64, complex128) for t in types):
                yield op, own.attrs, tuple(types)


def _single(graph: Any) -> list[Any]:
    return [
        node.op.name
        for node in graph.nodes()
        if node.op.name != "input" and not node.type.weak and node.type.dtype in (float32, complex64)
    ]


def test_graphs_of_float64_hold_nothing_of_float32() -> None:
    count, found = 0, {}
    for op, attrs, types in _with_numbers():
        graph = closed_graph(op, attrs, types)
        graphs = [graph]
        wrt = tuple(k for k, t in enumerate(types) if t.dtype in (float64, complex128))
        if op.differentiable and wrt:
            made = pullbacks_of(op, attrs, types, wrt, graph).values()
            graphs += [one.graph for one in made if isinstance(one, Pullback)]
        for one in graphs:
            if _single(one) and one.outputs[0].type.dtype in (float64, complex128):
                found[op.name] = _single(one)
        count += 1
    assert not found and count > 50


@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_smoothed_labels_are_exact_in_float64(weighted: bool) -> None:
    x = torch.tensor([[0.1, 0.2, 0.7], [1.0, 2.0, -1.0]], dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([0.5, 2.0, 1.5], dtype=torch.float64) if weighted else None
    target = torch.tensor([0, 2])
    loss = torch.nn.functional.cross_entropy(x, target, weight, label_smoothing=0.15, reduction="sum")
    (found,) = torch.autograd.grad(loss, x)
    scores, hit = x.detach().numpy(), numpy.eye(3)[target.numpy()]
    p = numpy.exp(scores) / numpy.exp(scores).sum(1, keepdims=True)
    each = numpy.ones(3) if weight is None else weight.numpy()
    wanted = (hit * (1 - 0.15) + 0.15 / 3) * each
    numpy.testing.assert_allclose(found.numpy(), p * wanted.sum(1, keepdims=True) - wanted, rtol=1e-14)


def test_small_tolerances_of_float64() -> None:
    a = torch.diag(torch.tensor([1e-40, 1e-60], dtype=torch.float64))
    assert torch.linalg.matrix_rank(a, atol=1e-50, rtol=0.0).item() == 1
    assert torch.linalg.pinv(a, atol=1e-50, rtol=0.0)[1, 1].item() == 0
