"""Adam with Nesterov's momentum: ``NAdam``."""

from __future__ import annotations

from typing import Any, ClassVar

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
_square = rule("adam_square")
_nadam = rule("nadam_parameter")
_zeros_like = CREATION["zeros_like"]


class NAdam(Optimizer):
    """Adam with Nesterov's look ahead, whose momentum grows from step to step.

    Source: Dozat, Incorporating Nesterov Momentum into Adam, 2016, algorithm 2.

    Args:
        params: Parameters, or groups of them.
        lr: Learning rate.
        betas: Decay of the running means of the gradient and of its square.
        eps: Added to the root.
        weight_decay: Square penalty.
        momentum_decay: How fast the momentum grows towards ``betas[0]``.
        decoupled_weight_decay: Whether the parameter is shrunk instead, as in ``AdamW``.
        foreach: Accepted; speed does not depend on it.
        maximize: Whether to climb.
        capturable: Must be False; there are no graphs of a device to capture.
        differentiable: Must be False.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.NAdam([w], lr=0.25)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> 0.5 < w.item() < 1
    True
    """

    state_numbers: ClassVar[dict[str, Any]] = {"step": int, "mu_product": float}

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adam_settings(lr, eps, betas)
        not_negative(weight_decay=weight_decay)
        if not momentum_decay >= 0.0:
            raise ValueError(f"Invalid momentum_decay value: {momentum_decay}")
        check_ways(foreach, None, differentiable, capturable)
        super().__init__(params, settings_of(locals()))

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": 0,
            "mu_product": 1.0,
            "exp_avg": _zeros_like(param),
            "exp_avg_sq": _zeros_like(param),
        }

    @staticmethod
    def _change(steps: Steps, group: dict[str, Any]) -> None:
        (beta1, beta2), lr, eps = group["betas"], group["lr"], group["eps"]
        slowing = group["momentum_decay"]
        for param, gradient, state in steps:
            step = state["step"]
            momentum = beta1 * (1.0 - 0.5 * 0.96 ** (step * slowing))
            following = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * slowing))
            state["mu_product"] = product = state["mu_product"] * momentum
            mean = state["exp_avg"]._assign(_mean(gradient, state["exp_avg"], beta1))
            square = state["exp_avg_sq"]._assign(_square(gradient, state["exp_avg_sq"], beta2))
            rates = lr * (1.0 - momentum) / (1.0 - product), lr * following / (1.0 - product * following)
            param._assign(_nadam(param, gradient, mean, square, *rates, 1 - beta2**step, eps))


nadam = step_on_lists(
    NAdam,
    "params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, decoupled_weight_decay=False, "
    "foreach=None, capturable=False, differentiable=False, has_complex=False, maximize=False, *, beta1, beta2, "
    "lr, weight_decay, momentum_decay, eps",
    {"exp_avg": "exp_avgs", "exp_avg_sq": "exp_avg_sqs", "step": "state_steps", "mu_product": "mu_products"},
    "[w], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(1)], [torch.ones(())], [torch.zeros(())]",
    "beta1=0.9, beta2=0.999, lr=0.25, weight_decay=0, momentum_decay=0.004, eps=1e-08",
    "0.7359",
)
