"""Pooling functions that sample random numbers, choose among others, or have other names in PyTorch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.frontend.install import PUBLIC, guarded
from twofold.frontend.install import _callable as worded
from twofold.frontend.sampling import stream
from twofold.ops.convolution.unpooling import fractional
from twofold.ops.docstrings import shown
from twofold.ops.random.sampling import sample_uniform
from twofold.ops.signatures import shows

Tensor = _core.Tensor

_INDEXED = {
    "max_pool1d": "2",
    "max_pool2d": "(1, 2)",
    "max_pool3d": "(1, 1, 2)",
    "adaptive_max_pool1d": "1",
    "adaptive_max_pool2d": "1",
    "adaptive_max_pool3d": "1",
    "fractional_max_pool2d": "(1, 2), 1",
    "fractional_max_pool3d": "(1, 1, 2), 1",
}
"""The functions that also give positions, and their arguments in the examples."""

__all__ = ["fractional_max_pool2d", "fractional_max_pool3d", *(f"{name}_with_indices" for name in _INDEXED)]


def _with_indices(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    names = list(inspect.signature(function).parameters)
    position = names.index("return_indices")
    behind = names[position + 1 :]

    def made(*args: Any, **kwargs: Any) -> Any:
        kwargs["return_indices"] = True
        return function(*args[:position], **kwargs, **dict(zip(behind, args[position + 1 :], strict=False)))

    made.__name__ = made.__qualname__ = f"{name}_with_indices"
    ones = "1, " * (int(name[-2]) + 1)
    made.__doc__ = shown(
        f"``{name}`` with ``return_indices=True``.",
        f">>> x = torch.tensor([1.0, 3.0]).reshape({ones}2)",
        f">>> y, positions = torch.nn.functional.{name}_with_indices(x, {_INDEXED[name]})",
        ">>> y.item(), positions.item()",
        "(3.0, 1)",
    )
    return shows(made, function, without=("out",))


def _fractional(count: int) -> Callable[..., Any]:
    def made(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        samples = _random_samples
        if samples is None:
            batch = input.shape[0] if input.ndim == count + 2 else 1
            shape = (batch, input.shape[-count - 1], count)
            samples = sample_uniform(*stream(None), shape, input.dtype)
        return fractional(input, kernel_size, output_size, output_ratio, return_indices, samples, count)

    made.__name__ = made.__qualname__ = f"fractional_max_pool{count}d"
    sizes = ", ".join(["8"] * count)
    made.__doc__ = shown(
        f"The largest element of windows over the last {count} axes that begin at random positions.\n\n"
        "Give ``output_size``, or ``output_ratio`` to the size of the input.\n"
        "Source: Graham, Fractional Max-Pooling, 2014.",
        f">>> torch.nn.functional.fractional_max_pool{count}d(torch.ones(1, 3, {sizes}), 2, 4).shape",
        f"twofold.Size([1, 3{', 4' * count}])",
    )
    return made


# errors are worded by the core, as those of the operations are
fractional_max_pool2d = worded(_fractional(2))
fractional_max_pool3d = worded(_fractional(3))

for _name in _INDEXED:
    _plain = globals().get(_name) or PUBLIC[_name]
    globals()[f"{_name}_with_indices"] = _with_indices(_name, _plain)


def _adaptive_max_pool1d_of_torch(input: Tensor, output_size: Any) -> Any:
    """``nn.functional.adaptive_max_pool1d`` with the positions.

    >>> import twofold as torch
    >>> values, positions = torch.adaptive_max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    >>> values, positions
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return PUBLIC["adaptive_max_pool1d"](input, output_size, True)


adaptive_max_pool1d_of_torch = guarded("adaptive_max_pool1d", _adaptive_max_pool1d_of_torch)
