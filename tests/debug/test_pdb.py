"""Scripted sessions of pdb in compiled graphs: breakpoints, changed values, gradients, and backwards in time."""

from __future__ import annotations

import io
import pdb
from typing import Any

import pytest

import twofold as torch
import twofold.debug as debug
import twofold.static as tf
from tests.debug import stepped_programs as programs

FILE = programs.__file__
STRAIGHT = programs.straight.__code__.co_firstlineno
UNROLLED = programs.unrolled.__code__.co_firstlineno
TRAINED = programs.trained.__code__.co_firstlineno


def debugger(commands: list[str]) -> tuple[pdb.Pdb, io.StringIO]:
    """One that is given commands, and what it says."""
    output = io.StringIO()
    given = io.StringIO("\n".join([*commands, ""]))
    made = pdb.Pdb(stdin=given, stdout=output, nosigint=True, readrc=False)
    made.clear_all_breaks()  # those of other tests
    return made, output


def scripted(commands: list[str], function: Any, *arguments: Any) -> Any:
    """The result of a call under pdb with these commands."""
    return debugger(commands)[0].runcall(function, *arguments)


def arguments_of_straight() -> tuple[Any, Any]:
    return torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, -1.0], [0.25, 2.0]])


def show(expression: str) -> str:
    """A command that prints an expression so that it can be told from all else."""
    return f"p '= ' + str({expression})"


def test_a_breakpoint_by_file_and_line_and_a_changed_value() -> None:
    x, w = arguments_of_straight()
    commands = [f"b {FILE}:{STRAIGHT + 3}", "c", "!a = a * 0 + 1", "c"]
    result = scripted(commands, debug.run, programs.straight, x, w)
    assert result.item() == 4.0
    usual = scripted(commands[:2] + ["c"], debug.run, programs.straight, x, w)
    assert usual.tolist() == programs.straight(x, w).tolist()


def test_a_changed_value_of_a_declared_graph() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        fetched = programs.chosen(x)
        line = programs.chosen.__code__.co_firstlineno + 2
        commands = [f"tbreak {FILE}:{line}", "c", "!total = 3.0", "c"]
        result = scripted(commands, lambda: session.run(fetched, {x: [0.5, -1.0]}, debug=True))
    assert result.tolist() == [4.0, 1.0]


def positions(commands: list[str], function: Any, *arguments: Any) -> tuple[list[int], list[str]]:
    """The lines of the program at which pdb stopped, and what was printed there."""
    runs, output = debugger(commands)
    runs.runcall(function, *arguments)
    text = output.getvalue().replace("(Pdb) ", "\n").splitlines()
    lines = [int(line.split("(", 1)[1].split(")")[0]) for line in text if line.startswith(f"> {FILE}(")]
    printed = [line.strip("'\"").removeprefix("= ") for line in text if line[1:3] == "= "]
    return lines, printed


def test_back_and_goto() -> None:
    """The program goes back as soon as it goes on, and computes the same again."""
    x, w = arguments_of_straight()
    look = show("sorted(name for name in locals() if len(name) == 1)")
    commands = [f"tbreak {FILE}:{STRAIGHT + 4}", "c", look, "!back()", "s", look, "!back(2)", "s", look]
    more = [f"tbreak {STRAIGHT + 3}", "c", f"!goto({STRAIGHT + 2})", "s", "c"]
    lines, seen = positions([*commands, *more], debug.run, programs.straight, x, w)
    assert lines == [STRAIGHT + 1, STRAIGHT + 4, STRAIGHT + 3, STRAIGHT + 1, STRAIGHT + 3, STRAIGHT + 2]
    assert seen == ["['a', 'b', 'h', 'w', 'x']", "['a', 'h', 'w', 'x']", "['w', 'x']"]


def test_a_change_is_kept_behind_it_and_forgotten_before_it() -> None:
    x, w = arguments_of_straight()
    changed = [f"b {FILE}:{STRAIGHT + 2}", "c", "!h = h * 0", "n"]
    _, seen = positions(
        [*changed, "n", "!back()", "s", show("h.tolist()"), show("a.tolist()"), "c"],
        debug.run,
        programs.straight,
        x,
        w,
    )
    assert seen == ["[[0.0, 0.0]]", "[[0.0, 0.0]]"]
    _, seen = positions(
        [*changed, "!back(2)", "s", "s", "n", show("h.tolist()"), "c"], debug.run, programs.straight, x, w
    )
    assert seen == [str((x @ w).tolist())]


def test_beyond_the_budget_values_are_computed_again() -> None:
    x, w = arguments_of_straight()
    commands = [f"b {FILE}:{STRAIGHT + 4}", "c", "!back()", "s", show("a.tolist()"), "c"]
    for budget in (0, 1 << 20):
        _, seen = positions(commands, lambda budget=budget: debug.run(programs.straight, x, w, budget=budget))
        assert seen == [str(torch.tanh(x @ w).tolist())]


@pytest.mark.parametrize("budget", [0, 24, 1 << 20])
def test_goto_beyond_the_budget(budget: int) -> None:
    """From the end of a loop to its beginning, and from the backward pass to the forward pass and on again."""
    x, factor = torch.tensor([0.5, -1.0]), torch.tensor(2.0)
    commands = [f"tbreak {FILE}:{UNROLLED + 5}", "c", show("h.tolist()"), f"!goto({UNROLLED + 3})", "s"]
    commands += [show("h.tolist()"), "!back(5)", "s", show("h.tolist()"), "c"]
    _, seen = positions(commands, lambda: debug.run(programs.unrolled, x, factor, budget=budget))
    states = [torch.exp(-x)]
    for _ in range(3):
        states.append(torch.sigmoid(states[-1] * factor + 1))
    assert seen[:2] == [str(states[3].tolist()), str(states[2].tolist())]
    assert seen[2] == str(states[1].tolist())

    x, w = arguments_of_straight()
    w.requires_grad_()
    given = programs.trained, x, w, torch.tensor([[0.0, 1.0]])
    commands = [f"b {FILE}:{TRAINED + 2}", "c", "c", show("grad('error').tolist()"), f"!goto({TRAINED + 1})"]
    commands += ["s", show("sorted(locals())"), "c", show("y.tolist()"), "c", show("grad('error').tolist()")]
    commands += [f"cl {FILE}:{TRAINED + 2}", "c"]
    lines, seen = positions(commands, lambda: debug.run(programs.differentiated, *given, budget=budget))
    assert lines.count(TRAINED + 2) == 4 and seen[0] == seen[3]
    assert seen[1:3] == ["['target', 'w', 'x']", str((x @ w).tolist())]


def test_gradients_are_at_hand_in_the_backward_pass() -> None:
    x, w = arguments_of_straight()
    target = torch.tensor([[0.0, 1.0]])
    w.requires_grad_()
    break_at = f"b {FILE}:{TRAINED + 2}"
    commands = [break_at, "c", "c", show("grad('error').tolist()"), show("error.tolist()")]
    commands += ["s", show("grad('y').tolist()"), f"cl {FILE}:{TRAINED + 2}", "c"]
    lines, seen = positions(commands, debug.run, programs.differentiated, programs.trained, x, w, target)
    error = (x @ w.detach()) - target
    assert seen == [str(error.tolist()), str(error.tolist()), str(error.tolist())]
    assert lines.count(TRAINED + 2) == 2


def test_callers_are_above() -> None:
    x = torch.tensor([0.5, -1.0])
    line = programs.scaled.__code__.co_firstlineno + 2
    commands = [f"tbreak {FILE}:{line}", "c", show("sorted(locals())"), "u", show("sorted(locals())"), "c"]
    _, seen = positions(commands, debug.run, programs.unrolled, x, torch.tensor(2.0))
    assert seen == ["['factor', 'h', 'z']", "['_', 'factor', 'h', 'x']"]


def test_goto_stops_at_the_first_line_of_a_function_and_steps_on_from_there() -> None:
    first, last = programs.scaled.__code__.co_firstlineno + 1, UNROLLED + 4
    commands = [f"tbreak {FILE}:{last}", "c", f"!goto({first})", "s", show("sorted(locals())"), "n", "n", "s"]
    lines, seen = positions([*commands, "c"], debug.run, programs.unrolled, torch.ones(2), torch.tensor(2.0))
    assert lines == [UNROLLED + 1, last, first, first + 1, first + 2, first + 2]  # the last one at its return
    assert seen == ["['factor', 'h']"]
