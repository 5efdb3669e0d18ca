"""Resilient backpropagation."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.optim.functional import update_lists
from twofold.optim.optimizer import (
    Optimizer,
    Steps,
    check_rate,
    check_ways,
    rule,
)

Tensor = _core.Tensor
_step_size = rule("rprop_step_size")
_kept_gradient = rule("rprop_gradient")
_parameter = rule("rprop_parameter")
_zeros_like, _full_like = CREATION["zeros_like"], CREATION["full_like"]


class Rprop(Optimizer):
    """Steps by the sign of the gradient, longer while it stays and shorter where it changes; for whole data sets.

    Source: Riedmiller, Braun, A Direct Adaptive Method for Faster Backpropagation Learning, 1993; where the sign
    changes nothing moves.

    Args:
        params: Parameters, or groups of them.
        lr: First size of a step.
        etas: Factors of a step where the sign changes and where it stays.
        step_sizes: Smallest and largest step.
        capturable: Must be False; there are no graphs of a device to capture.
        foreach: Accepted; speed does not depend on it.
        maximize: Whether to climb.
        differentiable: Must be False.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.Rprop([w], lr=0.25)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> w.item()
    0.75
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        check_ways(foreach, None, differentiable, capturable)
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "prev": _zeros_like(param), "step_size": _full_like(param, group["lr"])}

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        _update(self._steps(group, decay=False), group)


def _update(steps: Steps, group: dict[str, Any]) -> None:
    """Change parameters, of their gradients and states."""
    (shorter, longer), (least, most) = group["etas"], group["step_sizes"]
    for param, gradient, state in steps:
        before, sizes = state["prev"], state["step_size"]
        sizes._assign(_step_size(gradient, before, sizes, shorter, longer, least, most))
        gradient = before._assign(_kept_gradient(gradient, before))
        param._assign(_parameter(param, gradient, sizes))


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """Take a step of ``Rprop`` on lists of tensors, which are written to.

    The lists are those of the state, ``state_steps`` is counted up; the settings are those of the class.

    >>> import twofold as torch
    >>> from twofold.optim.rprop import rprop
    >>> w = torch.ones(1)
    >>> settings = dict(step_size_min=1e-06, step_size_max=50, etaminus=0.5, etaplus=1.2)
    >>> rprop([w], [torch.ones(1)], [torch.zeros(1)], [torch.full((1,), 0.25)], [torch.zeros(())], **settings)
    >>> round(w.item(), 4)
    0.75
    """
    settings = {
        "etas": (etaminus, etaplus),
        "step_sizes": (step_size_min, step_size_max),
        "maximize": maximize,
    }
    update_lists(
        _update,
        params,
        grads,
        {"prev": prevs, "step_size": step_sizes},
        {"step": state_steps},
        settings,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        decay=False,
        only_dense="Rprop",
    )
