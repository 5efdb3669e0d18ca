"""Gradients of convolutions as functions of their own, which have gradients in turn: ``torch.nn.grad``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.frontend.gradients import grad
from twofold.ops.base import FUNCTIONS
from twofold.ops.docstrings import shown

Tensor = _core.Tensor


def _pulled_back(convolve: Callable[[Tensor], Tensor], size: Sequence[int], cotangent: Tensor) -> Any:
    """The gradient of a linear function of a tensor of ``size``, which has gradients where they are recorded."""
    is_recorded = _core.grad_enabled()
    with _core.GradientMode(True):
        start = CREATION["zeros"](tuple(size), dtype=cotangent.dtype).requires_grad_()
        (found,) = grad(convolve(start), start, cotangent, create_graph=is_recorded)
    return found


def _of_input(count: int) -> Callable[..., Tensor]:
    def function(
        input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        def convolve(x: Tensor) -> Tensor:
            return FUNCTIONS[f"conv{count}d"](x, weight, None, stride, padding, dilation, groups)

        return _pulled_back(convolve, input_size, grad_output)

    ones = "1, " * count
    function.__doc__ = shown(
        f"The gradient of ``conv{count}d`` with respect to an input of ``input_size``.",
        f">>> weight = torch.tensor([1.0, 10.0]).reshape(1, {ones}2)",
        f">>> torch.nn.grad.conv{count}d_input((1, {ones}3), weight, torch.ones(1, {ones}2)).flatten()",
        "tensor([ 1., 11., 10.])",
    )
    function.__name__ = function.__qualname__ = f"conv{count}d_input"
    return function


def _of_weight(count: int) -> Callable[..., Tensor]:
    def function(
        input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        def convolve(weight: Tensor) -> Tensor:
            return FUNCTIONS[f"conv{count}d"](input, weight, None, stride, padding, dilation, groups)

        return _pulled_back(convolve, weight_size, grad_output)

    ones = "1, " * count
    function.__doc__ = shown(
        f"The gradient of ``conv{count}d`` with respect to a weight of ``weight_size``.",
        f">>> x = torch.tensor([1.0, 2.0, 3.0]).reshape(1, {ones}3)",
        f">>> torch.nn.grad.conv{count}d_weight(x, (1, {ones}2), torch.ones(1, {ones}2)).flatten()",
        "tensor([3., 5.])",
    )
    function.__name__ = function.__qualname__ = f"conv{count}d_weight"
    return function


conv1d_input, conv2d_input, conv3d_input = (_of_input(count) for count in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (_of_weight(count) for count in (1, 2, 3))
