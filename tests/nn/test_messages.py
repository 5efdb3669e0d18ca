"""Wrong calls of modules: the message has the operands with dtype and shape, the line, and what to change."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold import nn

F: Any = nn.functional
DOUBLE = torch.float64


def of(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.zeros(*shape, dtype=dtype)


def heads(*shapes: tuple[int, ...], **more: Any) -> Callable[[], Any]:
    return lambda: nn.MultiheadAttention(4, 2)(*(of(*shape) for shape in shapes), **more)


INDEX = of(5, dtype=torch.int64)
CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "hidden size": (lambda: nn.RNN(3, 4)(of(5, 2, 3), of(1, 2, 5)), "hidden float32[1,2,5]"),
    "memory size": (lambda: nn.LSTM(3, 4)(of(5, 2, 3), (of(1, 2, 4), of(1, 2, 5))), "hidden[1] float32[1,2,5]"),
    "directions": (lambda: nn.GRU(3, 4, bidirectional=True)(of(5, 2, 3), of(1, 2, 4)), "hidden float32[1,2,4]"),
    "hidden axes": (lambda: nn.RNN(3, 4)(of(5, 2, 3), of(1, 4)), "input float32[5,2,3], hx float32[1,4]"),
    "hidden dtype": (lambda: nn.GRU(3, 4)(of(5, 2, 3), of(1, 2, 4, dtype=DOUBLE)), "hidden float64[1,2,4]"),
    "features": (lambda: nn.GRU(3, 4)(of(5, 2, 7)), "input float32[5,2,7], weight float32[12,3]"),
    "axes": (lambda: nn.LSTM(3, 4)(of(3)), "input float32[3]"),
    "one state": (lambda: nn.LSTM(3, 4)(of(5, 2, 3), (of(1, 2, 4),)), "1 initial states, expected 2"),
    "memory of a cell": (
        lambda: nn.LSTMCell(3, 4)(of(2, 3), (of(2, 4), of(3, 4))),
        "hidden state (2, 4) and memory (3, 4)",
    ),
    "axes of a cell": (lambda: nn.GRUCell(3, 4)(of(1, 2, 3)), "input float32[1,2,3]"),
    "mask of heads": (heads((5, 2, 4), (5, 2, 4), (5, 2, 4), attn_mask=of(3, 3)), "attn_mask float32[3,3]"),
    "padding of heads": (heads((5, 2, 4), (5, 2, 4), (5, 2, 4), key_padding_mask=of(3, 3)), "key float32[5,2,4]"),
    "axes of heads": (heads((4,), (4,), (4,)), "query float32[4]"),
    "batches of heads": (heads((5, 2, 4), (5, 3, 4), (5, 3, 4)), "query float32[5,2,4], key float32[5,3,4]"),
    "queries": (lambda: nn.TransformerEncoderLayer(4, 2)(of(5, 2, 6)), "query float32[5,2,6]"),
    "batches": (
        lambda: nn.Transformer(4, 2, 1, 1, 8)(of(5, 2, 4), of(5, 3, 4)),
        "src float32[5,2,4], tgt float32[5,3,4]",
    ),
    "axes of a norm": (lambda: nn.BatchNorm2d(3)(of(2, 3)), "input float32[2,3]"),
    "channels": (
        lambda: nn.InstanceNorm2d(3, affine=True)(of(2, 5, 4, 4)),
        "input float32[2,5,4,4], weight float32[3]",
    ),
    "one element": (lambda: nn.InstanceNorm2d(3)(of(2, 3, 1, 1)), "input float32[2,3,1,1]"),
    "padded axes": (lambda: nn.ConstantPad2d(1, 0.0)(of(2)), "input float32[2]"),
    "output size": (
        lambda: nn.ConvTranspose2d(3, 4, 3, stride=2)(of(2, 3, 8, 8), output_size=(40, 40)),
        "input float32[2,3,8,8]",
    ),
    "no offsets": (lambda: nn.EmbeddingBag(3, 4)(INDEX), "input int64[5]"),
    "weights of indices": (
        lambda: nn.EmbeddingBag(3, 4, mode="sum")(INDEX, INDEX[:1], per_sample_weights=of(4)),
        "input int64[5], per_sample_weights float32[4]",
    ),
    "variances": (lambda: F.gaussian_nll_loss(of(2, 3), of(2, 3), of(4)), "var float32[4], input float32[2,3]"),
    "classes": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3])(of(2, 4), INDEX),
        "input float32[2,4], target int64[5]",
    ),
    "lengths": (
        lambda: F.ctc_loss(of(5, 2, 3), INDEX[:4].reshape(2, 2), INDEX[:1], INDEX[:2]),
        "input_lengths int64[1]",
    ),
    "probabilities": (lambda: F.cross_entropy(of(2, 3), of(2)), "cross_entropy: target probabilities of shape (2,)"),
    "whole numbers": (lambda: F.gumbel_softmax(INDEX), "logits int64[5]"),
    "packed lengths": (
        lambda: nn.utils.rnn.pack_padded_sequence(of(5, 2, 3), torch.tensor([4, 5])),
        "`lengths` array must be sorted",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_message_names_operands_the_line_and_what_to_change(name: str) -> None:
    call, text = CALLS[name]
    with pytest.raises((RuntimeError, ValueError)) as caught:
        call()
    message = re.sub(r" \(test_messages.py:\d+\)", "", str(caught.value))
    assert text in message and re.search(r", at test_messages\.py:\d+\. [A-Z]", message)


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * ct


def test_saved_tensors_that_were_written_to() -> None:
    x = torch.ones(3, requires_grad=True) * 1
    y = Squared.apply(x)
    x.add_(1)
    line = Squared.backward.__code__.co_firstlineno + 2
    with pytest.raises(
        RuntimeError, match=rf"at version 1, expected version 0, at test_messages.py:{line}\. Save a"
    ):
        y.sum().backward()
