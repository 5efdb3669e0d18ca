"""Symbolic sizes: expressions, decisions and their programs against plain integers."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold import _core
from twofold.compiler.lower.loopnest import typed_attributes
from twofold.dtypes import float32
from twofold.ir.recording import Facts, Recording, Restart
from twofold.ir.size_program import SizeProgram
from twofold.ir.sizes import float_bits, index, is_symbolic, look_up, maximum, minimum, real
from twofold.ir.types import tensor_type

SIZES = st.integers(0, 40)
OPERATIONS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "floor_divide": lambda a, b: a // b if b != 0 else a,
    "remainder": lambda a, b: a % b if b != 0 else a,
    "ceiling": lambda a, b: -(-a // b) if b != 0 else b,
    "maximum": maximum,
    "minimum": minimum,
    "larger": max,
    "choose": lambda a, b: a + 1 if a < b else b - 1 if a == b else a - b,
    "whole": lambda a, b: math.floor((a + 0.5) / (b * b + 1)),
    "table": lambda a, b: look_up((5, 3, 8, 1), minimum(maximum(a, 0), 3)) + b,
}


@st.composite
def formulas(draw: Any) -> list[tuple[str, Any, Any]]:
    """Operations in a row on three inputs, constants and earlier results, by number."""
    steps = []
    for position in range(draw(st.integers(1, 8))):
        operand = st.one_of(
            st.integers(0, 2 + position).map(lambda k: ("value", k)),
            st.integers(-4, 9).map(lambda c: ("constant", c)),
        )
        steps.append((draw(st.sampled_from(sorted(OPERATIONS))), draw(operand), draw(operand)))
    return steps


def compute(steps: list[tuple[str, Any, Any]], inputs: list[Any]) -> list[Any]:
    values = list(inputs)
    for name, a, b in steps:
        operands = [values[k] if kind == "value" else k for kind, k in (a, b)]
        values.append(OPERATIONS[name](*operands))
    return values[3:]


def recorded(steps: list[tuple[str, Any, Any]], example: list[int]) -> tuple[list[Any], Any]:
    recording = Recording(example, [0, 0, None])
    found = compute(steps, recording.inputs)
    return found, SizeProgram(recording, found, recording.guards).encoded()


@given(
    formulas(),
    st.tuples(SIZES, SIZES, st.integers(-9, 9)),
    st.lists(st.tuples(SIZES, SIZES, st.integers(-9, 9)), min_size=4, max_size=4),
)
@settings(deadline=None)
def test_a_program_holds_for_its_example_and_is_right_wherever_it_holds(
    steps: Any, example: Any, others: Any
) -> None:
    found, program = recorded(steps, list(example))
    assert [getattr(number, "example", number) for number in found] == compute(steps, list(example))
    assert _core.run_size_program(program, example) == compute(steps, list(example))
    for values in others:
        results = _core.run_size_program(program, values)
        assert results is None or results == compute(steps, list(values))


def test_polynomials_that_are_equal_are_one_object_and_need_no_decision() -> None:
    recording = Recording([6, 4], [0, 0])
    n, m = recording.inputs
    assert (n + m) * (n - m) is n * n - m * m
    assert n * m == m * n
    assert recording.guards == []
    assert (4 * n * m) // m is 4 * n
    assert recording.guards == [("eq", m, 0, False)]
    assert (6 * n + 5) // 3 == 2 * n + 1
    assert (6 * n + 5) % 3 == 2
    assert n + 1 > 0
    assert not n * m < 0
    assert len(recording.guards) == 1


def test_a_number_that_is_needed_itself_narrows_the_plan() -> None:
    recording = Recording([3, 8], [0, 0])
    n, m = recording.inputs
    assert [0] * n == [0, 0, 0]
    assert list(range(n)) == [0, 1, 2]
    assert float(m) == 8.0
    program = SizeProgram(recording, [n + m], recording.guards).encoded()
    assert _core.run_size_program(program, [3, 8]) == [11]
    assert _core.run_size_program(program, [4, 8]) is None
    assert _core.run_size_program(program, [3, 9]) is None


def test_real_numbers_are_those_of_python_bit_for_bit() -> None:
    recording = Recording([7, 3], [0, 0])
    n, m = recording.inputs
    mean = 1 / real(n) + 0.1 * m
    program = SizeProgram(recording, [float_bits(mean), math.floor(n / 2.5)], recording.guards).encoded()
    for a, b in ((7, 3), (10**9 + 7, 12345)):
        assert _core.run_size_program(program, [a, b]) == [
            float_bits(1 / float(a) + 0.1 * b),
            math.floor(a / 2.5),
        ]


@pytest.mark.parametrize("values", [(2**62, 4), (2**40, 2**30)])
def test_numbers_beyond_64_bits_meet_no_plan(values: tuple[int, int]) -> None:
    recording = Recording([6, 4], [0, 0])
    n, m = recording.inputs
    program = SizeProgram(recording, [n * m * 4], recording.guards).encoded()
    assert _core.run_size_program(program, [6, 4]) == [96]
    assert _core.run_size_program(program, list(values)) is None


def test_types_over_symbols_are_interned_with_their_recording() -> None:
    recording = Recording([6], [0])
    (n,) = recording.inputs
    assert tensor_type(float32, (n, 2)) is tensor_type(float32, (n + 1 - 1, 2))
    assert tensor_type(float32, (n, 2)) is not tensor_type(float32, (6, 2))
    assert tensor_type(float32, (n, 2)).size is 2 * n
    assert is_symbolic((1, (n,))) and not is_symbolic((1, (2,)))
    assert index(n) is n
    assert recording.guards == []


def test_a_size_that_follows_from_others_is_one_with_them() -> None:
    values = [48, 6, 8, 5]
    recording = Recording(values, [None, 0, 0, 0], strict=True)
    whole, n, m, k = recording.inputs
    with pytest.raises(Restart) as narrowed:
        assert 2 * whole == 2 * n * m
    recording = Recording(values, [None, 0, 0, 0], narrowed.value.facts, strict=True)
    whole, n, m, k = recording.inputs
    assert whole is n * m
    with pytest.raises(Restart) as narrowed:
        assert k * k == 25
    assert narrowed.value.facts == Facts(formulas=((frozenset({3}), ((5, ()),)),))
    program = SizeProgram(recording, [whole + k], recording.guards).encoded()
    assert _core.run_size_program(program, [63, 7, 9, 5]) == [68]
    assert _core.run_size_program(program, [64, 7, 9, 5]) is None


def test_equal_products_need_no_fixed_sizes() -> None:
    values = [580, 128, 29, 20, 128]  # 580 by 128 elements, and 29 by 20 by 128
    recording = Recording(values, [None, None, 0, 0, 0], strict=True)
    rows, width, n, m, same = recording.inputs
    with pytest.raises(Restart) as narrowed:
        assert rows * width == n * m * same
    recording = Recording(values, [None, None, 0, 0, 0], narrowed.value.facts, strict=True)
    rows, width, n, m, same = recording.inputs
    assert rows is n * m
    assert width is same
    program = SizeProgram(recording, [rows], recording.guards).encoded()
    assert _core.run_size_program(program, [15, 7, 5, 3, 7]) == [15]
    assert _core.run_size_program(program, [14, 7, 5, 3, 7]) is None
    assert _core.run_size_program(program, [15, 7, 5, 3, 8]) is None


def test_a_common_factor_of_zero_says_nothing() -> None:
    recording = Recording([3, 0, 5], [0, 0, 0], strict=True)
    a, nothing, b = recording.inputs
    assert a * nothing == b * nothing
    program = SizeProgram(recording, [a], recording.guards).encoded()
    assert _core.run_size_program(program, [3, 0, 5]) == [3]
    assert _core.run_size_program(program, [5, 2, 5]) == [5]
    assert _core.run_size_program(program, [3, 1, 5]) is None


def test_shapes_of_as_many_elements_need_no_fixed_sizes() -> None:
    recording = Recording([225, 16, 15, 240], [None, None, 0, 0], strict=True)
    a, b, n, m = recording.inputs
    assert a * b == n * m
    program = SizeProgram(recording, [a], recording.guards).encoded()
    assert _core.run_size_program(program, [9, 16, 3, 48]) == [9]
    assert _core.run_size_program(program, [9, 16, 3, 49]) is None


def test_squares_are_equal_where_their_roots_are() -> None:
    values = [3, 4, 12]
    recording = Recording(values, [0, 0, 0], strict=True)
    a, b, n = recording.inputs
    with pytest.raises(Restart) as narrowed:
        assert 4 * a * b * a * b == 4 * n * n
    a, b, n = Recording(values, [0, 0, 0], narrowed.value.facts, strict=True).inputs
    assert n is a * b
    a, b = Recording([-4, 4], [None, 0], strict=True).inputs
    assert a * a == b * b  # but they are not equal, so no input is an expression of the other


def test_as_few_inputs_are_fixed_as_make_two_numbers_one() -> None:
    recording = Recording([2, 23], [None, 0], strict=True)
    groups, n = recording.inputs
    with pytest.raises(Restart) as narrowed:
        assert groups * (8 * n * n // groups) == 8 * n * n
    assert narrowed.value.facts == Facts(frozenset({0}))


def test_a_strict_recording_shares_a_symbol_between_equal_inputs() -> None:
    recording = Recording([6, 6, 7], [0, None, 0], strict=True)
    n, same, other = recording.inputs
    assert n is same and n is not other
    assert n >= 0
    program = SizeProgram(recording, [n + other], recording.guards).encoded()
    assert _core.run_size_program(program, [3, 3, 9]) == [12]
    assert _core.run_size_program(program, [3, 4, 9]) is None


def test_keys_and_texts_hold_the_number_and_narrow_the_plan() -> None:
    recording = Recording([6, 4], [0, 0])
    n, m = recording.inputs
    assert (f"{n:03d}", str(m)) == ("006", "4")
    assert typed_attributes((n, True, (2 * m,))) == typed_attributes((6, True, (8,)))
    program = SizeProgram(recording, [n + m], recording.guards).encoded()
    assert _core.run_size_program(program, [6, 4]) == [10]
    assert _core.run_size_program(program, [7, 4]) is None
    assert _core.run_size_program(program, [6, 5]) is None
