"""Losses as modules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.frontend.options import check_device
from twofold.nn import functional
from twofold.nn.layers import Linear, PairwiseDistance
from twofold.nn.module import Module
from twofold.nn.reducing import reduction_of

Tensor = _core.Tensor
F: Any = functional


class _Loss(Module):
    """A loss that is ``function`` of input and target, with the reduction and the attributes named in ``_keywords``."""

    reduction: str
    function: Any = None
    _keywords: tuple[str, ...] = ()

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return type(self).function(input, target, **self._arguments())

    def _arguments(self) -> dict[str, Any]:
        return {"reduction": self.reduction, **{name: getattr(self, name) for name in self._keywords}}


class L1Loss(_Loss):
    """``|input - target|``.

    >>> import twofold as torch
    >>> torch.nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 5.0]))
    tensor(1.5000)
    """

    function = staticmethod(F.l1_loss)


class MSELoss(_Loss):
    """``(input - target) ** 2``.

    >>> import twofold as torch
    >>> torch.nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 5.0]))
    tensor(4.5000)
    """

    function = staticmethod(F.mse_loss)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))``.

    >>> import twofold as torch
    >>> torch.nn.SoftMarginLoss(reduction="none")(torch.tensor([0.0, 2.0]), torch.tensor([1.0, -1.0]))
    tensor([0.6931, 2.1269])
    """

    function = staticmethod(F.soft_margin_loss)


class SmoothL1Loss(_Loss):
    """``d**2 / (2 * beta)`` for ``d = |input - target|`` below ``beta``, then ``d - beta / 2``.

    >>> import twofold as torch
    >>> torch.nn.SmoothL1Loss(reduction="none")(torch.tensor([0.5, 4.0]), torch.zeros(2))
    tensor([0.1250, 3.5000])
    """

    function = staticmethod(F.smooth_l1_loss)
    _keywords = ("beta",)

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta


class HuberLoss(_Loss):
    """``d**2 / 2`` for ``d = |input - target|`` up to ``delta``, then ``delta * (d - delta / 2)``.

    >>> import twofold as torch
    >>> torch.nn.HuberLoss(reduction="none", delta=2.0)(torch.tensor([0.5, 4.0]), torch.zeros(2))
    tensor([0.1250, 6.0000])
    """

    function = staticmethod(F.huber_loss)
    _keywords = ("delta",)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return type(self).function(input, target, self.weight, **self._arguments())


class NLLLoss(_WeightedLoss):
    """Minus ``input`` (log-probabilities) at the target class.

    >>> import twofold as torch
    >>> torch.nn.NLLLoss()(torch.tensor([[-1.0, -2.0], [-3.0, -4.0]]), torch.tensor([0, 1]))
    tensor(2.5000)
    """

    function = staticmethod(F.nll_loss)
    _keywords = ("ignore_index",)

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index


class NLLLoss2d(NLLLoss):
    """The older name of ``NLLLoss`` for images.

    >>> import twofold as torch
    >>> torch.nn.NLLLoss2d()(torch.tensor([[[[-1.0]], [[-2.0]]]]), torch.tensor([[[1]]]))
    tensor(2.)
    """


class CrossEntropyLoss(_WeightedLoss):
    """Minus the logarithm of the softmax of ``input`` at the target class, or with target probabilities.

    >>> import twofold as torch
    >>> loss = torch.nn.CrossEntropyLoss()
    >>> round(loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0])).item(), 4)
    0.1269
    """

    function = staticmethod(F.cross_entropy)
    _keywords = (
        "ignore_index",
        "label_smoothing",
    )

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities.

    >>> import twofold as torch
    >>> torch.nn.BCELoss()(torch.tensor([0.5, 0.9]), torch.tensor([1.0, 1.0]))
    tensor(0.3993)
    """

    function = staticmethod(F.binary_cross_entropy)


class BCEWithLogitsLoss(_WeightedLoss):
    """Binary cross entropy of the sigmoid of ``input``.

    >>> import twofold as torch
    >>> torch.nn.BCEWithLogitsLoss()(torch.tensor([0.0, 1000.0]), torch.tensor([1.0, 1.0]))
    tensor(0.3466)
    """

    function = staticmethod(F.binary_cross_entropy_with_logits)
    _keywords = ("pos_weight",)
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)


class KLDivLoss(_Loss):
    """``target * (log(target) - input)`` for log-probabilities ``input``.

    >>> import twofold as torch
    >>> x, target = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]])
    >>> torch.nn.KLDivLoss(reduction="batchmean")(x.log(), target)
    tensor(0.1308)
    """

    function = staticmethod(F.kl_div)
    _keywords = ("log_target",)

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target


class PoissonNLLLoss(_Loss):
    """``exp(input) - target * input``.

    >>> import twofold as torch
    >>> torch.nn.PoissonNLLLoss()(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
    tensor(0.8591)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return F.poisson_nll_loss(
            log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """``(log(var) + (input - target)**2 / var) / 2``.

    >>> import twofold as torch
    >>> torch.nn.GaussianNLLLoss()(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
    tensor(2.)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:  # type: ignore[override]
        """The loss."""
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, reduction=self.reduction)


class _MarginLoss(_Loss):
    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class MarginRankingLoss(_MarginLoss):
    """``max(0, -target * (input1 - input2) + margin)``.

    >>> import twofold as torch
    >>> x1, x2 = torch.tensor([1.0, 1.0]), torch.tensor([3.0, 0.0])
    >>> torch.nn.MarginRankingLoss()(x1, x2, torch.ones(2))
    tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        """The loss."""
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1.

    >>> import twofold as torch
    >>> x1, x2 = torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> torch.nn.CosineEmbeddingLoss()(x1, x2, torch.tensor([1]))
    tensor(0.4000)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        """The loss."""
        return F.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1.

    >>> import twofold as torch
    >>> torch.nn.HingeEmbeddingLoss(reduction="none")(torch.tensor([0.25, 0.25]), torch.tensor([1, -1]))
    tensor([0.2500, 0.7500])
    """

    function = staticmethod(F.hinge_embedding_loss)
    _keywords = ("margin",)

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)


class TripletMarginLoss(_Loss):
    """``max(0, |anchor - positive| - |anchor - negative| + margin)``.

    >>> import twofold as torch
    >>> anchor, positive, negative = torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]])
    >>> torch.nn.TripletMarginLoss()(anchor, positive, negative)
    tensor(4.0000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:  # type: ignore[override]
        """The loss."""
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """Sum over the other classes of ``max(0, margin - input[target] + input[i]) ** p``, over their count.

    >>> import twofold as torch
    >>> torch.nn.MultiMarginLoss()(torch.tensor([[0.5, 1.0, -2.0]]), torch.tensor([0]))
    tensor(0.5000)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over the classes of the binary cross entropy of the sigmoid of ``input``.

    >>> import twofold as torch
    >>> torch.nn.MultiLabelSoftMarginLoss()(torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 0.0]]))
    tensor(1.4100)
    """

    function = staticmethod(F.multilabel_soft_margin_loss)


class MultiLabelMarginLoss(_Loss):
    """The sum over right classes j and others i of ``max(0, 1 - input[j] + input[i])``, over their count.

    >>> import twofold as torch
    >>> torch.nn.MultiLabelMarginLoss()(torch.tensor([[0.5, 1.0, 0.0]]), torch.tensor([[0, 1, -1]]))
    tensor(0.1667)
    """

    function = staticmethod(F.multilabel_margin_loss)


class CTCLoss(_Loss):
    """Connectionist temporal classification; see ``nn.functional.ctc_loss``.

    >>> import twofold as torch
    >>> log_probabilities = torch.full((1, 1, 2), 0.5).log()
    >>> torch.nn.CTCLoss()(log_probabilities, torch.tensor([[1]]), torch.tensor([1]), torch.tensor([1]))
    tensor(0.6931)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(  # type: ignore[override]
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        """The loss."""
        lengths = (input_lengths, target_lengths)
        return F.ctc_loss(log_probs, targets, *lengths, self.blank, self.reduction, self.zero_infinity)


class TripletMarginWithDistanceLoss(_Loss):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` for any distance.

    >>> import twofold as torch
    >>> loss = torch.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(1))
    >>> loss(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]]))
    tensor(6.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin}"
            )
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:  # type: ignore[override]
        """The loss."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of its scores.

    >>> import twofold as torch
    >>> torch.nn.LinearCrossEntropyLoss(3, 4)(torch.ones(2, 3), torch.tensor([0, 3])).shape
    twofold.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        check_device(device)
        super().__init__(weight, None, None, reduction)
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*shape, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        """Sizes and settings."""
        shown: dict[str, Any] = {"in_features": self.linear.in_features, "num_classes": self.num_classes}
        shown |= {"out_features": self.out_features, "bias": self.linear.bias is not None}
        for name in ("reduction", "ignore_index", "label_smoothing", "options"):
            shown[name] = getattr(self, name)
        return ", ".join(f"{name}={value}" for name, value in shown.items())
