"""Adam on the rows of tables: ``SparseAdam``."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.optim.optimizer import Optimizer, check_adam_settings, gradients, rule, settings_of

Tensor = _core.Tensor
_sparse_mean = rule("sparse_adam_mean")
_sparse_square = rule("sparse_adam_square")
_sparse_parameter = rule("sparse_adam_parameter")
_zeros_like = CREATION["zeros_like"]


class SparseAdam(Optimizer):
    """Adam that changes only rows with a gradient: the means of other rows stay as they are, too.

    A row counts as one with a gradient where any of its elements is not 0. For tables that few rows of are looked
    up in a step, with ``sparse=True``. Raises RuntimeError at a step for a parameter that was not.
    Source: Kingma, Ba, Adam, 2015, the form before section 2.1 ("epsilon hat"), in the rows at hand.

    >>> import twofold as torch
    >>> table = torch.nn.Embedding(4, 2, sparse=True)
    >>> before = table.weight.detach().clone()
    >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(torch.tensor([1, 1])).sum().backward()
    >>> optimizer.step()
    >>> (table.weight != before).any(1).tolist()
    [False, True, False, False]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_adam_settings(lr, eps, betas)
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        super().__init__(params, settings_of(locals()))

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": _zeros_like(param), "exp_avg_sq": _zeros_like(param)}

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        (beta1, beta2), lr, eps = group["betas"], group["lr"], group["eps"]
        for param, gradient in gradients(group, decay=False):
            if not param._sparse_grad:
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam instead. "
                    "Gradients count as sparse where a table is looked up with sparse=True."
                )
            state = self._state_of(param, group)
            state["step"] = step = state["step"] + 1
            mean = state["exp_avg"]._assign(_sparse_mean(gradient, state["exp_avg"], beta1))
            square = state["exp_avg_sq"]._assign(_sparse_square(gradient, state["exp_avg_sq"], beta2))
            corrections = 1 - beta1**step, 1 - beta2**step
            param._assign(_sparse_parameter(param, gradient, mean, square, lr, *corrections, eps))
