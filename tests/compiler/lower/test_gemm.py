"""Matrix products against a scalar triple loop, bit by bit."""

from __future__ import annotations

import ctypes
import itertools
import mmap
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy
import pytest

from tests.compiler.lower.processors import EMULATED, runnable
from twofold import dtypes
from twofold.compiler import jit
from twofold.compiler.lower.builder import Builder, Val
from twofold.compiler.lower.gemm import (
    Epilogue,
    MatmulPlan,
    MatmulProblem,
    Operand,
    block_rows,
    count_choices,
    plan_matmul,
)
from twofold.compiler.lower.gemm_kernel import MAX_BLOCK_ROWS, PARAMS
from twofold.compiler.lower.gemm_vector import HEIGHTS
from twofold.dtypes import DType
from twofold.ir.recording import Recording

KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
FLOATS = [dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16]
CUTS = (1.0, 0.5, 0.37)

SHAPES = [
    (1, 1, 1),
    (1, 35, 49),
    (1, 1, 40),
    (2, 130, 33),
    (3, 129, 20),
    (4, 20, 10),
    (5, 16, 16),
    (6, 17, 50),
    (7, 33, 300),
    (9, 1, 31),
    (12, 32, 1),
    (13, 31, 5),
    (23, 45, 70),
    (26, 64, 1030),
    (64, 10, 128),
    (61, 5, 7),
    (210, 40, 30),
    (18, 1100, 3),
]


def call(
    text: str, buffers: Sequence[int], params: Sequence[int], bounds: Sequence[int], compiler: jit.Jit
) -> None:
    address = compiler.compile_kernels({"kernel": text})["kernel"]
    pointers = (ctypes.c_void_p * len(buffers))(*buffers)
    numbers = (ctypes.c_int64 * len(params))(*params)
    for begin, end in itertools.pairwise(bounds):
        assert KERNEL(address)(ctypes.addressof(pointers), ctypes.addressof(numbers), begin, end) == 0


def execute(
    plan: MatmulPlan, arrays: dict[str, numpy.ndarray], cut: float = 1.0, compiler: jit.Jit | None = None
) -> None:
    """Run the calls in order, the work of each in two parts split at ``cut``."""
    scratch = [numpy.full(size + 128, 0xFF, numpy.uint8) for size in plan.scratch_bytes]
    for step in plan.calls:
        buffers = [
            # aligned like an allocator would; the canary behind is checked below
            scratch[int(role[7:])].ctypes.data if role.startswith("scratch") else arrays[role].ctypes.data
            for role in step.buffers
        ]
        middle = int(step.work * cut)
        call(step.text, buffers, step.params, [0, middle, step.work], compiler or jit.shared())
    for size, memory in zip(plan.scratch_bytes, scratch):
        assert (memory[size:] == 0xFF).all(), "wrote past the end of the scratch"


@lru_cache
def reference_text(dtype: DType) -> str:
    """A triple loop over scalars: one multiply-add after the other."""
    b = Builder()
    compute = dtype.compute
    m, n, k = (b.param(i) for i in range(3))
    with b.loop(0, m) as row, b.loop(0, n) as column:
        loop = b.loop(0, k, carry=[b.const(0, compute)])
        with loop as (step, (total,)):
            x = b.load(b.input(0), b.add(b.mul(row, k), step), dtype)
            y = b.load(b.input(1), b.add(b.mul(step, n), column), dtype)
            if dtype.kind == "b":
                b.loop_next([b.or_(total, b.and_(x, y))])
            elif dtype.kind == "f":
                b.loop_next([b.fma(b.cast(x, compute), b.cast(y, compute), total)])
            else:
                b.loop_next([b.add(total, b.mul(x, y))])
        b.store(b.buffer(2), b.add(b.mul(row, n), column), b.cast(loop.results[0], dtype))
    return b.finish()


def reference(a: numpy.ndarray, b: numpy.ndarray, dtype: DType) -> numpy.ndarray:
    """The product of two matrices, or of each pair in a batch."""
    if a.ndim == 3:
        return numpy.stack([reference(x, y, dtype) for x, y in zip(a, b, strict=True)])
    a, b = numpy.ascontiguousarray(a), numpy.ascontiguousarray(b)
    c = numpy.zeros((a.shape[0], b.shape[1]), dtype.numpy)
    buffers = [x.ctypes.data for x in (a, b, c)]
    call(reference_text(dtype), buffers, (*c.shape, a.shape[1]), (0, 1), jit.shared())
    return c


def random_matrix(shape: tuple[int, ...], dtype: DType, seed: int) -> numpy.ndarray:
    generator = numpy.random.default_rng(seed)
    if dtype.kind == "b":
        return generator.random(shape) < 0.2
    if dtype.kind != "f":
        limits = numpy.iinfo(dtype.numpy)
        return generator.integers(limits.min, limits.max, shape, dtype=dtype.numpy, endpoint=True)
    values = generator.standard_normal(shape)
    if dtype is dtypes.bfloat16:
        return (values.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
    return values.astype(dtype.numpy)


def laid_out(values: numpy.ndarray, transposed: bool) -> numpy.ndarray:
    """The same values, with columns contiguous in memory if ``transposed``."""
    if transposed:
        return numpy.ascontiguousarray(values.swapaxes(-1, -2)).swapaxes(-1, -2)
    return numpy.ascontiguousarray(values)


def strides(x: numpy.ndarray) -> Operand:
    steps = [step // x.itemsize for step in x.strides]
    return Operand(steps[0] if x.ndim == 3 else 0, steps[-2], steps[-1])


def problem_of(a: numpy.ndarray, b: numpy.ndarray, c: numpy.ndarray, dtype: DType) -> MatmulProblem:
    batch = c.shape[0] if c.ndim == 3 else 1
    m, n, k = c.shape[-2], c.shape[-1], a.shape[-1]
    return MatmulProblem(batch, m, n, k, strides(a), strides(b), strides(c), dtype)


def result_like(
    shape: tuple[int, ...], transposed: bool, dtype: DType
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """A result array inside a larger one, whose rest must stay as it is."""
    padded = (*shape[:-2], shape[-1] + 3, shape[-2] + 5) if transposed else (*shape[:-1], shape[-1] + 3)
    whole = numpy.full(padded, 77, dtype.numpy)
    if transposed:
        return whole.swapaxes(-1, -2)[..., : shape[-2], : shape[-1]], whole
    return whole[..., : shape[-1]], whole


def bits(x: numpy.ndarray) -> numpy.ndarray:
    return numpy.ascontiguousarray(x).view(f"u{x.itemsize}")


def check(
    a: numpy.ndarray,
    b: numpy.ndarray,
    transposed: bool,
    dtype: DType,
    expected: numpy.ndarray,
    cuts: Sequence[float] = CUTS,
    vector_bits: int | None = None,
    compiler: jit.Jit | None = None,
) -> None:
    """Every way to compute the product gives the expected bits and touches nothing else."""
    c, whole = result_like(expected.shape, transposed, dtype)
    problem = problem_of(a, b, c, dtype)
    for choice, cut in zip(range(count_choices(problem, vector_bits)), itertools.cycle(cuts)):
        whole[:] = 77
        plan = plan_matmul(problem, vector_bits=vector_bits, choice=choice)
        execute(plan, {"a": a, "b": b, "c": c}, cut, compiler)
        assert (bits(c) == bits(expected)).all(), f"choice {choice} of {problem}"
        assert numpy.count_nonzero(whole != numpy.array(77, whole.dtype)) <= expected.size
        c[:] = 77
        assert (whole == numpy.array(77, whole.dtype)).all(), f"choice {choice} of {problem} wrote outside c"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_every_way_gives_the_bits_of_the_scalar_loop(dtype: DType, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = random_matrix((m, k), dtype, 1), random_matrix((k, n), dtype, 2)
    expected = reference(a, b, dtype)
    for transpositions in itertools.product((False, True), repeat=3):
        left, right = laid_out(a, transpositions[0]), laid_out(b, transpositions[1])
        check(left, right, transpositions[2], dtype, expected)


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d.kind in "biu"], ids=str)
def test_integers_wrap_and_bool_is_any(dtype: DType) -> None:
    a, b = random_matrix((7, 19), dtype, 1), random_matrix((19, 37), dtype, 2)
    expected = reference(a, b, dtype)
    if dtype.kind != "b":
        assert (expected == a @ b).all()
    for transpositions in itertools.product((False, True), repeat=3):
        check(
            laid_out(a, transpositions[0]), laid_out(b, transpositions[1]), transpositions[2], dtype, expected
        )


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.int32], ids=str)
@pytest.mark.parametrize("broadcast", ["none", "left", "right"])
def test_batches(broadcast: str, dtype: DType) -> None:
    for m, n, k in ((1, 70, 33), (14, 35, 40), (50, 8, 20)):
        a = random_matrix((1 if broadcast == "left" else 3, m, k), dtype, 1)
        b = random_matrix((1 if broadcast == "right" else 3, k, n), dtype, 2)
        wide_a, wide_b = numpy.broadcast_to(a, (3, m, k)), numpy.broadcast_to(b, (3, k, n))
        expected = reference(wide_a, wide_b, dtype)
        for left, right, result in itertools.product((False, True), repeat=3):
            x = numpy.broadcast_to(laid_out(a, left), (3, m, k))
            y = numpy.broadcast_to(laid_out(b, right), (3, k, n))
            check(x, y, result, dtype, expected)


def test_any_strides() -> None:
    dtype = dtypes.float32
    a, b = random_matrix((40, 60), dtype, 1), random_matrix((60, 140), dtype, 2)
    for left, right in ((a[::2, ::3], b[::3, ::2]), (a[::-1, :20], b[:20, ::-1]), (a[:, 20::-1], b[20::-1])):
        check(left, right, False, dtype, reference(left, right, dtype))


def before_a_guard(values: numpy.ndarray, apart: int) -> numpy.ndarray:
    """The same rows, ``apart`` elements from each other, the last one ending where memory may not be read."""
    rows, columns = values.shape
    size = ((rows - 1) * apart + columns) * values.itemsize
    end = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, end + mmap.PAGESIZE)
    first = numpy.frombuffer(memory, numpy.uint8).ctypes.data
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(first + end), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    flat = numpy.frombuffer(memory, values.dtype, size // values.itemsize, end - size)
    found = numpy.lib.stride_tricks.as_strided(
        flat, values.shape, (apart * values.itemsize, values.itemsize), writeable=True
    )
    found[:] = values
    return found


@pytest.mark.parametrize("vector_bits", [256, 512])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_nothing_behind_an_operand_is_read(dtype: DType, vector_bits: int) -> None:
    for (m, n, k), gap in itertools.product(
        [(1, 200, 70), (3, 37, 300), (7, 3, 40), (30, 130, 9), (2, 9, 1)], (0, 1, 5)
    ):
        a, b = random_matrix((m, k), dtype, m), random_matrix((k, n), dtype, n)
        check(
            before_a_guard(a, k + gap),
            before_a_guard(b, n + gap),
            False,
            dtype,
            reference(a, b, dtype),
            (1.0,),
            vector_bits,
        )


@pytest.mark.parametrize("vector_bits", [256, 512])
def test_rows_of_the_right_operand_that_overlap_or_go_back(vector_bits: int) -> None:
    dtype = dtypes.float32
    a, flat = random_matrix((5, 40), dtype, 1), random_matrix((1, 400), dtype, 2)[0]
    for apart, first in ((0, 0), (1, 0), (3, 0), (-3, 130), (-60, 345)):
        b = numpy.lib.stride_tricks.as_strided(flat[first:], (5 if apart == -60 else 40, 37), (4 * apart, 4))
        left = numpy.ascontiguousarray(a[:, : len(b)])
        check(left, b, False, dtype, reference(left, b, dtype), (0.5,), vector_bits)


def test_batch_of_equal_right_operands_becomes_rows() -> None:
    a, b = random_matrix((5, 4, 6), dtypes.float32, 1), random_matrix((6, 64), dtypes.float32, 2)
    c = numpy.empty((5, 4, 64), numpy.float32)
    problem = problem_of(a, numpy.broadcast_to(b, (5, 6, 64)), c, dtypes.float32)
    rows = plan_matmul(problem_of(a.reshape(20, 6), b, c.reshape(20, 64), dtypes.float32))
    plan = plan_matmul(problem)
    assert [step.work for step in plan.calls] == [step.work for step in rows.calls]
    execute(plan, {"a": a, "b": b, "c": c})
    assert (c == reference(a, numpy.broadcast_to(b, (5, 6, 64)), dtypes.float32)).all()


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.int64], ids=str)
def test_contraction_over_nothing_is_zero(dtype: DType) -> None:
    for m, n in ((5, 40), (1, 70), (40, 3)):
        a, b = numpy.ones((m, 0), dtype.numpy), numpy.ones((0, n), dtype.numpy)
        for transposed in (False, True):
            check(a, b, transposed, dtype, numpy.zeros((m, n), dtype.numpy))


def test_no_elements_no_work() -> None:
    for batch, m, n in ((0, 2, 2), (1, 0, 2), (1, 2, 0)):
        shape = Operand(0, 2, 1)
        assert plan_matmul(MatmulProblem(batch, m, n, 2, shape, shape, shape, dtypes.float32)).calls == []


def test_special_values_flow() -> None:
    values = numpy.array(
        [0.0, -0.0, 1e-42, -1e-45, numpy.inf, -numpy.inf, numpy.nan, 3e38, 1.0], numpy.float32
    )
    generator = numpy.random.default_rng(3)
    a, b = generator.choice(values[:4], (30, 40)), generator.choice(values[[0, 1, 2, 8]], (40, 50))
    check(a, b, False, dtypes.float32, reference(a, b, dtypes.float32))
    a[::3], b[:, ::4] = generator.choice(values, (10, 40)), generator.choice(values, (40, 13))
    expected = reference(a, b, dtypes.float32)
    c = numpy.empty((30, 50), numpy.float32)
    problem = problem_of(a, b, c, dtypes.float32)
    for choice in range(count_choices(problem)):
        execute(plan_matmul(problem, choice=choice), {"a": a, "b": b, "c": c})
        # the sign and payload of a NaN are not part of a result
        numpy.testing.assert_array_equal(c, expected)


def test_row_alone_equals_row_in_batch() -> None:
    a, b = random_matrix((37, 200), dtypes.float32, 1), random_matrix((200, 90), dtypes.float32, 2)
    for transposed in (False, True):
        right = laid_out(b, transposed)
        together = numpy.empty((37, 90), numpy.float32)
        problem = problem_of(a, right, together, dtypes.float32)
        execute(plan_matmul(problem), {"a": a, "b": right, "c": together})
        for row in (0, 11, 36):
            alone = numpy.empty((1, 90), numpy.float32)
            problem = problem_of(a[row : row + 1], right, alone, dtypes.float32)
            execute(plan_matmul(problem), {"a": a[row : row + 1], "b": right, "c": alone})
            assert (bits(alone[0]) == bits(together[row])).all()


@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_rows_of_several_panels_at_once(transposed: bool, begins: bool) -> None:
    """Where whole rows of the left operand are too long for the cache, part after part of them meets several panels."""
    m, k, n = 210, 1100, 530
    a, b = random_matrix((m, k), dtypes.float32, 1), random_matrix((k, n), dtypes.float32, 2)
    right = laid_out(b, transposed)

    def product(rows: slice) -> numpy.ndarray:
        left = a[rows]
        found = numpy.full((len(left), n), 3, numpy.float32)
        problem = replace(problem_of(left, right, found, dtypes.float32), accumulates=begins)
        plan = plan_matmul(problem)
        execute(plan, {"a": left, "b": right, "c": found, "start": found}, 0.5)
        if len(left) == m:
            assert dict(zip(PARAMS, plan.calls[-1].params, strict=True))["group"] > 1
        return found

    together = product(slice(None))
    for row in (0, 100, m - 1):
        assert (bits(product(slice(row, row + 1))) == bits(together[row])).all()


class BiasReluTwice(Epilogue):
    """max(sum + bias[col], 0), and the sum itself transposed."""

    key = "bias relu twice"
    buffers = 3
    params = 3
    instructions = 8

    def emit(self, b: Builder, acc: Val, row: Val, col: Val, mask: Val | None, batch: Val) -> None:
        rows, columns, scale = (b.param(i) for i in range(3))
        start = b.add(b.mul(b.add(b.mul(batch, rows), row), columns), col)
        bias = b.load(b.buffer(0), col, dtypes.float32, 16, mask)
        b.store(b.buffer(1), start, b.maximum(b.add(acc, bias), 0.0), mask)
        turned = b.add(b.mul(b.add(b.mul(batch, columns), col), rows), row)
        times = b.splat(b.cast(scale, dtypes.float32))
        b.store_strided(b.buffer(2), turned, rows, b.mul(acc, times), mask)


@pytest.mark.parametrize(
    "shape",
    [
        *[(3, 30, 33, 50), (1, 200, 40, 7), (2, 1, 50, 33), (1, 20, 10, 1100), (5, 150, 130, 1100)],
        *[(2, 35, 3, 37), (1, 40, 1, 20)],
    ],
    ids=str,
)
@pytest.mark.parametrize("transposed", [False, True])
def test_epilogue(transposed: bool, shape: tuple[int, int, int, int]) -> None:
    batch, m, n, k = shape
    a = random_matrix((batch, m, k), dtypes.float32, 1)
    b = laid_out(random_matrix((batch, k, n), dtypes.float32, 2), transposed)
    bias = random_matrix((n,), dtypes.float32, 3)
    sums = reference(a, b, dtypes.float32)
    problem = MatmulProblem(batch, m, n, k, strides(a), strides(b), Operand(0, 0, 0), dtypes.float32)
    for choice in range(count_choices(problem, epilogue=BiasReluTwice())):
        first, second = numpy.zeros_like(sums), numpy.zeros_like(sums.swapaxes(1, 2).copy())
        arrays = {"a": a, "b": b, "epilogue0": bias, "epilogue1": first, "epilogue2": second}
        execute(plan_matmul(problem, BiasReluTwice(), (m, n, 2), choice=choice), arrays, 0.5)
        assert (first == numpy.maximum(sums + bias, 0)).all()
        assert (second == sums.swapaxes(1, 2) * 2).all()


def test_epilogue_checks_its_parameters() -> None:
    problem = MatmulProblem(1, 2, 2, 2, *[Operand(0, 2, 1)] * 3, dtypes.float32)
    with pytest.raises(ValueError, match="number of parameters"):
        plan_matmul(problem, BiasReluTwice())
    with pytest.raises(ValueError, match="contiguous"):
        plan_matmul(MatmulProblem(1, 2, 2, 2, *[Operand(0, 4, 2)] * 3, dtypes.float32))


@pytest.mark.parametrize("processor", EMULATED)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_bits_do_not_depend_on_the_processor(dtype: DType, processor: str, tmp_path: Path) -> None:
    if not runnable(processor):
        pytest.skip(f"this processor does not run code for {processor}")
    narrow = jit.Jit(tmp_path, processor)
    for m, n, k in ((1, 40, 30), (2, 50, 20), (17, 35, 300), (40, 9, 20)):
        a, b = random_matrix((m, k), dtype, 1), random_matrix((k, n), dtype, 2)
        expected = reference(a, b, dtype)
        for transposed in (False, True):
            check(a, laid_out(b, transposed), transposed, dtype, expected, (0.5,), 256, narrow)


def test_texts_do_not_depend_on_sizes() -> None:
    texts: dict[str, str] = {}
    for m, n, k in itertools.product((1, 2, 5, 64, 700), (1, 10, 33, 512), (1, 100, 2000)):
        for a, b in itertools.product(
            (Operand(0, k, 1), Operand(0, 1, m)), (Operand(0, n, 1), Operand(0, 1, k))
        ):
            problem = MatmulProblem(1, m, n, k, a, b, Operand(0, n, 1), dtypes.float32)
            for step in plan_matmul(problem).calls:
                assert texts.setdefault(step.text_key, step.text) == step.text
                assert step.work > 0
                assert step.grain > 0
    assert len(texts) <= 5 + len(HEIGHTS)
    assert len(set(texts.values())) == len(texts)


@pytest.mark.parametrize(
    ("sizes", "packs"),
    [
        ((64, 64, 64), False),
        ((256, 256, 256), True),
        ((1000, 1000, 1000), True),
        ((16, 512, 512), True),
        ((1, 2048, 2048), False),
    ],
)
def test_narrow_registers_read_large_right_operands_from_a_copy(
    sizes: tuple[int, int, int], packs: bool
) -> None:
    m, n, k = sizes
    problem = MatmulProblem(1, m, n, k, Operand(0, k, 1), Operand(0, n, 1), Operand(0, n, 1), dtypes.float32)
    calls = plan_matmul(problem, vector_bits=256).calls
    assert [call.name for call in calls] == ["pack", "matmul"][not packs :]


@pytest.mark.parametrize(("batch", "panels"), [(1, 1), (1, 3), (2, 2), (8, 1), (5, 9)])
@pytest.mark.parametrize("m", [48, 97, 480, 1500])
def test_the_rows_of_large_products_are_work_for_several_threads(m: int, batch: int, panels: int) -> None:
    """About eight work items of at least 48 rows, whatever the last one is; more where rows leave the cache."""

    def blocks(m: int, k: int) -> int:
        whole = Operand(0, 1, 1)
        problem = MatmulProblem(batch, m, 32 * panels, k, whole, whole, whole, dtypes.float32)
        rows = block_rows(problem, panels, k)
        assert rows == m or rows % 4 == 0
        assert -(-m // rows) == 1 or 32 <= rows <= MAX_BLOCK_ROWS
        return -(-m // rows)

    wanted = -(-8 // (panels * batch))
    # rows of 600 elements stay in the cache for all blocks that are considered
    assert blocks(m, 600) == max(-(-m // MAX_BLOCK_ROWS), min(-(-m // 48), wanted))
    assert blocks(m, 1 << 18) == -(-m // 48)
    assert blocks(40, 1) == 1


@pytest.mark.parametrize("k", [64, 512, 4096])
@pytest.mark.parametrize("n", [16, 100, 1000])
def test_a_vector_times_a_transposed_matrix_copies_nothing(n: int, k: int) -> None:
    """Packing reads and writes every element once, for a product that reads each once itself; many rows repay it."""

    def scratch(m: int) -> list[int]:
        operands = Operand(0, k, 1), Operand(0, 1, k), Operand(0, n, 1)
        return plan_matmul(MatmulProblem(1, m, n, k, *operands, dtypes.float32)).scratch_bytes

    assert scratch(1) == []
    assert len(scratch(64)) == 1


@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_matrix_times_a_few_columns_copies_nothing(n: int) -> None:
    """Rows are transposed in registers for all columns at once, also where an epilogue takes the sums."""
    operands = Operand(0, 1000, 1), Operand(0, 1, 1000), Operand(0, 0, 0)
    problem = MatmulProblem(1, 200, n, 1000, *operands, dtypes.float32)
    (call,) = plan_matmul(problem, BiasReluTwice(), (200, n, 2)).calls
    assert "flipped" in call.text_key


@pytest.mark.parametrize("m", [1, 7])
def test_few_rows_read_a_large_matrix_in_long_runs(m: int) -> None:
    """A few steps of k for many columns, not all steps for few: the rows of the matrix lie far apart."""

    def product(n: int, k: int) -> tuple[dict[str, int], list[int]]:
        operands = Operand(0, k, 1), Operand(0, n, 1), Operand(0, n, 1)
        plan = plan_matmul(MatmulProblem(1, m, n, k, *operands, dtypes.float32), vector_bits=512)
        return dict(zip(PARAMS, plan.calls[-1].params, strict=True)), plan.scratch_bytes

    numbers, scratch = product(2048, 2048)
    assert numbers["b_direct"] and not scratch
    assert numbers["block_k"] <= 16 and numbers["group"] * numbers["groups"] >= numbers["panels"]
    assert numbers["groups"] == 2


def test_a_plan_for_all_sizes_divides_a_product_as_the_plan_for_its_sizes_does() -> None:
    def division(m: int, n: int, k: int) -> list[int]:
        operands = Operand(0, k, 1), Operand(0, 1, k), Operand(0, n, 1)
        plan = plan_matmul(MatmulProblem(1, m, n, k, *operands, dtypes.float32), vector_bits=512, choice=0)
        numbers = dict(zip(PARAMS, plan.calls[-1].params, strict=True))
        return [numbers[name] for name in ("block_rows", "block_k", "group", "groups", "row_blocks")]

    recording = Recording([1500, 1600, 1700], [1, 1, 1])
    symbols = division(*recording.inputs)
    groups = set()
    for sizes in itertools.product((30, 700, 2048), (40, 2200), (50, 513, 2000)):
        wanted = division(*sizes)
        assert [recording.at(number, dict(enumerate(sizes))) for number in symbols] == wanted
        groups.add(wanted[2] > 1)
    assert groups == {False, True}


@pytest.mark.parametrize("k", [1, 256, 257, 1000, 1025, 4097])
def test_long_contractions_are_cut_into_equal_blocks(k: int) -> None:
    """As few as keep what is read in the cache: 1024 steps, or 256 where an operand is read in strides."""
    limits = set()
    for left in (Operand(0, 1, 70), Operand(0, k, 1)):
        problem = MatmulProblem(1, 70, 90, k, left, Operand(0, 90, 1), Operand(0, 90, 1), dtypes.float32)
        for choice in range(count_choices(problem)):
            plan = plan_matmul(problem, choice=choice)
            numbers = dict(zip(PARAMS, plan.calls[-1].params, strict=True))
            limits.add(limit := 1024 if numbers["a_k"] == 1 and not numbers["b_direct"] else 256)
            assert numbers["block_k"] == -(-k // -(-k // limit))
    assert limits == {256, 1024}
