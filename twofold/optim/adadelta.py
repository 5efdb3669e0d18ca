"""Steps scaled by those before them: ``Adadelta``."""

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
        _update(self._steps(group), group)


def _update(steps: Steps, group: dict[str, Any]) -> None:
    """Change parameters, of their gradients and states."""
    rho, eps = group["rho"], group["eps"]
    for param, gradient, state in steps:
        square, gathered = state["square_avg"], state["acc_delta"]
        square._assign(_running_square(gradient, square, rho))
        delta = (gathered + eps).sqrt() / (square + eps).sqrt() * gradient
        param._assign(_parameter(param, delta, group["lr"]))
        gathered._assign(_running_square(delta, gathered, rho))


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Take a step of ``Adadelta`` on lists of tensors, which are written to.

    The lists are those of the state, ``state_steps`` is counted up; the settings are those of the class.

    >>> import twofold as torch
    >>> from twofold.optim.adadelta import adadelta
    >>> w = torch.ones(1)
    >>> settings = dict(lr=1.0, rho=0.5, eps=0.25, weight_decay=0, maximize=False)
    >>> adadelta([w], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(1)], [torch.zeros(())], **settings)
    >>> round(w.item(), 4)
    0.4226
    """
    settings = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
    update_lists(
        _update,
        params,
        grads,
        {"square_avg": square_avgs, "acc_delta": acc_deltas},
        {"step": state_steps},
        settings,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        only_dense="Adadelta",
    )
