"""Losses of elements warn of an input and a target that are broadcast, as in PyTorch."""

from __future__ import annotations

import warnings

import pytest

import twofold as torch
from twofold import nn

COLUMN, ROW = torch.ones(3, 1), torch.zeros(3)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_a_broadcast_target_is_warned_of(name: str) -> None:
    loss = getattr(nn.functional, name)
    with pytest.warns(
        UserWarning, match=r"target size \(twofold.Size\(\[3\]\)\).*input size.*test_loss_sizes.py:"
    ):
        assert loss(COLUMN, ROW, reduction="none").shape == (3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss(COLUMN, COLUMN)


def test_layers_warn_too() -> None:
    for layer in (nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(), nn.HuberLoss()):
        with pytest.warns(UserWarning, match="incorrect results due to broadcasting"):
            layer(COLUMN, ROW)
