"""float16 and bfloat16 are converted by the same rule with and without instructions for it, and without libraries."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy
import pytest

from tests.compiler.lower.processors import EMULATED, runnable
from twofold import dtypes
from twofold.compiler import jit
from twofold.compiler.lower import halves
from twofold.compiler.lower.builder import LANES, Builder
from twofold.dtypes import DType
from twofold.ir.interpret import narrow

HALVES = [dtypes.float16, dtypes.bfloat16]
EVERY = numpy.arange(65536, dtype=numpy.uint32).astype(numpy.uint16)


def kernel_text(source: DType, target: DType, lanes: int) -> str:
    b = Builder()
    with b.loop(b.begin, b.end, lanes) as i:
        mask = b.lane_mask(b.sub(b.end, i)) if lanes > 1 else None
        b.store(b.buffer(1), i, b.cast(b.load(b.input(0), i, source, lanes, mask), target), mask)
    return b.finish()


def convert(x: numpy.ndarray, source: DType, target: DType, lanes: int, compiler: jit.Jit) -> numpy.ndarray:
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    result = numpy.empty(x.size, target.numpy)
    address = compiler.compile_kernels({"k": kernel_text(source, target, lanes)})["k"]
    buffers = (ctypes.c_void_p * 2)(x.ctypes.data, result.ctypes.data)
    assert kind(address)(ctypes.addressof(buffers), None, 0, x.size) == 0
    return result


def singles() -> numpy.ndarray:
    """float32 values at, beside and between all half types' values, and random bits."""
    middle = numpy.concatenate(
        [
            EVERY.view(numpy.float16).astype(numpy.float32),
            (EVERY.astype(numpy.uint32) << 16).view(numpy.float32),
        ]
    ).view(numpy.uint32)
    near = [
        middle + numpy.uint32(k) for k in (0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 2**32 - 1)
    ]
    words = numpy.random.default_rng(0).integers(0, 2**32, 300_000, dtype=numpy.uint32)
    return numpy.concatenate([*near, words]).view(numpy.float32)


def quiet(x: numpy.ndarray, dtype: DType) -> numpy.ndarray:
    """The bits of half types with signalling NaNs made quiet."""
    infinity, bit = (0x7C00, 0x0200) if dtype is dtypes.float16 else (0x7F80, 0x0040)
    bits = x.view(numpy.uint16)
    return numpy.where(bits & 0x7FFF > infinity, bits | bit, bits)


@pytest.fixture(params=["instructions", "integers"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "integers":
        monkeypatch.setattr(halves, "converts_float16", lambda: False)
    return request.param


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_to_a_half_type(dtype: DType, lanes: int, way: str, tmp_path: Path) -> None:
    x = singles()
    got = convert(x, dtypes.float32, dtype, lanes, jit.Jit(tmp_path)).view(numpy.uint16)
    with numpy.errstate(all="ignore"):
        expected = narrow(x, dtype).view(numpy.uint16)
    number = ~numpy.isnan(x)
    assert (got[number] == expected[number]).all()
    shift = 13 if dtype is dtypes.float16 else 16
    bit, mask, infinity = (0x200, 0x3FF, 0x7C00) if dtype is dtypes.float16 else (0x40, 0x7F, 0x7F80)
    bits = x[~number].view(numpy.uint32)
    assert (got[~number] == (bits >> 16 & 0x8000 | infinity | bit | bits >> shift & mask)).all()


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_from_a_half_type_and_back(dtype: DType, lanes: int, way: str, tmp_path: Path) -> None:
    x = EVERY.view(dtype.numpy)
    compiler = jit.Jit(tmp_path)
    wide = convert(x, dtype, dtypes.float32, lanes, compiler)
    if dtype is dtypes.float16:
        number = ~numpy.isnan(x)
        assert wide[number].tobytes() == x[number].astype(numpy.float32).tobytes()
    else:
        assert (wide.view(numpy.uint32) == EVERY.astype(numpy.uint32) << 16).all()
    back = convert(wide, dtypes.float32, dtype, lanes, compiler)
    assert (back.view(numpy.uint16) == quiet(x, dtype)).all()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_float64_is_rounded_once(dtype: DType, way: str, tmp_path: Path) -> None:
    near = singles()[::7]
    exact = near[numpy.isfinite(near)].astype(numpy.float64)
    step = numpy.spacing(exact)
    # halfway between two values of the half type, moved by less than float32 can hold
    x = numpy.concatenate([exact + k * step for k in (-1, 0, 1)])
    got = convert(x, dtypes.float64, dtype, LANES, jit.Jit(tmp_path)).view(numpy.uint16)
    with numpy.errstate(all="ignore"):
        assert (got == narrow(x, dtype).view(numpy.uint16)).all()


@pytest.mark.parametrize("processor", EMULATED)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_processor_gives_the_same_bits(
    processor: str, dtype: DType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not runnable(processor):
        pytest.skip(f"this processor does not run code for {processor}")
    here = jit.Jit(tmp_path)
    x = singles()[::5].copy()
    down = convert(x, dtypes.float32, dtype, LANES, here)
    up = convert(EVERY.view(dtype.numpy), dtype, dtypes.float32, LANES, here)
    if processor in ("x86-64", "nehalem"):
        monkeypatch.setattr(halves, "converts_float16", lambda: False)
    there = jit.Jit(tmp_path / "there", processor)
    assert convert(x, dtypes.float32, dtype, LANES, there).tobytes() == down.tobytes()
    assert convert(EVERY.view(dtype.numpy), dtype, dtypes.float32, LANES, there).tobytes() == up.tobytes()


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("instructions", [True, False])
def test_instructions_are_used_where_there_are_some(
    instructions: bool, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halves, "converts_float16", lambda: instructions)
    for source, target, name in (
        (dtypes.float32, dtypes.float16, "fptrunc"),
        (dtypes.float16, dtypes.float32, "fpext"),
    ):
        assert (name in kernel_text(source, target, lanes)) is instructions
    for source, target in ((dtypes.float32, dtypes.bfloat16), (dtypes.bfloat16, dtypes.float32)):
        text = kernel_text(source, target, lanes)
        assert "fptrunc" not in text and "fpext" not in text
