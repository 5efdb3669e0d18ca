"""Keys of kernels hold numbers, never the names of symbols that stand for different ones."""

from __future__ import annotations

import numpy
import pytest

import twofold
from twofold.ir.recording import Facts, Recording


def test_a_symbol_in_a_text_is_its_number() -> None:
    recording = Recording([5, 7], [0, 0], Facts())
    five, seven = recording.inputs
    assert f"{five} x {seven + 1:3d}" == "5 x   8"
    assert ("eq", five, 5, True) in recording.guards


@pytest.mark.parametrize("step", [1, 2, 3])
def test_strides_of_convolutions_in_new_sizes(step: int) -> None:
    generator = numpy.random.default_rng(step)
    strides = [2, 1, 2, 1, 3, 2, 1]
    for size, stride in zip((6, 6, 7, 9, 9, 11, 12), [min(s, step + 1) for s in strides], strict=True):
        x = generator.standard_normal((1, 2, size, size)).astype(numpy.float32)
        w = generator.standard_normal((2, 2, 3, 3)).astype(numpy.float32)
        found = twofold.nn.functional.conv2d(twofold.tensor(x), twofold.tensor(w), stride=stride).numpy()
        windows = numpy.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::stride, ::stride]
        wanted = numpy.einsum("bcyxij,ocij->boyx", windows.astype(float), w)
        numpy.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
