"""The text of what goes wrong in pooling and resampling, frozen."""

import re

import pytest

import twofold as torch
from twofold.nn import functional as F


def message(error, action):
    """The text of the error that ``action`` raises, with line numbers cut to ``:N``."""
    with pytest.raises(error) as caught:
        action()
    return re.sub(r"test_pooling\.py:\d+", "here.py:N", str(caught.value))


def image():
    return torch.ones(1, 2, 4, 5)


MISTAKES = {
    "window larger than the input": (
        RuntimeError,
        lambda: F.max_pool2d(image(), 6),
        "max_pool2d: windows over 6 places do not fit size 4 with padding 0, the output size is too "
        "small: input float32[1,2,4,5] (here.py:N), at here.py:N. Use a kernel_size of at most 4, or "
        "more padding.",
    ),
    "padding of more than half a window": (
        ValueError,
        lambda: F.max_pool2d(image(), 2, padding=2),
        "max_pool2d: padding 2 for windows over 2 places: input float32[1,2,4,5] (here.py:N), at "
        "here.py:N. pad must be non-negative and should be at most half of effective kernel size: 1.",
    ),
    "negative padding": (
        RuntimeError,
        lambda: F.avg_pool2d(image(), 2, padding=-1),
        "avg_pool2d: padding -1 for windows over 2 places: input float32[1,2,4,5] (here.py:N), at "
        "here.py:N. pad must be non-negative and should be at most half of effective kernel size: 1.",
    ),
    "stride of 0": (
        RuntimeError,
        lambda: F.avg_pool2d(image(), 2, 0),
        "avg_pool2d: kernel_size (2, 2), stride (0, 0), dilation (1, 1): input float32[1,2,4,5] "
        "(here.py:N), at here.py:N. Each must be at least 1.",
    ),
    "too many window sizes": (
        RuntimeError,
        lambda: F.max_pool2d(image(), (2, 2, 2)),
        "max_pool2d: kernel_size=(2, 2, 2): input float32[1,2,4,5] (here.py:N), at here.py:N. Give an "
        "integer, or 2 of them.",
    ),
    "too few axes": (
        RuntimeError,
        lambda: F.max_pool2d(torch.ones(4, 5), 2),
        "max_pool2d: an input with 2 axes: input float32[4,5] (here.py:N), at here.py:N. Use (batch, "
        "channels, height, width) or (channels, height, width).",
    ),
    "too many axes": (
        ValueError,
        lambda: F.avg_pool1d(image(), 2),
        "avg_pool1d: an input with 4 axes: input float32[1,2,4,5] (here.py:N), at here.py:N. Use (batch, "
        "channels, length) or (channels, length).",
    ),
    "no channels": (
        RuntimeError,
        lambda: F.max_pool1d(torch.ones(2, 0, 5), 2),
        "max_pool1d: an input of shape (2, 0, 5) has no elements in a sample: input float32[2,0,5] "
        "(here.py:N), at here.py:N. Only the batch may be empty.",
    ),
    "divisor of 0": (
        RuntimeError,
        lambda: F.avg_pool2d(image(), 2, divisor_override=0),
        "avg_pool2d: divisor_override=0: input float32[1,2,4,5] (here.py:N), at here.py:N. The divisor "
        "must not be zero.",
    ),
    "negative output": (
        RuntimeError,
        lambda: F.adaptive_avg_pool2d(image(), (-1, 2)),
        "adaptive_avg_pool2d: output_size=(-1, 2): input float32[1,2,4,5] (here.py:N), at here.py:N. "
        "Elements of output_size must be greater than or equal to 0.",
    ),
    "adaptive means of integers": (
        TypeError,
        lambda: F.adaptive_avg_pool1d(torch.ones(2, 5, dtype=torch.int64), 2),
        "adaptive_avg_pool: takes floating dtypes, not int64: operand 0 int64[2,5] (here.py:N), at "
        "here.py:N. Cast with .to() first.",
    ),
    "fractional windows that do not fit": (
        RuntimeError,
        lambda: F.fractional_max_pool2d(image(), 3, output_size=4),
        "fractional_max_pool2d: 4 windows over 3 places do not fit size 4: input float32[1,2,4,5] "
        "(here.py:N), at here.py:N. Make output_size + kernel_size - 1 at most the size of the input.",
    ),
    "unpooled size too far": (
        ValueError,
        lambda: F.max_unpool2d(*F.max_pool2d(image(), 2, return_indices=True), 2, output_size=(9, 9)),
        "max_unpool2d: output_size (9, 9) for values that fill (4, 4): input float32[1,2,2,2] "
        "(here.py:N), indices int64[1,2,2,2] (here.py:N), at here.py:N. Each size must be less than its "
        "stride (2, 2) away from that.",
    ),
    "place outside": (
        IndexError,
        lambda: F.max_unpool1d(torch.ones(1, 2), torch.tensor([[0, 9]]), 2).tolist(),
        "index 9 is outside the axis it selects from, at here.py:N. Use indices from -size to size - 1.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_text(name):
    error, action, expected = MISTAKES[name]
    assert message(error, action) == expected
