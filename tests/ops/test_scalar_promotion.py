"""Scalars beside tensors with axes count by their kind, as in PyTorch; the array API has no such rule."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.array_api as xp

f32, f64, c64 = torch.float32, torch.float64, torch.complex64
NAMES = {
    "torch": torch,
    "x": torch.tensor([0.1, 0.2]),
    "h": torch.tensor([0.5, 1.5], dtype=torch.float16),
    "i": torch.tensor([1, 2], dtype=torch.int16),
    "u": torch.tensor([250, 2], dtype=torch.uint8),
    "b": torch.tensor([True, False]),
    "d": torch.tensor(0.1, dtype=f64),
    "s": torch.tensor(0.1),
    "n": torch.tensor(7),
    "z": torch.tensor(1j, dtype=torch.complex128),
}
CALLS = [
    ("x * d", f32),
    ("d * x", f32),
    ("x / d", f32),
    ("h * s", torch.float16),
    ("h * d", torch.float16),
    ("i + n", torch.int16),
    ("u + n", torch.uint8),
    ("n // i", torch.int16),
    ("b + n", torch.int64),
    ("b * d", f64),
    ("i * d", f64),
    ("i * s", f32),
    ("x * z", c64),
    ("i * z", torch.complex128),
    ("d ** x", f32),
    ("d * n", f64),
    ("d * s", f64),
    ("torch.where(b, x, d)", f32),
    ("torch.maximum(x, d)", f32),
    ("torch.clamp(x, d)", f32),
    ("torch.lerp(x, x, d)", f32),
    ("torch.addcmul(x, x, d)", f32),
    ("torch.atan2(d, x)", f32),
    ("torch.nn.functional.mse_loss(x, d.expand(2))", f64),
    ("x[None] * d", f32),
    ("x.double() * d", f64),
    ("x * d.reshape(1)", f64),
    ("torch.result_type(u, n)", torch.uint8),
    ("torch.result_type(x, d)", f32),
    ("torch.result_type(d, s)", f64),
]


@pytest.mark.parametrize(("call", "dtype"), CALLS, ids=[call for call, _ in CALLS])
def test_calls(call: str, dtype: Any) -> None:
    for _ in range(2):
        found = eval(call, NAMES)
        assert getattr(found, "dtype", found) is dtype


def test_operands_are_compared_in_the_dtype_of_the_wide_one() -> None:
    x, tenth = torch.tensor([0.1]), torch.tensor(0.1, dtype=f64)
    assert torch.equal(x == tenth, torch.tensor([True]))
    assert not torch.equal(x.double() == tenth, torch.tensor([True]))


def test_values_wrap_round_and_gradients_keep_their_dtypes() -> None:
    assert (NAMES["u"] + NAMES["n"]).tolist() == [1, 9]
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    scale = torch.tensor(3.0, dtype=f64, requires_grad=True)
    (x * scale).sum().backward()
    assert (x.grad.dtype, scale.grad.dtype) == (f32, f64)
    assert (x.grad.tolist(), scale.grad.item()) == ([3.0, 3.0], 3.0)
    with torch.no_grad():
        x *= scale
    assert x.tolist() == [3.0, 6.0]


def test_functions_that_are_compiled_promote_alike() -> None:
    scale = torch.tensor(0.1, dtype=f64)

    def scaled(x: Any) -> Any:
        return x * scale + scale

    x = torch.tensor([1.0, 2.0])
    assert scaled(x).dtype is torch.compile(scaled)(x).dtype is f32
    assert torch.equal(scaled(x), torch.compile(scaled)(x))
    assert torch.vmap(scaled)(x.reshape(2, 1)).dtype is f32


@pytest.mark.parametrize("make", [xp.asarray, lambda array: xp.zeros_like(xp.asarray(array)), xp.from_dlpack])
def test_arrays_of_the_standard_promote_by_it(make: Any) -> None:
    wide, scalar = make(numpy.ones(3, numpy.float32)), make(numpy.ones((), numpy.float64))
    for result in (
        wide * scalar,
        wide[1:] + scalar,
        xp.add(wide, scalar),
        -wide * xp.sqrt(scalar),
        scalar - wide,
    ):
        assert result.dtype is f64
    assert xp.result_type(wide, scalar) is f64


def test_arrays_that_are_passed_on_stay_as_they_are() -> None:
    x = torch.ones(3)
    assert xp.asarray(x) is x
    assert (x * torch.ones((), dtype=f64)).dtype is f32


def test_the_adjoint_is_conjugated() -> None:
    z = numpy.array([[1j, 2.0], [3.0, 4 - 1j]], numpy.complex64)
    for found in (torch.adjoint(torch.tensor(z)), torch.tensor(z).adjoint(), torch.tensor(z).mH):
        assert numpy.array_equal(found.numpy(), z.conj().T)
    assert torch.adjoint(torch.ones(2, 3)).shape == (3, 2)


@pytest.mark.parametrize("function", [torch.fmax, torch.fmin, torch.ldexp])
def test_tensors_without_axes_count_by_their_kind(function: Any) -> None:
    half, ones = torch.ones(2, dtype=torch.float16), torch.ones(2)
    assert function(half, torch.tensor(3.0)).dtype is torch.float16
    assert function(half, torch.tensor(3, dtype=torch.uint8)).dtype is torch.float16
    assert function(torch.tensor(3.0, dtype=f64), ones).dtype is f32
    assert function(ones, torch.ones(2, dtype=f64)).dtype is f64


def test_the_logarithm_of_the_only_class_has_the_dtype_of_the_score() -> None:
    for dtype in (torch.float16, torch.bfloat16, f32):
        assert torch.log_softmax(torch.tensor(2.5, dtype=dtype), 0).dtype is dtype


def test_alpha_of_a_number_beside_bools_is_no_bool():
    flags = torch.tensor([False, True])
    assert torch.add(flags, 2.5, alpha=2.5).tolist() == [6.25, 7.25]
    assert torch.add(flags, 3, alpha=2).tolist() == [6, 7]
    assert torch.add(flags, True, alpha=True).tolist() == [True, True]
