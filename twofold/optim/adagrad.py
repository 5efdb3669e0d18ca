"""Steps over the root of the sum of squared gradients: ``Adagrad``."""

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
_add_square = rule("adagrad_square")
_adagrad = rule("adagrad_parameter")
_full_like = CREATION["full_like"]


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
        _update(self._steps(group), group)


def _update(steps: Steps, group: dict[str, Any]) -> None:
    """Change parameters, of their gradients and states."""
    for param, gradient, state in steps:
        lr = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        total = state["sum"]._assign(_add_square(gradient, state["sum"]))
        param._assign(_adagrad(param, gradient, total, lr, group["eps"]))


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Take a step of ``Adagrad`` on lists of tensors, which are written to.

    The lists are those of the state, ``state_steps`` is counted up; the settings are those of the class.

    >>> import twofold as torch
    >>> from twofold.optim.adagrad import adagrad
    >>> w = torch.ones(1)
    >>> settings = dict(lr=0.25, weight_decay=0, lr_decay=0, eps=1e-08, maximize=False)
    >>> adagrad([w], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(())], **settings)
    >>> round(w.item(), 4)
    0.75
    """
    settings = {
        "lr": lr,
        "lr_decay": lr_decay,
        "eps": eps,
        "weight_decay": weight_decay,
        "maximize": maximize,
    }
    update_lists(
        _update,
        params,
        grads,
        {"sum": state_sums},
        {"step": state_steps},
        settings,
        foreach=foreach,
        fused=fused,
        differentiable=differentiable,
        grad_scale=grad_scale,
        found_inf=found_inf,
    )
