"""Element types, their promotion lattice and their NumPy counterparts.

Promotion follows the Python array API standard (2024.12) inside a kind and, where the standard leaves
mixed kinds open, PyTorch: an integer tensor with a floating tensor gives the floating dtype.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from twofold import _core


class DType:
    """An element type, such as ``float32``; each exists once, so dtypes compare by identity.

    >>> import twofold as torch
    >>> torch.float32.itemsize, torch.float32.kind, str(torch.float32)
    (4, 'f', 'twofold.float32')
    """

    __slots__ = ("_numpy", "code", "itemsize", "kind", "name")

    def __init__(self, name: str, code: int, kind: str, itemsize: int, numpy_name: str | None) -> None:
        self.name = name
        self.code = code
        self.kind = kind
        self.itemsize = itemsize
        self._numpy = None if numpy_name is None else numpy.dtype(numpy_name)

    @property
    def numpy(self) -> numpy.dtype:
        """The NumPy dtype with the same layout (``uint16`` carries bfloat16, which NumPy lacks)."""
        return numpy.dtype("uint16") if self._numpy is None else self._numpy

    @property
    def compute(self) -> DType:
        """The dtype that arithmetic runs in: float32 for the two half types, else the dtype itself."""
        return float32 if self in (float16, bfloat16) else self

    @property
    def is_floating_point(self) -> bool:
        """Whether this is a real floating dtype."""
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        """Whether this is a complex dtype."""
        return self.kind == "c"

    @property
    def is_signed(self) -> bool:
        """Whether values may be negative."""
        return self.kind in "ifc"

    @property
    def is_differentiable(self) -> bool:
        """Whether values of this dtype may have gradients: real and complex floating dtypes."""
        return self.kind in "fc"

    @property
    def real(self) -> DType:
        """The dtype of the parts of a complex dtype; any other dtype itself.

        >>> complex64.real, int8.real
        (twofold.float32, twofold.int8)
        """
        return {8: float32, 16: float64}[self.itemsize] if self.kind == "c" else self

    @property
    def complex(self) -> DType:
        """The complex dtype whose parts hold this dtype: complex128 for float64, else complex64.

        >>> float64.complex, float16.complex, complex128.complex
        (twofold.complex128, twofold.complex64, twofold.complex128)
        """
        return self if self.kind == "c" else complex128 if self is float64 else complex64

    def __repr__(self) -> str:
        return f"twofold.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.name,)


def _named(name: str) -> DType:
    """The dtype of a name, ``string`` too, which is no dtype of define-by-run."""
    return next(dtype for dtype in BY_CODE if dtype.name == name)


bool_ = DType("bool", 0, "b", 1, "bool")
int8 = DType("int8", 1, "i", 1, "int8")
int16 = DType("int16", 2, "i", 2, "int16")
int32 = DType("int32", 3, "i", 4, "int32")
int64 = DType("int64", 4, "i", 8, "int64")
uint8 = DType("uint8", 5, "u", 1, "uint8")
uint16 = DType("uint16", 6, "u", 2, "uint16")
uint32 = DType("uint32", 7, "u", 4, "uint32")
uint64 = DType("uint64", 8, "u", 8, "uint64")
float16 = DType("float16", 9, "f", 2, "float16")
bfloat16 = DType("bfloat16", 10, "f", 2, None)
float32 = DType("float32", 11, "f", 4, "float32")
float64 = DType("float64", 12, "f", 8, "float64")
complex64 = DType("complex64", 13, "c", 8, "complex64")
complex128 = DType("complex128", 14, "c", 16, "complex128")
string = DType("string", 15, "S", 8, "int64")
"""Byte strings of define-then-run: elements are indices into a table of strings, equal where the strings are."""

ALL: tuple[DType, ...] = (
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
BY_CODE = (*ALL, string)
BY_NAME = {dtype.name: dtype for dtype in ALL}
_BY_NUMPY = {dtype._numpy: dtype for dtype in ALL if dtype._numpy is not None}


class Size(_core.SizeBase):
    """A shape: a tuple of sizes, and so are its slices, sums with tuples, and multiples.

    >>> import twofold as torch
    >>> torch.Size((2, 3)).numel()
    6
    >>> torch.zeros(2, 3, 4).shape[1:]
    twofold.Size([3, 4])
    """

    __slots__ = ()

    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"twofold.Size({list(self)})"


def as_dtype(value: object) -> DType:
    """The DType for a DType, a NumPy dtype, a name, or a Python scalar type, which is of 64 bits for each number.

    >>> as_dtype("float32") is as_dtype(numpy.float32) is float32, as_dtype(float) is float64
    (True, True)
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in BY_NAME:
        return BY_NAME[value]
    try:
        return _BY_NUMPY[numpy.dtype(value)]  # type: ignore[call-overload]
    except (KeyError, TypeError):
        raise TypeError(f"not a dtype of Twofold: {value!r}. Use one of {', '.join(BY_NAME)}.") from None


class _DefaultFloat(threading.local):
    dtype = float32


_default_float = _DefaultFloat()


def default_float() -> DType:
    """The floating dtype of what rules compute of integers and Python floats alone: float32.

    Define-by-run programs may choose another one for what they record (``torch.set_default_dtype``), whose operands
    are cast: graphs do not depend on it.

    >>> default_float()
    twofold.float32
    """
    return _default_float.dtype


@contextmanager
def rules_in_default(dtype: DType) -> Iterator[None]:
    """Let rules that run inside in this thread compute in another floating dtype by default.

    >>> with rules_in_default(float64):
    ...     promote_scalar(int32, float)
    twofold.float64
    """
    before = _default_float.dtype
    _default_float.dtype = dtype
    try:
        yield
    finally:
        _default_float.dtype = before


def promote(a: DType, b: DType) -> DType:
    """The dtype of a result computed from operands of dtypes ``a`` and ``b``.

    Raises TypeError for uint64 with a signed integer, which no dtype holds.

    >>> promote(int8, uint8), promote(int64, float32), promote(float16, bfloat16)
    (twofold.int16, twofold.float32, twofold.float32)
    """
    if a is b:
        return a
    if string in (a, b):
        raise TypeError(f"{a.name} and {b.name} have no common dtype. Convert one of them first.")
    rank = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    if "c" in (a.kind, b.kind):
        return complex128 if float64 in (a.real, b.real) else complex64
    if rank[a.kind] != rank[b.kind]:
        return a if rank[a.kind] > rank[b.kind] else b
    if a.kind == "f":
        if a.itemsize != b.itemsize:
            return a if a.itemsize > b.itemsize else b
        return float32
    if a.kind == b.kind:
        return a if a.itemsize > b.itemsize else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned.itemsize == 8:
        raise TypeError("uint64 with a signed integer has no common dtype. Cast one of them first.")
    return BY_NAME[f"int{unsigned.itemsize * 16}"]


def promote_scalar(dtype: DType, scalar: type) -> DType:
    """The dtype of a tensor of ``dtype`` combined with a Python scalar of type ``scalar``.

    >>> promote_scalar(int32, float), promote_scalar(float16, float), promote_scalar(bool_, int)
    (twofold.float32, twofold.float16, twofold.int64)
    >>> promote_scalar(float64, complex), promote_scalar(int8, complex)
    (twofold.complex128, twofold.complex64)
    """
    if dtype is string:
        raise TypeError(
            f"string and a Python {scalar.__name__} have no common dtype. Convert one of them first."
        )
    if scalar in (float, complex) and dtype.kind in "biu":
        dtype = default_float()
    if scalar is complex:
        return dtype.complex
    if scalar is int and dtype.kind == "b":
        return int64
    return dtype


class finfo:
    """Limits of a floating dtype (of a complex one: of its parts): ``bits``, ``eps``, ``max``, ``min``, ``tiny``.

    Raises TypeError for a dtype without fractions. Unlike PyTorch's, ``dtype`` is the dtype, not its name.

    >>> import twofold as torch
    >>> torch.finfo(torch.float32).bits, torch.finfo(torch.bfloat16).eps
    (32, 0.0078125)
    >>> torch.finfo(torch.complex64).max == torch.finfo(torch.float32).max
    True
    """

    def __init__(self, type: Any = None) -> None:
        dtype = float32 if type is None else as_dtype(getattr(type, "dtype", type)).real
        if dtype.kind != "f":
            raise TypeError(f"finfo: {dtype.name} holds integers. Use iinfo.")
        fraction, exponent = {
            "float16": (10, 5),
            "bfloat16": (7, 8),
            "float32": (23, 8),
            "float64": (52, 11),
        }[dtype.name]
        highest = 2 ** (exponent - 1) - 1
        self.dtype = dtype
        self.bits = 8 * dtype.itemsize
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**highest
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - highest)
        self.resolution = 10.0 ** -math.floor(fraction * math.log10(2))

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        shown = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({shown}, dtype={self.dtype.name})"


class iinfo:
    """Limits of an integer dtype: ``bits``, ``max``, ``min``; raises TypeError for any other.

    >>> import twofold as torch
    >>> torch.iinfo(torch.int8).min, torch.iinfo(torch.uint16).max
    (-128, 65535)
    """

    def __init__(self, type: Any) -> None:
        dtype = as_dtype(getattr(type, "dtype", type))
        if dtype.kind not in "iu":
            raise TypeError(f"iinfo: {dtype.name} holds no integers. Use finfo.")
        self.dtype = dtype
        self.bits = 8 * dtype.itemsize
        self.min = -(2 ** (self.bits - 1)) if dtype.kind == "i" else 0
        self.max = 2**self.bits - 1 + self.min

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"


def promote_types(type1: Any, type2: Any) -> DType:
    """The dtype that two dtypes promote to (PyTorch's name of ``promote``).

    >>> import twofold as torch
    >>> torch.promote_types(torch.int32, torch.float16)
    twofold.float16
    """
    return promote(as_dtype(type1), as_dtype(type2))
