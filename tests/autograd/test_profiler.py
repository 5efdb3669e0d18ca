"""The profiler under the older name of PyTorch's module."""

from __future__ import annotations

import pytest

import twofold as torch
from twofold.autograd import profiler


def test_a_profile_by_its_older_names():
    with torch.autograd.profiler.profile(record_shapes=True) as found, profiler.record_function("part"):
        torch.exp(torch.ones(2, 3)).sum().item()
    names = {event.key for event in found.function_events}
    assert {"exp", "sum", "part"} <= names
    assert "[2,3]" in found.key_averages(group_by_input_shape=True).table().replace(" ", "")
    assert found.self_cpu_time_total > 0 and "exp" in str(found) and "exp" in found.table(row_limit=10)


def test_a_profile_that_is_not_enabled_measures_nothing():
    with profiler.profile(enabled=False) as found:
        assert torch.exp(torch.zeros(1)).item() == 1.0
    assert "profile object" in str(found)
    with pytest.raises(RuntimeError, match="nothing has been measured"):
        found.key_averages()


def test_what_cannot_be_watched_is_refused():
    for wrong in ({"use_cuda": True}, {"use_device": "cuda"}, {"use_cpu": False}):
        with pytest.raises(RuntimeError, match="processor alone"):
            profiler.profile(**wrong)
    with pytest.raises(NotImplementedError, match="emit_nvtx"):
        profiler.emit_nvtx()
