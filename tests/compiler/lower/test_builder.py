"""The builder's instructions, run and compared with NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy
import pytest

from twofold import dtypes
from twofold.compiler import jit
from twofold.compiler.lower import lanes
from twofold.compiler.lower import target as processor
from twofold.compiler.lower.builder import LANES, Builder, Val
from twofold.dtypes import ALL, DType
from twofold.ops import kernels

KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
REAL = [d for d in ALL if d.kind != "c"]
INTEGERS = [d for d in ALL if d.kind in "iu"]
BASIC = [*INTEGERS, dtypes.float32, dtypes.float64]


def run(b: Builder, arrays: list[numpy.ndarray], params: list[int] | None = None, items: int = 1) -> int:
    """Compile and run; the code that the kernel returns."""
    address = jit.compile_kernels({"kernel": b.finish()})["kernel"]
    buffers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    numbers = (ctypes.c_int64 * max(1, len(params or [])))(*(params or []))
    return KERNEL(address)(ctypes.addressof(buffers), ctypes.addressof(numbers), 0, items)


def apply(
    function: Callable[..., Val],
    operands: list[numpy.ndarray],
    sources: list[DType],
    target: DType,
    lanes: int,
) -> numpy.ndarray:
    """``function(builder, *values)`` at each element, with a masked tail for vectors."""
    size = operands[0].size
    b = Builder()
    with b.loop(b.begin, b.end, lanes) as i:
        mask = b.lane_mask(b.sub(b.end, i)) if lanes > 1 else None
        values = [b.load(b.input(k), i, d, lanes, mask) for k, d in enumerate(sources)]
        b.store(b.buffer(len(operands)), i, function(b, *values), mask)
    result = numpy.full(size + 16, 77, dtype=target.numpy)
    assert run(b, [*operands, result], items=size) == 0
    assert (result[size:] == numpy.array(77).astype(result.dtype)).all(), "a masked store wrote past the end"
    return result[:size]


def interesting(dtype: DType) -> numpy.ndarray:
    """Extreme, small and random values of a dtype (bfloat16 as its bits)."""
    generator = numpy.random.default_rng(dtype.code)
    if dtype.kind == "b":
        return numpy.array([True, False] * 18 + [True])
    if dtype is dtypes.bfloat16:
        return generator.integers(0, 2**16, 1003).astype(numpy.uint16)
    if dtype.kind == "c":
        parts = interesting(dtype.real)
        joined = numpy.empty(len(parts), dtype.numpy)
        joined.real, joined.imag = parts, parts[::-1]
        return joined
    if dtype.kind == "f":
        info = numpy.finfo(dtype.numpy)
        special = [
            0.0,
            -0.0,
            1.5,
            -2.5,
            0.5,
            300.7,
            -70000.3,
            info.max,
            info.min,
            info.tiny,
            numpy.inf,
            -numpy.inf,
        ]
        with numpy.errstate(over="ignore"):
            scaled = generator.normal(size=990) * 10.0 ** generator.uniform(-9, 11, 990)
            return numpy.concatenate([special, [numpy.nan], scaled]).astype(dtype.numpy)
    limits = numpy.iinfo(dtype.numpy)
    special = [limits.min, limits.max, limits.min + (dtype.kind == "i"), 0, 1, 2, 3, limits.max - 1]
    if dtype.kind == "i":
        special += [-1, -2, -7]
    near = generator.integers(limits.min // 2**60, 9, 300).tolist() if dtype.kind == "i" else list(range(250))
    wide = generator.integers(limits.min, limits.max, 690, dtype=dtype.numpy, endpoint=True)
    return numpy.concatenate([numpy.array([*special, *near], dtype=object).astype(dtype.numpy), wide])


def to_float32(dtype: DType, values: numpy.ndarray) -> numpy.ndarray:
    """bfloat16 bits as float32, anything else as it is."""
    if dtype is dtypes.bfloat16:
        return (values.astype(numpy.uint32) << 16).view(numpy.float32)
    return values


def expected_cast(values: numpy.ndarray, target: DType) -> numpy.ndarray:
    """The rule of ``Builder.cast`` in NumPy."""
    with numpy.errstate(all="ignore"):
        if target is dtypes.bfloat16:
            if values.dtype == numpy.float64:
                exact = values.astype(numpy.float32)
                above = numpy.abs(exact.astype(numpy.float64)) > numpy.abs(values)
                inexact = (exact.astype(numpy.float64) != values) & ~numpy.isnan(values)
                bits = exact.view(numpy.uint32) - above.astype(numpy.uint32)
                single = numpy.where(inexact, bits | 1, exact.view(numpy.uint32)).view(numpy.float32)
            else:
                single = values.astype(numpy.float32)
            bits = single.view(numpy.uint32).astype(numpy.uint64)
            rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
            return numpy.where(numpy.isnan(single), bits >> 16 | 0x40, rounded).astype(numpy.uint16)
        if target.kind in "iu" and values.dtype.kind == "f":
            limits = numpy.iinfo(target.numpy)
            wide = numpy.nan_to_num(values.astype(numpy.float64), nan=0.0)
            inside = (wide > limits.min - 1.0) & (wide < float(limits.max))
            clipped = numpy.where(wide < 0, limits.min, limits.max).astype(target.numpy)
            safe = numpy.where(inside, numpy.trunc(wide), 0)
            return numpy.where(inside, safe.astype(target.numpy), clipped)
        if target is dtypes.float16 and values.dtype.kind in "iu":
            return values.astype(numpy.float32).astype(numpy.float16)
        return values.astype(target.numpy)


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("source", REAL, ids=str)
def test_cast_matrix(source: DType, lanes: int) -> None:
    values = interesting(source)
    for target in REAL:
        result = apply(lambda b, x, target=target: b.cast(x, target), [values], [source], target, lanes)
        if source is target:
            expected = values
        else:
            expected = expected_cast(to_float32(source, values), target)
        numpy.testing.assert_array_equal(result, expected, err_msg=f"{source} to {target}")


def reference_division(a: numpy.ndarray, c: numpy.ndarray) -> dict[str, numpy.ndarray]:
    """Python's integer division by element, wrapped, with 0 for a zero divisor."""
    rows = {"idiv": [], "floor_div": [], "remainder": [], "fmod": []}
    for x, y in zip(a.tolist(), c.tolist(), strict=True):
        quotient = 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        rows["idiv"].append(quotient)
        rows["floor_div"].append(0 if y == 0 else x // y)
        rows["remainder"].append(0 if y == 0 else x % y)
        rows["fmod"].append(0 if y == 0 else x - quotient * y)
    wrap = 2 ** (a.dtype.itemsize * 8)
    return {
        name: numpy.array([v % wrap for v in row], dtype=numpy.uint64).astype(a.dtype)
        for name, row in rows.items()
    }


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_division(dtype: DType, lanes: int) -> None:
    values = interesting(dtype)
    a, c = (x.ravel().copy() for x in numpy.meshgrid(values[:40], values[:40]))
    for name, expected in reference_division(a, c).items():
        result = apply(
            lambda b, x, y, name=name: getattr(b, name)(x, y), [a, c], [dtype, dtype], dtype, lanes
        )
        numpy.testing.assert_array_equal(result, expected, err_msg=name)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_float_division(dtype: DType) -> None:
    values = interesting(dtype)[:60]
    a, c = (x.ravel().copy() for x in numpy.meshgrid(values, values))
    # multiples and their neighbours, whose quotients are rounded up to the next whole number
    generator = numpy.random.default_rng(0)
    divisors = generator.standard_normal(600).astype(dtype.numpy)
    multiples = divisors * (2 ** generator.uniform(0, 27, 600)).astype(numpy.int64).astype(dtype.numpy)
    near = numpy.nextafter(multiples, generator.choice([-numpy.inf, numpy.inf], 600).astype(dtype.numpy))
    a, c = numpy.concatenate([a, multiples, near]), numpy.concatenate([c, divisors, divisors])
    with numpy.errstate(all="ignore"):
        expected = {name: getattr(numpy, name)(a, c) for name in ("fmod", "remainder")}
        expected |= {"floor_div": numpy.floor_divide(a, c), "div": a / c}
    for name, exact in expected.items():
        result = apply(
            lambda b, x, y, name=name: getattr(b, name)(x, y), [a, c], [dtype, dtype], dtype, LANES
        )
        numpy.testing.assert_array_equal(result, exact, err_msg=name)


@pytest.mark.parametrize("dtype", BASIC, ids=str)
def test_arithmetic(dtype: DType) -> None:
    values = interesting(dtype)
    a, c = values, values[::-1].copy()
    kinds = ["eq", "ne", "lt", "le", "gt", "ge"]
    names = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
    with numpy.errstate(all="ignore"):
        for name, ufunc in [("add", "add"), ("sub", "subtract"), ("mul", "multiply")]:
            result = apply(
                lambda b, x, y, name=name: getattr(b, name)(x, y), [a, c], [dtype] * 2, dtype, LANES
            )
            numpy.testing.assert_array_equal(result, getattr(numpy, ufunc)(a, c))
        for name in ("minimum", "maximum"):
            result = apply(
                lambda b, x, y, name=name: getattr(b, name)(x, y), [a, c], [dtype] * 2, dtype, LANES
            )
            numpy.testing.assert_array_equal(result, getattr(numpy, name)(a, c))
        for kind, name in zip(kinds, names, strict=True):
            result = apply(
                lambda b, x, y, kind=kind: b.cmp(kind, x, y), [a, c], [dtype] * 2, dtypes.bool_, LANES
            )
            numpy.testing.assert_array_equal(result, getattr(numpy, name)(a, c))
        numpy.testing.assert_array_equal(apply(Builder.abs, [a], [dtype], dtype, LANES), numpy.abs(a))
        numpy.testing.assert_array_equal(apply(Builder.neg, [a], [dtype], dtype, LANES), numpy.negative(a))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_rounding(dtype: DType) -> None:
    values = interesting(dtype)
    for name in ("floor", "ceil", "trunc", "rint", "sqrt"):
        with numpy.errstate(invalid="ignore"):
            expected = getattr(numpy, name)(values)
        result = apply(lambda b, x, name=name: getattr(b, name)(x), [values], [dtype], dtype, LANES)
        numpy.testing.assert_array_equal(result, expected)
        assert (numpy.signbit(result) == numpy.signbit(expected))[~numpy.isnan(expected)].all()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts_are_defined_for_every_count(dtype: DType) -> None:
    width = dtype.itemsize * 8
    values = interesting(dtype)[:60]
    counts = numpy.array([0, 1, 3, width - 1, width, width + 1, 100], dtype=dtype.numpy)
    if dtype.kind == "i":
        counts = numpy.append(counts, [-1]).astype(dtype.numpy)
    a, c = (x.ravel().copy() for x in numpy.meshgrid(values, counts))
    counts_inside = [
        (x, y) if 0 <= y < width else (x, None) for x, y in zip(a.tolist(), c.tolist(), strict=True)
    ]
    left = [0 if y is None else x << y for x, y in counts_inside]
    right = [(-1 if x < 0 else 0) if y is None else x >> y for x, y in counts_inside]
    for name, exact in (("shl", left), ("shr", right)):
        wrapped = numpy.array([v % 2**width for v in exact], dtype=numpy.uint64).astype(dtype.numpy)
        result = apply(lambda b, x, y, name=name: getattr(b, name)(x, y), [a, c], [dtype] * 2, dtype, LANES)
        numpy.testing.assert_array_equal(result, wrapped, err_msg=name)


def test_mulhi() -> None:
    values = interesting(dtypes.uint32)
    other = values[::-1].copy()
    expected = (values.astype(numpy.uint64) * other >> 32).astype(numpy.uint32)
    result = apply(Builder.mulhi_u32, [values, other], [dtypes.uint32] * 2, dtypes.uint32, LANES)
    numpy.testing.assert_array_equal(result, expected)


def test_lane_reduction_is_the_stated_tree() -> None:
    generator = numpy.random.default_rng(5)
    values = (generator.normal(size=16) * 10.0 ** generator.uniform(-8, 8, 16)).astype(numpy.float32)
    tree = values.copy()
    for half in (8, 4, 2, 1):
        tree = tree[:half] + tree[half:]
    b = Builder()
    vector = b.load(b.input(0), 0, dtypes.float32, LANES)
    b.store(b.buffer(1), 0, b.reduce_lanes("sum", vector))
    b.store(b.buffer(1), 1, b.reduce_lanes("max", vector, b.lane_mask(3)))
    b.store(b.buffer(1), 2, b.reduce_lanes("prod", vector, b.lane_mask(0)))
    out = numpy.zeros(3, numpy.float32)
    run(b, [values, out])
    assert out.tolist() == [tree[0], values[:3].max(), 1.0]


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_strided_and_indexed_memory(dtype: DType) -> None:
    source = numpy.resize(interesting(dtype), 64)
    indices = numpy.random.default_rng(1).permutation(64)[:16].astype(numpy.int64)
    b = Builder()
    mask = b.lane_mask(11)
    b.store(b.buffer(2), 0, b.load_strided(b.input(0), 1, b.param(0), dtype, mask))
    where = b.load(b.input(1), 0, dtypes.int64, LANES)
    b.store_strided(b.buffer(2), 16, 2, b.load_indices(b.input(0), where, dtype), mask)
    b.store_indices(b.buffer(3), where, b.load(b.input(0), 0, dtype, LANES))
    out = numpy.zeros(64, dtype.numpy)
    scattered = numpy.zeros(64, dtype.numpy)
    run(b, [source, indices, out, scattered], [3])
    assert out[:11].tobytes() == source[1::3][:11].tobytes()
    assert not out[11:16].any()
    assert out[16:38:2].tobytes() == source[indices[:11]].tobytes()
    assert scattered[indices].tobytes() == source[:16].tobytes()


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_the_first_lanes_are_stored_and_no_others(
    dtype: DType, masks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "masks_stores", lambda: masks)
    source = numpy.resize(interesting(dtype), LANES)
    counts = range(-3, LANES + 3)
    b = Builder()
    with b.loop(b.begin, b.end) as row:
        mask = b.lane_mask(b.sub(row, 3))
        b.store(b.buffer(1), b.mul(row, LANES), b.load(b.input(0), 0, dtype, LANES), mask)
    out = numpy.resize(interesting(dtype)[::-1], (len(counts), LANES)).copy()
    before = out.copy()
    run(b, [source, out], items=len(counts))
    for row, count in enumerate(counts):
        stored = min(max(count, 0), LANES)
        assert out[row, :stored].tobytes() == source[:stored].tobytes()
        assert out[row, stored:].tobytes() == before[row, stored:].tobytes()


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("count", [-3, 0, 1, 7, LANES, LANES + 3])
def test_the_first_lanes_at_the_end_of_a_kernel(
    count: int, dtype: DType, masks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored next to each other, and loaded and stored a stride or indices apart."""
    monkeypatch.setattr(lanes, "masks_stores", lambda: masks)
    source = numpy.resize(interesting(dtype), 64)
    indices = numpy.random.default_rng(0).permutation(64)[:LANES]
    b = Builder()
    mask = b.lane_mask(b.param(0))
    b.store(b.buffer(2), 0, b.load(b.input(0), 0, dtype, LANES), mask)
    b.store(b.buffer(3), 0, b.load_strided(b.input(0), 1, b.param(1), dtype, mask))
    chosen = b.load(b.input(1), 0, dtypes.int64, LANES)
    b.store(b.buffer(4), 0, b.load_indices(b.input(0), chosen, dtype, mask))
    b.store_strided(b.buffer(5), 1, b.param(1), b.load(b.input(0), 0, dtype, LANES), mask)
    results = [numpy.resize(interesting(dtype)[::-1], 64).copy() for _ in range(4)]
    beside, strided, picked, apart = (result.copy() for result in results)
    run(b, [source, indices, *results], [count, 3])
    known = min(max(count, 0), LANES)
    beside[:known] = source[:known]
    strided[:LANES] = picked[:LANES] = numpy.zeros(1, source.dtype)
    strided[:known], picked[:known] = source[1::3][:known], source[indices[:known]]
    apart[1::3][:known] = source[:known]
    for found, wanted in zip(results, (beside, strided, picked, apart), strict=True):
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.skipif(not processor.streams(), reason="vectors are not written past the caches here")
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("dtype", [dtypes.int8, *BASIC[-2:], dtypes.float16, dtypes.complex64], ids=str)
def test_a_large_fill_begins_vectors_where_those_of_the_memory_begin(dtype: DType, streams: bool) -> None:
    b = Builder()
    large = b.cmp("ne", b.param(2), 0)
    kernels.fill_large(b, dtype, b.buffer(0), b.param(0), b.const(1, dtype), b.param(1), large)
    out = numpy.zeros(100, dtype.numpy)
    for at in (0, 1, 5, 15, 16, 31):
        for count in (0, 1, 7, 16, 17, 40, 69):
            out[...] = 0
            run(b, [out], [at, count, streams])
            assert out.astype(bool).tolist() == [at <= k < at + count for k in range(100)]


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("dtype", [dtypes.complex64, dtypes.complex128], ids=str)
def test_complex_elements(dtype: DType, lanes: int) -> None:
    values = interesting(dtype)
    others = values[::-1].copy()
    whole = apply(
        lambda b, x, y: b.select(b.cmp("gt", b.real_part(x), 0), x, y),
        [values, others],
        [dtype] * 2,
        dtype,
        lanes,
    )
    assert whole.tobytes() == numpy.where(values.real > 0, values, others).tobytes()
    turned = apply(
        lambda b, x: b.pack_complex(b.imaginary_part(x), b.real_part(x)), [values], [dtype], dtype, lanes
    )
    assert turned.real.tobytes() == values.imag.tobytes() and turned.imag.tobytes() == values.real.tobytes()


def test_long_elements_are_moved_by_vector_instructions() -> None:
    """LLVM takes masked and chosen vectors of 16-byte integers apart, lane by lane."""
    dtype, b = dtypes.complex128, Builder()
    mask, where = b.lane_mask(5), b.load(b.input(0), 0, dtypes.int64, LANES)
    x, y = b.load(b.input(1), 0, dtype, LANES, mask), b.load_indices(b.input(1), where, dtype, mask)
    b.store(b.buffer(2), 0, b.select(mask, x, y), mask)
    b.store_indices(b.buffer(2), where, x, mask)
    lines = [line for line in b.finish().splitlines() if "<16 x i128>" in line]
    assert lines and all("bitcast" in line for line in lines)


def test_nested_loops_carry_values() -> None:
    b = Builder()
    outer = b.loop(0, b.param(0), carry=[b.const(0, dtypes.int64), b.const(1, dtypes.int64)])
    with outer as (i, (total, product)):
        inner = b.loop(0, i, carry=[total])
        with inner as (j, (partial,)):
            b.loop_next([b.add(partial, b.mul(i, j))])
        branch = b.if_(b.cmp("eq", b.remainder(i, 2), 0))
        with branch:
            branch.give([b.mul(product, 3)])
        with branch.else_():
            branch.give([b.add(product, 1)])
        b.loop_next([inner.results[0], branch.results[0]])
    b.store(b.buffer(0), 0, outer.results[0])
    b.store(b.buffer(0), 1, outer.results[1])
    for count in (0, 1, 7):
        out = numpy.zeros(2, numpy.int64)
        assert run(b, [out], [count]) == 0
        product = 1
        for i in range(count):
            product = product * 3 if i % 2 == 0 else product + 1
        assert out.tolist() == [sum(i * j for i in range(count) for j in range(i)), product]


def test_failing_returns_the_code() -> None:
    b = Builder()
    with b.loop(b.begin, b.end) as i, b.if_(b.cmp("gt", b.load(b.input(0), i, dtypes.int64), 9)):
        b.fail(b.add(i, 5))
    assert run(b, [numpy.array([1, 2, 10, 3])], items=4) == 7
    assert run(b, [numpy.array([1, 2, 9, 3])], items=4) == 0


def test_stack_memory_and_constant_tables() -> None:
    b = Builder()
    scratch = b.alloca(dtypes.float16, 32)
    table = b.table(range(16, 32), dtypes.float16)
    with b.loop(0, 16) as i:
        b.store(scratch, b.sub(15, i), b.load(table, i, dtypes.float16))
    b.store(b.buffer(0), 0, b.load(scratch, 0, dtypes.float16, LANES))
    out = numpy.zeros(16, numpy.float16)
    run(b, [out])
    assert out.tolist() == list(range(31, 15, -1))


def test_equal_calls_give_equal_text() -> None:
    def text() -> str:
        b = Builder()
        with b.loop(b.begin, b.end, LANES) as i:
            x = b.load(b.input(0), i, dtypes.float32, LANES)
            b.store(b.buffer(1), i, b.math("sin", b.mul(x, 2.0)))
        return b.finish()

    assert text() == text()


def test_equal_instructions_are_emitted_once_but_never_across_scopes() -> None:
    b = Builder()
    n = b.param(0)
    assert b.add(n, 1).ref == b.add(n, 1).ref
    with b.if_(b.cmp("gt", n, 3)):
        inside = b.mul(n, 7)
        assert b.add(n, 1).ref == b.add(n, 1).ref
    assert b.mul(n, 7).ref != inside.ref
    signed, unsigned = b.cast(n, dtypes.int32), b.cast(n, dtypes.uint32)
    assert (signed.dtype, unsigned.dtype) == (dtypes.int32, dtypes.uint32)


def test_no_fast_math() -> None:
    b = Builder()
    x = b.load(b.input(0), 0, dtypes.float32, LANES)
    b.store(b.buffer(0), 0, b.add(b.mul(x, x), x))
    text = b.finish()
    assert not any(word in text for word in ("fast", "contract", "reassoc", "nnan", "vector.reduce"))
    # 1 + 2**-12 squared needs more bits than float32 has: a fused product would keep them
    values = numpy.full(16, 1 + 2**-12, numpy.float32)
    expected = values * values + values
    run(b, [values])
    assert values.tolist() == expected.tolist()


def test_mistakes_are_refused() -> None:
    b = Builder()
    single = b.const(1, dtypes.float32)
    with pytest.raises(TypeError, match="differ in dtype"):
        b.add(single, b.const(1, dtypes.float64))
    with pytest.raises(TypeError, match="cast first"):
        b.add(b.const(1, dtypes.float16), 1)
    with pytest.raises(TypeError, match="scalar int64"):
        b.load(b.input(0), single, dtypes.float32)
    with pytest.raises(TypeError, match="scalar bool"):
        b.if_(b.const(True, dtypes.bool_, LANES))
    with pytest.raises(KeyError):
        b.math("no such function", single)
    with pytest.raises(RuntimeError, match="loop_next"), b.loop(0, 3, carry=[single]):
        pass


def test_ranges_of_lanes_and_even_lanes() -> None:
    b = Builder()
    low, high = b.load(b.input(0), b.begin, dtypes.int64), b.load(b.input(1), b.begin, dtypes.int64)
    numbers = b.cast(b.iota(), dtypes.int32)
    b.prefetch(b.input(0), 1 << 40, dtypes.int64)
    inside = b.select(b.lane_range(low, high), numbers, -1)
    b.store(b.buffer(2), 0, inside)
    b.store(b.buffer(2), 16, b.even_lanes(numbers, b.add(numbers, 16)))
    for first, after in ((0, 16), (3, 7), (-5, 2), (9, 40), (7, 7), (12, 4), (-(2**40), 2**40)):
        result = numpy.zeros(32, numpy.int32)
        assert run(b, [numpy.array([first]), numpy.array([after]), result], items=1) == 0
        expected = [lane if first <= lane < after else -1 for lane in range(16)]
        assert result[:16].tolist() == expected
        assert result[16:].tolist() == list(range(0, 32, 2))


@pytest.mark.parametrize("value", [3.4028235e38, 3.40282357e38, 1e39, -1e39, 1e-46, 0.1, float("-inf")])
def test_a_literal_is_the_nearest_float32(value: float) -> None:
    b = Builder()
    b.store(b.buffer(0), 0, b.const(value, dtypes.float32))
    found = numpy.zeros(1, numpy.float32)
    run(b, [found])
    with numpy.errstate(over="ignore"):
        assert found[0] == numpy.float32(value)
