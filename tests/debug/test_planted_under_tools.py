"""Bugs inside the blocks of tools: the traceback ends at the same line as without."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

import twofold as torch
from twofold import nn

TOOLS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "profile": torch.profile,
    "record": torch.debug.record,
    "verify": torch.debug.verify,
    "detect_anomaly": torch.detect_anomaly,
}


def state_of_other_layers() -> None:
    state = torch.zeros(1, 3, 5), torch.zeros(2, 3, 5)
    nn.LSTM(4, 5, num_layers=2)(torch.ones(7, 3, 4), state)  # bug


def features_of_attention() -> None:
    layer = nn.Sequential(nn.TransformerEncoderLayer(8, 2, batch_first=True))
    layer(torch.ones(2, 5, 6))  # bug


def shape_in_a_module() -> None:
    class Inner(nn.Module):
        def forward(self, x: Any) -> Any:
            return x @ torch.ones(3)  # bug

    nn.Sequential(nn.Linear(4, 4), Inner())(torch.ones(2, 4)).tolist()


def late_index() -> None:
    picked = nn.Embedding(3, 2)(torch.tensor([0, 3]))  # bug
    (picked * 2).tolist()


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "bug",
    (state_of_other_layers, features_of_attention, shape_in_a_module, late_index),
    ids=lambda bug: bug.__name__,
)
def test_the_last_frame_is_the_planted_line(bug: Callable[[], None], tool: str) -> None:
    with pytest.raises(Exception) as caught, TOOLS[tool]():
        bug()
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert last.filename == __file__ and (last.line or "").endswith("# bug")


def weights_below_zero() -> None:
    sampler = torch.utils.data.WeightedRandomSampler([1.0, -1.0], 4)
    next(iter(torch.utils.data.DataLoader([1, 2], sampler=sampler)))  # bug


def weights_of_zero() -> None:
    list(torch.utils.data.WeightedRandomSampler([0.0, 1.0, 0.0], 2, replacement=False))  # bug


@pytest.mark.parametrize(
    ("bug", "message"),
    (
        (weights_below_zero, "weight 1 is -1.0. Give finite weights"),
        (weights_of_zero, "1 weights are above 0, for 2 samples without replacement"),
    ),
)
def test_weights_of_a_sampler(bug: Callable[[], None], message: str) -> None:
    with pytest.raises(RuntimeError, match=message) as caught:
        bug()
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert last.filename == __file__ and (last.line or "").endswith("# bug")
