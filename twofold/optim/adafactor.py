"""Adafactor."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.dtypes import finfo
from twofold.frontend.creation import CREATION
from twofold.optim.optimizer import Optimizer, gradients, rule, settings_of

Tensor = _core.Tensor
_decayed_parameter = rule("decayed_parameter")
_running_mean = rule("adam_mean")
_zeros = CREATION["zeros"]


class Adafactor(Optimizer):
    """Steps relative to the size of the parameter, with the mean square of a matrix kept as a row and a column.

    Source: Shazeer, Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, 2018.

    Args:
        params: Parameters, or groups of them.
        lr: Upper limit of the relative step ``1 / sqrt(step)``.
        beta2_decay: Power of the step by which the running mean slows, at most 0.
        eps: Least mean square (None: the rounding of the dtype), and least size of a parameter.
        d: Root mean square above which an update is shortened.
        weight_decay: Decay of the parameters in each step, times the rate.
        foreach: Accepted; speed does not depend on it.
        maximize: Whether to climb.

    >>> import twofold as torch
    >>> w = torch.tensor([1.0, 1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adafactor([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.7500, 0.7500], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, settings_of(locals()))

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        lr, (least_square, least_size) = group["lr"], group["eps"]
        for param, gradient in gradients(group, decay=False, only_dense="Adafactor"):
            if param.dtype.is_complex:
                raise RuntimeError("Adafactor does not support complex parameters")
            state = self._state_of(param, group)
            state["step"] = step = state["step"] + 1
            eps = finfo(param.dtype).eps if least_square is None else least_square
            size = (param.detach().norm(2) / param.numel() ** 0.5).clamp(min=least_size)
            rate = size * min(lr, 1 / step**0.5)
            if group["weight_decay"]:
                param._assign(_decayed_parameter(param, lr, group["weight_decay"]))
            square = self._square(state, gradient, 1 - step ** group["beta2_decay"], eps)
            change = square.clamp(min=eps * eps).rsqrt() * gradient
            excess = (change.norm(2) / (change.numel() ** 0.5 * group["d"])).clamp(min=1.0)
            param._assign(param - change * (rate / excess))

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        shape, dtype = tuple(param.shape), param.dtype
        if len(shape) < 2:
            return {"step": 0, "variance": _zeros(shape, dtype=dtype)}
        rows, columns = (*shape[:-1], 1), (*shape[:-2], 1, shape[-1])
        return {"step": 0, "row_var": _zeros(rows, dtype=dtype), "col_var": _zeros(columns, dtype=dtype)}

    @staticmethod
    def _square(state: dict[str, Any], gradient: Tensor, decay: float, eps: float) -> Tensor:
        """The running mean square of the gradient."""
        if gradient.ndim < 2:
            return state["variance"]._assign(_running_mean(gradient * gradient, state["variance"], decay))
        squares = gradient * gradient
        rows = state["row_var"]._assign(
            _running_mean(squares.mean(-1, keepdim=True), state["row_var"], decay)
        )
        columns = state["col_var"]._assign(
            _running_mean(squares.mean(-2, keepdim=True), state["col_var"], decay)
        )
        return (rows @ columns) / rows.mean(-2, keepdim=True).clamp(min=eps)
