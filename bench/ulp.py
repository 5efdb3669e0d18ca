"""Largest errors of all element-wise functions, in units in the last place; writes docs/accuracy.md.

    python bench/ulp.py [--count 1000000] [--seconds 2] [names...]

Operations and their references come from the entries. Half types are measured at all bit patterns (functions of one
operand), the others at numbers of every size and of the entry's own domain, as many as ``--seconds`` allow the
reference. With names, the rows are printed and no file is written.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
from tqdm import tqdm

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "ops"))

import rounding_errors  # noqa: E402
from rounding_errors import DTYPES, SPECIAL, bound, computed, errors, exact_values, operands  # noqa: E402

from twofold.dtypes import DType, float32, float64  # noqa: E402
from twofold.ir.interpret import narrow, widen  # noqa: E402
from twofold.ir.op import REGISTRY  # noqa: E402

TARGET = ROOT / "docs" / "accuracy.md"
TRIAL = 2000

INTRODUCTION = """# Accuracy of functions

Largest errors found, in units in the last place (ulp) of the exact value, by `python bench/ulp.py`; 0.5 is correct
rounding. float16 and bfloat16 functions of one operand are measured at all numbers; the rest at numbers of every
exponent, at numbers around zero and at numbers of the domain the function is used on, {count:,} where the reference is
fast, fewer where it is slow. The exact value is that of the entry's reference: NumPy or, for special functions, series,
continued fractions and integrals written for this purpose (`twofold/ops/special/references.py`), in float64 for the
narrower types and in 80-bit extended precision for float64. `bound` is what the entry promises in float32 and
float64 and what `tests/ops/test_accuracy.py` checks; half types compute in float32 and round once more.

Marks: *a*, the error is relative to an amplitude where the value is less, as between the zeros of an oscillating
function; *r*, the promise holds in the range where the reference does, which leaves out huge operands.

"""


def worst(op: Any, dtype: DType, count: int) -> tuple[float, list[float]]:
    """The largest error and where it occurs."""
    arrays = operands(op, dtype, count)
    distance = errors(op, dtype, arrays, computed(op, (), dtype, arrays), exact_values(op, (), dtype, arrays))
    position = int(distance.argmax())
    return float(distance[position]), [float(widen(array, dtype)[position]) for array in arrays]


def affordable(op: Any, dtype: DType, count: int, seconds: float) -> int:
    """As many operands as the reference computes in the time given, a power of two times ``TRIAL``."""
    arrays = operands(op, dtype, TRIAL)
    start = time.perf_counter()
    exact_values(op, (), dtype, arrays)
    taken = time.perf_counter() - start
    found = TRIAL
    while 2 * found <= count and 2 * taken <= seconds:
        found, taken = 2 * found, 2 * taken
    return found


def special_values(op: Any) -> str:
    """Values at NaN, infinities, zeros and the smallest denormal of float32, for functions of one operand."""
    if len(op.parameter_names()) > 1:
        return ""
    given = narrow(numpy.array([*SPECIAL, numpy.ldexp(1.0, -149)]), float32)
    return ", ".join(f"{float(value):.4g}" for value in computed(op, (), float32, [given]))


def special_differences(op: Any) -> Iterator[str]:
    """Special operands at which a result is not what the reference says; of one operand, signs of zeros included."""
    positions: dict[str, list[str]] = {}
    for dtype in DTYPES:
        arrays = rounding_errors.special_operands(op, dtype)
        exact = exact_values(op, (), dtype, arrays)
        found = computed(op, (), dtype, arrays)
        wrong = errors(op, dtype, arrays, found, exact) > bound(op, dtype)
        values = widen(found, dtype)
        if len(arrays) == 1:
            wrong |= (values == 0) & (exact == 0) & (numpy.signbit(values) != numpy.signbit(exact))
        for position in numpy.flatnonzero(wrong):
            at = ", ".join(f"{float(widen(array, dtype)[position]):.4g}" for array in arrays)
            text = f"`{op.name}({at})` is {values[position]:.6g}, not {float(exact[position]):.6g}"
            positions.setdefault(text, []).append(dtype.name)
    for text, dtypes in positions.items():
        yield f"{text} ({', '.join(dtypes)})"


def row(op: Any, count: int, seconds: float, shown: bool) -> tuple[str, bool]:
    """A line of the table, and whether all results are exact."""
    cells, exact = [], True
    for dtype in DTYPES:
        whole = len(op.parameter_names()) == 1 and rounding_errors.BITS[dtype] < 24
        many = 2**16 if whole else affordable(op, dtype, count, seconds)
        error, where = worst(op, dtype, many)
        exact &= error == 0
        if error > bound(op, dtype):
            tqdm.write(
                f"{op.name} in {dtype.name}: {error:.2f} at {where}, above the bound {bound(op, dtype):.4g}"
            )
        if shown:
            tqdm.write(f"{op.name:32}{dtype.name:10}{error:12.4g} of {many:>8} at {where}")
        cells.append(f"{error:.2f}")
    promise = [f"{bound(op, dtype):.4g}" for dtype in (float32, float64)]
    mark = " ".join(
        letter
        for letter, value in (("a", op.amplitude), ("r", op.accurate_where))
        if value is not None
    )  # fmt: skip
    name = f"`{op.name}`" + (f" *{mark}*" if mark else "")
    return f"| {name} | {' | '.join(cells)} | {' | '.join(promise)} | {special_values(op)} |", exact


def table(names: Sequence[str], count: int, seconds: float, shown: bool) -> str:
    """The page for these operations."""
    rows, exact, differences = [], [], []
    for name in tqdm(names, unit="function"):
        op: Any = REGISTRY[name]
        line, without_error = row(op, count, seconds, shown)
        differences += special_differences(op)
        if without_error:
            exact.append(f"`{name}`")
        else:
            rows.append(line)
    heads = [*(dtype.name for dtype in DTYPES), "bound float32", "bound float64"]
    page = INTRODUCTION.format(count=count)
    page += f"| function | {' | '.join(heads)} | at NaN, -inf, inf, -0, 0, 1.4e-45 |\n"
    page += "| --- |" + " ---: |" * len(heads) + " --- |\n" + "\n".join(rows)
    page += (
        "\n\n" + textwrap.fill(f"Without any error: {', '.join(exact)}.", 118) + "\n\n## Special operands\n\n"
    )
    page += "At NaN, infinities, zeros of both signs, the smallest and the largest numbers, and at all pairs of them,"
    page += "\nresults of all types agree with the reference, for one operand the signs of zeros included"
    page += (", but:\n\n" + "\n".join(f"- {line}" for line in differences)) if differences else "."
    return page + "\n"


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description="Largest errors of all element-wise functions.")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("names", nargs="*")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    names = chosen.names or rounding_errors.measured_operations()
    page = table(names, chosen.count, chosen.seconds, bool(chosen.names))
    if chosen.names:
        print(page[len(INTRODUCTION) :])
    else:
        TARGET.write_text(page)


if __name__ == "__main__":
    main()
