"""Every element-wise function keeps the error that its entry promises, and docs/accuracy.md states it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from rounding_errors import DTYPES, bound, computed, errors, exact_values, measured_operations, operands

from twofold.dtypes import DType, float32, float64
from twofold.ir.interpret import widen
from twofold.ir.op import REGISTRY

PAGE = Path(__file__).parent.parent.parent / "docs" / "accuracy.md"
COUNT = 2000


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", measured_operations())
def test_errors_are_within_the_bound(name: str, dtype: DType) -> None:
    op: Any = REGISTRY[name]
    arrays = operands(op, dtype, COUNT)
    exact = exact_values(op, (), dtype, arrays)
    distance = errors(op, dtype, arrays, computed(op, (), dtype, arrays), exact)
    position = int(distance.argmax())
    at = [float(widen(array, dtype)[position]) for array in arrays]
    assert distance[position] <= bound(op, dtype), (distance[position], at, exact[position])


def test_the_page_states_the_bounds() -> None:
    page = PAGE.read_text()
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    exact = page[page.index("Without any error") :]
    for name in measured_operations():
        if name in rows:
            stated = [cell.strip() for cell in rows[name].split("|")[6:8]]
            assert stated == [f"{bound(REGISTRY[name], dtype):.4g}" for dtype in (float32, float64)], name
        else:
            assert f"`{name}`" in exact, f"{name} is not on the page: run bench/ulp.py"


def test_units_in_the_last_position() -> None:
    op: Any = REGISTRY["exp"]
    one, inf = numpy.ones(1, numpy.float32), numpy.full(1, numpy.inf, numpy.float32)
    above = numpy.nextafter(one, inf)
    for result, exact, expected in (
        (above, 1.0, 1.0),
        (one, 1 + 2.0**-24, 0.5),
        (numpy.float32([3e-45]), 1.4e-45, 1.0),
        (inf, 2.0**128, 0.0),
        (inf, 2.0**127, 2.0**23),
        (inf, numpy.nan, numpy.inf),
        (numpy.float32([numpy.nan]), 1.0, numpy.inf),
    ):
        found = errors(op, float32, [one], result, numpy.array([exact]))
        assert found[0] == pytest.approx(expected, rel=0.02)
