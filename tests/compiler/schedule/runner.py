"""Runs compiled programs on NumPy arrays through ctypes, without the core, in pieces of any size."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy

from twofold.compiler.compile import CompiledProgram, compile_graph
from twofold.ir.graph import Graph

KERNEL = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_int64,
    ctypes.c_int64,
)


def aligned(size: int) -> Any:
    """Bytes at a multiple of 64, filled with a pattern that no test expects."""
    raw = numpy.full(size + 64, 0xA5, numpy.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


def run_program(program: CompiledProgram, arrays: Sequence[Any], pieces: int = 1) -> list[Any]:
    """The outputs; the work of every kernel is cut in ``pieces`` at multiples of its grain."""
    inputs = [numpy.ascontiguousarray(array) for array in arrays]
    outputs = [numpy.empty(type.shape, type.dtype.numpy) for type in program.output_types]
    for output in outputs:
        output.reshape(-1).view(numpy.uint8)[...] = 0xA5
    offsets, arena_bytes = program.arena()
    arena = aligned(arena_bytes)
    bases = {0: inputs, 1: outputs}
    for address, buffers, params, work, grain, _, host in program.instructions:
        pointers = [
            arena.ctypes.data + offsets[index] if kind == 2 else bases[kind][index].ctypes.data
            for kind, index in buffers
        ]
        if host is not None:
            host(*pointers)
            continue
        table = (ctypes.c_void_p * len(pointers))(*pointers)
        numbers = (ctypes.c_int64 * max(len(params), 1))(*params)
        step = max(-(-work // pieces), 1) if pieces <= 1 else max(grain, -(-work // pieces) // grain * grain)
        for begin in range(0, work, step):
            code = KERNEL(address)(table, numbers, begin, min(begin + step, work))
            if code:
                raise RuntimeError(f"kernel returned {code}")
    return outputs


def run_graph(graph: Graph, arrays: Sequence[Any], fuse: bool = True, pieces: int = 1) -> list[Any]:
    """Compile and run."""
    return run_program(compile_graph(graph, fuse), arrays, pieces)
