"""Memory shared by the DLPack protocol."""

from __future__ import annotations

import numpy
import pytest

import twofold as torch


def test_memory_shared_by_dlpack() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)).tolist() == x.tolist()
    copied = torch.utils.dlpack.from_dlpack(x, copy=True)
    assert copied.tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="device 'cuda'"):
        torch.utils.dlpack.from_dlpack(x, device="cuda")


def test_writes_reach_the_other_side() -> None:
    array = numpy.zeros(2)
    torch.utils.dlpack.from_dlpack(array).add_(1)
    assert array.tolist() == [1.0, 1.0]
    torch.utils.dlpack.from_dlpack(array, copy=True).add_(1)
    assert array.tolist() == [1.0, 1.0]
