"""Steps over the root of the running mean of squared gradients: ``RMSprop``."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.optim.functional import step_on_lists
from twofold.optim.optimizer import (
    Optimizer,
    Steps,
    check_eps,
    check_rate,
    check_ways,
    not_negative,
    rule,
    settings_of,
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
        super().__init__(params, settings_of(locals()))

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        wanted = {"square_avg": True, "momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"]}
        return {"step": 0, **{name: _zeros_like(param) for name, kept in wanted.items() if kept}}

    @staticmethod
    def _change(steps: Steps, group: dict[str, Any]) -> None:
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


rmsprop = step_on_lists(
    RMSprop,
    "params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, foreach=None, maximize=False, "
    "differentiable=False, capturable=False, has_complex=False, *, lr, alpha, eps, weight_decay, momentum, "
    "centered",
    {
        "square_avg": "square_avgs",
        "grad_avg": "grad_avgs if centered",
        "momentum_buffer": "momentum_buffer_list if momentum",
        "step": "state_steps",
    },
    "[w], [torch.ones(1)], [torch.zeros(1)], [], [], [torch.zeros(())]",
    "lr=0.25, alpha=0.75, eps=1e-08, weight_decay=0, momentum=0, centered=False",
    "0.5",
)
