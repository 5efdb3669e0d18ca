"""Typed operands of LLVM IR text: element types, vector types and literals."""

from __future__ import annotations

import math
import struct

from twofold import dtypes
from twofold.dtypes import DType

LANES = 16
"""Width of every vector, on every machine; narrower hardware splits it."""

SHARED = "; what several kernels call:\n"
"""In a text, what stands between a kernel and each module that defines a function which it calls."""

_SCALAR_TYPES: dict[DType, str] = {
    dtypes.bool_: "i1",
    dtypes.int8: "i8",
    dtypes.int16: "i16",
    dtypes.int32: "i32",
    dtypes.int64: "i64",
    dtypes.uint8: "i8",
    dtypes.uint16: "i16",
    dtypes.uint32: "i32",
    dtypes.uint64: "i64",
    # half types are their bits: processors without instructions for them would need library calls
    dtypes.float16: "i16",
    dtypes.bfloat16: "i16",
    dtypes.float32: "float",
    dtypes.float64: "double",
    # no arithmetic runs on whole complex elements: they are their bits, real part low
    dtypes.complex64: "i64",
    dtypes.complex128: "i128",
    dtypes.string: "i64",
}

_TYPES: dict[tuple[DType | None, int], str] = {
    (dtype, lanes): name if lanes == 1 else f"<{lanes} x {name}>"
    for dtype, name in _SCALAR_TYPES.items()
    for lanes in (1, 2, 4, 8, LANES, 2 * LANES)
}
_TYPES |= {(None, 1): "ptr", (None, LANES): f"<{LANES} x ptr>"}

SUFFIXES: dict[DType, str] = {
    dtype: {"float": "f32", "double": "f64"}.get(name, name) for dtype, name in _SCALAR_TYPES.items()
}
"""The name of each element type inside an overloaded intrinsic's name."""


def llvm_type(dtype: DType | None, lanes: int = 1) -> str:
    """The LLVM type of ``lanes`` elements of ``dtype`` (None: a pointer).

    >>> llvm_type(dtypes.float32, 16), llvm_type(dtypes.bool_)
    ('<16 x float>', 'i1')
    """
    return _TYPES[dtype, lanes]


def suffix(dtype: DType, lanes: int = 1) -> str:
    """The part of an intrinsic's name that states this type, such as ``v16f32``.

    >>> suffix(dtypes.float32, 16), suffix(dtypes.uint8)
    ('v16f32', 'i8')
    """
    return SUFFIXES[dtype] if lanes == 1 else f"v{lanes}{SUFFIXES[dtype]}"


class Val:
    """One operand: its LLVM text, element type (None: pointer) and number of lanes.

    ``open_nan`` tells that it may hold a NaN that arithmetic made: which sign and payload that has is up to the
    processor and the code generator, so it is settled before anyone sees its bits.

    >>> Val("%v1", dtypes.float32, 16).typed
    '<16 x float> %v1'
    """

    __slots__ = ("dtype", "lanes", "open_nan", "ref", "type")

    def __init__(self, ref: str, dtype: DType | None, lanes: int = 1) -> None:
        self.ref = ref
        self.dtype = dtype
        self.lanes = lanes
        self.type = _TYPES[dtype, lanes]
        self.open_nan = False

    @property
    def typed(self) -> str:
        """The operand with its type before it, as most instructions want it."""
        return f"{self.type} {self.ref}"

    @property
    def is_constant(self) -> bool:
        """Whether this is a literal rather than the result of an instruction."""
        return self.ref[0] not in "%@"

    def __repr__(self) -> str:
        return f"Val({self.typed})"


def round_float32(value: float) -> float:
    """The float32 nearest to ``value``, as a Python float; overflow gives an infinity.

    >>> round_float32(0.1)
    0.10000000149011612
    >>> round_float32(1e39), round_float32(-1e39)
    (inf, -inf)
    """
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def float32_bits(value: float) -> int:
    """The bit pattern of the float32 nearest to ``value``.

    >>> hex(float32_bits(1.0))
    '0x3f800000'
    """
    return int(struct.unpack("<I", struct.pack("<f", round_float32(value)))[0])


def bfloat16_bits(value: float) -> int:
    """The bit pattern of the bfloat16 nearest to ``value`` (through float32), ties to even.

    >>> hex(bfloat16_bits(1.0)), hex(bfloat16_bits(math.nan))
    ('0x3f80', '0x7fc0')
    """
    if math.isnan(value):
        return 0x7FC0
    bits = float32_bits(value)
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def float16_bits(value: float) -> int:
    """The bit pattern of the float16 nearest to ``value``, ties to even.

    >>> hex(float16_bits(1.0)), hex(float16_bits(1e9))
    ('0x3c00', '0x7c00')
    """
    if math.isnan(value):
        return 0x7E00
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def _complex_literal(value: complex, dtype: DType) -> str:
    form = "<ff" if dtype is dtypes.complex64 else "<dd"
    try:
        packed = struct.pack(form, value.real, value.imag)
    except OverflowError:
        packed = struct.pack(form, round_float32(value.real), round_float32(value.imag))
    return str(int.from_bytes(packed, "little"))


def literal(value: complex | bool | int | float, dtype: DType) -> str:
    """The text of a scalar constant of ``dtype``; integers wrap to its width.

    >>> literal(1.5, dtypes.float32), literal(-1, dtypes.uint8), literal(True, dtypes.bool_)
    ('0x3FF8000000000000', '255', 'true')
    """
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "c":
        return _complex_literal(complex(value), dtype)
    assert not isinstance(value, complex)
    if dtype.kind in "iu":
        width = dtype.itemsize * 8
        wrapped = int(value) & ((1 << width) - 1)
        return str(wrapped - (1 << width) if dtype.kind == "i" and wrapped >> (width - 1) else wrapped)
    value = float(value)
    if dtype is dtypes.float16:
        return str(float16_bits(value))
    if dtype is dtypes.bfloat16:
        return str(bfloat16_bits(value))
    if dtype is dtypes.float32:
        value = round_float32(value)
    if value != value:
        return "0x7FF8000000000000"
    return "0x" + struct.pack(">d", value).hex().upper()
