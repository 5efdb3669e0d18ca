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
        "max_pool2d: windows over 6 positions do not fit size 4 with padding 0, the output size is too "
        "small: input float32[1,2,4,5] (here.py:N), at here.py:N. Use a kernel_size of at most 4, or "
        "more padding.",
    ),
    "padding of more than half a window": (
        ValueError,
        lambda: F.max_pool2d(image(), 2, padding=2),
        "max_pool2d: padding 2 for windows over 2 positions: input float32[1,2,4,5] (here.py:N), at "
        "here.py:N. pad must be non-negative and should be at most half of effective kernel size: 1.",
    ),
    "negative padding": (
        RuntimeError,
        lambda: F.avg_pool2d(image(), 2, padding=-1),
        "avg_pool2d: padding -1 for windows over 2 positions: input float32[1,2,4,5] (here.py:N), at "
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
        "adaptive_avg_pool: takes floating dtypes, not int64: input int64[2,5] (here.py:N), at "
        "here.py:N. Cast with .to() first.",
    ),
    "fractional windows that do not fit": (
        RuntimeError,
        lambda: F.fractional_max_pool2d(image(), 3, output_size=4),
        "fractional_max_pool2d: 4 windows over 3 positions do not fit size 4: input float32[1,2,4,5] "
        "(here.py:N), at here.py:N. Make output_size + kernel_size - 1 at most the size of the input.",
    ),
    "unpooled size too far": (
        ValueError,
        lambda: F.max_unpool2d(*F.max_pool2d(image(), 2, return_indices=True), 2, output_size=(9, 9)),
        "max_unpool2d: output_size (9, 9) for values that fill (4, 4): input float32[1,2,2,2] "
        "(here.py:N), indices int64[1,2,2,2] (here.py:N), at here.py:N. Each size must be less than its "
        "stride (2, 2) away from that.",
    ),
    "position outside": (
        IndexError,
        lambda: F.max_unpool1d(torch.ones(1, 2), torch.tensor([[0, 9]]), 2).tolist(),
        "max_unpool: index 9 is outside an axis of size 4: input float32[1,2] "
        "(here.py:N), positions int64[1,2] (here.py:N), at here.py:N. Use indices from 0 to "
        "3.",
    ),
    "unknown mode": (
        ValueError,
        lambda: F.interpolate(image(), 3, mode="cubic"),
        "interpolate: mode 'cubic' for an input with 4 axes: input float32[1,2,4,5] (here.py:N), at "
        "here.py:N. Use 'nearest', 'nearest-exact' or 'area' for 3, 4 or 5 axes, 'linear' for 3, "
        "'bilinear' or 'bicubic' for 4, 'trilinear' for 5.",
    ),
    "mode for other axes": (
        RuntimeError,
        lambda: F.interpolate(image(), 3, mode="linear"),
        "interpolate: mode 'linear' for an input with 4 axes: input float32[1,2,4,5] (here.py:N), at "
        "here.py:N. Use 'nearest', 'nearest-exact' or 'area' for 3, 4 or 5 axes, 'linear' for 3, "
        "'bilinear' or 'bicubic' for 4, 'trilinear' for 5.",
    ),
    "no size": (
        ValueError,
        lambda: F.interpolate(image()),
        "interpolate: size=None and scale_factor=None: input float32[1,2,4,5] (here.py:N), at here.py:N. "
        "only one of size or scale_factor should be defined.",
    ),
    "size of 0": (
        RuntimeError,
        lambda: F.interpolate(image(), (0, 3)),
        "interpolate: sizes (4, 5) to (0, 3): input float32[1,2,4,5] (here.py:N), at here.py:N. Input "
        "and output sizes should be greater than 0.",
    ),
    "sizes of other axes": (
        ValueError,
        lambda: F.interpolate(image(), (3, 3, 3)),
        "interpolate: size=(3, 3, 3) for 2 axes: input float32[1,2,4,5] (here.py:N), at here.py:N. Give "
        "a number, or 2 of them.",
    ),
    "corners of the nearest": (
        ValueError,
        lambda: F.interpolate(image(), 3, align_corners=True),
        "interpolate: align_corners=True with mode 'nearest': input float32[1,2,4,5] (here.py:N), at "
        "here.py:N. align_corners option can only be set with the interpolating modes: linear | bilinear "
        "| bicubic | trilinear.",
    ),
    "antialias of the nearest": (
        ValueError,
        lambda: F.interpolate(image(), 3, antialias=True),
        "interpolate: antialias=True with mode 'nearest': input float32[1,2,4,5] (here.py:N), at "
        "here.py:N. Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
        "tensor as input.",
    ),
    "linear of integers": (
        TypeError,
        lambda: F.interpolate(torch.ones(1, 1, 3, dtype=torch.int64), 5, mode="linear"),
        "resize: mode 'linear' takes floating dtypes, not int64: input int64[1,1,3] (here.py:N), at "
        "here.py:N. Cast it first.",
    ),
    "grid of another batch": (
        RuntimeError,
        lambda: F.grid_sample(image(), torch.zeros(2, 3, 3, 2), align_corners=False),
        "grid_sample: a grid of shape (2, 3, 3, 2) for an input of shape (1, 2, 4, 5): input "
        "float32[1,2,4,5] (here.py:N), grid float32[2,3,3,2] (here.py:N), at here.py:N. Use (batch, "
        "channels, height, width) with (batch, height, width, 2), or one axis more and 3.",
    ),
    "unknown grid mode": (
        ValueError,
        lambda: F.grid_sample(image(), torch.zeros(1, 3, 3, 2), "linear"),
        "grid_sample: mode 'linear': input float32[1,2,4,5] (here.py:N), grid float32[1,3,3,2] "
        "(here.py:N), at here.py:N. Use 'bilinear', 'nearest' or 'bicubic'.",
    ),
    "grid of another dtype": (
        TypeError,
        lambda: F.grid_sample(image(), torch.zeros(1, 3, 3, 2, dtype=torch.float64)),
        "grid_sample: input of float32 with grid of float64: input float32[1,2,4,5] (here.py:N), "
        "grid float64[1,3,3,2] (here.py:N), at here.py:N. Expected input and grid to have same "
        "dtype.",
    ),
    "map of another size": (
        RuntimeError,
        lambda: F.affine_grid(torch.zeros(1, 2, 2), (1, 1, 3, 3)),
        "affine_grid: theta of shape (1, 2, 2) for a result of size (1, 1, 3, 3): theta "
        "float32[1,2,2] (here.py:N), at here.py:N. Give it the shape (1, 2, 3).",
    ),
    "channels that do not shuffle": (
        RuntimeError,
        lambda: F.pixel_shuffle(image(), 2),
        "pixel_shuffle: 2 channels for an upscale_factor of 2: input float32[1,2,4,5] (here.py:N), at "
        "here.py:N. Use a number of channels divisible by its square, 4.",
    ),
    "unknown pad mode": (
        ValueError,
        lambda: F.pad(image(), (1, 1), "edge"),
        "pad: pad mode 'edge': input float32[1,2,4,5] (here.py:N), at here.py:N. Use 'constant', "
        "'replicate', 'reflect' or 'circular'.",
    ),
    "reflection of too much": (
        RuntimeError,
        lambda: F.pad(image(), (5, 0), "reflect"),
        "pad: pad widths 5, 0 for size 5 with mode 'reflect': input float32[1,2,4,5] (here.py:N), at "
        "here.py:N. Use widths of at most 4.",
    ),
    "more taken off than there is": (
        RuntimeError,
        lambda: F.pad(image(), (-3, -3)),
        "pad: pad widths -3, -3 leave -1 elements of axis 3: input float32[1,2,4,5] (here.py:N), at "
        "here.py:N. Take off at most its size, 5.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_text(name):
    error, action, expected = MISTAKES[name]
    assert message(error, action) == expected
