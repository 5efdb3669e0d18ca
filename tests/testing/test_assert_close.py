"""``assert_close``: what is close, and the messages, which are PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
from twofold.testing import assert_allclose, assert_close

NAN = float("nan")
ONE, TWO = torch.ones(2), torch.ones(2) * 2


@pytest.mark.parametrize(
    "actual, expected, options",
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.000002]), {}),
        (torch.tensor([1.0], dtype=torch.bfloat16), torch.tensor([1.01], dtype=torch.bfloat16), {}),
        (numpy.ones(2), numpy.ones(2), {}),
        ({"a": [ONE, (1, None)]}, {"a": [ONE, (1, None)]}, {}),
        (torch.tensor([NAN]), torch.tensor([NAN]), {"equal_nan": True}),
        (1.0, 1.5, {"rtol": 0.5, "atol": 0.0}),
        (1, 1.0, {"check_dtype": False}),
        (True, True, {}),
        (float("inf"), float("inf"), {}),
        (torch.tensor([]), torch.tensor([]), {}),
    ],
)
def test_what_is_close(actual: Any, expected: Any, options: Any) -> None:
    assert_close(actual, expected, **options)


@pytest.mark.parametrize(
    "actual, expected, options, message",
    [
        (
            torch.tensor([1.0, 2.0]),
            torch.tensor([1.0, 2.5]),
            {},
            "Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\n"
            "Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)\n"
            "Greatest relative difference: 0.2 at index (1,) (up to 1.3e-06 allowed)",
        ),
        (
            {"a": [1, 2]},
            {"a": [1, 3]},
            {},
            "Scalars are not equal!\n\nExpected 3 but got 2.\nAbsolute difference: 1\n"
            "Relative difference: 0.3333333333333333\n\nThe failure occurred for item ['a'][1]",
        ),
        (
            ONE,
            torch.ones(3),
            {},
            "The values for attribute 'shape' do not match: twofold.Size([2]) != twofold.Size([3]).",
        ),
        (
            ONE,
            ONE.double(),
            {},
            "The values for attribute 'dtype' do not match: twofold.float32 != twofold.float64.",
        ),
        ([1], [1, 2], {}, "The length of the sequences mismatch: 1 != 2"),
        (True, False, {}, "Booleans mismatch: True is not False"),
        (None, 1, {}, "None mismatch: None is not 1"),
        (5, 5.0, {}, "The (d)types do not match: <class 'int'> != <class 'float'>."),
        (ONE, TWO, {"msg": "other"}, "other"),
        (1, 2, {"msg": lambda text: text[:7]}, "Scalars"),
        (
            {"a": 1},
            {"b": 1},
            {},
            "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
            "Additional keys in the actual mapping: ['a']",
        ),
    ],
)
def test_what_is_not(actual: Any, expected: Any, options: Any, message: str) -> None:
    with pytest.raises(AssertionError) as told:
        assert_close(actual, expected, **options)
    assert str(told.value) == message


def test_wrong_use() -> None:
    with pytest.raises(ValueError, match="but got no atol"):
        assert_close(1.0, 1.0, rtol=0.1)
    for wrong in ((ONE, 1.0), ("a", "a"), (ONE, [1.0, 1.0])):
        with pytest.raises(TypeError, match="No comparison pair"):
            assert_close(*wrong)
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(torch.nn.Parameter(ONE), ONE, allow_subclasses=False)


def test_the_earlier_name() -> None:
    assert_allclose(torch.tensor([1, 2]), [1.0, 2.0])
    assert_allclose(torch.tensor([NAN]), torch.tensor([NAN]))
    with pytest.raises(AssertionError):
        assert_allclose(torch.tensor([1.0]), [2.0])
