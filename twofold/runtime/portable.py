"""Traces and programs as what can be sent to another process and read there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from twofold import _core
from twofold.ir.graph import Graph
from twofold.ir.op import REGISTRY
from twofold.ir.types import TensorType, type_from_code
from twofold.runtime.compile import FlatProgram, Label
from twofold.runtime.derived import stable_graph
from twofold.runtime.jit import Kernel
from twofold.runtime.linking import Trace
from twofold.runtime.outlining import Entry


class PortableTrace(NamedTuple):
    """A trace by the names of its operations; entries of one op instance share one list of types."""

    leaves: list[Any]
    entries: list[tuple[list[int], str, tuple[Any, ...], list[Any]]]
    outputs: list[int]

    @classmethod
    def of(cls, executable: Any) -> PortableTrace:
        """What the core keeps of a trace."""
        leaves, entries, outputs = _core.describe_executable(executable)
        return cls(
            leaves, [(refs, op.name, attrs, types) for _, refs, op, attrs, _, types in entries], outputs
        )

    def trace(self) -> Trace:
        """It with its graphs."""
        kinds: dict[int, int] = {}
        graphs: list[Graph] = []
        entries: list[Entry] = []
        for refs, name, attrs, types in self.entries:
            kind = kinds.setdefault(id(types), len(graphs))
            if kind == len(graphs):
                graphs.append(stable_graph(REGISTRY[name], attrs, [type_from_code(*type) for type in types]))
            entries.append(Entry(kind, refs))
        return Trace([type_from_code(*type) for type in self.leaves], graphs, entries, self.outputs)


class PortableProgram(NamedTuple):
    """A compiled program whose kernels are named by the keys of their texts."""

    instructions: list[tuple[str | None, tuple[tuple[int, int], ...], tuple[int, ...], int, int, int]]
    output_sizes: list[int]
    buffer_sizes: list[int]
    reuse_memory: bool
    labels: list[tuple[str, tuple[Any, ...], tuple[TensorType, ...], TensorType]]
    donations: list[tuple[int, int]]
    bodies: int
    calls: int
    new_kernels: int
    plan_seconds: float
    kernel_seconds: float

    @classmethod
    def of(cls, program: FlatProgram) -> PortableProgram:
        """Raises NotImplementedError where it runs functions or programs inside."""
        instructions = []
        for address, buffers, params, work, grain, number, host in program.instructions:
            if host is not None:
                raise NotImplementedError("host functions and programs inside stay in their process")
            key = address.key if isinstance(address, Kernel) else None
            instructions.append((key, buffers, params, work, grain, number))
        return cls(
            instructions,
            [type.nbytes for type in program.output_types],
            program.buffer_sizes,
            program.reuse_memory,
            [(label.op.name, *label[1:]) for label in program.labels],
            program.donations,
            program.bodies,
            program.calls,
            program.new_kernels,
            program.plan_seconds,
            program.kernel_seconds,
        )

    def program(self, kernel_of: Callable[[str], Kernel]) -> Any:
        """The program in the form that the core runs."""
        keys = {instruction[0] for instruction in self.instructions} - {None}
        kernels: dict[str | None, Any] = {key: kernel_of(key) for key in keys if key is not None}
        return _core.Program(
            [(kernels.get(key, 0), *rest, None) for key, *rest in self.instructions],
            self.output_sizes,
            self.buffer_sizes,
            self.reuse_memory,
            [Label(REGISTRY[name], attrs, given, made) for name, attrs, given, made in self.labels],
            0,
            self.donations,
        )
