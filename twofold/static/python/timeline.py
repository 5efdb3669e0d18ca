"""Traced runs for Chrome's viewer: ``tensorflow.python.client.timeline``."""

from __future__ import annotations

import json
from typing import Any

from twofold.static.api.op_functions import refuse
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Graph, get_default_graph


@example(
    "metadata = tf.RunMetadata()",
    "options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)",
    "done = session.run(tf.matmul(tf.ones([2, 2]), tf.ones([2, 2])), options=options, run_metadata=metadata)",
    "from twofold.static.python.client import timeline",
    "text = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()",
    'print(\'"name": "MatMul"\' in text)',
    "True",
)
class Timeline:
    """What the operations of a run took, from ``RunMetadata.step_stats``.

    Args:
        step_stats: The profile of the run.
        graph: The graph that ran, which tells what an operation reads; the default one unless given.
    """

    def __init__(self, step_stats: Any, graph: Graph | None = None) -> None:
        self._stats, self._graph = step_stats, graph or get_default_graph()

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False) -> str:
        """The profile as JSON, for chrome://tracing.

        Args:
            show_dataflow: Whether arrows lead from operations to those that read their results.
            show_memory: Not offered: profiles have no memory; raises unless False.
        """
        refuse("generate_chrome_trace_format", show_memory=show_memory)
        events: list[dict[str, Any]] = []
        ends: dict[str, tuple[int, int]] = {}
        for pid, device in enumerate(self._stats.dev_stats):
            name = {"name": f"{device.device} Compute"}
            events.append({"name": "process_name", "ph": "M", "pid": pid, "args": name})
            for one in device.node_stats:
                events.append(self._event(one, pid))
                ends[one.node_name] = (pid, one.all_start_micros + one.all_end_rel_micros)
        if show_dataflow:
            events += self._arrows(ends)
        return json.dumps({"traceEvents": events}, indent=4)

    def _event(self, one: Any, pid: int) -> dict[str, Any]:
        inputs = {f"input{k}": name for k, name in enumerate(self._inputs(one.node_name))}
        kind = one.timeline_label.partition(" = ")[2].partition("(")[0] or one.node_name
        found = self._operation(one.node_name)
        kind = kind if found is None else found.type
        return {
            "name": kind,
            "cat": "Op",
            "ph": "X",
            "pid": pid,
            "tid": one.thread_id,
            "ts": one.all_start_micros,
            "dur": one.op_end_rel_micros,
            "args": {"name": one.node_name, "op": kind, **inputs},
        }

    def _arrows(self, ends: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
        pairs = [(source, name) for name in ends for source in self._inputs(name) if source in ends]
        found = []
        for number, (source, target) in enumerate(pairs):
            for kind, (pid, time) in (("s", ends[source]), ("t", ends[target])):
                arrow = {"name": source, "cat": "DataFlow", "id": number, "tid": 0}
                found.append({**arrow, "ph": kind, "pid": pid, "ts": time})
        return found

    def _operation(self, name: str) -> Any:
        try:
            return self._graph.get_operation_by_name(name)
        except KeyError:
            return None

    def _inputs(self, name: str) -> list[str]:
        """The names of the operations whose results an operation reads."""
        found = self._operation(name)
        return [] if found is None else [one.op.name for one in found.inputs]
