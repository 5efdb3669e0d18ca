"""Softmax over many classes of unequal frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from twofold import _core
from twofold.frontend.options import check_device
from twofold.nn import functional
from twofold.nn.containers import ModuleList, Sequential
from twofold.nn.layers import Linear
from twofold.nn.module import Module
from twofold.runtime.tracing import message

Tensor = _core.Tensor
F: Any = functional


class AdaptiveLoss(NamedTuple):
    """The log-probability of each target, and the mean of the negatives."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax whose frequent classes stand in a head and whose rare ones in clusters of smaller layers.

    Classes are sorted by falling frequency; ``cutoffs`` part them. Cluster ``k`` works on
    ``in_features / div_value**(k + 1)`` features. Raises ValueError for cutoffs that do not rise below
    ``n_classes``. Source: Grave, Joulin, Cissé, Grangier, Jégou, Efficient softmax approximation for GPUs, 2017.

    >>> import twofold as torch
    >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[5, 10])
    >>> layer.log_prob(torch.ones(3, 16)).shape, layer.predict(torch.ones(3, 16)).shape
    (twofold.Size([3, 20]), twofold.Size([3]))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__()
        found = list(cutoffs)
        rising = found == sorted(set(found)) and all(isinstance(c, int) for c in found)
        if not found or not rising or found[0] <= 0 or found[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                "where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*found, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, dtype=dtype)
        self.tail = ModuleList()
        for k, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            size = int(in_features // div_value ** (k + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, size, bias=False, dtype=dtype),
                    Linear(size, high - low, bias=False, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Sample new parameters."""
        self.head.reset_parameters()
        for low, high in self.tail:
            low.reset_parameters()
            high.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> AdaptiveLoss:
        """Log-probabilities of the targets ``(batch,)`` for ``(batch, in_features)``, and the loss.

        One row without an axis of the batch works, too. Raises RuntimeError for shapes that do not fit.
        """
        single = target_.ndim == 0
        if input_.ndim != (1 if single else 2) or (not single and input_.shape[0] != target_.shape[0]):
            what = "Input and target should have the same size in the batch dimension"
            fix = "Give (batch, in_features) with (batch,), or a row with one class."
            raise RuntimeError(message(what, fix, input=input_, target=target_))
        rows, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if single else (input_, target_)
        # the class comes from the head, or the cluster from there and the class from its tail
        head = F.log_softmax(self.head(rows), dim=1)
        own = F.gather(head, 1, target.clamp(max=self.shortlist_size - 1).unsqueeze(1)).squeeze(1)
        for k, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            inside = (target >= low) & (target < high)
            position = (target - low).clamp(0, high - low - 1).unsqueeze(1)
            within = F.gather(F.log_softmax(self.tail[k](rows), dim=1), 1, position).squeeze(1)
            own = F.where(inside, head[:, self.shortlist_size + k] + within, own)
        self._check(target)
        return AdaptiveLoss(own.squeeze(0) if single else own, -own.mean())

    def _check(self, target: Tensor) -> None:
        if target.numel() and not (int(target.min()) >= 0 and int(target.max()) < self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes, ``(batch, n_classes)``."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for k in range(self.n_clusters):
            within = F.log_softmax(self.tail[k](input), dim=1)
            parts.append(within + head[:, self.shortlist_size + k].unsqueeze(1))
        return F.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each row."""
        return self.log_prob(input).argmax(1)
