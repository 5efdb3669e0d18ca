"""Traces as what can be sent to another process and read there."""

from __future__ import annotations

import pickle
import time
from typing import Any, NamedTuple

from twofold import _core
from twofold.compiler.linking import Trace, compile_outlined, infers
from twofold.compiler.lower.memory import MODE
from twofold.compiler.portable_program import PortableProgram
from twofold.compiler.saved_plans import saved_plans
from twofold.hashing import content_hash
from twofold.ir.op import Op


class PortableTrace(NamedTuple):
    """A trace that can be pickled.

    Attributes:
        input_types: The types of the trace inputs, as the core writes them.
        entries: For each instruction its operands, its operation, the attributes, and the types of its operands: one
            list object for all instructions of an op instance.
        outputs: What the trace returns.
        steps: Positions of the instructions in the order in which they run.
        tells_finite: Whether its kernels report values that are not finite.
        infers: Whether it computes without gradients, see ``linking.infers``.
    """

    input_types: list[Any]
    entries: list[tuple[list[int], Op, tuple[Any, ...], list[Any]]]
    outputs: list[int]
    steps: list[int]
    tells_finite: bool
    infers: bool

    @classmethod
    def of(cls, executable: Any) -> PortableTrace:
        """The trace of an executable of the core."""
        description = _core.describe_executable(executable)
        input_types, entries, outputs, steps = description
        own = [(refs, op, attrs, types) for _, refs, op, attrs, _, types in entries]
        return cls(input_types, own, outputs, steps, MODE.on, infers(description))

    def request(self) -> bytes | None:
        """The pickled trace; None if attributes hold functions or graphs, or an operation is not of this package."""
        try:
            return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)
        except Exception:  # whatever an object raises that cannot be pickled
            return None

    def key(self, request: bytes | None) -> bytes | None:
        """The key of its program in the disk cache."""
        if request is None:
            return None
        operations = {id(types): (op, attrs) for _, op, attrs, types in self.entries}
        return saved_plans().key("trace", tuple(operations.values()), content_hash(request).digest())

    def trace(self) -> Trace:
        """The trace with the closed graphs of its op instances."""
        entries = [(None, refs, op, attrs, None, types) for refs, op, attrs, types in self.entries]
        return Trace.of((self.input_types, entries, self.outputs, self.steps), self.infers)


def compiled(request: bytes) -> tuple[PortableProgram, int]:
    """Compile a pickled trace, in any process.

    Args:
        request: What ``PortableTrace.request`` gave.

    Returns:
        The fused program, and the CPU time of compiling it in nanoseconds.
    """
    start = time.thread_time_ns()
    trace: PortableTrace = pickle.loads(request)
    program = PortableProgram.of(compile_outlined(trace.trace()))
    return program, time.thread_time_ns() - start
