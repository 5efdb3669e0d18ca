"""PyTorch's profiler: names, schedules, tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import twofold as torch
from twofold.errors import ArgumentError
from twofold.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


def work() -> Any:
    return (torch.ones(16, 8) @ torch.ones(8, 4)).tanh().sum().item()


def test_averages() -> None:
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True) as p:
        work()
        work()
    averages = {one.key: one for one in p.key_averages(group_by_input_shape=True)}
    product = averages["matmul"]
    assert product.count == 2 and product.input_shapes == [[16, 8], [8, 4]]
    assert product.flops == 2 * 2 * 16 * 8 * 4 and product.cpu_memory_usage == 2 * 16 * 4 * 4
    assert product.cpu_time == pytest.approx(product.cpu_time_total / 2)
    table = p.key_averages(group_by_stack_n=1).table(sort_by="self_cpu_time_total", row_limit=3)
    assert "Source Location" in table and "Total FLOPs" in table and "Self CPU time total" in table
    with pytest.raises(ArgumentError, match="no column 'speed'"):
        p.key_averages().table(sort_by="speed")


def test_what_was_not_asked_for_is_not_kept() -> None:
    with profile() as p:
        work()
    (one,) = [one for one in p.events() if one.key == "matmul"]
    assert not one.input_shapes and not one.stack and not one.flops and not one.cpu_memory_usage
    assert "Input Shapes" not in p.key_averages().table()
    with pytest.raises(ArgumentError, match="with_stack"):
        p.export_stacks("never")


def test_schedule_of_pytorch() -> None:
    plan = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=1)
    kinds = ProfilerAction
    expected = [kinds.NONE, kinds.NONE, kinds.WARMUP, kinds.RECORD, kinds.RECORD_AND_SAVE, kinds.NONE]
    assert [plan(step) for step in range(6)] == expected
    immediate = schedule(wait=2, warmup=0, active=1, skip_first_wait=1)
    assert [immediate(step).name for step in range(4)] == [
        "RECORD_AND_SAVE",
        "NONE",
        "NONE",
        "RECORD_AND_SAVE",
    ]


def test_steps_are_measured_by_the_schedule() -> None:
    ready: list[int] = []

    def on_ready(done: Any) -> None:
        ready.append(sum(one.count for one in done.events() if one.key == "matmul"))

    with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=on_ready) as p:
        for _ in range(8):
            work()
            p.step()
    assert ready == [2, 2] and p.step_num == 8


def test_ranges(tmp_path: Path) -> None:
    @record_function("inner")
    def inner() -> None:
        work()

    with profile(with_stack=True) as p, record_function("outer"):
        inner()
        inner()
    averages = {one.key: one for one in p.key_averages()}
    outer, within = averages["outer"], averages["inner"]
    assert outer.count == 1 and within.count == 2
    assert outer.cpu_time_total >= within.cpu_time_total
    assert outer.self_cpu_time_total <= outer.cpu_time_total - within.cpu_time_total + 1
    p.export_chrome_trace(tmp_path / "trace.json")
    names = [one["name"] for one in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]]
    assert names.count("inner") == 2
    p.export_stacks(tmp_path / "stacks")
    assert any("inner" in line and line.split()[-1].isdigit() for line in (tmp_path / "stacks").open())


def test_handler_writes_a_file(tmp_path: Path) -> None:
    with profile(on_trace_ready=torch.profiler.tensorboard_trace_handler(str(tmp_path), "worker")):
        work()
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("worker.") and file.name.endswith(".pt.trace.json")


def test_devices_and_arguments_without_effect() -> None:
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    with pytest.raises(ArgumentError, match="processor alone"):
        profile(activities=[ProfilerActivity.CUDA])
    with pytest.raises(ArgumentError, match="nothing"):
        profile(experimental_config=object())
