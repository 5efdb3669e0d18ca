"""Resilient backpropagation."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.optim.functional import step_on_lists
from twofold.optim.optimizer import (
    Optimizer,
    Steps,
    check_rate,
    check_ways,
    in_both_parts,
    rule,
    settings_of,
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

    decays_weights = False

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
        super().__init__(params, settings_of(locals()))

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": 0,
            "prev": _zeros_like(param),
            "step_size": _full_like(param, in_both_parts(param, group["lr"])),
        }

    @staticmethod
    def _change(steps: Steps, group: dict[str, Any]) -> None:
        (shorter, longer), (least, most) = group["etas"], group["step_sizes"]
        for param, gradient, state in steps:
            before, sizes = state["prev"], state["step_size"]
            sizes._assign(_step_size(gradient, before, sizes, shorter, longer, least, most))
            gradient = before._assign(_kept_gradient(gradient, before))
            param._assign(_parameter(param, gradient, sizes))


rprop = step_on_lists(
    Rprop,
    "params, grads, prevs, step_sizes, state_steps, foreach=None, capturable=False, maximize=False, "
    "differentiable=False, has_complex=False, *, step_size_min, step_size_max, etaminus, etaplus",
    {"prev": "prevs", "step_size": "step_sizes", "step": "state_steps"},
    "[w], [torch.ones(1)], [torch.zeros(1)], [torch.full((1,), 0.25)], [torch.zeros(())]",
    "step_size_min=1e-06, step_size_max=50, etaminus=0.5, etaplus=1.2",
    "0.75",
)
