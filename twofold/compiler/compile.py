"""The compiler driver: from a closed graph through passes, schedule, machine code and memory plan to a flat program."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy

from twofold import _core
from twofold.cache import Cache
from twofold.compiler.jit import Kernel, compile_kernels
from twofold.compiler.lower.mode import MODE, staying_weights
from twofold.compiler.portable_program import Label
from twofold.compiler.schedule.donation import matched, possible_donations
from twofold.compiler.schedule.loop_nests import BufferKey
from twofold.compiler.schedule.schedule import Instruction, Schedule
from twofold.compiler.totals import TOTALS
from twofold.errors import TwofoldError
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.node import Node, make_node
from twofold.ir.op import ControlFlowOp, HostOp
from twofold.ir.sizes import Symbol
from twofold.ir.types import TensorType
from twofold.transforms.pipeline import run_passes

INPUT, OUTPUT, ARENA = 0, 1, 2
"""Kinds of buffers of a program."""

_KEY_BYTES = 4096  # of a key, roughly

_kernels: Cache[Kernel] = Cache("kernel keys", 1, lambda key, kernel: _KEY_BYTES + kernel.nbytes)
"""Kernels by the key of their schedule, so that LLVM IR is made for new kernels only."""


class NestedPrograms(NamedTuple):
    """The programs of an instruction of control flow, see ``ControlFlowOp.nested``.

    Attributes:
        programs: The programs of the nested graphs.
        labels: For each of them, the position of its first label among the labels of the outer program.
        form: The instruction, without the integers that depend on sizes.
        numbers: These integers.
    """

    programs: list[FlatProgram]
    labels: list[int]
    form: tuple[Any, ...]
    numbers: list[Any]

    def nested(self) -> Any:
        """The instruction in the form of the core."""
        programs = [program.program() for program in self.programs]
        return _core.nested(programs, self.labels, self.form, self.numbers)

    def relabelled(self, count: int) -> NestedPrograms:
        """The same in a program with ``count`` labels in front of those of this one."""
        return self._replace(labels=[count + label for label in self.labels])


class HostFunction:
    """The function of the addresses of buffers that an instruction calls in place of a kernel, to compute a node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def function(self) -> Callable[..., None]:
        """The function of the addresses of inputs and outputs, for a node without symbols."""
        return self.with_parameters()[0]()

    def with_parameters(self) -> tuple[Callable[..., Callable[..., None]], tuple[Any, ...]]:
        """A function from parameters to the function, and the parameters: the symbolic sizes of the node."""
        node = self._node
        op = node.op
        if isinstance(op, ControlFlowOp):
            programs = import_module("twofold.compiler.families").Programs(node.attrs[0])
            inputs = len(node.inputs)
            return lambda *numbers: op.on_addresses(
                inputs, partial(programs.program, numbers)
            ), programs.parameters
        types = [value.type for value in node.inputs]
        operands = tuple([input_node(k, type) for k, type in enumerate(types)])
        graph = Graph(types, [make_node(op, node.attrs, operands, node.type)])
        programs = import_module("twofold.ops.control_flow.programs")
        resized = programs.resized
        _, sizes_at, parameters = programs.parameters_of(partial(resized, graph))
        return lambda *numbers: _on_arrays(resized(graph, sizes_at(numbers)).outputs[0]), parameters


class FlatProgram:
    """A program over inputs, outputs and an arena.

    Attributes:
        instructions: Tuples ``(address, buffers, params, work, grain, label, host)``. ``host`` is None for a kernel,
            else a ``HostFunction`` or ``NestedPrograms``, whose last buffer is scratch memory of a size that the core
            computes.
        buffer_sizes: Bytes of the buffers in the arena, which the core lays out.
        labels: What instructions compute, for errors.
        donations: Pairs (input, output) of which the output may be written into the buffer of the input.
        nested_nanoseconds: Estimated time of nested programs.
        tells_finite: Whether its kernels report stored values that are not finite.
        bodies: The number of bodies that it calls, ``new_bodies`` of them planned for it, in ``calls`` calls.
    """

    bodies = new_bodies = calls = 1
    for_all_sizes = False

    def __init__(self, output_types: Sequence[TensorType], reuse_memory: bool) -> None:
        self.output_types = tuple(output_types)
        self.reuse_memory = reuse_memory
        self.tells_finite = MODE.on
        self.plan_seconds = self.kernel_seconds = 0.0
        self.new_kernels = 0
        self.buffer_sizes: list[int] = []
        self.labels: list[Label] = []
        self.instructions: list[tuple[Any, ...]] = []
        self.nested_nanoseconds = 0
        self.donations: list[tuple[int, int]] = []

    def arena(self) -> tuple[list[int], int]:
        """The offset of each buffer in the arena, and the size of the arena in bytes."""
        used = [[number for kind, number in made[1] if kind == ARENA] for made in self.instructions]
        found: tuple[list[int], int] = _core.plan_arena(used, self.buffer_sizes, self.reuse_memory)
        return found

    def program(self) -> Any:
        """The program in the form of the core."""
        sizes = [type.nbytes for type in self.output_types]
        buffer_sizes, instructions = list(self.buffer_sizes), []
        for *made, host in self.instructions:
            if isinstance(host, NestedPrograms):
                (_, scratch), host = made[1][-1], host.nested()
                buffer_sizes[scratch] = host.scratch_bytes
            elif host is not None:
                host = host.function()
            instructions.append((*made, host))
        return _core.Program(
            instructions,
            sizes,
            buffer_sizes,
            self.reuse_memory,
            self.labels,
            self.nested_nanoseconds,
            self.donations,
            self.tells_finite,
        )


class CompiledProgram(FlatProgram):
    """The program of one schedule."""

    def __init__(
        self,
        graph: Graph,
        schedule: Schedule,
        kernels: dict[Any, Kernel],
        nested: dict[int, tuple[Any, list[Label]]],
        reuse_memory: bool,
    ) -> None:
        super().__init__([node.type for node in graph.outputs], reuse_memory)
        self.schedule = schedule
        self._buffers: dict[BufferKey, int] = {}
        self.possible_donations = [
            (source, target)
            for source, target in possible_donations(schedule.instructions)
            if graph.input_types[source].nbytes == graph.outputs[target].type.nbytes
        ]
        self.donations = matched(self.possible_donations)
        for number, instruction in enumerate(schedule.instructions):
            buffers = tuple([self._slot(key) for key in instruction.buffers])
            node = instruction.nodes[0]
            self.labels.append(_label(node))
            address = 0 if instruction.key is None else kernels[instruction.key]
            # a copy of what the host computed is a kernel
            is_host = instruction.key is None and isinstance(node.op, HostOp)
            host = HostFunction(node) if is_host else None
            if number in nested:
                host, _ = nested[number]
                self.nested_nanoseconds += _LONG
            work, grain = instruction.work, instruction.grain
            self.instructions.append((address, buffers, instruction.params, work, grain, number, host))
        for _, labels in nested.values():
            self.labels += labels

    def _slot(self, key: BufferKey) -> tuple[int, int]:
        kind, number = key
        if kind == "input":
            return INPUT, number
        if kind == "output":
            return OUTPUT, number
        if key not in self._buffers:
            self._buffers[key] = len(self.buffer_sizes)
            self.buffer_sizes.append(self.schedule.sizes[key])
        return ARENA, self._buffers[key]


def _label(node: Node) -> Label:
    return Label(node.op, node.attrs, tuple(value.type for value in node.inputs), node.type)


def _on_arrays(node: Node) -> Callable[..., None]:
    """The host function of a node as a function of addresses."""
    label = _label(node)
    types = [*label.input_types, label.output_type]
    op = node.op
    assert isinstance(op, HostOp)
    computes = node.type.dtype.is_differentiable and not op.keeps_nan

    def call(*pointers: int) -> None:
        arrays = [_array(pointer, type) for pointer, type in zip(pointers, types, strict=True)]
        try:
            arrays[-1][...] = op.host(node.attrs, *arrays[:-1])
        except TwofoldError as error:
            error.label = label
            raise
        if computes:
            _canonicalise_nans(arrays[-1])

    return call


def _canonicalise_nans(array: Any) -> None:
    """Replace NaNs by the canonical one, as kernels do."""
    values = array.reshape(-1)
    if array.dtype.kind == "c":
        values = values.view(array.real.dtype)
    nans = numpy.isnan(values)
    if nans.any():
        values[nans] = numpy.nan


def _array(pointer: int, type: TensorType) -> Any:
    """An array over the memory at an address."""
    if not type.size:
        return numpy.empty(type.shape, type.dtype.numpy)
    memory: Any = (ctypes.c_char * type.nbytes).from_address(pointer)
    return numpy.frombuffer(memory, type.dtype.numpy).reshape(type.shape)


def concrete_key(key: Any) -> Any:
    """A key with symbols replaced by their values, which guards fix."""
    if isinstance(key, tuple):
        return tuple([concrete_key(part) for part in key])
    return int(key) if isinstance(key, Symbol) else key


def compile_graph(graph: Graph, fuse: bool = True, reuse_memory: bool = True) -> CompiledProgram:
    """Compile a graph.

    Args:
        graph: A closed primitive graph.
        fuse: Whether operations are fused; without, each node has a kernel of its own, with the same bits.
        reuse_memory: Whether buffers with disjoint live ranges may share memory.

    Raises:
        RuntimeError: LLVM rejects a kernel.
    """
    (program,) = compile_graphs([graph], fuse, reuse_memory)
    return program


def compile_graphs(
    graphs: Sequence[Graph], fuse: bool = True, reuse_memory: bool = True
) -> list[CompiledProgram]:
    """Compile several graphs, see ``compile_graph``; the new kernels of all are one run of the code generator."""
    start = time.perf_counter()
    schedules = [Schedule(run_passes(graph), fuse) for graph in graphs]
    kernels: dict[Any, Kernel] = {}
    missing: dict[Any, Instruction] = {}
    new = [_find_kernels(schedule, kernels, missing) for schedule in schedules]
    kernel_seconds = 0.0
    if missing:
        texts = {}
        for number, instruction in enumerate(missing.values()):
            assert instruction.text is not None
            texts[str(number)] = instruction.text()
        before = time.perf_counter()
        found = compile_kernels(texts)
        kernel_seconds = time.perf_counter() - before
        for number, key in enumerate(missing):
            kernels[key] = _kernels.keep(key, found[str(number)])
    plan_seconds = time.perf_counter() - start - kernel_seconds
    programs = []
    for graph, schedule, count in zip(graphs, schedules, new):
        program = CompiledProgram(graph, schedule, kernels, _compile_nested(schedule), reuse_memory)
        program.new_kernels = count
        program.kernel_seconds = kernel_seconds / len(graphs)
        program.plan_seconds = plan_seconds / len(graphs)
        programs.append(program)
    TOTALS.add(len(graphs), plan_seconds, kernel_seconds)
    return programs


def _find_kernels(schedule: Schedule, kernels: dict[Any, Kernel], missing: dict[Any, Instruction]) -> int:
    """Look up the kernels of a schedule.

    Args:
        schedule: The schedule.
        kernels: Kernels by key, to which those that are found are added.
        missing: Instructions by key, to which those without a kernel are added.

    Returns:
        How many were added to ``missing``.
    """
    before = len(missing)
    for instruction in schedule.instructions:
        key = concrete_key(instruction.key)
        if MODE.on and key is not None:
            key = "finite", key
        instruction.key = key
        if key is None or key in kernels or key in missing:
            continue
        known = _kernels.get(key)
        if known is None:
            missing[key] = instruction
        else:
            kernels[key] = known
    return len(missing) - before


_LONG = 1_000_000
"""Estimated nanoseconds of an instruction of unknown length: enough to release the GIL for it."""


def _compile_nested(schedule: Schedule) -> dict[int, tuple[Any, list[Label]]]:
    """The host functions and nested programs of instructions, by position, with the labels of their programs."""
    found: dict[int, tuple[Any, list[Label]]] = {}
    labels = len(schedule.instructions)
    for number, instruction in enumerate(schedule.instructions):
        node = instruction.nodes[0]
        op = node.op
        if not isinstance(op, ControlFlowOp):
            continue
        with staying_weights(False):  # nothing is kept between the runs of nested programs
            programs: list[FlatProgram] = [compile_graph(graph) for graph in op.graphs(node.attrs)]
        positions: list[int] = []
        own: list[Label] = []
        for program in programs:
            positions.append(labels)
            labels += len(program.labels)
            own += program.labels
        if op.runs_on_host:
            found[number] = HostFunction(node), own
        else:
            form = op.nested(node.attrs, [value.type for value in node.inputs])
            found[number] = NestedPrograms(programs, positions, *form), own
    return found
