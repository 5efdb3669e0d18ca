"""The programs of the benchmarks have, fused, the bits of their operations one by one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import twofold as torch

BENCH = Path(torch.__file__).parents[1] / "bench"


WORKLOADS = ["chain", "call_six", "never_seen", "train_digits_16", "train_mnist_8"]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_bits_of_a_benchmark(workload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    case = import_module("workloads.eager_style").case(workload, torch, None)
    with torch.debug.verify():
        case.check()


@pytest.mark.parametrize("workload", WORKLOADS[:2])
def test_bits_of_a_compiled_benchmark(workload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    import_module("workloads.eager_style").case(workload, torch, torch.compile(verify=True)).check()
