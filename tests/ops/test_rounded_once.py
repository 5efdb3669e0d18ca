"""Several steps in half types: computed in float32 and rounded once, against float64 rounded to the type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from scipy import special

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


X, Y, Z = (RANDOM.normal(size=500) for _ in range(3))
F: Any = torch.nn.functional


def part(*values: Any) -> list[Any]:
    """Values limited to probabilities that all types have."""
    return [one.clip(0.125, 0.875) for one in values]


STEPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "addcmul": (lambda x, y, z: torch.addcmul(x, y, z, value=0.7), lambda x, y, z: x + 0.7 * y * z),
    "addcdiv": (
        lambda x, y, z: torch.addcdiv(x, y, z, value=0.7),
        lambda x, y, z: x + 0.7 * y / z,
    ),
    "add": (lambda x, y, z: torch.add(x, y, alpha=0.7), lambda x, y, z: x + 0.7 * y),
    "sub": (lambda x, y, z: x.sub(y, alpha=0.7), lambda x, y, z: x - 0.7 * y),
    "rsub": (lambda x, y, z: torch.rsub(x, y, alpha=0.7), lambda x, y, z: y - 0.7 * x),
    "lerp": (lambda x, y, z: torch.lerp(x, y, 0.3), lambda x, y, z: x + 0.3 * (y - x)),
    "mul": (lambda x, y, z: x * 0.7, lambda x, y, z: x * 0.7),
    "mul_": (lambda x, y, z: x.clone().mul_(0.7), lambda x, y, z: x * 0.7),
    "div": (lambda x, y, z: x / 0.7, lambda x, y, z: x / 0.7),
    "rdiv": (lambda x, y, z: 0.7 / x, lambda x, y, z: 0.7 / x),
    "rad2deg": (lambda x, y, z: torch.rad2deg(x), lambda x, y, z: numpy.rad2deg(x)),
    "leaky_relu": (lambda x, y, z: F.leaky_relu(x, 0.3), lambda x, y, z: numpy.where(x > 0, x, x * 0.3)),
    "elu": (
        lambda x, y, z: F.elu(x, 1.3),
        lambda x, y, z: numpy.where(x > 0, x, 1.3 * numpy.expm1(x)),
    ),
    "celu": (
        lambda x, y, z: F.celu(x, 1.3),
        lambda x, y, z: numpy.where(x > 0, x, 1.3 * numpy.expm1(x / 1.3)),
    ),
    "selu": (
        lambda x, y, z: F.selu(x),
        lambda x, y, z: 1.0507009873554805 * numpy.where(x > 0, x, 1.6732632423543772 * numpy.expm1(x)),
    ),
    "silu": (lambda x, y, z: F.silu(x), lambda x, y, z: x / (1 + numpy.exp(-x))),
    "gelu": (lambda x, y, z: F.gelu(x), lambda x, y, z: x * special.ndtr(x)),
    "mish": (lambda x, y, z: F.mish(x), lambda x, y, z: x * numpy.tanh(numpy.log1p(numpy.exp(x)))),
    "softplus": (
        lambda x, y, z: F.softplus(x, beta=1.7),
        lambda x, y, z: numpy.log1p(numpy.exp(1.7 * x)) / 1.7,
    ),
    "hardswish": (lambda x, y, z: F.hardswish(x), lambda x, y, z: x * numpy.clip(x / 6 + 0.5, 0, 1)),
    "hardsigmoid": (lambda x, y, z: F.hardsigmoid(x), lambda x, y, z: numpy.clip(x / 6 + 0.5, 0, 1)),
    "softshrink": (
        lambda x, y, z: F.softshrink(x, 0.3),
        lambda x, y, z: numpy.sign(x) * numpy.maximum(abs(x) - 0.3, 0),
    ),
    "logit": (
        lambda x, y, z: torch.logit(x, 0.2),
        lambda x, y, z: special.logit(numpy.clip(x, 0.2, 0.8)),
    ),
    "std": (
        lambda x, y, z: x.reshape(125, 4).std(1),
        lambda x, y, z: numpy.std(x.reshape(125, 4), axis=1, ddof=1),
    ),
    "mse_loss": (lambda x, y, z: F.mse_loss(x, y, reduction="none"), lambda x, y, z: (x - y) ** 2),
    "smooth_l1_loss": (
        lambda x, y, z: F.smooth_l1_loss(x, y, reduction="none", beta=0.7),
        lambda x, y, z: special.huber(0.7, x - y) / 0.7,
    ),
    "huber_loss": (
        lambda x, y, z: F.huber_loss(x, y, reduction="none", delta=0.7),
        lambda x, y, z: special.huber(0.7, x - y),
    ),
    "binary_cross_entropy": (
        lambda x, y, z: F.binary_cross_entropy(*part(x, y), reduction="none"),
        lambda x, y, z: -part(x, y)[1] * numpy.log(part(x, y)[0])
        - (1 - part(x, y)[1]) * numpy.log1p(-part(x, y)[0]),
    ),
    "sinc": (lambda x, y, z: torch.sinc(x), lambda x, y, z: numpy.sinc(x)),
    "glu": (lambda x, y, z: F.glu(x, 0), lambda x, y, z: x[:250] / (1 + numpy.exp(-x[250:]))),
    "conv1d": (
        lambda x, y, z: F.conv1d(x[None, None], y[None, None, :5], z[:1]),
        lambda x, y, z: (numpy.correlate(x, y[:5], "valid") + z[0])[None, None],
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("name", STEPS)
def test_steps_are_rounded_once(name: str, dtype: Any) -> None:
    function, exact = STEPS[name]
    given = [rounded(one, dtype) for one in (X, Y, Z)]
    found = function(*given)
    assert found.dtype is dtype
    expected = rounded(exact(*[one.double().numpy() for one in given]), dtype)
    assert (found == expected).float().mean().item() >= 0.98


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
def test_the_least_mean_square_of_a_half_type_is_that_of_float32(dtype: Any) -> None:
    x = torch.tensor([0.01, 0.02, 0.03], dtype=dtype)
    found, expected = F.rms_norm(x, (3,)), F.rms_norm(x.float(), (3,)).to(dtype)
    assert found.tolist() == expected.tolist()
