"""Steps scaled by those before them: ``Adadelta``."""

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
_running_square = rule("adam_square")
_parameter = rule("sgd_parameter")
_zeros_like = CREATION["zeros_like"]


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
        super().__init__(params, settings_of(locals()))

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "square_avg": _zeros_like(param), "acc_delta": _zeros_like(param)}

    @staticmethod
    def _change(steps: Steps, group: dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        for param, gradient, state in steps:
            square, gathered = state["square_avg"], state["acc_delta"]
            square._assign(_running_square(gradient, square, rho))
            delta = (gathered + eps).sqrt() / (square + eps).sqrt() * gradient
            param._assign(_parameter(param, delta, group["lr"]))
            gathered._assign(_running_square(delta, gathered, rho))


adadelta = step_on_lists(
    Adadelta,
    "params, grads, square_avgs, acc_deltas, state_steps, capturable=False, foreach=None, "
    "differentiable=False, has_complex=False, *, lr, rho, eps, weight_decay, maximize",
    {"square_avg": "square_avgs", "acc_delta": "acc_deltas", "step": "state_steps"},
    "[w], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(1)], [torch.zeros(())]",
    "lr=1.0, rho=0.5, eps=0.25, weight_decay=0, maximize=False",
    "0.4226",
)
