"""What is importable, so that programs that may use it run, and says at its use that it is not there."""

from __future__ import annotations

import pytest

import twofold as torch
import twofold.distributed as distributed
import twofold.onnx
from twofold.nn.parallel import DistributedDataParallel


def test_processes() -> None:
    assert not distributed.is_available() and not distributed.is_initialized()
    with pytest.raises(NotImplementedError, match="training over several processes"):
        distributed.init_process_group(backend="nccl", world_size=2)
    with pytest.raises(ValueError, match="group has not been initialized"):
        distributed.get_rank()
    with pytest.raises(NotImplementedError, match="Use the module itself"):
        DistributedDataParallel(torch.nn.Linear(1, 1), device_ids=[0])
    assert not isinstance(torch.nn.Linear(1, 1), DistributedDataParallel)


def test_export() -> None:
    with pytest.raises(NotImplementedError, match="not exported to ONNX"):
        twofold.onnx.export(torch.nn.Linear(1, 1), torch.ones(1, 1), "x.onnx")
