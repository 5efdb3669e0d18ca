"""Traces as what can be sent to another process and read there."""

from __future__ import annotations

import pickle
import time
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from twofold import _core
from twofold.compiler.lower.mode import MODE
from twofold.compiler.portable_program import PortableProgram
from twofold.compiler.saved_plans import saved_plans
from twofold.config import config
from twofold.hashing import content_hash
from twofold.ir.op import Op
from twofold.ir.types import type_from_code

if TYPE_CHECKING:
    from twofold.compiler.linking import Trace


def infers(description: tuple[Any, ...]) -> bool:
    """Whether a trace neither computes gradients nor is to be differentiated: its weights are the same in many runs.

    Only where all inputs fit into what is kept between runs is that of use.
    """
    if any(mask or getattr(op, "is_gradient", False) for _, _, op, _, mask, _ in description[1]):
        return False
    return sum(type_from_code(*type).nbytes for type in description[0]) <= 2 * config.cache_bytes


class PortableTrace(NamedTuple):
    """A trace that can be pickled.

    Attributes:
        input_types: The types of the trace inputs, as the core writes them.
        entries: For each instruction its operands, its operation, the attributes, and the types of its operands: one
            list object for all instructions of an op instance.
        outputs: What the trace returns.
        steps: Positions of the instructions in the order in which they run.
        tells_finite: Whether its kernels report values that are not finite.
        infers: Whether it computes without gradients, see ``infers``.
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

    def key(self) -> bytes | None:
        """The key of its program in the disk cache; None if attributes hold what has no text form."""
        instances: dict[int, int] = {}
        texts: list[Any] = []
        calls = array("q")
        for refs, op, attrs, types in self.entries:
            number = instances.setdefault(id(types), len(texts))
            if number == len(texts):
                texts.append((op, attrs, tuple(types)))
            calls.extend((number, len(refs), *refs))
        calls.extend((len(self.outputs), *self.outputs, *self.steps))
        return saved_plans().key(
            "trace",
            tuple(texts),
            repr(self.input_types),  # thousands of tuples of plain numbers
            content_hash(calls.tobytes()).digest(),
            self.tells_finite,
            self.infers,
        )

    def trace(self) -> Trace:
        """The trace with the closed graphs of its op instances."""
        from twofold.compiler.linking import Trace

        entries = [(None, refs, op, attrs, None, types) for refs, op, attrs, types in self.entries]
        return Trace.of((self.input_types, entries, self.outputs, self.steps), self.infers)


def compiled(request: bytes) -> tuple[PortableProgram, int]:
    """Compile a pickled trace, in any process.

    Args:
        request: What ``PortableTrace.request`` gave.

    Returns:
        The fused program, and the CPU time of compiling it in nanoseconds.
    """
    from twofold.compiler.linking import compile_outlined

    start = time.thread_time_ns()
    trace: PortableTrace = pickle.loads(request)
    program = PortableProgram.of(compile_outlined(trace.trace()))
    return program, time.thread_time_ns() - start
