"""Fourier transforms under the names of ``tf.spectral``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.ops.base import FUNCTIONS
from twofold.static.api.namespaces import look_up
from twofold.static.api.op_functions import Number, numbers, operation
from twofold.static.graph.docstrings import described


def _real(type: str, function: str, axes: int, example: str, result: str) -> Callable[..., Any]:
    """A transform between real values and the first half of their coefficients over the last axes."""
    dim = tuple(range(-axes, 0))

    def body(input_tensor: Any, fft_length: Number = None) -> Any:
        sizes = None if fft_length is None else tuple(int(size) for size in numbers(fft_length))
        return FUNCTIONS[f"fft.{function}"](input_tensor, sizes, dim)

    what = "first half of the Fourier transform of real values"
    text = f"The {what}" if function == "rfftn" else f"Real values from the {what}"
    own = type.lower()
    shown = described(
        body, own, f"{text} over the last {axes} axes.", f"print(tf.signal.{own}({example}).shape)", result
    )
    return operation(type)(shown)


rfft2d = _real("RFFT2D", "rfftn", 2, "tf.ones([4, 6])", "(4, 4)")
rfft3d = _real("RFFT3D", "rfftn", 3, "tf.ones([2, 4, 6])", "(2, 4, 4)")
irfft2d = _real("IRFFT2D", "irfftn", 2, "tf.ones([4, 4], tf.complex64)", "(4, 6)")
irfft3d = _real("IRFFT3D", "irfftn", 3, "tf.ones([2, 4, 4], tf.complex64)", "(2, 4, 6)")

__getattr__, __dir__ = look_up(__name__)
