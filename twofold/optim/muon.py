"""Muon."""

from __future__ import annotations

import math
from typing import Any

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.optim.optimizer import Optimizer, gradients, rule, settings_of

Tensor = _core.Tensor
_running_mean = rule("adam_mean")
_decayed_parameter = rule("decayed_parameter")
_parameter = rule("sgd_parameter")
_zeros_like = CREATION["zeros_like"]


class Muon(Optimizer):
    """Steps along the running mean of the gradient of a matrix, with its singular values made about equal.

    Source: Jordan et al., Muon: An Optimizer for Hidden Layers in Neural Networks, 2024. The iteration runs in
    bfloat16, as in PyTorch.

    Args:
        params: Matrices, or groups of them.
        lr: Learning rate.
        weight_decay: Decay of the parameters in each step, times the rate.
        momentum: Decay of the running mean.
        nesterov: Whether to look ahead.
        ns_coefficients: Of the odd polynomial of fifth degree that is applied again and again.
        eps: Least norm that a matrix is divided by.
        ns_steps: How often the polynomial is applied, below 100.
        adjust_lr_fn: "original" (None, too) for ``lr * sqrt(max(1, rows / columns))``, or "match_rms_adamw" for
            ``lr * 0.2 * sqrt(max(rows, columns))``.

    >>> import twofold as torch
    >>> w = torch.eye(2, requires_grad=True)
    >>> optimizer = torch.optim.Muon([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w[0, 1].item(), 0.5 < w[0, 0].item() < 1.0
    (0.0, True)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        if ns_steps >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(ns_coefficients) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        super().__init__(params, settings_of(locals()))
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.shape}"
                    )

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        momentum, lr = group["momentum"], group["lr"]
        for param, gradient in gradients(group, decay=False, only_dense="Muon"):
            if param.dtype.is_complex:
                raise RuntimeError("Muon does not support complex parameters")
            state = self.state[param]
            if not state:
                state["momentum_buffer"] = _zeros_like(param)
            mean = state["momentum_buffer"]._assign(
                _running_mean(gradient, state["momentum_buffer"], momentum)
            )
            direction = gradient + (mean - gradient) * momentum if group["nesterov"] else mean
            flat = _orthogonal(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
            rate = lr * _ratio(group["adjust_lr_fn"], *param.shape)
            shrunk = _decayed_parameter(param, lr, group["weight_decay"])
            param._assign(_parameter(shrunk, flat.to(param.dtype), rate))


def _ratio(name: str | None, rows: int, columns: int) -> float:
    """What a learning rate is multiplied by for a matrix of that shape."""
    if name == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def _orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """A matrix with the singular vectors of ``matrix`` and singular values near 1, in bfloat16."""
    a, b, c = coefficients
    wide = matrix.shape[0] <= matrix.shape[1]
    found = matrix.bfloat16() if wide else matrix.bfloat16().T
    found = found / found.norm().clamp(min=eps)
    for _ in range(steps):
        gram = found @ found.T
        gram = gram.addmm(gram, gram, beta=b, alpha=c)
        found = found.addmm(gram, found, beta=a)
    return found if wide else found.T
