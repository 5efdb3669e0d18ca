"""What is importable, so that programs that may use it run, and says at its use that it is not there."""

from __future__ import annotations

import pytest

import twofold as torch
import twofold.onnx


def test_export() -> None:
    with pytest.raises(NotImplementedError, match="not exported to ONNX"):
        twofold.onnx.export(torch.nn.Linear(1, 1), torch.ones(1, 1), "x.onnx")
