"""Losses that PyTorch has beside ``nn.functional``, where the reduction is a number and by default there is none."""

from __future__ import annotations

from twofold import _core
from twofold.frontend.install import guarded
from twofold.nn import functional_losses

Tensor = _core.Tensor
_REDUCTIONS = ("none", "mean", "sum")
_kl_div, _with_logits = functional_losses.kl_div, functional_losses.binary_cross_entropy_with_logits


def _reduction(name: str, number: int) -> str:
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name}: reduction is {number!r}. Give 0 for none, 1 for the mean or 2 for the sum.")
    if not 0 <= number < len(_REDUCTIONS):
        raise ValueError(f"{name}: reduction is {number}. Give 0 for none, 1 for the mean or 2 for the sum.")
    return _REDUCTIONS[number]


def _kl_div_of_torch(
    input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False
) -> Tensor:
    """``nn.functional.kl_div`` with the reduction as a number: 0 for none, 1 for the mean, 2 for the sum.

    >>> import twofold as torch
    >>> target = torch.tensor([0.5, 0.5])
    >>> torch.kl_div(target.log(), target)
    tensor([0., 0.])
    """
    return _kl_div(input, target, reduction=_reduction("kl_div", reduction), log_target=log_target)


def _binary_cross_entropy_with_logits_of_torch(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 0,
) -> Tensor:
    """``nn.functional.binary_cross_entropy_with_logits`` with the reduction as a number: 0 for none, 1 mean, 2 sum.

    >>> import twofold as torch
    >>> torch.binary_cross_entropy_with_logits(torch.zeros(2), torch.ones(2))
    tensor([0.6931, 0.6931])
    """
    how = _reduction("binary_cross_entropy_with_logits", reduction)
    return _with_logits(input, target, weight=weight, pos_weight=pos_weight, reduction=how)


kl_div_of_torch = guarded("kl_div", _kl_div_of_torch)
binary_cross_entropy_with_logits_of_torch = guarded(
    "binary_cross_entropy_with_logits", _binary_cross_entropy_with_logits_of_torch
)
