"""Traces as what can be sent to another process and read there."""

from __future__ import annotations

import pickle
import time
from typing import Any, NamedTuple

from twofold import _core
from twofold.cache import content_hash
from twofold.compiler.linking import Trace, compile_outlined
from twofold.compiler.lower.memory import MODE
from twofold.compiler.portable_program import PortableProgram
from twofold.compiler.saved_plans import saved_plans
from twofold.ir.graph import Graph
from twofold.ir.op import Op
from twofold.ir.types import type_from_code
from twofold.transforms.derived import stable_graph
from twofold.transforms.outline import Entry


class PortableTrace(NamedTuple):
    """A trace by its operations; entries of one op instance share one list of types.

    ``tells_finite`` where its kernels are to tell what is not finite.
    """

    leaves: list[Any]
    entries: list[tuple[list[int], Op, tuple[Any, ...], list[Any]]]
    outputs: list[int]
    steps: list[int]
    tells_finite: bool

    @classmethod
    def of(cls, executable: Any) -> PortableTrace:
        """What the core keeps of a trace."""
        leaves, entries, outputs, steps = _core.describe_executable(executable)
        own = [(refs, op, attrs, types) for _, refs, op, attrs, _, types in entries]
        return cls(leaves, own, outputs, steps, MODE.on)

    def request(self) -> bytes | None:
        """What another process reads; None where attributes hold functions or graphs, or an operation is foreign."""
        try:
            return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)
        except Exception:  # whatever an object raises that cannot be pickled
            return None

    def key(self, request: bytes | None) -> bytes | None:
        """The key of its program on disk."""
        if request is None:
            return None
        operations = {id(types): (op, attrs) for _, op, attrs, types in self.entries}
        return saved_plans().key("trace", tuple(operations.values()), content_hash(request).digest())

    def trace(self) -> Trace:
        """It with its graphs."""
        kinds: dict[int, int] = {}
        graphs: list[Graph] = []
        entries: list[Entry] = []
        for refs, op, attrs, types in self.entries:
            kind = kinds.setdefault(id(types), len(graphs))
            if kind == len(graphs):
                graphs.append(stable_graph(op, attrs, [type_from_code(*type) for type in types]))
            entries.append(Entry(kind, refs))
        types = [type_from_code(*type) for type in self.leaves]
        return Trace(types, graphs, entries, self.outputs, steps=self.steps)


def compiled(request: bytes) -> tuple[PortableProgram, int]:
    """The fused program of what ``PortableTrace.request`` gave, and the CPU time of making it, in nanoseconds."""
    start = time.thread_time_ns()
    trace: PortableTrace = pickle.loads(request)
    program = PortableProgram.of(compile_outlined(trace.trace()))
    return program, time.thread_time_ns() - start
