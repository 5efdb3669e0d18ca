"""Windows against NumPy and SciPy, and the arguments they refuse."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import scipy.signal

import twofold as torch
from twofold.signal import windows

CASES: list[tuple[str, dict[str, Any], Any]] = [
    ("bartlett", {}, "bartlett"),
    ("blackman", {}, "blackman"),
    ("cosine", {}, "cosine"),
    ("exponential", {"tau": 2.5}, ("exponential", None, 2.5)),
    ("gaussian", {"std": 2.5}, ("gaussian", 2.5)),
    ("general_cosine", {"a": [0.5, 0.3, 0.2]}, ("general_cosine", [0.5, 0.3, 0.2])),
    ("general_hamming", {"alpha": 0.6}, ("general_hamming", 0.6)),
    ("hamming", {}, "hamming"),
    ("hann", {}, "hann"),
    ("kaiser", {"beta": 9.0}, ("kaiser", 9.0)),
    ("nuttall", {}, ("general_cosine", [0.3635819, 0.4891775, 0.1365995, 0.0106411])),
]


@pytest.mark.parametrize(("name", "options", "expected"), CASES)
def test_against_scipy(name: str, options: dict[str, Any], expected: Any) -> None:
    for length in (1, 2, 7, 64):
        for symmetric in (True, False):
            found = getattr(windows, name)(length, sym=symmetric, dtype=torch.float64, **options)
            wanted = scipy.signal.get_window(expected, length, fftbins=not symmetric)
            numpy.testing.assert_allclose(found.numpy(), wanted, rtol=1e-13, atol=1e-14)
    assert getattr(windows, name)(0, **options).shape == (0,)
    assert getattr(windows, name)(3, **options).dtype is torch.float32
    assert getattr(windows, name)(3, requires_grad=True, **options).requires_grad


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
def test_older_names(name: str) -> None:
    older, newer = getattr(torch, name + "_window"), getattr(windows, name)
    assert older(9).tolist() == newer(9, sym=False).tolist()
    assert older(9, False).tolist() == newer(9).tolist()
    assert older(4, dtype=torch.float16).dtype is torch.float16


def test_large_shapes_do_not_overflow() -> None:
    found = windows.kaiser(101, beta=2000.0, dtype=torch.float64)
    assert found[50].item() == 1 and bool(torch.isfinite(found).all())


@pytest.mark.parametrize(
    "call",
    [
        lambda: windows.hann(-1),
        lambda: windows.exponential(5, center=1.0),
        lambda: windows.exponential(5, tau=0.0),
        lambda: windows.gaussian(5, std=-1.0),
        lambda: windows.kaiser(5, beta=-1.0),
        lambda: windows.general_cosine(5, a=[]),
    ],
)
def test_wrong_arguments(call: Any) -> None:
    with pytest.raises(ValueError):
        call()


def test_wrong_types() -> None:
    with pytest.raises(TypeError):
        windows.general_cosine(5, a=0.5)
    with pytest.raises(TypeError):
        windows.hann(5, dtype=torch.int64)
