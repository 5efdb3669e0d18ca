"""What optimisers of other packages import from PyTorch's ``torch.optim.optimizer`` to write their steps with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from twofold import _core
from twofold.dtypes import float32, float64
from twofold.frontend.options import get_default_dtype

Tensor = _core.Tensor

__all__: list[str] = []


def _lists() -> Any:
    return import_module("twofold.utils._foreach_utils")  # what that package has needs optimisers


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A ``step`` that records gradients only where the optimiser has ``differentiable=True``.

    >>> import twofold as torch
    >>> class Descent(torch.optim.Optimizer):
    ...     @_use_grad_for_differentiable
    ...     def step(self):
    ...         return torch.is_grad_enabled()
    >>> Descent([torch.ones(1)], {"differentiable": False}).step()
    False
    """

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _core.GradientMode(bool(self.defaults["differentiable"])):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    """The number of a tensor; anything else as it is."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """``x`` itself: steps are never traced symbolically."""
    return x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without axes; anything else as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Replace complex parameters in a list, and what belongs to them in other lists, by views of real numbers."""
    for position, param in enumerate(params):
        if param.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[position] = tensors[position].view_as_real()


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """The dtype of a step that is a tensor."""
    return float64 if not is_fused and get_default_dtype() is float64 else float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices on which steps can be captured, which are none of this library's."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _default_to_fused_or_foreach(
    params: Sequence[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether steps are fused by default, and whether they take lists: not on the CPU unless ``use_fused``."""
    if differentiable:
        return False, False
    given = [param for param in params if param is not None]

    def fit(devices: Sequence[str]) -> bool:
        return all(isinstance(param, Tensor) and param.device.type in devices for param in given)

    fused = (
        use_fused
        and fit(_lists()._get_fused_kernels_supported_devices())
        and all(param.is_floating_point() for param in given)
    )
    return fused, not fused and fit(_lists()._get_foreach_kernels_supported_devices())


def _device_dtype_check_for_fused(p: Any, cuda_unsupported: bool = False) -> None:
    """Raise RuntimeError for a parameter that no fused step takes."""
    devices = [
        name
        for name in _lists()._get_fused_kernels_supported_devices()
        if not (cuda_unsupported and name == "cuda")
    ]
    if p.device.type not in devices or not p.is_floating_point():
        raise RuntimeError(
            f"`fused=True` requires all the params to be floating point Tensors of supported devices: {devices} "
            f"but {p.dtype} and {p.device.type}"
        )


def _disable_dynamo_if_unsupported(
    single_tensor_fn: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that leaves functions as they are: no step is compiled from its bytecode."""
    return lambda func: func


_params_doc = (
    "params (iterable): the parameters, with their names or without, or dictionaries of groups of them"
)
_foreach_doc = "foreach (bool, optional): whether lists of tensors are updated together (default: None)"
_fused_doc = "fused (bool, optional): whether a step is one operation (default: None)"
_capturable_doc = (
    "capturable (bool, optional): whether a step may be captured in a graph of a GPU (default: False)"
)
_differentiable_doc = (
    "differentiable (bool, optional): whether gradients flow through a step (default: False)"
)
_maximize_doc = "maximize (bool, optional): whether the objective is maximised (default: False)"
