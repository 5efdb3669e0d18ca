"""Long operations are functions that kernels call: compiled once, with the bits of the same code inside a kernel."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold.ops  # noqa: F401  (registers all operations)
from twofold.compiler.jit import Jit
from twofold.compiler.lower.builder import Builder
from twofold.compiler.lower.outlined import called
from twofold.compiler.lower.values import LANES, SHARED
from twofold.compiler.schedule.schedule import Schedule
from twofold.dtypes import DType, float32, float64
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.ops.base import apply

SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
VALUES = (
    0.0,
    -0.0,
    numpy.inf,
    -numpy.inf,
    numpy.nan,
    1.0,
    -1.5,
    2.0,
    0.3,
    -7.25,
    40.0,
    -1e-3,
    1e9,
    5.5,
    1e-30,
    3.0,
)


def kernel(name: str, dtype: DType, lanes: int = LANES, factor: float = 1.0, inside: bool = False) -> str:
    """A kernel of an operation on a first operand and, if it takes two, on its double, times a number."""
    b, op = Builder(), REGISTRY[name]
    with b.loop(b.begin, b.end, lanes) as i:
        x = b.load(b.input(0), i, dtype, lanes)
        operands = [x, b.mul(x, 2.0)][: len(op.parameter_names())]
        made: Any = None if inside else called(b, op, (), dtype, operands)
        if made is None:
            made = op.lower(b, (), dtype, *operands)
        b.store(b.buffer(1), i, b.mul(made, factor))
    return b.finish()


def run(jit: Jit, text: str, dtype: DType) -> Any:
    x = numpy.array(VALUES * 2, dtype.numpy)
    result = numpy.zeros_like(x)
    buffers = (ctypes.c_void_p * 2)(x.ctypes.data, result.ctypes.data)
    address = jit.compile_kernels({"kernel": text})["kernel"]
    assert SIGNATURE(address)(ctypes.addressof(buffers), None, 0, x.size) == 0
    return numpy.where(numpy.isnan(result), numpy.nan, result).tobytes()


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("name", ["lgamma", "pow", "tan"])
def test_a_function_has_the_bits_of_the_code_in_a_kernel(name: str, dtype: DType, tmp_path: Path) -> None:
    jit = Jit(tmp_path)
    wanted = run(jit, kernel(name, dtype, inside=True), dtype)
    for lanes in (LANES, 1):
        text = kernel(name, dtype, lanes)
        assert text.count(SHARED) == 1
        assert run(jit, text, dtype) == wanted


def test_it_is_compiled_once(tmp_path: Path) -> None:
    jit = Jit(tmp_path)
    first, second = (kernel("lgamma", float32, factor=factor) for factor in (2.0, 3.0))
    run(jit, first, float32)
    assert jit.compiled == 2
    found = run(jit, second, float32)
    assert jit.compiled == 3
    assert len(second.partition(SHARED)[0]) < 2000 < len(second)
    again = Jit(tmp_path)
    assert run(again, second, float32) == found and again.compiled == 0


def test_a_kernel_calls_several(tmp_path: Path) -> None:
    b = Builder()
    with b.loop(b.begin, b.end, LANES) as i:
        x = b.load(b.input(0), i, float64, LANES)
        parts = [called(b, REGISTRY[name], (), float64, [x]) for name in ("lgamma", "tan", "lgamma")]
        assert parts[0] is parts[2] and parts[0] is not None and parts[1] is not None
        b.store(b.buffer(1), i, b.add(parts[0], parts[1]))
    text = b.finish()
    assert text.count(SHARED) == 2
    jit = Jit(tmp_path)
    alone = [run(jit, kernel(name, float64), float64) for name in ("lgamma", "tan")]
    with numpy.errstate(all="ignore"):
        wanted = sum(numpy.frombuffer(one) for one in alone)
    assert run(jit, text, float64) == numpy.where(numpy.isnan(wanted), numpy.nan, wanted).tobytes()


@pytest.mark.parametrize("name", ["exp", "tanh", "sin", "lgamma", "pow"])
def test_only_long_operations_are_called(name: str) -> None:
    op = REGISTRY[name]
    x = input_node(0, tensor_type(float32, (40,)))
    node = apply(name, *[x] * len(op.parameter_names()))
    (instruction,) = Schedule(Graph([x.type], [node])).instructions
    assert instruction.text is not None
    called = [
        module for module in instruction.text().split(SHARED)[1:] if "ptr %to" not in module
    ]  # no stores
    assert bool(called) == (name == "lgamma")
