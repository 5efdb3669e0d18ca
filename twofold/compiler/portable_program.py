"""Serialisation of programs, for the disk cache and the compile worker process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from twofold import _core
from twofold.compiler.jit import Kernel, shared
from twofold.ir.op import REGISTRY, ControlFlowOp
from twofold.ir.types import TensorType

if TYPE_CHECKING:
    from twofold.compiler.compile import FlatProgram, NestedPrograms


class Label(NamedTuple):
    """What an instruction computes, for messages of run-time errors."""

    op: Any
    attrs: tuple[Any, ...]
    input_types: tuple[TensorType, ...]
    output_type: TensorType


def key_of(kernel: int) -> str | None:
    """The key of a kernel; None for 0, which is no kernel."""
    return kernel.key if isinstance(kernel, Kernel) else None


def kernel_by(key: str | None) -> int:
    """The kernel with a key; raises LookupError if neither memory nor disk has it."""
    return 0 if key is None else shared().known(key)


def costs_of(program: FlatProgram) -> tuple[int, int, int, int, float, float]:
    """Counts of bodies, new bodies, calls and new kernels of a program, and the seconds of planning and of LLVM."""
    counts = program.bodies, program.new_bodies, program.calls, program.new_kernels
    return *counts, program.plan_seconds, program.kernel_seconds


def _named(label: Label) -> tuple[str, tuple[Any, ...], tuple[TensorType, ...], TensorType]:
    """A label with the name of its operation, and without graphs, which report no errors themselves."""
    return label.op.name, () if isinstance(label.op, ControlFlowOp) else label.attrs, *label[2:]


class PortableNested(NamedTuple):
    """Nested programs, see ``compile.NestedPrograms``."""

    programs: list[PortableProgram]
    labels: list[int]
    form: tuple[Any, ...]
    numbers: list[Any]

    @classmethod
    def of(cls, nested: NestedPrograms) -> PortableNested:
        """Serialise nested programs; raises NotImplementedError if one calls host functions."""
        return cls([PortableProgram.of(program) for program in nested.programs], *nested[1:])

    def nested(self) -> Any:
        """The instruction in the form of the core."""
        return _core.nested([program.program() for program in self.programs], *self[1:])


Step = tuple[str | None, tuple[tuple[int, int], ...], tuple[int, ...], int, int, int, PortableNested | None]


class PortableProgram(NamedTuple):
    """A compiled program with kernels by key; see ``compile.FlatProgram``."""

    instructions: list[Step]
    output_sizes: list[int]
    buffer_sizes: list[int]
    reuse_memory: bool
    labels: list[tuple[str, tuple[Any, ...], tuple[TensorType, ...], TensorType]]
    nested_nanoseconds: int
    donations: list[tuple[int, int]]
    tells_finite: bool
    bodies: int
    new_bodies: int
    calls: int
    new_kernels: int
    plan_seconds: float
    kernel_seconds: float
    for_all_sizes: bool = False

    @classmethod
    def of(cls, program: FlatProgram) -> PortableProgram:
        """Serialise a program; raises NotImplementedError if it calls host functions."""
        instructions: list[Step] = []
        for address, buffers, params, work, grain, number, host in program.instructions:
            if host is not None and not hasattr(host, "programs"):
                raise NotImplementedError("host functions cannot be serialised")
            nested = None if host is None else PortableNested.of(host)
            instructions.append((key_of(address), buffers, params, work, grain, number, nested))
        return cls(
            instructions,
            [type.nbytes for type in program.output_types],
            program.buffer_sizes,
            program.reuse_memory,
            [_named(label) for label in program.labels],
            program.nested_nanoseconds,
            program.donations,
            program.tells_finite,
            *costs_of(program),
        )

    def restored(self) -> PortableProgram:
        """The program in a process that read it from disk and spent no time on it."""
        return self._replace(new_bodies=0, new_kernels=0, plan_seconds=0.0, kernel_seconds=0.0)

    def program(self) -> Any:
        """The program in the form of the core; raises LookupError if neither memory nor disk has one of its kernels."""
        buffer_sizes, instructions = list(self.buffer_sizes), []
        for key, buffers, params, work, grain, number, portable in self.instructions:
            nested = None if portable is None else portable.nested()
            if nested is not None:
                buffer_sizes[buffers[-1][1]] = nested.scratch_bytes
            instructions.append((kernel_by(key), buffers, params, work, grain, number, nested))
        return _core.Program(
            instructions,
            self.output_sizes,
            buffer_sizes,
            self.reuse_memory,
            [Label(REGISTRY[name], attrs, given, made) for name, attrs, given, made in self.labels],
            self.nested_nanoseconds,
            self.donations,
            self.tells_finite,
        )
