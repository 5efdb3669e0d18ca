"""The default dtype of a program: what operations compute of integers and Python floats alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch

sys.path.insert(0, str(Path(__file__).parent))

import samples as sampled

from twofold.dtypes import complex64, complex128, float32, float64, rules_in_default
from twofold.errors import TwofoldError
from twofold.frontend.operand_casts import cast_operands
from twofold.ir.interpret import evaluate
from twofold.ir.op import REGISTRY
from twofold.ops.base import apply
from twofold.transforms.derived import stable_graph
from twofold.transforms.reverse import closed_graph

NAMES = sampled.operations_with_samples()
WIDER = {float32: float64, complex64: complex128}


@pytest.fixture
def in_float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def tensors(sample: Any) -> list[Any]:
    return [torch.tensor(array).to(dtype) for array, dtype in zip(sample.arrays, sample.dtypes, strict=True)]


def integral(op: Any) -> Any:
    """Sample calls, those of floats as calls of the integers next to them."""
    for sample in op.samples():
        if "bfloat16" in {dtype.name for dtype in sample.dtypes}:
            continue
        arrays = tuple(
            numpy.round(array).astype(numpy.int64)
            if array.dtype.kind == "f" and numpy.isfinite(array).all()
            else array
            for array in sample.arrays
        )
        dtypes = tuple(
            torch.int64 if array.dtype == numpy.int64 else dtype
            for array, dtype in zip(arrays, sample.dtypes)
        )
        yield sample._replace(arrays=arrays, dtypes=dtypes)


@pytest.mark.parametrize("name", NAMES)
def test_the_default_is_of_no_account_beside_floats(name: str) -> None:
    op = REGISTRY[name]
    for sample in op.samples():
        if any(dtype.kind in "fc" for dtype in sample.dtypes):
            usual = stable_graph(op, sample.attrs, sample.types).outputs[0].type
            with rules_in_default(float64):
                assert stable_graph(op, sample.attrs, sample.types).outputs[0].type is usual


@pytest.mark.parametrize("name", NAMES)
def test_integers_are_computed_in_the_default(name: str, in_float64: None) -> None:
    """The numbers of one call of each computation, of an operation whose code is the same in every shape."""
    op: Any = REGISTRY[name]
    seen = set()
    for sample in integral(op):
        if any(dtype.kind in "fc" for dtype in sample.dtypes):
            continue
        try:
            usual = stable_graph(op, sample.attrs, sample.types).outputs[0].type
            with rules_in_default(float64):
                graph = closed_graph(op, sample.attrs, sample.types)
        except (TwofoldError, TypeError, ValueError):
            continue
        wanted = graph.outputs[0].type
        assert wanted.dtype in (usual.dtype, WIDER.get(usual.dtype))
        if wanted is usual:
            assert cast_operands(op, sample.attrs, sample.types, sample.arrays) is None
            continue
        got = apply(name, *tensors(sample), attrs=sample.attrs)
        assert got.dtype is wanted.dtype
        what = sampled.form(op) and (sample.attrs, sampled.computed(op, sample.attrs, sample.types))
        if what and what in seen:
            continue
        seen.add(what)
        with numpy.errstate(all="ignore"):
            (value,) = evaluate(graph, sample.arrays)
        numpy.testing.assert_allclose(got.numpy(), value, rtol=1e-12, atol=1e-12)


CALLS = [
    ("i / 3", float64),
    ("3 / i", float64),
    ("i * 0.1", float64),
    ("i ** 0.5", float64),
    ("i * 0.1j", complex128),
    ("b * 0.1", float64),
    ("i.sqrt()", float64),
    ("torch.where(i > 1, 0.1, 0.2)", float64),
    ("torch.where(i > 1, i, 0.2)", float64),
    ("torch.clamp(i, 1.5)", float64),
    ("torch.fft.fft(i)", complex128),
    ("torch.cov(i)", float64),
    ("torch.masked.median(i)", torch.int64),
    ("f * i", float32),
    ("f * 0.1", float32),
    ("i.float() / 3", float32),
    ("i.half() * 0.1", torch.float16),
    ("torch.result_type(i, 1.0)", float64),
    ("i.mean(dtype=torch.float32)", float32),
    ("i + 1", torch.int64),
    ("i > 0.5", torch.bool),
]


@pytest.mark.parametrize(("call", "dtype"), CALLS, ids=[call for call, _ in CALLS])
def test_calls(call: str, dtype: Any, in_float64: None) -> None:
    names = {
        "torch": torch,
        "i": torch.tensor([1, 2]),
        "b": torch.tensor([True]),
        "f": torch.tensor([1.0]).float(),
    }
    found = eval(call, names)
    assert getattr(found, "dtype", found) is dtype


@pytest.mark.parametrize(
    "call", ["i > v", "i == v", "v >= i", "torch.ne(i, v)", "torch.isin(i, v)", "torch.where(i < v, i, 0)"]
)
@pytest.mark.parametrize("v", [16777216.5, 2.9999999999, 3.0])
def test_comparisons_with_numbers_are_in_the_default(call: str, v: float, in_float64: None) -> None:
    values = numpy.array([16777217, 16777216, 2049, 3])
    expected = eval(
        call.replace("torch.ne", "numpy.not_equal").replace("torch.", "numpy."),
        {"numpy": numpy, "i": values, "v": v},
    )
    assert eval(call, {"torch": torch, "i": torch.tensor(values), "v": v}).tolist() == expected.tolist()

    @torch.compile
    def compiled(i: Any) -> Any:
        return eval(call, {"torch": torch, "i": i, "v": v})

    for _ in range(3):
        assert compiled(torch.tensor(values)).tolist() == expected.tolist()
    rows = torch.tensor(numpy.stack([values, values[::-1]]))
    assert (
        torch.vmap(lambda i: eval(call, {"torch": torch, "i": i, "v": v}))(rows)[0].tolist()
        == expected.tolist()
    )


def test_digits_and_gradients(in_float64: None) -> None:
    numbers = torch.arange(1, 6)
    assert (numbers / 3).tolist() == [n / 3 for n in range(1, 6)]
    assert (numbers * 0.1).tolist() == [n * 0.1 for n in range(1, 6)]
    weight = torch.tensor(0.1, requires_grad=True)
    (weight * (numbers / 3)).sum().backward()
    assert weight.grad.dtype is float64
    assert weight.grad.item() == pytest.approx(5, rel=1e-15)
    assert repr(numbers / 2) == "tensor([0.5000, 1.0000, 1.5000, 2.0000, 2.5000])"


def test_every_change_counts_for_what_was_called_before() -> None:
    numbers = torch.tensor([1, 2])

    def third() -> Any:
        return (numbers / 3 + 0.1).dtype

    found = []
    try:
        for default in (float32, float64, float32, torch.float16, float64) * 2:
            torch.set_default_dtype(default)
            found.append(third() is default)
    finally:
        torch.set_default_dtype(float32)
    assert all(found)


def test_compiled_functions(in_float64: None) -> None:
    def third(x: Any) -> Any:
        return x / 3 * 0.1

    numbers = torch.arange(5)
    compiled = torch.compile(third)
    for _ in range(3):
        assert torch.equal(compiled(numbers), third(numbers))
        assert compiled(numbers).dtype is float64


def test_compiled_functions_follow_every_change() -> None:
    third = torch.compile(lambda x: x / 3)
    numbers = torch.arange(5)
    try:
        for default in (float32, float64, float32, float64):
            torch.set_default_dtype(default)
            assert torch.equal(third(numbers), numbers / 3)
            assert third(numbers).dtype is default
    finally:
        torch.set_default_dtype(float32)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_only_floats_are_defaults(dtype: Any) -> None:
    with pytest.raises(TypeError, match="no floating dtype"):
        torch.set_default_dtype(dtype)
