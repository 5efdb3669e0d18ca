"""Generated loop kernels, one per form of loop nest, against the time to move their bytes once.

    python bench/loops.py [words in the name ...]

The floor is the bytes of inputs and outputs over the rate of a copy of 64 MB measured in the same run, so small
arrays, which stay in caches, may beat it. Times are minima over rounds on one thread, by ``ctypes``.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy

from twofold.compiler.compile import CompiledProgram, compile_graph
from twofold.dtypes import float32
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.types import Shape, tensor_type
from twofold.ops.base import ops

ROUNDS = 15
KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)

CASES: dict[str, tuple[Callable[..., Any], tuple[Shape, ...]]] = {
    "multiply 10M": (lambda a, b: a * b, ((10_000_000,), (10_000_000,))),
    "multiply 100k": (lambda a, b: a * b, ((100_000,), (100_000,))),
    "gelu 1M": (ops.gelu, ((1_000_000,),)),
    "bias 4096x1024": (lambda a, b: a + b, ((4096, 1024), (1024,))),
    "bias 64x256": (lambda a, b: a + b, ((64, 256), (256,))),
    "bias 1Mx3": (lambda a, b: a + b, ((1_000_000, 3), (3,))),
    "transpose 1024": (lambda a: ops.permute(a, (1, 0)) * 2.0, ((1024, 1024),)),
    "transpose 4096": (lambda a: ops.permute(a, (1, 0)) * 2.0, ((4096, 4096),)),
    "softmax 64x10": (lambda a: ops.softmax(a, -1), ((64, 10),)),
    "softmax 1024x1024": (lambda a: ops.softmax(a, -1), ((1024, 1024),)),
    "layer norm 4096x1024": (
        lambda a, g, b: ops.layer_norm(a, (1024,), g, b),
        ((4096, 1024), (1024,), (1024,)),
    ),
    "sum all 10M": (lambda a: ops.sum(a), ((10_000_000,),)),
    "sum rows 4096x1024": (lambda a: ops.sum(a, 1), ((4096, 1024),)),
    "sum columns 4096x1024": (lambda a: ops.sum(a, 0), ((4096, 1024),)),
    "sum columns 64x256": (lambda a: ops.sum(a, 0), ((64, 256),)),
    "sum columns 1Mx10": (lambda a: ops.sum(a, 0), ((1_000_000, 10),)),
    "sum batch and space 64x64x784": (lambda a: ops.sum(a, (0, 2)), ((64, 64, 784),)),
}


def aligned(array: numpy.ndarray) -> numpy.ndarray:
    """A copy that starts at a cache line, as the core's memory does."""
    raw = numpy.empty(array.nbytes + 64, numpy.uint8)
    start = -raw.ctypes.data % 64
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def calls(program: CompiledProgram, arrays: list[numpy.ndarray]) -> Callable[[], None]:
    """A function that runs the kernels of a program over ``arrays``."""
    outputs = [aligned(numpy.zeros(type.shape, type.dtype.numpy)) for type in program.output_types]
    offsets, arena_bytes = program.arena()
    arena = aligned(numpy.zeros(arena_bytes + 1, numpy.uint8))
    memory = {0: arrays, 1: outputs}
    prepared = []
    for address, buffers, params, work, *_ in program.instructions:
        pointers = [
            arena.ctypes.data + offsets[index] if kind == 2 else memory[kind][index].ctypes.data
            for kind, index in buffers
        ]
        table, numbers = (
            (ctypes.c_void_p * len(pointers))(*pointers),
            (ctypes.c_int64 * (len(params) + 1))(*params),
        )
        prepared.append((KERNEL(address), table, numbers, work, (memory, arena)))

    def run() -> None:
        for kernel, table, numbers, work, _ in prepared:
            kernel(table, numbers, 0, work)

    return run


def best(run: Callable[[], Any]) -> float:
    """Seconds of the fastest of many runs."""
    found = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        found = min(found, time.perf_counter() - start)
    return found


def main() -> None:
    """Print a table."""
    source = aligned(numpy.ones(16 << 20, numpy.float32))
    target = aligned(source)
    rate = 2 * source.nbytes / best(lambda: numpy.copyto(target, source))
    print(f"a copy moves {rate / 1e9:.1f} GB/s")
    print(f"{'case':32}{'us':>10}{'GB/s':>8}{'floors':>8}  kernels")
    generator = numpy.random.default_rng(0)
    for name, (function, shapes) in CASES.items():
        if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
            continue
        types = [tensor_type(float32, shape) for shape in shapes]
        graph = Graph(types, [function(*(input_node(k, type) for k, type in enumerate(types)))])
        program = compile_graph(graph)
        arrays = [aligned(generator.normal(size=shape).astype(numpy.float32)) for shape in shapes]
        seconds = best(calls(program, arrays))
        moved = sum(type.nbytes for type in (*types, *program.output_types))
        forms = [found.nest.form if found.nest else found.name for found in program.schedule.instructions]
        row = f"{name:32}{seconds * 1e6:10.1f}{moved / seconds / 1e9:8.1f}{seconds * rate / moved:8.2f}"
        print(f"{row}  {' '.join(forms)}")


if __name__ == "__main__":
    main()
