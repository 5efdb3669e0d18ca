"""Adam with rectified first steps: ``RAdam``."""

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
_square = rule("adam_square")
_direction = rule("rmsprop_direction")
_step = rule("sgd_parameter")
_zeros_like = CREATION["zeros_like"]


class RAdam(Optimizer):
    """Adam whose first steps, while the running mean square is uncertain, follow the mean alone.

    Source: Liu et al., On the Variance of the Adaptive Learning Rate and Beyond, 2020, algorithm 2; epsilon is added
    to the uncorrected root, as in PyTorch.

    Args:
        params: Parameters, or groups of them.
        lr: Learning rate.
        betas: Decay of the running means of the gradient and of its square.
        eps: Added to the root.
        weight_decay: Square penalty.
        decoupled_weight_decay: Whether the parameter is shrunk instead, as in ``AdamW``.
        foreach: Accepted; speed does not depend on it.
        maximize: Whether to climb.
        capturable: Must be False; there are no graphs of a device to capture.
        differentiable: Must be False.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.RAdam([w], lr=0.25)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> w.item()
    0.5
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adam_settings(lr, eps, betas)
        not_negative(weight_decay=weight_decay)
        check_ways(foreach, None, differentiable, capturable)
        super().__init__(params, settings_of(locals()))

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": _zeros_like(param), "exp_avg_sq": _zeros_like(param)}

    @staticmethod
    def _change(steps: Steps, group: dict[str, Any]) -> None:
        (beta1, beta2), lr, eps = group["betas"], group["lr"], group["eps"]
        longest = 2 / (1 - beta2) - 1
        for param, gradient, state in steps:
            step = state["step"]
            mean = state["exp_avg"]._assign(_mean(gradient, state["exp_avg"], beta1))
            square = state["exp_avg_sq"]._assign(_square(gradient, state["exp_avg_sq"], beta2))
            correction1, correction2 = 1 - beta1**step, 1 - beta2**step
            length = longest - 2 * step * beta2**step / correction2
            rate = lr / correction1
            if length > 5.0:
                certainty = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
                param._assign(
                    _step(param, _direction(mean, square, eps), rate * (correction2 * certainty) ** 0.5)
                )
            else:
                param._assign(_step(param, mean, rate))


radam = step_on_lists(
    RAdam,
    "params, grads, exp_avgs, exp_avg_sqs, state_steps, decoupled_weight_decay=False, foreach=None, "
    "differentiable=False, capturable=False, has_complex=False, maximize=False, *, beta1, beta2, lr, "
    "weight_decay, eps",
    {"exp_avg": "exp_avgs", "exp_avg_sq": "exp_avg_sqs", "step": "state_steps"},
    "[w], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(1)], [torch.zeros(())]",
    "beta1=0.9, beta2=0.999, lr=0.25, weight_decay=0, eps=1e-08",
    "0.75",
)
