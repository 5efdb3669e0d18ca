"""Attention with functions of positions: NumPy's formula in double precision, gradients beside PyTorch's numbers."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
from twofold.errors import ShapeError
from twofold.nn.attention.flex_attention import (
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    or_masks,
)

RANDOM = numpy.random.default_rng(0)
Q, K, V, BIAS, SLOPES = (
    RANDOM.normal(size=shape).astype("f")
    for shape in ((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8), (4, 5, 7), (4,))
)
NORMS = [143.7555, 161.2383, 2403.1028]
DOCUMENT = numpy.array([0, 0, 0, 1, 1, 1, 1])


def _formula(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (DOCUMENT[q] == DOCUMENT[kv]) & (kv <= q + b) & ~((q == 4) & (h == 1))


def test_scores_and_masks_are_functions_of_positions() -> None:
    query, key, value = (torch.tensor(array, requires_grad=True) for array in (Q, K, V))
    bias, slopes, document = torch.tensor(BIAS), torch.tensor(SLOPES), torch.tensor(DOCUMENT)

    def score(given: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return torch.tanh(given) * 2 + bias[h, q, kv] + slopes[h] * (kv - q)

    def mask(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return (document[q] == document[kv]) & (kv <= q + b) & ~((q == 4) & (h == 1))

    made = create_block_mask(mask, 2, 4, 5, 7, BLOCK_SIZE=4)
    found, sums = flex_attention(query, key, value, score, made, enable_gqa=True, return_lse=True)
    b, h, q, kv = numpy.meshgrid(*map(numpy.arange, (2, 4, 5, 7)), indexing="ij")
    keys, values = (numpy.repeat(array.astype(float), 2, 1) for array in (K, V))
    scores = (
        2 * numpy.tanh(Q.astype(float) @ keys.swapaxes(2, 3) / 8**0.5) + BIAS[h, q, kv] + SLOPES[h] * (kv - q)
    )
    powers = numpy.where(_formula(b, h, q, kv), numpy.exp(scores), 0.0)
    total = powers.sum(-1, keepdims=True)
    expected = powers / numpy.where(total == 0, 1.0, total) @ values
    assert found.detach().numpy() == pytest.approx(expected, abs=1e-5)
    with numpy.errstate(divide="ignore"):
        assert sums.detach().numpy() == pytest.approx(numpy.log(total[..., 0]), abs=1e-5)
    assert found[:, 1, 4].abs().max().item() == 0.0
    (found.sum() + (found * found).sum()).backward()
    norms = [(one.grad**2).sum().item() for one in (query, key, value)]
    assert norms == pytest.approx(NORMS, rel=1e-4)


def test_masks_are_joined_and_told_by_blocks() -> None:
    causal, near = (lambda b, h, q, kv: q >= kv), (lambda b, h, q, kv: q - kv < 2)
    both = create_mask(and_masks(causal, near), None, None, 3, 3)[0, 0]
    assert both.tolist() == [[True, False, False], [True, True, False], [False, True, True]]
    assert create_mask(or_masks(causal, near), None, 2, 2, 3).tolist() == [[[[True] * 3] * 2] * 2]
    made = create_block_mask(and_masks(causal, near), None, None, 5, 6, BLOCK_SIZE=(2, 3))
    assert made.to_dense().tolist() == [[[[1, 0], [1, 1], [0, 1]]]]
    assert made.shape == (1, 1, 5, 6) and made.numel() == 30 and made.sparsity() == pytest.approx(100 / 3)


def test_what_flex_attention_refuses() -> None:
    query, key = torch.zeros(1, 4, 3, 2), torch.zeros(1, 2, 3, 2)
    mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 4, 3)
    for wrong in (
        lambda: flex_attention(query, key, key),
        lambda: flex_attention(query[0], query[0], query[0]),
        lambda: flex_attention(query, key, key, block_mask=mask, enable_gqa=True),
    ):
        with pytest.raises(ShapeError):
            wrong()
