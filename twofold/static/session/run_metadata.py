"""Runs that are traced: what each operation took goes to the run's metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.runtime.profiling import Recorder, Recording
from twofold.runtime.scopes import operation_name
from twofold.static.session.config import DeviceStepStats, NodeExecStats, RunMetadata

_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def traced(run: Callable[[], Any], metadata: RunMetadata) -> Any:
    """What ``run`` returns; the times of the operations that it computed go to ``metadata``."""
    recorder = Recorder()
    recorder.start()
    try:
        result = run()
    finally:
        recording = recorder.stop()
    _fill(metadata, recording)
    return result


def _fill(metadata: RunMetadata, recording: Recording) -> None:
    stats: dict[str, NodeExecStats] = {}
    for call in sorted(recording.calls(), key=lambda one: one.first):
        name = operation_name(call.location) or call.name
        own = f"gradients/{name}" if call.is_backward else name
        if own not in stats:
            where = ", ".join(f"{frame.file}:{frame.line}" for frame in call.frames[:1])
            types = ", ".join(map(str, call.cost.types))
            label = f"{name} = {call.name}({types}) {where}"
            first = call.first // 1000
            stats[own] = NodeExecStats(node_name=own, all_start_micros=first, timeline_label=label)
        stats[own].all_end_rel_micros += call.seconds * 1e6
    for one in stats.values():
        one.op_end_rel_micros = one.all_end_rel_micros = max(1, round(one.all_end_rel_micros))
    nodes = list(stats.values())
    metadata.step_stats.dev_stats = [DeviceStepStats(device=_DEVICE, node_stats=nodes)]
