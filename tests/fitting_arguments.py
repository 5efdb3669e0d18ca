"""Arguments that most public functions take, by the names of the parameters."""

from __future__ import annotations

from typing import Any

import twofold as torch


def fitting(name: str) -> Any:
    """An argument that most functions take for a parameter of this name."""
    square = torch.arange(9.0).reshape(3, 3) / 9 + 0.5
    index = torch.zeros(3, 3, dtype=torch.int64)
    known: dict[str, Any] = {
        "index": index, "indices": index[0], "labels": index[0], "A": square + torch.eye(3),
        "tensors": [square, square], "mask": square > 0, "condition": square > 0, "data": [1.0],
        "dim": 0, "dim0": 0, "dim1": 1, "axis": 0, "axis0": 0, "axis1": 1, "dims": (0, 1), "source": square,
        "destination": 0, "shifts": 1, "k": 2, "n": 3, "chunks": 2, "sections": 3,
        "kernel_size": 2, "output_size": 2, "stride": 1, "padding": 0, "dilation": 1, "groups": 1, "pad": (1, 1),
        "size": (3, 3), "sizes": (3, 3), "shape": (3, 3), "normalized_shape": (3,), "length": 2, "start": 0,
        "end": 3, "steps": 3, "p": 0.5, "eps": 1e-5, "norm_type": 2, "exponent": 2.0, "value": 1.0,
        "fill_value": 1.0, "reduce": "sum", "mode": "constant", "equation": "ij,jk", "dtype": torch.float32,
        "bias": square[0], "split_size": 1, "split_size_or_sections": 1, "split_sizes": [1, 2], "bins": 4,
        "n_fft": 4, "repetitions": 2, "num_groups": 1, "training": False, "upscale_factor": 1,
        "downscale_factor": 1, "indices_or_sections": 3, "repeats": 2, "degree": 1, "step": 1,
    }  # fmt: skip
    return known.get(name, square)
