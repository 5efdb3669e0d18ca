"""What transforms say when they are used wrongly."""

from __future__ import annotations

import re

import pytest

import twofold as torch
from twofold import func

X = torch.ones(3)
M = torch.ones(2, 3)


def item(a):
    return a * a.sum().item()


MISTAKES = [
    (lambda: func.grad(lambda x: x * 2)(X), RuntimeError,
     "grad: the function must return a floating tensor without axes, got float32[3]"),
    (lambda: func.grad(lambda x: (x, x))(X), RuntimeError,
     "grad: the function must return one tensor, not a tuple(*, *). Use vjp for several."),
    (lambda: func.grad(lambda x: 3.0)(X), RuntimeError,
     "grad: the function must return tensors, or containers of them, got a float."),
    (lambda: func.grad(torch.sum)(3.0), RuntimeError,
     "grad: expected the arguments of argnums to be tensors, got a float."),
    (lambda: func.grad(torch.sum)(torch.arange(3)), RuntimeError,
     "grad: the arguments of argnums must be floating tensors to be differentiated, got int64[3]"),
    (lambda: func.grad(torch.sum, argnums=1)(X), RuntimeError,
     "grad: argnums=1 does not fit 1 positional arguments."),
    (lambda: func.grad(torch.sum, argnums=(0, 0))(X), RuntimeError,
     "grad: argnums=(0, 0) names an argument twice."),
    (lambda: func.grad(torch.sum, has_aux=True)(X), RuntimeError,
     "grad: with has_aux the function returns a tuple (output, aux), not a Tensor. Return both."),
    (lambda: func.vjp(torch.sin, X)[1](torch.ones(2)), RuntimeError,
     "vjp: a cotangent must have the type float32[3] of its value, got float32[2]"),
    (lambda: func.vjp(torch.sin, X)[1]((X, X)), RuntimeError,
     "vjp: the cotangents have the form tuple(*, *), the output has *. Give one tensor for each."),
    (lambda: func.jvp(torch.sin, X, X), RuntimeError,
     "jvp: expected primals and tangents to be tuples of arguments, not empty."),
    (lambda: func.jvp(torch.sin, (X,), (torch.ones(2),)), RuntimeError,
     "jvp: a tangent must have the type float32[3] of its value, got float32[2]"),
    (lambda: func.jvp(lambda x: M, (X,), (X,), strict=True), RuntimeError,
     "jvp: an output does not depend on the primals, and strict is set."),
    (lambda: torch.vmap(torch.sin)(), ValueError,
     "vmap(sin): there are no positional arguments. Give one with an axis of samples."),
    (lambda: torch.vmap(torch.sin)(torch.ones(())), ValueError,
     "vmap(sin): in_dims gives axis 0 to float32[]"),
    (lambda: torch.vmap(torch.sin, 2)(M), ValueError, "vmap(sin): in_dims gives axis 2 to float32[2,3]"),
    (lambda: torch.vmap(torch.sin)(2.0), ValueError,
     "vmap(sin): in_dims gives axis 0 to a float. Use None for what is no tensor."),
    (lambda: torch.vmap(torch.sin, None)(M), ValueError,
     "vmap(sin): in_dims names no axis of samples. Give one argument an axis."),
    (lambda: torch.vmap(torch.add, (0, 0, 0))(M, M), ValueError,
     "vmap(add): in_dims=(0, 0, 0) does not have the form of the arguments tuple(*, *)."),
    (lambda: torch.vmap(torch.add, (0, "x"))(M, M), ValueError,
     "vmap(add): in_dims holds 'x'. Use an int or None for each argument."),
    (lambda: torch.vmap(torch.add)(M, X), ValueError,
     "vmap(add): the axes of samples have different sizes, 2, 3. Make them equal."),
    (lambda: torch.vmap(torch.add, randomness="maybe")(M, X), RuntimeError,
     "vmap: randomness is 'maybe'. Use one of 'error', 'different', 'same'."),
    (lambda: torch.vmap(torch.add, chunk_size=0)(M, X), ValueError,
     "vmap: chunk_size is 0. Use None or a number above 0."),
    (lambda: torch.vmap(lambda a: 1)(M), ValueError,
     "vmap(<lambda>): the function must return tensors, got a int."),
    (lambda: torch.vmap(torch.sin, out_dims=None)(M), ValueError,
     "vmap(sin): out_dims is None for a result that differs between samples. Give its axis."),
    (lambda: torch.vmap(torch.sin, out_dims=(0, 1))(M), ValueError,
     "vmap(sin): out_dims=(0, 1) does not have the form of the result *."),
    (lambda: torch.vmap(lambda a: a + torch.rand(3))(M), RuntimeError,
     "vmap: a random operation was called, and randomness is 'error'. Pass randomness='different' or 'same'"),
    (lambda: torch.vmap(lambda a: a if a.sum() > 0 else -a)(M), RuntimeError,
     "vmap: bool() of bool[]"),
    (lambda: torch.vmap(item)(M), RuntimeError, "vmap: item() of float32[]"),
    (lambda: torch.vmap(item)(M), RuntimeError,
     "In place of a branch on it use where(), or loop over the samples."),
    (lambda: func.functional_call(torch.nn.Linear(2, 1), {"w": X}, (X,)), RuntimeError,
     "functional_call: the names do not fit Linear, unknown: ['w']. Its names are ['bias', 'weight']."),
    (lambda: func.functional_call(torch.nn.Linear(2, 1), {"weight": X}, (X,), strict=True), RuntimeError,
     "functional_call: the names do not fit Linear, missing: ['bias']."),
    (lambda: func.functional_call(torch.nn.Linear(2, 1), [{"bias": X}, {"bias": X}], (X,)), ValueError,
     "functional_call: 'bias' is given twice. Give each name once."),
    (lambda: func.stack_module_state([]), RuntimeError,
     "stack_module_state: expected at least one model, got 0."),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "kind", "text"), MISTAKES, ids=[text[:60] for _, _, text in MISTAKES])
def test_text(mistake, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        mistake()


def test_the_line_is_the_users():
    with pytest.raises(
        RuntimeError, match=r"test_transforms\.py:\d+\) asks for one value.*test_transforms\.py:\d+"
    ):
        torch.vmap(item)(M)


def test_a_failed_vmap_is_over():
    with pytest.raises(RuntimeError):
        torch.vmap(item)(M)
    torch.rand(2).numpy()
