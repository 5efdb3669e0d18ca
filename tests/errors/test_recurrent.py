"""The text of mistakes with recurrent layers, sequences and attention, frozen."""

from __future__ import annotations

import re
from typing import Any

import pytest

import twofold as torch
from twofold import nn
from twofold.nn.utils import rnn

MISTAKES: dict[str, tuple[type[Exception], Any, str]] = {
    "features": (
        RuntimeError,
        lambda: nn.LSTM(3, 4)(torch.ones(5, 2, 6)),
        "input.size(-1) must be equal to input_size. Expected 3, got 6: input float32[5,2,6] (here.py:N), "
        "weight float32[16,3] (here.py:N), at here.py:N. Make its last axis 3.",
    ),
    "hidden size": (
        RuntimeError,
        lambda: nn.GRU(3, 4, 2)(torch.ones(5, 2, 3), torch.ones(2, 2, 7)),
        "Expected hidden size (2, 2, 4), got [2, 2, 7]: hidden float32[2,2,7] (here.py:N), at here.py:N. "
        "Give (layers * directions, batch, size).",
    ),
    "memory size": (
        RuntimeError,
        lambda: nn.LSTM(3, 4)(torch.ones(5, 2, 3), (torch.ones(1, 2, 4), torch.ones(1, 3, 4))),
        "Expected hidden[1] size (1, 2, 4), got [1, 3, 4]: hidden[1] float32[1,3,4] (here.py:N), at here.py:N. "
        "Give (layers * directions, batch, size).",
    ),
    "state of a batch": (
        RuntimeError,
        lambda: nn.RNN(3, 4)(torch.ones(5, 3), torch.ones(1, 1, 4)),
        "For unbatched 2-D input, hx should also be 2-D but got 3-D tensor: input float32[5,3] (here.py:N), "
        "hx float32[1,1,4] (here.py:N), at here.py:N. Give (layers * directions, size).",
    ),
    "axes": (
        ValueError,
        lambda: nn.RNN(3, 4)(torch.ones(3)),
        "RNN: Expected input to be 2D or 3D, got 1D instead: input float32[3] (here.py:N), at here.py:N. "
        "Give (steps, batch, size), or leave out the batch.",
    ),
    "no steps": (
        RuntimeError,
        lambda: nn.RNN(3, 4)(torch.ones(0, 2, 3)),
        "Expected sequence length to be larger than 0 in RNN: input float32[0,2,3] (here.py:N), "
        "at here.py:N. Give at least one step.",
    ),
    "no units": (ValueError, lambda: nn.GRU(3, 0), "hidden_size must be greater than zero"),
    "projection": (
        ValueError,
        lambda: nn.LSTM(3, 4, proj_size=4),
        "proj_size has to be smaller than hidden_size",
    ),
    "nonlinearity": (
        ValueError,
        lambda: nn.RNN(3, 4, nonlinearity="sin"),
        "Unknown nonlinearity 'sin'. Select from 'tanh' or 'relu'.",
    ),
    "cell's features": (
        RuntimeError,
        lambda: nn.LSTMCell(3, 4)(torch.ones(2, 5)),
        "lstm_cell: input has 5 features, expected 3: input float32[2,5] (here.py:N), "
        "w_ih float32[16,3] (here.py:N), w_hh float32[16,4] (here.py:N), b_ih float32[16] (here.py:N), "
        "b_hh float32[16] (here.py:N), at here.py:N. Make its last axis 3.",
    ),
    "cell's state": (
        RuntimeError,
        lambda: torch.gru_cell(torch.ones(2, 3), torch.ones(3, 4), torch.ones(12, 3), torch.ones(12, 4)),
        "gru_cell: input (2, 3) and state (3, 4) differ in their batch: input float32[2,3] (here.py:N), "
        "hx float32[3,4] (here.py:N), w_ih float32[12,3] (here.py:N), w_hh float32[12,4] (here.py:N), "
        "at here.py:N. Give both the same sizes but for the last.",
    ),
    "unsorted": (
        RuntimeError,
        lambda: rnn.pack_padded_sequence(torch.ones(4, 2), [2, 4]),
        "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True, at here.py:N. "
        "Pass enforce_sorted=False.",
    ),
    "empty sequence": (
        RuntimeError,
        lambda: rnn.pack_padded_sequence(torch.ones(4, 2), [4, 0]),
        "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0, "
        "at here.py:N. Leave empty sequences out.",
    ),
    "number of lengths": (
        RuntimeError,
        lambda: rnn.pack_padded_sequence(torch.ones(4, 2), [4]),
        "Expected `len(lengths)` to be equal to batch_size, but got 1 (batch_size=2), at here.py:N. "
        "Give one length for each sequence.",
    ),
    "query's features": (
        RuntimeError,
        lambda: nn.functional.scaled_dot_product_attention(
            torch.ones(2, 3), torch.ones(2, 4), torch.ones(2, 4)
        ),
        "scaled_dot_product_attention: query has 3 features, key 4: query float32[2,3] (here.py:N), "
        "key float32[2,4] (here.py:N), value float32[2,4] (here.py:N), "
        "at here.py:N. Make them equal.",
    ),
    "mask and order": (
        RuntimeError,
        lambda: nn.functional.scaled_dot_product_attention(
            *[torch.ones(2, 3)] * 3, torch.ones(2, 2), is_causal=True
        ),
        "scaled_dot_product_attention: attn_mask and is_causal together: query float32[2,3] (here.py:N), "
        "key float32[2,3] (here.py:N), value float32[2,3] (here.py:N), attn_mask float32[2,2] (here.py:N), "
        "at here.py:N. Give one of them.",
    ),
    "features of heads": (
        AssertionError,
        lambda: nn.MultiheadAttention(8, 3),
        "embed_dim must be divisible by num_heads: 8 and 3. Change one of them.",
    ),
    "mask of heads": (
        RuntimeError,
        lambda: nn.MultiheadAttention(8, 2)(*[torch.ones(3, 1, 8)] * 3, attn_mask=torch.ones(3, 4)),
        "multi_head_attention: The shape of the attn_mask is (3, 4), but should be (3, 3) or (2, 3, 3): "
        "query float32[3,1,8] (here.py:N), key float32[3,1,8] (here.py:N), attn_mask float32[3,4] (here.py:N), "
        "at here.py:N. Give it one row for each query, one column for each key.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    error, action, text = MISTAKES[name]
    with pytest.raises(error) as caught:
        action()
    assert re.sub(r"[\w.]+\.py:\d+", "here.py:N", str(caught.value)) == text
