"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from twofold.optim.optimizer import (
    Optimizer,
    check_rate,
    check_ways,
    gradients,
    not_negative,
    rule,
)

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
        lr, momentum = group["lr"], group["momentum"]
        dampening, nesterov = group["dampening"], group["nesterov"]
        states = self.state
        first: set[Any] = set()  # parameters that had no buffer before this step, which may be listed twice
        for param, gradient in gradients(group):
            if momentum:
                state = states[param]
                buffer = state.get("momentum_buffer")
                if buffer is None or param in first:
                    first.add(param)
                    state["momentum_buffer"] = buffer = gradient.clone()
                else:
                    buffer._assign(_momentum_buffer(gradient, buffer, momentum, dampening))
                gradient = _nesterov(gradient, buffer, momentum) if nesterov else buffer
            param._assign(_parameter(param, gradient, lr))
