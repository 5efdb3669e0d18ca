"""Steps over the root of the running mean of squared gradients: ``RMSprop``."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.optim.functional import update_lists
from twofold.optim.optimizer import (
    Optimizer,
    Steps,
    check_eps,
    check_rate,
    check_ways,
    not_negative,
    rule,
)

Tensor = _core.Tensor
_running_mean = rule("adam_mean")
_running_square = rule("adam_square")
_scaled = rule("rmsprop_parameter")
_direction = rule("rmsprop_direction")
_momentum_buffer = rule("sgd_momentum")
_parameter = rule("sgd_parameter")
_zeros_like = CREATION["zeros_like"]


class RMSprop(Optimizer):
    """Steps over the root of the running mean of squared gradients; ``centered``: of their variance.

    ``foreach`` names a way to compute the same and has no effect; ``capturable`` must be False.
    Source: Hinton, Neural Networks for Machine Learning, lecture 6e, 2012; ``centered``: Graves, Generating
    Sequences with Recurrent Neural Networks, 2013.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.RMSprop([w], lr=0.25, alpha=0.75)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.5
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_eps(eps)
        not_negative(momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        check_ways(foreach, None, differentiable, capturable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        wanted = {"square_avg": True, "momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"]}
        return {"step": 0, **{name: _zeros_like(param) for name, kept in wanted.items() if kept}}

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        _update(self._steps(group), group)


def _update(steps: Steps, group: dict[str, Any]) -> None:
    """Change parameters, of their gradients and states."""
    lr, alpha, eps, momentum = group["lr"], group["alpha"], group["eps"], group["momentum"]
    for param, gradient, state in steps:
        square = state["square_avg"]._assign(_running_square(gradient, state["square_avg"], alpha))
        if group["centered"]:
            mean = state["grad_avg"]._assign(_running_mean(gradient, state["grad_avg"], alpha))
            square = square - mean * mean
        if momentum:
            direction = _direction(gradient, square, eps)
            buffer = state["momentum_buffer"]._assign(
                _momentum_buffer(direction, state["momentum_buffer"], momentum, 0.0)
            )
            param._assign(_parameter(param, buffer, lr))
        else:
            param._assign(_scaled(param, gradient, square, lr, eps))


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """Take a step of ``RMSprop`` on lists of tensors, which are written to.

    The lists are those of the state, ``state_steps`` is counted up; the settings are those of the class.

    >>> import twofold as torch
    >>> from twofold.optim.rmsprop import rmsprop
    >>> w = torch.ones(1)
    >>> settings = dict(lr=0.25, alpha=0.75, eps=1e-08, weight_decay=0, momentum=0, centered=False)
    >>> rmsprop([w], [torch.ones(1)], [torch.zeros(1)], [], [], [torch.zeros(())], **settings)
    >>> round(w.item(), 4)
    0.5
    """
    states = {"square_avg": square_avgs}
    if centered:
        states["grad_avg"] = grad_avgs
    if momentum:
        states["momentum_buffer"] = momentum_buffer_list
    settings = {
        "lr": lr,
        "alpha": alpha,
        "eps": eps,
        "weight_decay": weight_decay,
        "momentum": momentum,
        "centered": centered,
        "maximize": maximize,
    }
    update_lists(
        _update,
        params,
        grads,
        states,
        {"step": state_steps},
        settings,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        only_dense="RMSprop",
    )
