"""The generator against published vectors, and the distributions against their moments."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.ops
from twofold.dtypes import bfloat16, bool_, float16, float32, float64, int64, uint64
from twofold.ir.interpret import evaluate, widen
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.transforms.reverse import closed_graph


def draw(name: str, attrs: Any, *values: float, key: int = 1, counter: int = 0) -> Any:
    scalars = [numpy.array(value) for value in values]
    types = [tensor_type(float64 if s.dtype.kind == "f" else int64, (), True) for s in scalars]
    graph = closed_graph(REGISTRY[name], attrs, [tensor_type(uint64), tensor_type(uint64), *types])
    arrays = [numpy.array(key, "uint64"), numpy.array(counter, "uint64"), *scalars]
    return widen(evaluate(graph, arrays)[0], graph.outputs[0].dtype)


@pytest.mark.parametrize(
    ("index", "counter", "key", "words"),
    [
        (0, 0, 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (2**64 - 1, 2**64 - 1, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (0x85A308D3243F6A88, 0x0370734413198A2E, 0x299F31D0A4093822, (0xD16CFE09, 0x94FDCCEB,
         0x5001E420, 0x24126EA1)),
    ],
)  # fmt: skip
def test_known_answers(index: int, counter: int, key: int, words: Any) -> None:
    """Source: the known-answer file of Random123 (Salmon et al. 2011)."""
    op: Any = REGISTRY["random_bits"]
    arrays = [numpy.array(value, "uint64") for value in (index, key, counter)]
    assert tuple(int(op.reference((word,), *arrays)) for word in range(4)) == words


@pytest.mark.parametrize("dtype", [float32, float64, float16, bfloat16])
def test_uniform(dtype: Any) -> None:
    values = draw("random_uniform", ((20_000,), dtype), 0.0, 1.0)
    assert values.min() >= 0 and values.max() < 1
    assert abs(values.mean() - 0.5) < 0.01 and abs(values.var() - 1 / 12) < 0.003
    assert abs(numpy.corrcoef(values[:-1], values[1:])[0, 1]) < 0.03


def test_normal() -> None:
    values = draw("random_normal", ((40_000,), float32), 2.0, 3.0)
    standard = (values - 2) / 3
    assert abs(standard.mean()) < 0.02 and abs(standard.std() - 1) < 0.02
    assert abs((standard**3).mean()) < 0.06 and abs((standard**4).mean() - 3) < 0.2


def test_integers_and_bernoulli() -> None:
    values = draw("random_integers", ((30_000,), int64), -3, 4)
    counts = numpy.bincount(values + 3, minlength=7)
    assert len(counts) == 7 and abs(counts / 30_000 - 1 / 7).max() < 0.01
    assert abs(draw("random_bernoulli", ((30_000,), bool_), 0.3).mean() - 0.3) < 0.01


def test_draws_differ_by_key_and_counter_and_repeat_otherwise() -> None:
    first = draw("random_uniform", ((50,), float32), 0.0, 1.0)
    assert (first == draw("random_uniform", ((50,), float32), 0.0, 1.0)).all()
    assert (first != draw("random_uniform", ((50,), float32), 0.0, 1.0, key=2)).any()
    assert (first != draw("random_uniform", ((50,), float32), 0.0, 1.0, counter=1)).any()
    assert (first[:20] == draw("random_uniform", ((20,), float32), 0.0, 1.0)).all()


@pytest.mark.parametrize("low", [0, -5, -(2**63)])
@pytest.mark.parametrize("span", [2**64, 2**63 + 11, 2**63 - 1, 2**40 + 1, 2**32 + 3, 2**31, 7, 1])
def test_integers_are_the_range_times_64_bits(low: int, span: int) -> None:
    """By the integers of Python; a range of 2**64 begins at the least integer and wraps round to it."""
    high = low + span
    if high > 2**63 - 1 and (low, span) != (-(2**63), 2**64):
        return
    values = draw("random_integers", ((40,), int64), low, low if span == 2**64 else high, key=5, counter=9)
    op: Any = REGISTRY["random_bits"]
    for index, value in enumerate(values.tolist()):
        arrays = [numpy.array(number, "uint64") for number in (index, 5, 9)]
        first, second = (int(op.reference((word,), *arrays)) for word in range(2))
        assert value == low + ((first << 32 | second) * span >> 64)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_numbers_have_random_parts(dtype: Any) -> None:
    """Moments and bounds are those of PyTorch: the parts of a normal number have half its variance each."""
    torch.manual_seed(3)
    evenly = {
        "rand": torch.rand(40000, dtype=dtype),
        "rand_like": torch.rand_like(torch.zeros(40000, dtype=dtype)),
        "uniform_": torch.zeros(40000, dtype=dtype).uniform_(2, 3) - (2 + 2j),
    }
    for samples in evenly.values():
        assert samples.dtype is dtype
        for part in (samples.real, samples.imag):
            assert part.min() >= 0 and part.max() < 1.0001 and abs(part.mean() - 0.5) < 0.01
    zeros = torch.zeros(40000, dtype=dtype)
    normally = {
        "randn": torch.randn(40000, dtype=dtype),
        "randn_like": torch.randn_like(zeros),
        "normal_": (zeros.clone().normal_(1, 2) - (1 + 1j)) / 2,
        "normal": torch.normal(0.0, 1.0, (40000,), dtype=dtype),
        "normal of a tensor": torch.normal(zeros + 3j, 2.0).sub(3j) / 2,
    }
    for samples in normally.values():
        assert samples.dtype is dtype
        parts = torch.view_as_real(samples)
        assert (parts.mean(0).abs() < 0.02).all() and ((parts.var(0) - 0.5).abs() < 0.02).all()
        assert abs((parts[:, 0] * parts[:, 1]).mean()) < 0.02
    with pytest.raises(RuntimeError):
        zeros.exponential_()
