"""Adam with Nesterov's momentum: ``NAdam``."""

from __future__ import annotations

from typing import Any, ClassVar

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.optim.functional import update_lists
from twofold.optim.optimizer import (
    Optimizer,
    Steps,
    check_adam_settings,
    check_ways,
    not_negative,
    rule,
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
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": 0,
            "mu_product": 1.0,
            "exp_avg": _zeros_like(param),
            "exp_avg_sq": _zeros_like(param),
        }

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        _update(self._steps(group), group)


def _update(steps: Steps, group: dict[str, Any]) -> None:
    """Change parameters, of their gradients and states."""
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


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """Take a step of ``NAdam`` on lists of tensors, which are written to.

    The lists are those of the state, ``state_steps`` is counted up; the settings are those of the class.

    >>> import twofold as torch
    >>> from twofold.optim.nadam import nadam
    >>> w = torch.ones(1)
    >>> settings = dict(beta1=0.9, beta2=0.999, lr=0.25, weight_decay=0, momentum_decay=0.004, eps=1e-08)
    >>> nadam([w], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(1)], [torch.ones(())], [torch.zeros(())], **settings)
    >>> round(w.item(), 4)
    0.7359
    """
    settings = {
        "lr": lr,
        "eps": eps,
        "weight_decay": weight_decay,
        "momentum_decay": momentum_decay,
        "decoupled_weight_decay": decoupled_weight_decay,
        "maximize": maximize,
        "betas": (beta1, beta2),
    }
    update_lists(
        _update,
        params,
        grads,
        {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs},
        {"step": state_steps, "mu_product": mu_products},
        settings,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        only_dense="NAdam",
    )
