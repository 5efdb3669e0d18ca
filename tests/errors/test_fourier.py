"""The texts of errors of Fourier transforms, frozen."""

import re

import pytest

import twofold as torch

X = "input float32[4] (here.py:N), at here.py:N"

MISTAKES = {
    "no elements": (
        lambda: torch.fft.fft(torch.ones(4), n=0),
        f"fft.fft: a transform of 0 elements: {X}. Transform at least one.",
    ),
    "no elements of the result": (
        lambda: torch.fft.irfft(torch.ones(4), n=0),
        f"fft.irfft: a transform of 0 elements: {X}. Transform at least one.",
    ),
    "a half of no whole": (
        lambda: torch.fft.hfft(torch.ones(1)),
        "fft.hfft: a transform of 0 elements: input float32[1] (here.py:N), at here.py:N. Transform at least one.",
    ),
    "norm": (
        lambda: torch.fft.ifft(torch.ones(4), norm="both"),
        f"fft.ifft: norm='both': {X}. Use 'backward', 'forward' or 'ortho'.",
    ),
    "complex input": (
        lambda: torch.fft.rfft(torch.ones(4, dtype=torch.complex64)),
        "fft.rfft: input is complex64, not real: input complex64[4] (here.py:N), at here.py:N. "
        "Use the function without the letter r or ih.",
    ),
    "half input": (
        lambda: torch.fft.fft(torch.ones(4).half()),
        "fft.fft: input is float16: input float16[4] (here.py:N), at here.py:N. Cast it with .to() to float32 first.",
    ),
    "too many sizes": (
        lambda: torch.fft.fftn(torch.ones(4), s=(2, 2)),
        f"fft.fftn: 2 sizes for 1 axes: {X}. Give at most one size for each axis.",
    ),
    "missing return_complex": (
        lambda: torch.stft(torch.ones(4), 2),
        f"stft: return_complex is missing: {X}. Give return_complex=True.",
    ),
    "window of another length": (
        lambda: torch.stft(torch.ones(4), 4, window=torch.ones(3), return_complex=True),
        f"stft: window of shape (3,) for win_length=4: {X}. Give 4 elements.",
    ),
    "nothing under a window": (
        lambda: torch.istft(
            torch.ones(3, 2, dtype=torch.complex64), 4, 4, window=torch.tensor([0.0, 1, 1, 1])
        ),
        "istft: no window covers element 2 of the signal: window float32[1,4] (here.py:N), at here.py:N. "
        "Use a window without zeros at its ends, or a smaller hop_length.",
    ),
    "axis": (
        lambda: torch.fft.fft(torch.ones(4), dim=1),
        f"fft.fft: axis 1 is outside a tensor with 1 axes: {X}. Use an axis from -1 to 0.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_text(name):
    action, text = MISTAKES[name]
    with pytest.raises((RuntimeError, IndexError)) as caught:
        action()
    assert re.sub(r"test_fourier\.py:\d+", "here.py:N", str(caught.value)) == text
