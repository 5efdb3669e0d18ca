"""Adam, and with decoupled weight decay AdamW."""

from __future__ import annotations

from typing import Any

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
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay or self._decoupled,
        }
        super().__init__(params, defaults)

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        names = ("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else []))
        return {"step": 0, **{name: _zeros_like(param) for name in names}}

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        _update(self._steps(group), group)


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


def _update(steps: Steps, group: dict[str, Any]) -> None:
    """Change parameters, of their gradients and states."""
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


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Take a step of ``Adam`` on lists of tensors, which are written to.

    The lists are those of the state, ``state_steps`` is counted up; the settings are those of the class.

    >>> import twofold as torch
    >>> from twofold.optim.adam import adam
    >>> w = torch.ones(1)
    >>> settings = dict(amsgrad=False, beta1=0.9, beta2=0.999, lr=0.25, weight_decay=0, eps=1e-08, maximize=False)
    >>> adam([w], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(1)], [], [torch.zeros(())], **settings)
    >>> round(w.item(), 4)
    0.75
    """
    states = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    if amsgrad:
        states["max_exp_avg_sq"] = max_exp_avg_sqs
    settings = {
        "lr": lr, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
        "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay, "betas": (beta1, beta2),
    }  # fmt: skip
    update_lists(
        _update,
        params,
        grads,
        states,
        {"step": state_steps},
        settings,
        foreach=foreach,
        fused=fused,
        differentiable=differentiable,
        capturable=capturable,
        grad_scale=grad_scale,
        found_inf=found_inf,
        only_dense="Adam",
    )


def adamw(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Take a step of ``AdamW`` on lists of tensors, which are written to.

    The lists are those of the state, ``state_steps`` is counted up; the settings are those of the class.

    >>> import twofold as torch
    >>> from twofold.optim.adamw import adamw
    >>> w = torch.ones(1)
    >>> settings = dict(amsgrad=False, beta1=0.9, beta2=0.999, lr=0.25, weight_decay=0, eps=1e-08, maximize=False)
    >>> adamw([w], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(1)], [], [torch.zeros(())], **settings)
    >>> round(w.item(), 4)
    0.75
    """
    adam(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
        has_complex=has_complex,
        amsgrad=amsgrad,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
        decoupled_weight_decay=True,
    )
