"""Programs as what can be kept on disk, or sent to another process, and read there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from twofold import _core
from twofold.compiler.jit import Kernel, shared
from twofold.ir.op import REGISTRY, ControlFlowOp
from twofold.ir.types import TensorType

if TYPE_CHECKING:
    from twofold.compiler.compile import FlatProgram, Inside


class Label(NamedTuple):
    """What an instruction computes, to word its run-time errors."""

    op: Any
    attrs: tuple[Any, ...]
    input_types: tuple[TensorType, ...]
    output_type: TensorType


def key_of(kernel: int) -> str | None:
    """The key of a kernel's text; None of 0, which stands for no kernel."""
    return kernel.key if isinstance(kernel, Kernel) else None


def kernel_by(key: str | None) -> int:
    """The kernel that has a key; LookupError unless memory or disk holds it."""
    return 0 if key is None else shared().known(key)


def spent_on(program: FlatProgram) -> tuple[int, int, int, int, float, float]:
    """Its bodies, those planned for it, its calls, the kernels made for it, and the seconds of planning and of LLVM."""
    counts = program.bodies, program.new_bodies, program.calls, program.new_kernels
    return *counts, program.plan_seconds, program.kernel_seconds


def _named(label: Label) -> tuple[str, tuple[Any, ...], tuple[TensorType, ...], TensorType]:
    """A label with the name of its operation; without graphs, which report no errors of their own."""
    return label.op.name, () if isinstance(label.op, ControlFlowOp) else label.attrs, *label[2:]


class PortableInside(NamedTuple):
    """What an instruction runs in place of a kernel, see ``compile.Inside``."""

    programs: list[PortableProgram]
    labels: list[int]
    form: tuple[Any, ...]
    numbers: list[Any]

    @classmethod
    def of(cls, inside: Inside) -> PortableInside:
        """Raises NotImplementedError where one of its programs runs functions."""
        return cls([PortableProgram.of(program) for program in inside.programs], *inside[1:])

    def nested(self) -> Any:
        """What the core runs."""
        return _core.nested([program.program() for program in self.programs], *self[1:])


Step = tuple[str | None, tuple[tuple[int, int], ...], tuple[int, ...], int, int, int, PortableInside | None]


class PortableProgram(NamedTuple):
    """A compiled program whose kernels are named by the keys of their texts."""

    instructions: list[Step]
    output_sizes: list[int]
    buffer_sizes: list[int]
    reuse_memory: bool
    labels: list[tuple[str, tuple[Any, ...], tuple[TensorType, ...], TensorType]]
    further_work: int
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
        """Raises NotImplementedError where it runs functions."""
        instructions: list[Step] = []
        for address, buffers, params, work, grain, number, host in program.instructions:
            if host is not None and not hasattr(host, "programs"):
                raise NotImplementedError("functions of the host stay in their process")
            inside = None if host is None else PortableInside.of(host)
            instructions.append((key_of(address), buffers, params, work, grain, number, inside))
        return cls(
            instructions,
            [type.nbytes for type in program.output_types],
            program.buffer_sizes,
            program.reuse_memory,
            [_named(label) for label in program.labels],
            program.further_work,
            program.donations,
            program.tells_finite,
            *spent_on(program),
        )

    def found(self) -> PortableProgram:
        """It for a process that has found it, and spent nothing on it."""
        return self._replace(new_bodies=0, new_kernels=0, plan_seconds=0.0, kernel_seconds=0.0)

    def program(self) -> Any:
        """The program in the form that the core runs; LookupError where neither memory nor disk holds a kernel."""
        buffer_sizes, instructions = list(self.buffer_sizes), []
        for key, buffers, params, work, grain, number, inside in self.instructions:
            nested = None if inside is None else inside.nested()
            if nested is not None:
                buffer_sizes[buffers[-1][1]] = nested.scratch_bytes
            instructions.append((kernel_by(key), buffers, params, work, grain, number, nested))
        return _core.Program(
            instructions,
            self.output_sizes,
            buffer_sizes,
            self.reuse_memory,
            [Label(REGISTRY[name], attrs, given, made) for name, attrs, given, made in self.labels],
            self.further_work,
            self.donations,
            self.tells_finite,
        )
