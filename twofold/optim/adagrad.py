"""Steps over the root of the sum of squared gradients: ``Adagrad``."""

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
    in_both_parts,
    not_negative,
    rule,
    settings_of,
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
        super().__init__(params, settings_of(locals()))
        for (
            group
        ) in self.param_groups:  # programs that compute steps themselves read the state before the first one
            for param in group["params"]:
                self._state_of(param, group)

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        first = in_both_parts(param, group["initial_accumulator_value"])
        return {"step": 0, "sum": _full_like(param, first)}

    @staticmethod
    def _change(steps: Steps, group: dict[str, Any]) -> None:
        for param, gradient, state in steps:
            lr = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
            total = state["sum"]._assign(_add_square(gradient, state["sum"]))
            param._assign(_adagrad(param, gradient, total, lr, group["eps"]))


adagrad = step_on_lists(
    Adagrad,
    "params, grads, state_sums, state_steps, fused=None, grad_scale=None, found_inf=None, "
    "has_sparse_grad=False, foreach=None, differentiable=False, has_complex=False, *, lr, weight_decay, "
    "lr_decay, eps, maximize",
    {"sum": "state_sums", "step": "state_steps"},
    "[w], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(())]",
    "lr=0.25, weight_decay=0, lr_decay=0, eps=1e-08, maximize=False",
    "0.75",
)
