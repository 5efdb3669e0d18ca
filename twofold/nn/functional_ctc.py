"""Connectionist temporal classification with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

import numpy

from twofold import _core
from twofold.frontend.creation import tensor
from twofold.ops.base import apply
from twofold.runtime.tracing import message as _message

Tensor = _core.Tensor


def _numbers(lengths: Any) -> Tensor:
    return lengths if isinstance(lengths, Tensor) else tensor(lengths)


def _known(name: str, lengths: Tensor, batch: int) -> numpy.ndarray | None:
    """Lengths as an array, None above a placeholder; raises where they do not fit the batch."""
    if lengths.dtype.kind not in "iu":
        what = f"ctc_loss: {name} must be integral, not {lengths.dtype.name}"
        raise RuntimeError(_message(what, "Convert it with .long().", **{name: lengths}))
    if tuple(lengths.shape) != (batch,):
        what = f"ctc_loss: {name} must be of size batch_size {batch}, not {tuple(lengths.shape)}"
        raise RuntimeError(_message(what, "Give a length for each sequence.", **{name: lengths}))
    return None if lengths._is_symbolic else lengths._read()


def _padded(targets: Tensor, counts: numpy.ndarray | None) -> Tensor:
    """Targets one after the other as one row each."""
    if counts is None:
        what = "ctc_loss: targets in one vector need lengths that are known"
        raise RuntimeError(_message(what, "Give a matrix.", targets=targets))
    if int(counts.sum()) != targets.shape[0]:
        what = f"ctc_loss: target_lengths add up to {int(counts.sum())}, but there are {targets.shape[0]} targets"
        raise RuntimeError(_message(what, "Give lengths that add up to all targets.", targets=targets))
    starts = numpy.cumsum(counts) - counts
    positions = starts[:, None] + numpy.arange(counts.max(initial=0))[None, :]
    if not targets.shape[0]:
        return targets.reshape((len(counts), 0))
    return targets.index_select(0, tensor(positions.reshape(-1).clip(0, targets.shape[0] - 1))).reshape(
        positions.shape
    )


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the logarithm of the probability that a network's outputs, without blanks, read as the target.

    ``log_probs`` is ``(frames, batch, classes)``, from a log-softmax, or without the batch; targets are padded
    ``(batch, labels)`` or one after the other. The mean is over the batch, each loss divided by its number of
    labels. Raises RuntimeError where lengths do not fit. Source: Graves et al., Connectionist Temporal
    Classification, 2006.

    >>> import twofold as torch
    >>> even = torch.zeros(3, 1, 2).log_softmax(-1)
    >>> round(torch.nn.functional.ctc_loss(even, torch.tensor([[1]]), [3], [1]).item(), 4)
    0.2877
    """
    if log_probs.ndim not in (2, 3):
        what = f"ctc_loss: log_probs of {log_probs.ndim} axes"
        raise RuntimeError(_message(what, "Give (frames, batch, classes).", log_probs=log_probs))
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.reshape((1, -1)) if targets.ndim < 2 else targets
    frames, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        what = f"ctc_loss: blank {blank} must be in label range, 0 to {classes - 1}"
        raise RuntimeError(_message(what, "Use the number of a class.", log_probs=log_probs))
    lengths, counts = (_numbers(given).reshape((-1,)) for given in (input_lengths, target_lengths))
    known = _known("input_lengths", lengths, batch), _known("target_lengths", counts, batch)
    if known[0] is not None and batch and not 0 <= known[0].min() <= known[0].max() <= frames:
        wrong = known[0].min() if known[0].min() < 0 else known[0].max()
        what = f"ctc_loss: Expected input_lengths to have value at most {frames}, but got {wrong}"
        fix = "Give for each sample how many of the frames are its own."
        raise RuntimeError(_message(what, fix, log_probs=log_probs))
    targets = _padded(targets, known[1]) if targets.ndim == 1 else targets
    if known[1] is not None and batch and not 0 <= known[1].min() <= known[1].max() <= targets.shape[1]:
        wrong = known[1].min() if known[1].min() < 0 else known[1].max()
        what = f"ctc_loss: a target of length {wrong} in targets of shape {tuple(targets.shape)}"
        fix = "Give for each sample how many of its labels count."
        raise RuntimeError(_message(what, fix, targets=targets))
    options = (int(blank), bool(zero_infinity), True)
    losses = apply("ctc_losses", log_probs, targets, lengths, counts, attrs=options)
    if single and reduction == "none":
        return losses.squeeze(0)
    return apply("ctc_mean", losses, counts, attrs=(reduction,))
