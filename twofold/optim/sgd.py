"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.optim.functional import update_lists
from twofold.optim.optimizer import (
    Optimizer,
    Steps,
    check_rate,
    check_ways,
    gradients,
    not_negative,
    rule,
)

Tensor = _core.Tensor
_momentum_buffer = rule("sgd_momentum")
_nesterov = rule("nesterov_direction")
_parameter = rule("sgd_parameter")


class SGD(Optimizer):
    """``parameter - lr * gradient``, with momentum, Nesterov's variant and a square penalty.

    Source: Sutskever et al., On the Importance of Initialization and Momentum in Deep Learning, 2013; the
    buffer is PyTorch's ``momentum * buffer + (1 - dampening) * gradient``. ``foreach`` and ``fused`` name ways to
    compute the same and have no effect.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.25)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> w.item()
    0.5
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        not_negative(momentum=momentum, weight_decay=weight_decay)
        check_ways(foreach, fused, differentiable)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        states, momentum = self.state, group["momentum"]
        _update(
            ((param, gradient, states[param] if momentum else {}) for param, gradient in gradients(group)),
            group,
        )


def _update(steps: Steps, group: dict[str, Any]) -> None:
    """Change parameters, of their gradients and states."""
    lr, momentum = group["lr"], group["momentum"]
    dampening, nesterov = group["dampening"], group["nesterov"]
    first: set[int] = set()  # states that had no buffer before this step: a parameter may be listed twice
    for param, gradient, state in steps:
        if momentum:
            buffer = state.get("momentum_buffer")
            if buffer is None or id(state) in first:
                first.add(id(state))
                state["momentum_buffer"] = buffer = gradient.clone()
            else:
                buffer._assign(_momentum_buffer(gradient, buffer, momentum, dampening))
            gradient = _nesterov(gradient, buffer, momentum) if nesterov else buffer
        param._assign(_parameter(param, gradient, lr))


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """Take a step of ``SGD`` on lists of tensors, which are written to.

    The lists are those of the state, ``state_steps`` is counted up; the settings are those of the class.

    >>> import twofold as torch
    >>> from twofold.optim.sgd import sgd
    >>> w = torch.ones(1)
    >>> settings = dict(weight_decay=0, momentum=0, lr=0.25, dampening=0, nesterov=False, maximize=False)
    >>> sgd([w], [torch.ones(1)], [None], **settings)
    >>> round(w.item(), 4)
    0.75
    """
    settings = {
        "lr": lr,
        "momentum": momentum,
        "dampening": dampening,
        "weight_decay": weight_decay,
        "nesterov": nesterov,
        "maximize": maximize,
    }
    update_lists(
        _update,
        params,
        d_p_list,
        {"momentum_buffer": momentum_buffer_list} if momentum else {},
        {},
        settings,
        foreach=foreach,
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
    )
