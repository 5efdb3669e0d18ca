"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.optim.functional import step_on_lists
from twofold.optim.optimizer import (
    Optimizer,
    Steps,
    check_rate,
    check_ways,
    gradients,
    not_negative,
    rule,
    settings_of,
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

    takes_sparse_gradients = True

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
        super().__init__(params, settings_of(locals()))

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        states, momentum = self.state, group["momentum"]
        self._change(
            ((param, gradient, states[param] if momentum else {}) for param, gradient in gradients(group)),
            group,
        )

    @staticmethod
    def _change(steps: Steps, group: dict[str, Any]) -> None:
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


sgd = step_on_lists(
    SGD,
    "params, d_p_list, momentum_buffer_list, has_sparse_grad=False, foreach=None, fused=None, grad_scale=None, "
    "found_inf=None, *, weight_decay, momentum, lr, dampening, nesterov, maximize",
    {"momentum_buffer": "momentum_buffer_list if momentum"},
    "[w], [torch.ones(1)], [None]",
    "weight_decay=0, momentum=0, lr=0.25, dampening=0, nesterov=False, maximize=False",
    "0.75",
)
