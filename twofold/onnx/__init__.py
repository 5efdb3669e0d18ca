"""ONNX under PyTorch's name: importable, so that programs that only may export run; there is no exporter yet."""

from __future__ import annotations

from typing import Any, NoReturn

from twofold.onnx import operators as operators


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: models are not exported to ONNX.

    >>> import twofold as torch
    >>> torch.onnx.export(torch.nn.Linear(2, 1), torch.ones(1, 2), "model.onnx")
    Traceback (most recent call last):
        ...
    NotImplementedError: onnx.export: models are not exported to ONNX. Save the state with torch.save.
    """
    raise NotImplementedError("onnx.export: models are not exported to ONNX. Save the state with torch.save.")


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: no."""
    return False
