"""``breakpoint()`` stops with values in every run: at once, in compiled functions, and in declared graphs."""

from __future__ import annotations

import builtins
import pdb
import sys
from typing import Any

import pytest

import twofold as torch
import twofold.debug as debug
import twofold.static as tf
from tests.debug.test_pdb import debugger, show


def doubled(x: Any) -> Any:
    y = x * 2.0
    builtins.breakpoint()
    return y + 1.0


def noted(x: Any) -> Any:
    y = x * 2.0
    debug.breakpoint()
    z = y + 1.0
    return z * z


def thrice(x: Any) -> Any:
    for _ in range(3):
        x = x + x
        debug.breakpoint()
    return x


def nested(x: Any) -> Any:
    for _ in range(3):
        for _ in range(2):
            x = x * 1.0
        x = x + x
        debug.breakpoint()
    return x


def looped(x: Any) -> Any:
    def body(k: Any, h: Any) -> Any:
        g = h * 2.0
        debug.breakpoint()
        return k + 1, g

    return tf.while_loop(lambda k, h: k < 3, body, [tf.constant(0), x])[1]


Y = show("y.tolist()")
STOPS_BEHIND = sys.version_info < (3, 13)
"""Whether pdb stops at the line behind ``breakpoint()``, as it did, or at that line."""


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a function under commands, without a debugger at the beginning; what they print, and where it stops."""

    def run(commands: list[str], function: Any, *arguments: Any) -> tuple[Any, list[str], list[str]]:
        made, output = debugger(commands)

        def hook() -> None:
            made.set_trace(sys._getframe(1))

        monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
        monkeypatch.setattr(sys, "breakpointhook", hook)
        before = sys.gettrace()
        try:
            result = function(*arguments)
        finally:
            sys.settrace(before)
        text = output.getvalue().replace("(Pdb) ", "\n").splitlines()
        printed = [line.strip("'\"").removeprefix("= ") for line in text if line[1:3] == "= "]
        return result, printed, [line for line in text if line.startswith("> ")]

    return run


def test_at_once(stops: Any) -> None:
    result, printed, positions = stops([Y, "c"], doubled, torch.tensor([1.0, 2.0]))
    assert printed == ["[2.0, 4.0]"] and result.tolist() == [3.0, 5.0]
    assert positions[0].startswith(
        f"> {__file__}({doubled.__code__.co_firstlineno + 2 + STOPS_BEHIND})doubled()"
    )
    _, printed, positions = stops([Y, "c"], noted, torch.tensor([1.0, 2.0]))
    assert printed == ["[2.0, 4.0]"] and positions[0].endswith(")noted()")


@pytest.mark.parametrize("function, last", [(doubled, [7.0, 13.0]), (noted, [49.0, 169.0])])
def test_in_each_call_of_a_compiled_function(stops: Any, function: Any, last: list[float]) -> None:
    compiled = torch.compile(function)
    for scale in (1.0, 2.0, 3.0):
        x = torch.tensor([1.0, 2.0]) * scale
        result, printed, positions = stops([Y, "c"], compiled, x)
        assert printed == [str((x * 2.0).tolist())] and len(positions) == 1
    assert result.tolist() == last


def test_a_compiled_function_stops_in_its_graph(stops: Any) -> None:
    """It is declared once, and each call steps through the graph: a changed value is used."""

    @torch.compile
    def squared(x: Any) -> Any:
        y = x * 2.0
        builtins.breakpoint()
        z = y + 1.0
        return z * z

    x = torch.tensor([1.0, 2.0])
    commands = [Y, "!y = y * 0", "n", "n", show("z.tolist()"), "c"]
    result, printed, positions = stops(commands, squared, x)
    assert printed == ["[2.0, 4.0]", "[1.0, 1.0]"] and result.tolist() == [1.0, 1.0]
    result, printed, positions = stops([Y, "c"], squared, x + 1.0)
    assert printed == ["[4.0, 6.0]"] and result.tolist() == [25.0, 49.0] and len(positions) == 1
    assert len(squared.graphs) == 1
    _, printed, _ = stops([Y, "c"], debug.run, squared, x)
    assert printed == ["[2.0, 4.0]"] and len(squared.graphs) == 1


@pytest.mark.parametrize("function", [thrice, nested])
def test_in_each_pass_of_a_loop_of_a_compiled_function(stops: Any, function: Any) -> None:
    commands = [show("x.tolist()"), "c"] * 3
    result, printed, _ = stops(commands, torch.compile(function), torch.tensor(1.0))
    assert result.tolist() == 8.0 and printed == ["2.0", "4.0", "8.0"]


def chosen(x: Any) -> Any:
    for k in range(4):
        y = x * k
        if k % 2:
            builtins.breakpoint()
        x = x + y
    return x


def called(x: Any) -> Any:
    def inner(y: Any, stopping: bool) -> Any:
        y = y * 2.0
        if stopping:
            builtins.breakpoint()
        return y + 1.0

    for k in range(4):
        x = inner(x, k in (1, 3))
    return x


@pytest.mark.parametrize(
    "function, expected, last", [(chosen, ["1.0", "18.0"], 24.0), (called, ["6.0", "30.0"], 31.0)]
)
def test_in_the_passes_of_a_loop_that_declared_it(
    stops: Any, function: Any, expected: list[str], last: float
) -> None:
    for run in (torch.compile(function), function):
        result, printed, _ = stops([show("y.tolist()"), "c"] * 2, run, torch.tensor(1.0))
        assert printed == expected and result.tolist() == last


def test_in_a_branch_and_behind_it(stops: Any) -> None:
    @torch.compile
    def branching(x: Any) -> Any:
        def taken(h: Any) -> Any:
            y = h * 2.0
            builtins.breakpoint()
            return y + 1.0

        y = torch.cond(x > 0.0, taken, lambda h: h * 3.0, (x,))
        builtins.breakpoint()
        return y + 1.0

    result, printed, _ = stops([Y, "c"] * 2, branching, torch.tensor(1.0))
    assert printed == ["2.0", "3.0"] and result.tolist() == 4.0


def test_in_a_compiled_function_without_operations(stops: Any) -> None:
    @torch.compile
    def same(x: Any) -> Any:
        builtins.breakpoint()
        return x

    result, printed, positions = stops([show("x.tolist()"), "c"], same, torch.tensor([1.0]))
    assert printed == ["[1.0]"] and len(positions) == 1 and result.tolist() == [1.0]


@pytest.mark.parametrize("function", [doubled, noted])
def test_where_a_function_is_stepped_through(stops: Any, function: Any) -> None:
    commands = [Y, "!y = y * 0", "c"]
    result, printed, positions = stops(commands, debug.run, function, torch.tensor([1.0, 2.0]))
    assert printed == ["[2.0, 4.0]"] and result.tolist() == [1.0, 1.0] and len(positions) == 1


def test_in_each_run_of_a_session(stops: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        fetched = noted(x)
        for value in (1.0, 2.0):
            commands = [Y, "n", "n", show("z.tolist()"), "c"]
            result, printed, positions = stops(commands, session.run, fetched, {x: [value, 0.0]})
            assert result.tolist() == [(2 * value + 1) ** 2, 1.0]
            assert printed == [str([2 * value, 0.0]), str([2 * value + 1, 1.0])]
            assert positions[0].endswith(f"({noted.__code__.co_firstlineno + 2 + STOPS_BEHIND})noted()")


def test_a_changed_value_is_used(stops: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        result, _, _ = stops(["!y = 9.0", "c"], session.run, noted(x), {x: 1.0})
    assert result == 100.0


@pytest.mark.parametrize("function, name", [(thrice, "x"), (nested, "x"), (looped, "g")])
def test_in_each_iteration_of_a_loop(stops: Any, function: Any, name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        fetched = function(x)
        look = show(f"{name}.item()")
        result, printed, positions = stops([look, "c"] * 3, session.run, fetched, {x: 1.0})
    assert printed == ["2.0", "4.0", "8.0"] and result == 8.0 and len(positions) == 3


def test_a_part_of_a_graph_without_it_runs_through(stops: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        other = tf.square(x)
        noted(x)
        assert stops([], session.run, other, {x: 3.0}) == (9.0, [], [])


def test_turned_off(stops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: Any) -> None:
        raise AssertionError("the debugger was asked for")

    monkeypatch.setattr(pdb, "set_trace", never)
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    compiled = torch.compile(doubled)
    for _ in range(3):
        assert compiled(torch.tensor([1.0])).tolist() == [3.0]
    assert debug.run(doubled, torch.tensor([1.0])).tolist() == [3.0]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        assert session.run(noted(x), {x: 1.0}) == 9.0
