"""Attention whose scores are too large to be stored: the bits of its parts, and its memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold.compiler.compile import compile_graph
from twofold.dtypes import bfloat16, bool_, float32, float64, uint64
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.ops.base import apply
from twofold.ops.control_flow import blocks
from twofold.ops.samples import narrow

F: Any = torch.nn.functional
G = numpy.random.default_rng(5)

WHOLE = {"WHOLE": 1 << 60}
ONE = {"WHOLE": 0, "BLOCK": 1, "ROWS": 1}  # a row at a time
FEW = {"WHOLE": 0, "BLOCK": 1500, "ROWS": 3}
HEADS = {"WHOLE": 0, "BLOCK": 300, "ROWS": 4}  # several heads at a time
NAME = "scaled_dot_product_attention"


def graph(settings: dict[str, int], attrs: tuple[bool, ...], arrays: list[Any], dtypes: list[Any]) -> Graph:
    """The result and all gradients of a call in blocks of some size; its last input is the cotangent."""
    types = [tensor_type(dtype, array.shape) for array, dtype in zip(arrays, dtypes, strict=True)]
    *inputs, ct = [input_node(k, type) for k, type in enumerate(types)]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setattr(blocks, name, value)
        result = apply(NAME, *inputs, attrs=attrs)
        op: Any = REGISTRY[NAME]
        gradients = op.vjp(attrs, ct, result, tuple(inputs))
    return Graph(types, [result, *[one for one in gradients if one is not None]])


def bits(made: Graph, arrays: list[Any], fuse: bool) -> list[bytes]:
    """Those of all results of a graph."""
    results = [numpy.zeros(node.shape, node.dtype.numpy) for node in made.outputs]
    pointers = [array.ctypes.data for array in arrays], [result.ctypes.data for result in results]
    compile_graph(made, fuse).program().run(*pointers)
    return [result.tobytes() for result in results]


def operands(shapes: list[tuple[int, ...]], dtype: Any) -> list[Any]:
    return [torch.tensor(G.normal(size=shape), dtype=dtype, requires_grad=True) for shape in shapes]


SIZES = [
    ((2, 3), 7, 5, 8, 3),
    ((1, 4), 13, 13, 16, 16),
    ((3, 1), 1, 9, 4, 4),
    ((4,), 9, 1, 3, 5),
    ((), 17, 33, 1, 128),
    ((2, 2), 33, 31, 65, 2),
]
MASKS: dict[str, Callable[..., Any]] = {
    "keys": lambda batch, t, s: G.random((*batch[:1], *[1] * len(batch[1:]), 1, s)) > 0.3,
    "shared": lambda batch, t, s: G.random((t, s)) > 0.4,
    "batch": lambda batch, t, s: G.random((*batch[:1], *[1] * len(batch[1:]), t, s)) > 0.4,
    "all": lambda batch, t, s: G.normal(size=(*batch, t, s)),
    "queries": lambda batch, t, s: G.normal(size=(*batch[-1:], t, 1)),
    "added": lambda batch, t, s: G.normal(size=(t, s)),
}


@pytest.mark.parametrize("kind", [None, "causal", *MASKS])
@pytest.mark.parametrize("dtype", [float32, bfloat16, float64], ids=str)
def test_blocks_keep_every_bit(dtype: Any, kind: str | None) -> None:
    for number, (batch, t, s, d, e) in enumerate(SIZES):
        shapes = [(*batch, t, d), (*batch, s, d), (*batch, s, e)]
        arrays, dtypes = [narrow(G.normal(size=shape), dtype) for shape in shapes], [dtype] * 3
        if kind in MASKS:
            mask = MASKS[kind](batch, t, s)
            dtypes.append(bool_ if mask.dtype == bool else dtype)
            arrays.append(mask if mask.dtype == bool else narrow(mask, dtype))
        arrays.append(numpy.array(0.3))
        dtypes.append(float64)
        dropped = bool(number % 2)
        if dropped:
            arrays += [numpy.array(5, "uint64"), numpy.array(7, "uint64"), numpy.array(0.3, "float32")]
            dtypes += [uint64, uint64, float32]
        arrays.append(narrow(G.normal(size=(*batch, t, e)), dtype))
        dtypes.append(dtype)
        arrays = [numpy.ascontiguousarray(array).reshape(array.shape) for array in arrays]
        attrs = kind in MASKS, kind == "causal", dropped
        wanted = bits(graph(WHOLE, attrs, arrays, dtypes), arrays, False)
        for fuse, settings in (
            (True, ONE),
            (True, FEW),
            (True, HEADS),
            (False, (ONE, FEW, HEADS)[number % 3]),
        ):
            made = graph(settings, attrs, arrays, dtypes)
            assert settings is not ONE or any(node.op.kind == "control_flow" for node in made.nodes())
            assert bits(made, arrays, fuse) == wanted, (batch, t, s, settings)


def test_nothing_to_attend() -> None:
    for batch, t, s in (((2, 0), 3, 4), ((2,), 0, 4), ((2,), 3, 0)):
        values = operands([(*batch, t, 5), (*batch, s, 5), (*batch, s, 6)], float32)
        result = F.scaled_dot_product_attention(*values)
        gradients = torch.autograd.grad(result.sum(), values)
        assert not any(value.numpy().any() for value in (result.detach(), *gradients))


def test_parts_of_one_projection_and_shared_heads() -> None:
    x = torch.tensor(G.normal(size=(263, 2, 3 * 64)), dtype=float32, requires_grad=True)
    query, key, value = [part.reshape(263, 2, 8, 8).permute(1, 2, 0, 3) for part in x.chunk(3, -1)]
    few = key[:, ::2], value[:, ::2]
    calls = [
        ((query, key, value), lambda n, h: (query[n, h], key[n, h], value[n, h]), {}),
        (
            (query, *few),
            lambda n, h: (query[n, h], few[0][n, h // 2], few[1][n, h // 2]),
            {"enable_gqa": True},
        ),
        ((query, key[:1, :1], value[:1, :1]), lambda n, h: (query[n, h], key[0, 0], value[0, 0]), {}),
        ((query[:1, :1], key[:1, :1], value), lambda n, h: (query[0, 0], key[0, 0], value[n, h]), {}),
    ]
    for given, of_head, options in calls:
        result = F.scaled_dot_product_attention(*given, **options)
        for n, h in ((0, 0), (0, 3), (1, 6)):
            assert torch.equal(F.scaled_dot_product_attention(*of_head(n, h)), result[n, h])


def test_second_derivatives_through_blocks() -> None:
    values = operands([(2, 5, 3), (2, 4, 3), (2, 4, 2)], float64)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in FEW.items():
            patch.setattr(blocks, name, value)
        assert torch.autograd.gradgradcheck(F.scaled_dot_product_attention, values)


def test_samples_and_the_parts_of_a_large_call() -> None:
    """Sizes for which blocks are chosen: heads alone, and rows alone, are small enough to be computed at once."""
    values = operands([(3, 6, 251, 16), (3, 6, 260, 16), (3, 6, 260, 8)], float32)
    result = F.scaled_dot_product_attention(*values)
    gradients = torch.autograd.grad(result.sum(), values)
    for i, j in ((0, 0), (1, 4), (2, 5)):
        own = [x[i, j].detach().requires_grad_() for x in values]
        alone = F.scaled_dot_product_attention(*own)
        assert torch.equal(alone, result[i, j])
        for found, wanted in zip(torch.autograd.grad(alone.sum(), own), gradients):
            assert torch.equal(found, wanted[i, j])
    mapped = torch.func.vmap(lambda q, k, v: F.scaled_dot_product_attention(q, k, v))(*values)
    assert torch.equal(mapped, result)


def test_rows_of_a_long_head() -> None:
    """A head that is computed in blocks of rows, beside rows that are computed at once."""
    query, key, value = operands([(1201, 16), (1101, 16), (1101, 8)], float32)
    result = F.scaled_dot_product_attention(query, key, value)
    by_query, by_key, by_value = torch.autograd.grad((result * result).sum(), [query, key, value])
    weights = torch.softmax((query * 0.25) @ key.t(), -1)
    ct = 2 * result
    arrived = ct @ value.t()
    scored = weights * (arrived - (weights * arrived).sum(-1, keepdim=True))
    assert torch.equal(result, weights @ value)
    assert torch.equal(by_query, scored @ key * 0.25)
    assert torch.equal(by_key, scored.t() @ query * 0.25)
    assert torch.equal(by_value, weights.t() @ ct)
    assert torch.equal(F.scaled_dot_product_attention(query[400:420], key, value), result[400:420])


MEASURED = """
import twofold as torch
q, k, v = (torch.rand(1, 4, 2048, 32).requires_grad_() for _ in range(3))
mask = torch.rand(2048, 2048) > 0.1
for _ in range(4):
    torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, 0.1).sum().backward()
    print(q.grad.sum().item())
    torch.wait_for_compiler()
print(torch.stats().pool_peak)
"""


def test_scores_are_never_stored() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True)
    scores = 4 * 2048 * 2048 * 4
    assert int(done.stdout.split()[-1]) < scores // 2
