"""The namespace of the array API standard against NumPy, which follows the same standard."""

from __future__ import annotations

import cmath
import inspect
import math
from typing import Any

import numpy
import pytest

import twofold.array_api as xp
from twofold.array_api import elementwise

DTYPES = list(xp.__array_namespace_info__().dtypes().values())
ELEMENTWISE = sorted(
    name for name, value in vars(elementwise).items() if inspect.isfunction(value) and hasattr(numpy, name)
)
SHAPES: list[tuple[int, ...]] = [(), (1,), (0, 3), (2, 5)]


def draw(dtype: Any, shape: tuple[int, ...], seed: int) -> numpy.ndarray:
    generator = numpy.random.default_rng(seed)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return generator.integers(1, 6, shape).astype(dtype.numpy)
    values = generator.uniform(0.1, 0.9, shape)
    if dtype.kind == "c":
        values = values + 1j * generator.uniform(0.1, 0.9, shape)
    return numpy.asarray(values).astype(dtype.numpy)


def close(found: Any, expected: Any) -> None:
    expected = numpy.asarray(expected)
    array = numpy.asarray(found.numpy())
    assert array.shape == expected.shape
    assert array.dtype == expected.dtype
    wide = expected.dtype.itemsize >= (16 if expected.dtype.kind == "c" else 8)
    tolerance = 0 if expected.dtype.kind in "biu" else 1e-13 if wide else 3e-6
    numpy.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance)


def operands(name: str) -> int:
    positional = inspect.signature(getattr(xp, name)).parameters.values()
    return sum(parameter.default is inspect.Parameter.empty for parameter in positional)


def accepted(name: str, arrays: list[Any]) -> bool:
    """Whether NumPy computes this and the standard defines it: no rounding functions of bools, no float results
    of integers, whose precision the standard leaves open."""
    try:
        with numpy.errstate(all="ignore"):
            result = numpy.asarray(getattr(numpy, name)(*arrays))
    except TypeError:
        return False
    kind = arrays[0].dtype.kind
    if kind not in OWN_KINDS.get(name, "biufc"):
        return False
    return not (kind in "biu" and result.dtype.kind in "fc") and not (
        kind == "b" and result.dtype.kind != "b"
    )


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions(name: str) -> None:
    checked = 0
    for dtype in DTYPES:
        for shape in SHAPES:
            arrays = [draw(dtype, shape, seed) for seed in range(operands(name))]
            if not accepted(name, arrays):
                continue
            with numpy.errstate(all="ignore"):
                expected = getattr(numpy, name)(*arrays)
            close(getattr(xp, name)(*map(xp.asarray, arrays)), expected)
            checked += 1
    assert checked


# NumPy computes more than the standard defines.
ORDERED = dict.fromkeys(("greater", "greater_equal", "less", "less_equal", "maximum", "minimum"), "iuf")
WHOLE = dict.fromkeys(("floor", "ceil", "trunc", "round", "sign", "negative", "reciprocal"), "iufc")
OWN_KINDS = {**ORDERED, **WHOLE, "imag": "c", "reciprocal": "fc", "clip": "iuf"}

CALLS: list[tuple[str, list[tuple[int, ...]], dict[str, Any]]] = [
    ("sum", [(3, 4)], {"axis": 1}),
    ("sum", [(3, 4)], {"axis": (0, 1), "keepdims": True}),
    ("prod", [(3, 4)], {"axis": (0, 1)}),
    ("mean", [(3, 4)], {}),
    ("var", [(3, 4)], {"axis": 0, "correction": 1}),
    ("std", [(3, 4)], {"axis": 0}),
    ("max", [(3, 4)], {"axis": -1}),
    ("min", [(3, 4)], {}),
    ("cumulative_sum", [(3, 4)], {"axis": 1, "include_initial": True}),
    ("cumulative_prod", [(4,)], {}),
    ("argmax", [(3, 4)], {"axis": 1, "keepdims": True}),
    ("argmin", [(3, 4)], {}),
    ("count_nonzero", [(3, 4)], {"axis": 0}),
    ("sort", [(3, 4)], {"axis": 0}),
    ("argsort", [(3, 4)], {"axis": -1}),
    ("flip", [(3, 4)], {}),
    ("roll", [(3, 4)], {"shift": 2, "axis": (0, 1)}),
    ("roll", [(3, 4)], {"shift": 5}),
    ("expand_dims", [(3, 4)], {"axis": 1}),
    ("diff", [(3, 4)], {"axis": 0, "n": 2}),
    ("tril", [(2, 3, 3)], {"k": -1}),
    ("triu", [(3, 4)], {"k": 1}),
    ("matmul", [(2, 3, 4), (4, 5)], {}),
    ("tensordot", [(3, 4), (4, 3)], {"axes": ((0, 1), (1, 0))}),
    ("vecdot", [(3, 4), (4,)], {}),
    ("all", [(3, 4)], {"axis": 0}),
    ("any", [(0, 3)], {"axis": 0}),
    ("squeeze", [(3, 1)], {"axis": 1}),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0]}-{call[2]}")
@pytest.mark.parametrize(
    "dtype", [d for d in DTYPES if d.name in ("int64", "float32", "complex128")], ids=str
)
def test_other_functions(call: Any, dtype: Any) -> None:
    name, shapes, keywords = call
    arrays = [draw(dtype, shape, seed) for seed, shape in enumerate(shapes)]
    if dtype.kind == "c" and name in {"max", "min", "argmax", "argmin", "sort", "argsort"}:
        pytest.skip("complex numbers have no order")
    if name in {"mean", "var", "std"} and dtype.kind != "f":
        pytest.skip("the standard leaves this open")
    expected = getattr(numpy, name)(*arrays, **keywords)
    close(getattr(xp, name)(*map(xp.asarray, arrays), **keywords), expected)


def test_numbers_keep_the_dtype_of_arrays() -> None:
    for dtype in DTYPES:
        x = xp.ones((2,), dtype=dtype)
        assert (x * 2).dtype is dtype if dtype.kind != "b" else True
        if dtype.kind in "fc":
            assert (x * 2.5).dtype is dtype
        if dtype.kind == "c":
            assert (x + 1j).dtype is dtype


def test_size_is_a_number_and_a_function() -> None:
    x = xp.zeros((2, 3))
    assert x.size == 6 and x.size() == (2, 3) and x.size(-1) == 3


def test_capsules_share_memory() -> None:
    x = xp.asarray([1.0, 2.0])
    shared = numpy.from_dlpack(x)
    assert shared.tolist() == [1.0, 2.0]
    assert xp.from_dlpack(numpy.arange(3)).numpy().tolist() == [0, 1, 2]


SPECIAL = [0.0, -0.0, 1.0, -2.5, 1e300, math.inf, -math.inf, math.nan]


def same_number(found: float, expected: float) -> bool:
    if math.isnan(expected):
        return math.isnan(found)
    if expected == 0 or math.isinf(expected):
        return found == expected
    return math.isclose(found, expected, rel_tol=1e-12)


# The C standard fixes these; where it leaves a sign open, both are accepted.
@pytest.mark.parametrize(
    "name", ["exp", "log", "sqrt", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "acos"]
)
def test_complex_functions_at_special_values(name: str) -> None:
    reference = getattr(cmath, name)
    for x in SPECIAL:
        for y in SPECIAL:
            try:
                expected = reference(complex(x, y))
            except (ValueError, OverflowError):
                continue
            # newer versions of the C standard follow the array API there, older ones do not
            open_before = name in ("tanh", "acosh") and x == 0 and not math.isfinite(y)
            if open_before or 1e300 in (abs(x), abs(y)):
                continue
            found = complex(getattr(xp, name)(xp.asarray(complex(x, y), dtype=xp.complex128)))
            signless = [(found.real, expected.real), (found.imag, expected.imag)]
            for part, wanted in signless:
                assert same_number(part, wanted) or same_number(-part, wanted), (name, x, y, found, expected)


def test_floor_divide_at_infinities() -> None:
    inf, nan = math.inf, math.nan
    x1 = [inf, inf, -inf, -inf, inf, 1.0, 1.0, -1.0, -1.0, nan, -7.0]
    x2 = [2.0, -2.0, 2.0, -2.0, inf, inf, -inf, inf, -inf, inf, 2.0]
    for dtype in (xp.float32, xp.float64):
        found = xp.floor_divide(xp.asarray(x1, dtype=dtype), xp.asarray(x2, dtype=dtype))
        wanted = [inf, -inf, -inf, inf, nan, 0.0, -0.0, -0.0, 0.0, nan, -4.0]
        assert list(map(repr, found.tolist())) == list(map(repr, wanted))
    assert xp.floor_divide(-inf, xp.asarray([2.0, -2.0])).tolist() == [-inf, inf]
    assert xp.floor_divide(xp.asarray([7, -7]), 2).tolist() == [3, -4]


def test_expm1_of_zeros() -> None:
    found = xp.expm1(
        xp.asarray([complex(-0.0, 0.0), complex(0.0, 0.0), complex(-0.0, -0.0)], dtype=xp.complex64)
    )
    assert list(map(repr, found.tolist())) == ["0j", "0j", "-0j"]
