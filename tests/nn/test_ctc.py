"""CTC against the sum over all paths, its gradients, and its mistakes."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import nn

F: Any = nn.functional
G = numpy.random.default_rng(23)


def read(path: Any, blank: int) -> list[int]:
    """The labels of a path: repetitions joined, then blanks left out."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


def by_paths(scores: Any, target: list[int], blank: int) -> float:
    """Minus the logarithm of the sum of the probabilities of all paths that read as the target."""
    frames, classes = scores.shape
    total = sum(
        math.exp(sum(scores[t, label] for t, label in enumerate(path)))
        for path in itertools.product(range(classes), repeat=frames)
        if read(path, blank) == target
    )
    return -math.log(total) if total else math.inf


def normalised(x: Any) -> Any:
    return x - numpy.log(numpy.exp(x).sum(-1, keepdims=True))


@pytest.mark.parametrize("blank", [0, 2])
def test_sum_over_paths(blank: int) -> None:
    others = [label for label in range(3) if label != blank]
    targets = [[others[0], others[0]], [others[1], others[0]], [others[1]], []]
    lengths = [5, 4, 3, 5]
    scores = normalised(G.normal(size=(5, 4, 3)))
    padded = [row + [-9] * (2 - len(row)) for row in targets]
    found = F.ctc_loss(
        torch.tensor(scores), torch.tensor(padded), lengths, [len(row) for row in targets], blank, "none"
    )
    wanted = [by_paths(scores[:n, k], targets[k], blank) for k, n in enumerate(lengths)]
    numpy.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)
    flat = torch.tensor([label for row in targets for label in row])
    again = F.ctc_loss(torch.tensor(scores), flat, lengths, [len(row) for row in targets], blank, "none")
    assert again.tolist() == found.tolist()
    mean = numpy.mean([loss / max(len(row), 1) for loss, row in zip(wanted, targets, strict=True)])
    layer = nn.CTCLoss(blank)
    counts = torch.tensor([len(row) for row in targets])
    assert abs(layer(torch.tensor(scores), flat, torch.tensor(lengths), counts).item() - mean) < 1e-12


def test_gradients_behind_a_log_softmax() -> None:
    targets, lengths, counts = torch.tensor([[1, 1], [2, 0]]), [4, 3], [2, 1]

    def loss(x: Any) -> Any:
        return F.ctc_loss(x.log_softmax(-1), targets, lengths, counts, reduction="none")

    def slope(x: Any) -> Any:
        x = x if x.requires_grad else x.requires_grad_()
        return torch.autograd.grad(loss(x).sum(), x, create_graph=True)[0]

    x = torch.tensor(G.normal(size=(4, 2, 3)), requires_grad=True)
    assert torch.autograd.gradcheck(loss, (x,))
    assert torch.autograd.gradcheck(slope, (x,), eps=1e-5)


def test_a_target_that_does_not_fit() -> None:
    x = torch.zeros(2, 1, 3, requires_grad=True)
    targets = torch.tensor([[1, 1]])  # needs a blank between, so three frames
    assert F.ctc_loss(x.log_softmax(-1), targets, [2], [2]).item() == math.inf
    loss = F.ctc_loss(x.log_softmax(-1), targets, [2], [2], zero_infinity=True)
    loss.backward()
    assert loss.item() == 0
    assert not x.grad.numpy().any()


def test_no_batch() -> None:
    scores = torch.randn(6, 4).log_softmax(-1)
    alone = F.ctc_loss(scores, torch.tensor([1, 3]), torch.tensor(6), torch.tensor(2), reduction="none")
    batch = F.ctc_loss(scores.unsqueeze(1), torch.tensor([[1, 3]]), (6,), (2,), reduction="none")
    assert alone.shape == ()
    assert alone.item() == batch.item()


def test_a_sample_alone_has_the_bits_of_a_batch() -> None:
    scores = torch.randn(20, 5, 9).log_softmax(-1)
    targets = torch.randint(1, 9, (5, 10))
    lengths, counts = [20, 15, 20, 11, 18], [10, 4, 9, 2, 0]
    together = F.ctc_loss(scores, targets, lengths, counts, reduction="none")
    for k in range(5):
        one = F.ctc_loss(scores[:, k : k + 1], targets[k : k + 1], lengths[k : k + 1], counts[k : k + 1])
        assert one.item() * max(counts[k], 1) == pytest.approx(together[k].item(), rel=1e-6)


SCORES = torch.zeros(4, 2, 3)
TARGETS = torch.ones(2, 2, dtype=torch.int64)
MISTAKES: dict[str, tuple[type[Exception], Any, str]] = {
    "blank": (
        RuntimeError,
        lambda: F.ctc_loss(SCORES, TARGETS, [4, 4], [2, 2], 3),
        "ctc_loss: blank 3 must be in label range, 0 to 2: log_probs float32[4,2,3] (here.py:N), at here.py:N. "
        "Use the number of a class.",
    ),
    "frames": (
        RuntimeError,
        lambda: F.ctc_loss(SCORES, TARGETS, [4, 5], [2, 2]),
        "ctc_loss: Expected input_lengths to have value at most 4, but got 5: log_probs float32[4,2,3] "
        "(here.py:N), at here.py:N. "
        "Give for each sample how many of the frames are its own.",
    ),
    "labels": (
        RuntimeError,
        lambda: F.ctc_loss(SCORES, TARGETS, [4, 4], [2, 3]),
        "ctc_loss: a target of length 3 in targets of shape (2, 2): targets int64[2,2] (here.py:N), at here.py:N. "
        "Give for each sample how many of its labels count.",
    ),
    "number of lengths": (
        RuntimeError,
        lambda: F.ctc_loss(SCORES, TARGETS, [4], [2, 2]),
        "ctc_loss: input_lengths must be of size batch_size 2, not (1,): input_lengths int64[1] (here.py:N), "
        "at here.py:N. Give a length for each sequence.",
    ),
    "vector": (
        RuntimeError,
        lambda: F.ctc_loss(SCORES, torch.ones(5, dtype=torch.int64), [4, 4], [2, 2]),
        "ctc_loss: target_lengths add up to 4, but there are 5 targets: targets int64[5] (here.py:N), at here.py:N. "
        "Give lengths that add up to all targets.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    error, action, text = MISTAKES[name]
    with pytest.raises(error) as caught:
        action()
    assert re.sub(r"test_ctc\.py:\d+", "here.py:N", str(caught.value)) == text


def test_a_label_that_does_not_exist() -> None:
    with pytest.raises(IndexError, match="class 7 does not exist, there are 3 classes"):
        F.ctc_loss(SCORES, torch.tensor([[1, 7], [1, 1]]), [4, 4], [2, 2]).item()
    padded = torch.tensor([[1, 7], [1, 1]])
    assert F.ctc_loss(SCORES, padded, [4, 4], [1, 2]).isfinite().all()
