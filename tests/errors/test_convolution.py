"""The text of what goes wrong in convolutions, frozen."""

import re

import pytest

import twofold as torch
from twofold.nn import functional as F


def message(error, action):
    """The text of the error that ``action`` raises, with line numbers cut to ``:N``."""
    with pytest.raises(error) as caught:
        action()
    return re.sub(r"test_convolution\.py:\d+", "here.py:N", str(caught.value))


def image():
    return torch.ones(1, 4, 5, 6)


def kernels():
    return torch.ones(8, 4, 3, 3)


MISTAKES = {
    "channels of the image": (
        RuntimeError,
        lambda: F.conv2d(image(), torch.ones(8, 3, 3, 3)),
        "conv2d: 4 channels for a weight that takes 3: input float32[1,4,5,6] (here.py:N), weight"
        " float32[8,3,3,3] (here.py:N), at here.py:N. Give an input with 3 channels, or another "
        "weight or groups.",
    ),
    "channels with groups": (
        RuntimeError,
        lambda: F.conv2d(image(), kernels(), groups=2),
        "conv2d: 4 channels for a weight that takes 8: input float32[1,4,5,6] (here.py:N), weight"
        " float32[8,4,3,3] (here.py:N), at here.py:N. Give an input with 8 channels, or another "
        "weight or groups.",
    ),
    "groups that do not divide the filters": (
        RuntimeError,
        lambda: F.conv2d(image(), torch.ones(7, 2, 3, 3), groups=2),
        "conv2d: 7 filters in 2 groups: input float32[1,4,5,6] (here.py:N), weight "
        "float32[7,2,3,3] (here.py:N), at here.py:N. Make filters a multiple of groups.",
    ),
    "groups that do not divide the channels": (
        RuntimeError,
        lambda: F.conv_transpose2d(torch.ones(1, 3, 4, 4), torch.ones(3, 2, 3, 3), groups=2),
        "conv_transpose2d: 3 channels in 2 groups: input float32[1,3,4,4] (here.py:N), weight "
        "float32[3,2,3,3] (here.py:N), at here.py:N. Make channels a multiple of groups.",
    ),
    "no groups": (
        RuntimeError,
        lambda: F.conv2d(image(), kernels(), groups=0),
        "conv2d: groups 0 below 1: input float32[1,4,5,6] (here.py:N), weight float32[8,4,3,3] "
        "(here.py:N), at here.py:N. Use groups=1 for a convolution of all channels.",
    ),
    "kernel larger than the image": (
        RuntimeError,
        lambda: F.conv2d(image(), torch.ones(8, 4, 9, 3), padding=1),
        "conv2d: a kernel that reaches over 9 positions for 7 positions (padding included): input "
        "float32[1,4,5,6] (here.py:N), weight float32[8,4,9,3] (here.py:N), at here.py:N. Use a "
        "smaller kernel or dilation, or more padding.",
    ),
    "too few axes": (
        RuntimeError,
        lambda: F.conv2d(torch.ones(5, 6), kernels()),
        "conv2d: an input with 2 axes: input float32[5,6] (here.py:N), weight float32[8,4,3,3] "
        "(here.py:N), at here.py:N. Use (batch, channels, height, width), or leave out the batch.",
    ),
    "too many axes": (
        RuntimeError,
        lambda: F.conv1d(image(), torch.ones(8, 4, 3)),
        "conv1d: an input with 4 axes: input float32[1,4,5,6] (here.py:N), weight float32[8,4,3] "
        "(here.py:N), at here.py:N. Use (batch, channels, length), or leave out the batch.",
    ),
    "axes of the weight": (
        RuntimeError,
        lambda: F.conv2d(image(), torch.ones(8, 4, 3)),
        "conv2d: a weight with 3 axes: input float32[1,4,5,6] (here.py:N), weight float32[8,4,3] "
        "(here.py:N), at here.py:N. Use one with 4 axes.",
    ),
    "an empty kernel": (
        RuntimeError,
        lambda: F.conv2d(image(), torch.ones(8, 4, 0, 3)),
        "conv2d: a kernel of size (0, 3): input float32[1,4,5,6] (here.py:N), weight "
        "float32[8,4,0,3] (here.py:N), at here.py:N. Use a kernel with at least one position.",
    ),
    "size of the bias": (
        RuntimeError,
        lambda: F.conv2d(image(), kernels(), torch.ones(4)),
        "conv2d: a bias of shape (4,) for 8 channels: input float32[1,4,5,6] (here.py:N), weight "
        "float32[8,4,3,3] (here.py:N), bias float32[4] (here.py:N), at here.py:N. Use one of "
        "shape (8,).",
    ),
    "dtypes": (
        RuntimeError,
        lambda: F.conv2d(image(), kernels().double()),
        "conv2d: an input of float32 and a weight of float64: input float32[1,4,5,6] (here.py:N),"
        " weight float64[8,4,3,3] (here.py:N), at here.py:N. Cast one of them with .to().",
    ),
    "dtype of the bias": (
        RuntimeError,
        lambda: F.conv2d(image(), kernels(), torch.ones(8, dtype=torch.float64)),
        "conv2d: an input of float32 and a bias of float64: input float32[1,4,5,6] (here.py:N), "
        "weight float32[8,4,3,3] (here.py:N), bias float64[8] (here.py:N), at here.py:N. Cast one"
        " of them with .to().",
    ),
    "truth values": (
        RuntimeError,
        lambda: F.conv2d(image() > 0, kernels() > 0),
        "conv2d: takes numbers, not bool: input bool[1,4,5,6] (here.py:N), weight bool[8,4,3,3] "
        "(here.py:N), at here.py:N. Cast with .to() first.",
    ),
    "stride of 0": (
        RuntimeError,
        lambda: F.conv2d(image(), kernels(), stride=0),
        "conv2d: stride (0,) below 1: input float32[1,4,5,6] (here.py:N), weight float32[8,4,3,3]"
        " (here.py:N), at here.py:N. Use integers from 1 on.",
    ),
    "too many strides": (
        RuntimeError,
        lambda: F.conv2d(image(), kernels(), stride=(1, 2, 3)),
        "conv2d: stride (1, 2, 3) for 2 spatial axes: input float32[1,4,5,6] (here.py:N), weight "
        "float32[8,4,3,3] (here.py:N), at here.py:N. Give one integer, or 2.",
    ),
    "negative padding": (
        RuntimeError,
        lambda: F.conv2d(image(), kernels(), padding=-1),
        "conv2d: padding (-1,) below 0: input float32[1,4,5,6] (here.py:N), weight "
        "float32[8,4,3,3] (here.py:N), at here.py:N. Use integers from 0 on.",
    ),
    "padding by a word": (
        ValueError,
        lambda: F.conv2d(image(), kernels(), padding="full"),
        "conv2d: padding 'full': input float32[1,4,5,6] (here.py:N), weight float32[8,4,3,3] "
        "(here.py:N), at here.py:N. Use integers, 'same' or 'valid'.",
    ),
    "same with a stride": (
        RuntimeError,
        lambda: F.conv2d(image(), kernels(), padding="same", stride=2),
        "conv2d: padding='same' with stride (2, 2): input float32[1,4,5,6] (here.py:N), weight "
        "float32[8,4,3,3] (here.py:N), at here.py:N. Use stride 1, or give the padding as "
        "integers.",
    ),
    "a size below 1": (
        RuntimeError,
        lambda: F.conv_transpose2d(torch.ones(1, 4, 1, 6), kernels()[:4], padding=2),
        "conv_transpose2d: a result of size -1: input float32[1,4,1,6] (here.py:N), weight "
        "float32[4,4,3,3] (here.py:N), at here.py:N. Use less padding or a larger input.",
    ),
    "more output padding than a stride": (
        RuntimeError,
        lambda: F.conv_transpose2d(image(), kernels()[:4], output_padding=1),
        "conv_transpose2d: output_padding 1 for stride 1 and dilation 1: input float32[1,4,5,6] "
        "(here.py:N), weight float32[4,4,3,3] (here.py:N), at here.py:N. Use one smaller than the"
        " stride or the dilation.",
    ),
    "channels of a transposed convolution": (
        RuntimeError,
        lambda: F.conv_transpose2d(image(), kernels()),
        "conv_transpose2d: 4 channels for a weight that takes 8: input float32[1,4,5,6] "
        "(here.py:N), weight float32[8,4,3,3] (here.py:N), at here.py:N. Give an input with 8 "
        "channels, or another weight or groups.",
    ),
    "columns of a fold": (
        RuntimeError,
        lambda: F.fold(torch.ones(1, 8, 5), (3, 3), 2),
        "col2im: columns of shape (8, 5) for images of (3, 3), kernels of (2, 2): input "
        "float32[1,8,5] (here.py:N), at here.py:N. Use a multiple of 4 rows and 4 columns.",
    ),
    "rows of a fold": (
        RuntimeError,
        lambda: F.fold(torch.ones(1, 7, 4), (3, 3), 2),
        "col2im: columns of shape (7, 4) for images of (3, 3), kernels of (2, 2): input "
        "float32[1,7,4] (here.py:N), at here.py:N. Use a multiple of 4 rows and 4 columns.",
    ),
    "axes of an unfold": (
        RuntimeError,
        lambda: F.unfold(torch.ones(3, 3), 2),
        "im2col: an input with 2 axes: input float32[3,3] (here.py:N), at here.py:N. Use (batch, "
        "channels, height, width).",
    ),
    "window of an unfold": (
        RuntimeError,
        lambda: F.unfold(image(), 7),
        "im2col: a kernel that reaches over 7 positions for 5 positions (padding included): input "
        "float32[1,4,5,6] (here.py:N), at here.py:N. Use a smaller kernel or dilation, or more "
        "padding.",
    ),
    "kernel of an unfold": (
        RuntimeError,
        lambda: F.unfold(image(), (2, 2, 2)),
        "im2col: kernel_size (2, 2, 2) for 2 spatial axes: input float32[1,4,5,6] (here.py:N), at"
        " here.py:N. Give one integer, or 2.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_text(name):
    error, action, expected = MISTAKES[name]
    assert message(error, action) == expected
