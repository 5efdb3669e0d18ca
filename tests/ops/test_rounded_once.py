"""Products with an addend in half types: computed in float32 and rounded once, against float64 rounded to the type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold as torch

RANDOM = numpy.random.default_rng(0)
A, B, C = (RANDOM.normal(size=shape) for shape in ((6, 7), (7, 5), (6, 5)))
BETA, ALPHA = -4.75, 2.0
THREE = numpy.arange(1, 4).reshape(3, 1, 1)

CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "addmm": (torch.addmm, lambda c, a, b: a @ b, (C, A, B)),
    "baddbmm": (torch.baddbmm, lambda c, a, b: a @ b, (C[None], A[None], B[None])),
    "addbmm": (torch.addbmm, lambda c, a, b: (a @ b).sum(0), (C, A + THREE * 0, B * THREE)),
    "addmv": (torch.addmv, lambda c, a, b: a @ b, (C[:, 0], A, B[:, 0])),
    "addr": (torch.addr, lambda c, a, b: numpy.outer(a, b), (C, A[:, 0], B[0])),
}  # fmt: skip


def rounded(values: Any, dtype: Any) -> Any:
    return torch.from_numpy(numpy.ascontiguousarray(values)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_a_scaled_sum_is_rounded_once(name: str, dtype: Any) -> None:
    function, product, arrays = CASES[name]
    given = [rounded(one, dtype) for one in arrays]
    wide = [one.double().numpy() for one in given]
    expected = rounded(BETA * wide[0] + ALPHA * product(*wide), dtype)
    found = function(*given, beta=BETA, alpha=ALPHA)
    assert found.dtype is dtype
    assert (
        found == expected
    ).float().mean().item() >= 0.98  # float32 sums may fall on another side of a half


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
def test_a_layer_with_a_bias_is_rounded_once(dtype: Any) -> None:
    x, weight, bias = rounded(A, dtype), rounded(B.T, dtype), rounded(C[0], dtype)
    expected = rounded(x.double().numpy() @ weight.double().numpy().T + bias.double().numpy(), dtype)
    assert (torch.nn.functional.linear(x, weight, bias) == expected).float().mean().item() >= 0.98
