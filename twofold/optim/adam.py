"""Adam, and with decoupled weight decay AdamW."""

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
_parameter = rule("adam_parameter")
_maximum = rule("maximum")
_zeros_like = CREATION["zeros_like"]


class Adam(Optimizer):
    """Steps along the running mean of the gradient over the root of its running mean square.

    Source: Kingma, Ba, Adam: A Method for Stochastic Optimization, 2015, algorithm 1; ``amsgrad``: Reddi,
    Kale, Kumar, On the Convergence of Adam and Beyond, 2018. ``foreach`` and ``fused`` name ways to compute the
    same and have no effect; ``capturable`` must be False.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.Adam([w], lr=0.25)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.75
    """

    _decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_adam_settings(lr, eps, betas)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        not_negative(weight_decay=weight_decay)
        check_ways(foreach, fused, differentiable, capturable)
        decoupled_weight_decay = decoupled_weight_decay or self._decoupled
        super().__init__(params, settings_of(locals()))

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        names = ("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else []))
        return {"step": 0, **{name: _zeros_like(param) for name in names}}

    @staticmethod
    def _change(steps: Steps, group: dict[str, Any]) -> None:
        (beta1, beta2), lr, eps = group["betas"], group["lr"], group["eps"]
        last, correction1, correction2 = 0, 1.0, 1.0
        for param, gradient, state in steps:
            step = state["step"]
            if step != last:
                last, correction1, correction2 = step, 1 - beta1**step, 1 - beta2**step
            mean, square = state["exp_avg"], state["exp_avg_sq"]
            mean._assign(_mean(gradient, mean, beta1))
            square._assign(_square(gradient, square, beta2))
            if group["amsgrad"]:
                square = state["max_exp_avg_sq"]._assign(_maximum(state["max_exp_avg_sq"], square))
            param._assign(_parameter(param, mean, square, lr, correction1, correction2, eps))


class AdamW(Adam):
    """Adam with decoupled weight decay: the parameter is first multiplied by ``1 - lr * weight_decay``.

    Source: Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2019.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.AdamW([w], lr=0.25, weight_decay=0.2)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.7
    """

    _decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
        )


_STATES = {
    "exp_avg": "exp_avgs",
    "exp_avg_sq": "exp_avg_sqs",
    "max_exp_avg_sq": "max_exp_avg_sqs if amsgrad",
    "step": "state_steps",
}

adam = step_on_lists(
    Adam,
    "params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None, capturable=False, "
    "differentiable=False, fused=None, grad_scale=None, found_inf=None, has_complex=False, "
    "decoupled_weight_decay=False, *, amsgrad, beta1, beta2, lr, weight_decay, eps, maximize",
    _STATES,
    "[w], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(1)], [], [torch.zeros(())]",
    "amsgrad=False, beta1=0.9, beta2=0.999, lr=0.25, weight_decay=0, eps=1e-08, maximize=False",
    "0.75",
)


adamw = step_on_lists(
    AdamW,
    "params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None, capturable=False, "
    "differentiable=False, fused=None, grad_scale=None, found_inf=None, has_complex=False, *, amsgrad, beta1, "
    "beta2, lr, weight_decay, eps, maximize",
    _STATES,
    "[w], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(1)], [], [torch.zeros(())]",
    "amsgrad=False, beta1=0.9, beta2=0.999, lr=0.25, weight_decay=0, eps=1e-08, maximize=False",
    "0.75",
    decoupled_weight_decay=True,
)
