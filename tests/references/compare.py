"""Runs the calls of references and identities and compares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy
from declare import Call, Check, flat

import twofold as torch

NEAR = {"float16": 2e-3, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-9, "complex128": 1e-9}


def tensors(value: Any) -> Any:
    """``value`` with all arrays in it as tensors."""
    if isinstance(value, numpy.ndarray):
        return torch.tensor(value)
    if isinstance(value, (list, tuple)):
        return type(value)(tensors(item) for item in value)
    return value


def arrays(value: Any) -> Any:
    """``value`` with all tensors in it as arrays; the fields of named tuples in their order."""
    if isinstance(value, torch.Tensor):
        return value.detach().numpy()
    if isinstance(value, (list, tuple)):
        return [arrays(item) for item in value]
    return value


def assert_agree(found: Any, expected: Any, what: str, near: float = 0.0) -> None:
    """Equal kinds, equal shapes, and equal or (floating) near values."""
    found, expected = numpy.asarray(found), numpy.asarray(expected)
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}"
    assert _kind(found) == _kind(expected), f"{what}: {found.dtype}, not {expected.dtype}"
    if found.dtype.kind not in "fc":
        numpy.testing.assert_array_equal(found, expected, what)
        return
    near = near or max(NEAR.get(found.dtype.name, 1e-9), NEAR.get(expected.dtype.name, 1e-9))
    finite = numpy.abs(expected[numpy.isfinite(expected)])
    scale = max(1.0, finite.max(initial=0)) if finite.size else 1.0
    numpy.testing.assert_allclose(found, expected, rtol=near, atol=near * scale, err_msg=what)


def _kind(array: Any) -> str:
    return "i" if array.dtype.kind == "u" else str(array.dtype.kind)


def assert_pairs(found: Iterable[tuple[Any, ...]], what: str) -> None:
    """All pairs agree, and there is one at least; a third member says how near they must be."""
    count = 0
    for left, right, *near in found:
        assert_agree(left, right, f"{what}, pair {count}", *near)
        count += 1
    assert count, f"{what}: the identity says nothing"


def check_call(name: str, function: Any, check: Check, made: Call) -> None:
    """One call of a public function against its reference or identities."""
    result = function(*tensors(made.args), **{key: tensors(value) for key, value in made.options.items()})
    found = arrays(result)
    what = f"{name}{made.args!r:.200} {made.options!r:.200}"
    with numpy.errstate(all="ignore"):
        if check.identity:
            assert_pairs(check.rule(found, *made.args, **made.options), what)
            return
        expected = flat(check.rule(*made.args, **made.options))
    got = flat(found)
    assert len(got) == len(expected), f"{what}: {len(got)} results, not {len(expected)}"
    for one, other in zip(got, expected):
        assert_agree(one, other, what)
