"""``GradScaler``: losses scaled so that half gradients do not underflow."""

from __future__ import annotations

import enum
import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import bfloat16, float16

Tensor = _core.Tensor
_FIX = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."


class OptState(enum.Enum):
    """What has been done with an optimizer since the last ``update``."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Optimizer:
    """An optimizer in this iteration: its stage, and whether all its gradients were finite (None: not looked at)."""

    def __init__(self) -> None:
        self.stage = OptState.READY
        self.finite: Tensor | None = None


class GradScaler:
    """Scales losses by a factor that it adapts, takes it out of gradients, and leaves out steps that overflowed.

    Each iteration calls ``scale(loss).backward()``, ``step(optimizer)`` and ``update()``. Where a gradient is
    infinite or NaN, the optimizer makes no step, and ``update`` multiplies the factor by ``backoff_factor``; after
    ``growth_interval`` iterations in a row without one, it multiplies it by ``growth_factor``. The factor is kept
    in float32.

    Args:
        device: "cpu"; for "cuda", which is not there, the scaler is disabled with a warning.
        init_scale: The factor to begin with.
        growth_factor: What the factor grows by; more than 1.
        backoff_factor: What it shrinks by; less than 1.
        growth_interval: How many iterations must go well before it grows.
        enabled: False: ``step`` is that of the optimizer, and all else does nothing.

    Raises:
        AssertionError: For other factors, and where a method is called before ``scale``.
        RuntimeError: Where ``unscale_`` or ``step`` is called twice for an optimizer before ``update``.

    >>> import twofold as torch
    >>> weight = torch.ones(2, requires_grad=True)
    >>> optimizer, scaler = torch.optim.SGD([weight], lr=0.5), torch.amp.GradScaler("cpu", init_scale=4.0)
    >>> for factor in (1.0, float("inf")):
    ...     optimizer.zero_grad()
    ...     scaler.scale((weight * factor).sum()).backward()
    ...     scaler.step(optimizer)
    ...     scaler.update()
    ...     print(weight.tolist(), scaler.get_scale())
    [0.5, 0.5] 4.0
    [0.5, 0.5] 2.0
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and device == "cuda":
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2
            )
            enabled = False
        if enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._device, self._enabled = device, enabled
        self._init_scale, self._growth_tracker = _single(init_scale), 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._scale: float | None = None  # until something is scaled
        self._optimizers: dict[int, _Optimizer] = {}

    def _current(self, method: str) -> float:
        if self._scale is None:
            raise AssertionError(f"Attempted {method} but _scale is None.  {_FIX}")
        return self._scale

    def _of(self, optimizer: Any) -> _Optimizer:
        return self._optimizers.setdefault(id(optimizer), _Optimizer())

    def scale(self, outputs: Any) -> Any:
        """A tensor, or each in nested iterables of tensors, times the factor.

        Raises ValueError for anything else.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = self._init_scale
            # a loss without axes is wide enough for the factor, as in PyTorch
            wide = outputs.ndim == 0 and outputs.dtype in (float16, bfloat16)
            return (outputs.float() if wide else outputs) * self._scale
        if isinstance(outputs, Iterable):
            found = map(self.scale, outputs)
            return type(outputs)(found) if isinstance(outputs, (list, tuple)) else found
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Take the factor out of the gradients of the optimizer's parameters, such as before they are clipped.

        Without it ``step`` does so. Raises ValueError for gradients of float16.
        """
        if not self._enabled:
            return
        scale, state = self._current("unscale_"), self._of(optimizer)
        if state.stage is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state.stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = _single(1.0 / scale)
        with _core.GradientMode(False):
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    gradient = parameter._dense_grad
                    if gradient is None:
                        continue
                    if gradient.dtype is float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    finite = gradient.isfinite().all()
                    state.finite = finite if state.finite is None else state.finite & finite
                    gradient.mul_(inverse)
        state.stage = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step(*args, **kwargs)`` on gradients without the factor, or None where one is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._current("step")
        state = self._of(optimizer)
        if state.stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state.stage is OptState.READY:
            self.unscale_(optimizer)
        if state.finite is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = optimizer.step(*args, **kwargs) if bool(state.finite) else None
        state.stage = OptState.STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Adapt the factor to what happened since the last call, or set it to ``new_scale``."""
        if not self._enabled:
            return
        scale = self._current("update")
        checks = [state.finite for state in self._optimizers.values() if state.finite is not None]
        if new_scale is not None:
            self._scale = _single(_number(new_scale))
        elif not checks:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif not all(map(bool, checks)):
            self._scale, self._growth_tracker = _single(scale * self._backoff_factor), 0
        elif self._growth_tracker + 1 == self._growth_interval:
            grown = _single(scale * self._growth_factor)
            self._scale, self._growth_tracker = grown if math.isfinite(grown) else scale, 0
        else:
            self._growth_tracker += 1
        self._optimizers = {}

    def get_scale(self) -> float:
        """The factor; 1 if the scaler is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale

    def get_growth_factor(self) -> float:
        """What the factor grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the factor grows by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the factor shrinks by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the factor shrinks by."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many iterations must go well before the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set how many iterations must go well before the factor grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether anything is scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The factor, how it changes, and how many iterations in a row went well; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave; raises RuntimeError if that is empty, unless disabled."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved "
                "from a disabled instance of GradScaler."
            )
        self._init_scale = _single(state_dict["scale"])
        self._scale = None if self._scale is None else self._init_scale
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]

    def __getstate__(self) -> dict[str, Any]:
        if self._optimizers:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning "
                "of an iteration, or at the end after scaler.update()."
            )
        return dict(self.__dict__)


def _single(number: float) -> float:
    """A number in float32."""
    with numpy.errstate(over="ignore"):
        return float(numpy.float32(number))


def _number(new_scale: Any) -> float:
    if isinstance(new_scale, float):
        return new_scale
    if not isinstance(new_scale, Tensor) or new_scale.numel() != 1 or new_scale.requires_grad:
        raise AssertionError(
            "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
            "requires_grad=False."
        )
    return float(new_scale)
