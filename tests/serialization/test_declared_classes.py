"""Whole modules load safely where the program declares their classes, as in PyTorch."""

from __future__ import annotations

import io

import twofold as torch
from twofold import nn


def test_a_module_whose_classes_are_declared() -> None:
    """The projection of an attention was of another class than ``nn.modules`` names."""
    model = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    file = io.BytesIO()
    torch.save(model, file)
    classes = [
        nn.functional.relu,
        nn.modules.activation.MultiheadAttention,
        nn.modules.dropout.Dropout,
        nn.modules.linear.Linear,
        nn.modules.linear.NonDynamicallyQuantizableLinear,
        nn.modules.normalization.LayerNorm,
        nn.modules.transformer.TransformerEncoderLayer,
    ]
    with torch.serialization.safe_globals(classes):
        found = torch.load(io.BytesIO(file.getvalue()))
    x = torch.rand(2, 3, 4)
    assert torch.equal(found(x), model(x))
