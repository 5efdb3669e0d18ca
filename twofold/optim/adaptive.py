"""Adagrad, RMSprop and Adadelta: steps scaled by the accumulated squared gradients."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.optim.optimizer import (
    Optimizer,
    check_eps,
    check_rate,
    check_ways,
    not_negative,
    rule,
)

Tensor = _core.Tensor
_add_square = rule("adagrad_square")
_running_mean = rule("adam_mean")
_running_square = rule("adam_square")
_adagrad = rule("adagrad_parameter")
_scaled = rule("rmsprop_parameter")
_direction = rule("rmsprop_direction")
_momentum_buffer = rule("sgd_momentum")
_parameter = rule("sgd_parameter")
_zeros_like, _full_like = CREATION["zeros_like"], CREATION["full_like"]


class Adagrad(Optimizer):
    """Steps over the root of the sum of squared gradients, with ``lr / (1 + (step - 1) * lr_decay)``.

    ``foreach`` and ``fused`` name ways to compute the same and have no effect.
    Source: Duchi, Hazan, Singer, Adaptive Subgradient Methods, 2011.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.Adagrad([w], lr=0.25)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.75
    """

    takes_sparse_gradients = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        not_negative(
            lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value
        )
        check_eps(eps)
        check_ways(foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for (
            group
        ) in self.param_groups:  # programs that compute steps themselves read the state before the first one
            for param in group["params"]:
                self._state_of(param, group)

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "sum": _full_like(param, group["initial_accumulator_value"])}

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        for param, gradient, state in self._steps(group):
            lr = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
            total = state["sum"]._assign(_add_square(gradient, state["sum"]))
            param._assign(_adagrad(param, gradient, total, lr, group["eps"]))


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
        lr, alpha, eps, momentum = group["lr"], group["alpha"], group["eps"], group["momentum"]
        for param, gradient, state in self._steps(group):
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


class Adadelta(Optimizer):
    """Steps of the running root mean square of earlier steps over that of the gradients.

    ``foreach`` names a way to compute the same and has no effect; ``capturable`` must be False.
    Source: Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.Adadelta([w])
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> w.item() < 1
    True
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_eps(eps)
        not_negative(weight_decay=weight_decay)
        check_ways(foreach, None, differentiable, capturable)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "square_avg": _zeros_like(param), "acc_delta": _zeros_like(param)}

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        rho, eps = group["rho"], group["eps"]
        for param, gradient, state in self._steps(group):
            square, gathered = state["square_avg"], state["acc_delta"]
            square._assign(_running_square(gradient, square, rho))
            delta = (gathered + eps).sqrt() / (square + eps).sqrt() * gradient
            param._assign(_parameter(param, delta, group["lr"]))
            gathered._assign(_running_square(delta, gathered, rho))
