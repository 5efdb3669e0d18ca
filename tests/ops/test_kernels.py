"""The kernels of custom operations: compiled, run in parts, compared with their references."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import itertools

import samples as sampled  # noqa: F401  (registers all operations)

from twofold.compiler import jit
from twofold.compiler.lower.builder import Builder
from twofold.dtypes import as_dtype, bfloat16, bool_, float16, float32, float64, int8, int32, int64
from twofold.ir.graph import Graph
from twofold.ir.interpret import evaluate, narrow, widen
from twofold.ir.node import Node
from twofold.ir.op import REGISTRY, LoopOp
from twofold.ops.convolution.window_loops import Windows
from twofold.ops.kernels import index_error_code, index_of_error_code
from twofold.ops.samples import Sample
from twofold.ops.shape.joining import Block
from twofold.transforms.reverse import closed_graph

KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
GUARD = 64
NAMES = [name for name, op in REGISTRY.items() if isinstance(op, LoopOp) and op.samples()]


def custom_node(op: Any, sample: Any) -> Node | None:
    """The op's own node in the graph of a sample call, if it has exactly one."""
    found = [node for node in closed_graph(op, sample.attrs, sample.types).nodes() if node.op is op]
    return found[0] if len(found) == 1 else None


def operands(node: Node, sample: Any) -> list[Any]:
    """What the node reads in a sample call."""
    return evaluate(Graph(sample.types, node.inputs), sample.arrays)


def run_kernel(node: Node, arrays: list[Any], pieces: int) -> tuple[int, Any]:
    """The kernel's code and its result, from ``pieces`` calls over parts of the work."""
    op, attrs, types = node.op, node.attrs, [value.type for value in node.inputs]
    b = Builder()
    op.emit(b, attrs, types, node.type)
    address = jit.compile_kernels({"kernel": b.finish()})["kernel"]
    numbers = op.parameters(attrs, types, node.type)
    params = (ctypes.c_int64 * max(len(numbers), 1))(*numbers)
    whole = numpy.full(node.type.size * node.dtype.itemsize + 2 * GUARD, 0x5A, numpy.uint8)
    dense = [numpy.ascontiguousarray(array) for array in arrays]
    aside = op.scratch(attrs, types, node.type)
    scratch = numpy.full(aside + 2 * GUARD, 0x5A, numpy.uint8)
    pointers = [array.ctypes.data for array in (*dense, whole[GUARD:], scratch[GUARD:])]
    buffers = (ctypes.c_void_p * len(pointers))(*pointers)
    items, _ = op.work(attrs, types, node.type)
    bounds = [items * k // pieces for k in range(pieces + 1)]
    for low, high in itertools.pairwise(bounds):
        code = KERNEL(address)(ctypes.addressof(buffers), ctypes.addressof(params), low, high)
        if code:
            return code, None
    for memory in (whole, scratch):
        assert (memory[:GUARD] == 0x5A).all() and (memory[len(memory) - GUARD :] == 0x5A).all(), (
            "wrote outside"
        )
    return 0, whole[GUARD : len(whole) - GUARD].view(node.dtype.numpy).reshape(node.shape)


def check(op: Any, sample: Any, pieces: int) -> bool:
    node = custom_node(op, sample)
    if node is None:
        return False
    arrays = operands(node, sample)
    code, got = run_kernel(node, arrays, pieces)
    assert code == 0
    wide = [widen(array, value.dtype) for array, value in zip(arrays, node.inputs)]
    wanted = narrow(numpy.asarray(op.reference(node.attrs, *wide)), node.dtype)
    if node.dtype.kind == "f":
        near = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 4e-6, "float64": 1e-13}[node.dtype.name]
        numpy.testing.assert_allclose(widen(got, node.dtype), widen(wanted, node.dtype), rtol=near, atol=near)
    else:
        numpy.testing.assert_array_equal(got, wanted)
    return True


@pytest.mark.parametrize("name", NAMES)
def test_kernel_against_reference(name: str) -> None:
    op: Any = REGISTRY[name]
    ran = [check(op, sample, pieces) for sample in op.samples() for pieces in (1, 3)]
    assert any(ran)


@pytest.mark.parametrize("dtype", [float64, float16, bfloat16, int32, int8, bool_], ids=lambda d: d.name)
@pytest.mark.parametrize("name", NAMES)
def test_kernel_of_each_dtype(name: str, dtype: Any) -> None:
    op: Any = REGISTRY[name]
    if dtype.kind not in op.kinds or not (op.half_types or dtype.compute is dtype):
        return
    for sample in op.samples():
        arrays, dtypes = [], []
        for array, given in zip(sample.arrays, sample.dtypes):
            change = given is float32
            values = array * 3 if change and dtype.kind == "i" else array > 0 if dtype.kind == "b" else array
            arrays.append(narrow(values, dtype) if change else array)
            dtypes.append(dtype if change else given)
        check(op, Sample(sample.attrs, tuple(arrays), tuple(dtypes)), 2)


@pytest.mark.parametrize("bad", [5, -6, 2**40, -(2**40)])
def test_index_outside_is_reported_not_read(bad: int) -> None:
    calls = {
        "gather_block": ((), (numpy.zeros((1, 5, 17), "f4"), numpy.array([[[1], [bad]]]))),
        "scatter_sum": ((5,), (numpy.array([[[1], [bad]]]), numpy.zeros((1, 2, 17), "f4"))),
        "scatter_set": (
            (),
            (numpy.zeros((1, 5, 3), "f4"), numpy.array([[[bad, 0, 0]]]), numpy.zeros((1, 1, 3), "f4")),
        ),
        "linear_index": (((5, 4),), (numpy.array([0, bad]), numpy.array([0, 0]))),
    }
    for name, (attrs, arrays) in calls.items():
        sample = Sample(attrs, arrays, tuple(as_dtype(array.dtype) for array in arrays))
        node = custom_node(REGISTRY[name], sample)
        assert node is not None
        code, _ = run_kernel(node, list(arrays), 1)
        assert code == index_error_code(bad)
        assert index_of_error_code(code) == min(max(bad, -(2**31)), 2**31 - 1)


@pytest.mark.parametrize("start", [-(2**50), -1, 3, 2**50])
def test_wrong_start_never_writes_outside(start: int) -> None:
    for name in ("pad_block", "slice_update"):
        op: Any = REGISTRY[name]
        assert isinstance(op, Block)
        for sample in op.samples():
            node = custom_node(op, sample)
            if node is not None:
                arrays = [
                    numpy.array(start) if array.dtype == numpy.int64 and not array.ndim else array
                    for array in operands(node, sample)
                ]
                assert run_kernel(node, arrays, 1)[0] == 0


def test_equal_indices_add_in_index_order() -> None:
    # 1e8 + 1 - 1e8 in float32 depends on the order
    index = numpy.zeros((1, 3, 1), numpy.int64)
    updates = numpy.array([1e8, 1, -1e8], numpy.float32).reshape(1, 3, 1)
    node = custom_node(REGISTRY["scatter_sum"], Sample((1,), (index, updates), (int64, float32)))
    assert node is not None
    assert run_kernel(node, [index, updates], 1)[1].item() == numpy.float32(
        numpy.float32(1e8) + 1
    ) - numpy.float32(1e8)


@pytest.mark.parametrize("name", NAMES)
def test_code_depends_on_its_key_alone(name: str) -> None:
    op: Any = REGISTRY[name]
    texts: dict[Any, str] = {}
    for sample in op.samples():
        node = custom_node(op, sample)
        if node is not None:
            types = [value.type for value in node.inputs]
            b = Builder()
            op.emit(b, node.attrs, types, node.type)
            key = (op.code_key(node.attrs, types, node.type), tuple(type.dtype for type in types), node.dtype)
            text = b.finish()
            assert texts.setdefault(key, text) == text


@pytest.mark.parametrize("name", [name for name in NAMES if isinstance(REGISTRY[name], Windows)])
def test_planes_are_asked_for_before_their_windows_are_read(name: str) -> None:
    """Where lanes are planes every load is strided, and comes too late unless memory is asked for ahead."""
    op: Any = REGISTRY[name]
    for sample in op.samples():
        node = custom_node(op, sample)
        if node is not None:
            b = Builder()
            op.emit(b, node.attrs, [value.type for value in node.inputs], node.type)
            across = "planes" in op.code_key(node.attrs, [value.type for value in node.inputs], node.type)
            assert b.finish().count("call void @llvm.prefetch") == across
