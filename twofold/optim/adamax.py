"""Adam with a maximum of gradients: ``Adamax``."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.optim.functional import step_on_lists
from twofold.optim.optimizer import (
    Optimizer,
    Steps,
    check_adam_settings,
    check_ways,
    not_negative,
    rule,
    settings_of,
)

Tensor = _core.Tensor
_mean = rule("adam_mean")
_infinity_norm = rule("adamax_norm")
_adamax = rule("adamax_parameter")
_zeros_like = CREATION["zeros_like"]


class Adamax(Optimizer):
    """Adam with the decaying maximum of the gradient instead of the root of its mean square.

    Source: Kingma, Ba, Adam: A Method for Stochastic Optimization, 2015, algorithm 2.

    Args:
        params: Parameters, or groups of them.
        lr: Learning rate.
        betas: Decay of the running mean of the gradient and of the maximum.
        eps: Added to the absolute gradient.
        weight_decay: Square penalty.
        foreach: Accepted; speed does not depend on it.
        maximize: Whether to climb.
        differentiable: Must be False.
        capturable: Must be False; there are no graphs of a device to capture.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.Adamax([w], lr=0.25)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.75
    """

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_adam_settings(lr, eps, betas)
        not_negative(weight_decay=weight_decay)
        check_ways(foreach, None, differentiable, capturable)
        super().__init__(params, settings_of(locals()))

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": _zeros_like(param), "exp_inf": _zeros_like(param)}

    @staticmethod
    def _change(steps: Steps, group: dict[str, Any]) -> None:
        (beta1, beta2), eps = group["betas"], group["eps"]
        for param, gradient, state in steps:
            mean = state["exp_avg"]._assign(_mean(gradient, state["exp_avg"], beta1))
            norm = state["exp_inf"]._assign(_infinity_norm(gradient, state["exp_inf"], beta2, eps))
            param._assign(_adamax(param, mean, norm, group["lr"] / (1 - beta1 ** state["step"])))


adamax = step_on_lists(
    Adamax,
    "params, grads, exp_avgs, exp_infs, state_steps, foreach=None, maximize=False, differentiable=False, "
    "capturable=False, has_complex=False, *, eps, beta1, beta2, lr, weight_decay",
    {"exp_avg": "exp_avgs", "exp_inf": "exp_infs", "step": "state_steps"},
    "[w], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(1)], [torch.zeros(())]",
    "eps=1e-08, beta1=0.9, beta2=0.999, lr=0.25, weight_decay=0",
    "0.75",
)
