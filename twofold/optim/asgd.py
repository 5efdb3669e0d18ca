"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.optim.functional import step_on_lists
from twofold.optim.optimizer import Optimizer, Steps, check_rate, check_ways, not_negative, rule, settings_of

Tensor = _core.Tensor
_decayed_parameter = rule("decayed_parameter")
_parameter = rule("sgd_parameter")
_average = rule("adam_mean")
_zeros_like = CREATION["zeros_like"]


class ASGD(Optimizer):
    """Gradient descent with a falling rate, and in the state ``ax`` the average of the parameters after ``t0`` steps.

    Source: Polyak, Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992.

    Args:
        params: Parameters, or groups of them.
        lr: First learning rate.
        lambd: Decay of the parameters in each step, times the rate.
        alpha: Power by which the rate falls.
        t0: Steps before the average begins.
        weight_decay: Square penalty.
        foreach: Accepted; speed does not depend on it.
        maximize: Whether to climb.
        differentiable: Must be False.
        capturable: Must be False; there are no graphs of a device to capture.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.ASGD([w], lr=0.25, lambd=0.0)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> w.item()
    0.5
    """

    state_numbers: ClassVar[dict[str, Any]] = {"step": int, "eta": float, "mu": float}

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        not_negative(weight_decay=weight_decay)
        check_ways(foreach, None, differentiable, capturable)
        super().__init__(params, settings_of(locals()))

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "eta": group["lr"], "mu": 1.0, "ax": _zeros_like(param)}

    @staticmethod
    def _change(steps: Steps, group: dict[str, Any]) -> None:
        lr, decay = group["lr"], group["lambd"]
        for param, gradient, state in steps:
            shrunk = _decayed_parameter(param, state["eta"], decay)
            param._assign(_parameter(shrunk, gradient, state["eta"]))
            average = state["ax"]
            average._assign(_average(param, average, 1 - state["mu"]) if state["mu"] != 1 else param.detach())
            state["eta"] = lr / (1 + decay * lr * state["step"]) ** group["alpha"]
            state["mu"] = 1 / max(1, state["step"] - group["t0"])


asgd = step_on_lists(
    ASGD,
    "params, grads, axs, mus, etas, state_steps, foreach=None, maximize=False, differentiable=False, "
    "capturable=False, has_complex=False, *, lambd, lr, t0, alpha, weight_decay",
    {"ax": "axs", "step": "state_steps", "mu": "mus", "eta": "etas"},
    "[w], [torch.ones(1)], [torch.zeros(1)], [torch.ones(())], [torch.tensor(0.25)], [torch.zeros(())]",
    "lambd=0.0, lr=0.25, t0=1e6, alpha=0.75, weight_decay=0",
    "0.75",
)
