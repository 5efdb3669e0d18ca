"""Loops over rows and lists, statements of several lines and calls of all kinds step as in plain define-by-run."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

import twofold as torch
import twofold.static as tf
from tests.debug import stepped_loops as programs
from tests.debug.step_recorder import compare, stepped, value_of
from tests.debug.test_stepping import mirrored, requiring, tensor
from twofold import debug

HEADERS = {
    node.lineno
    for node in ast.walk(ast.parse(inspect.getsource(programs)))
    if isinstance(node, (ast.For, ast.While))
}
CALLS_OF_LOOPS = {
    k
    for k, line in enumerate(inspect.getsource(programs).splitlines(), 1)
    if "tf.while_loop" in line or "tf.cond" in line
}


def pair() -> Any:
    return tensor(1.0, 2.0)


def other() -> Any:
    return tensor(3.0, 4.0)


def matrix() -> Any:
    return tensor([0.5, -1.0], [0.25, 2.0])


def rows() -> Any:
    return tensor([1.0, 2.0], [3.0, -1.0], [0.5, 0.25])


PROGRAMS: dict[str, tuple[Any, Any]] = {
    "attention": (programs.attention, lambda: (rows(), matrix(), matrix())),
    "lstm": (programs.lstm, lambda: (rows(), torch.arange(32.0).reshape(4, 8) / 32 - 0.4)),
    "newton": (programs.newton, lambda: (tensor(2.0, 9.0),)),
    "comprehension": (programs.comprehension, lambda: (pair(), other())),
    "multiline": (programs.multiline, lambda: (tensor(1.0, 0.25), other())),
    "closure": (programs.closure, lambda: (pair(), other())),
    "summed": (programs.summed, lambda: (pair(), other(), pair())),
    "called_by_name": (programs.called_by_name, lambda: (pair(), other())),
    "nested_loops": (programs.nested_loops, lambda: (pair(),)),
    "augmented": (programs.augmented, lambda: (pair(),)),
    "walrus": (programs.walrus, lambda: (pair(),)),
    "numbered": (programs.numbered, lambda: (rows(), pair())),
    "pairs": (programs.pairs, lambda: (rows(), rows() * 2)),
    "members": (programs.members, lambda: (pair(), other(), pair())),
    "splits": (programs.splits, lambda: (matrix(),)),
    "starred": (programs.starred, lambda: (pair(), other())),
    "indexed": (programs.indexed, lambda: (pair(),)),
    "sliced": (programs.sliced, lambda: (pair(),)),
    "with_else": (programs.with_else, lambda: (pair(),)),
    "machine": (programs.machine, lambda: (pair(), other())),
}
READS_VALUES = {"newton", "walrus"}  # which a compiled function cannot
STOPS_WITHIN = {"newton", "multiline"}  # backward, lines that only forward compute or begin
DECLARED = [
    programs.declared_state,
    programs.choices_in_a_loop,
    programs.layers,
    programs.loop_in_a_loop,
    programs.neighbours,
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_steps_as_it_runs(name: str) -> None:
    function, arguments = PROGRAMS[name]
    recorder = stepped(programs, debug.run, function, *arguments())
    compare(recorder, stepped(programs, function, *arguments()))
    assert value_of(recorder.result) == value_of(function(*arguments()))


@pytest.mark.parametrize("name", [one for one in PROGRAMS if one not in READS_VALUES])
def test_a_compiled_program_steps_as_it_runs(name: str) -> None:
    function, arguments = PROGRAMS[name]
    compiled = torch.compile(function)
    compiled(*arguments())
    compare(stepped(programs, debug.run, compiled, *arguments()), stepped(programs, function, *arguments()))


@pytest.mark.parametrize("name", [one for one in PROGRAMS if one not in STOPS_WITHIN])
def test_the_backward_pass_is_the_mirror(name: str) -> None:
    function, arguments = PROGRAMS[name]
    recorder = stepped(programs, debug.run, programs.differentiated, function, *requiring(arguments()))
    plain = stepped(programs, programs.differentiated, function, *requiring(arguments()))
    mirrored(recorder, plain, HEADERS)


def test_rounds_that_compute_nothing_are_left_out() -> None:
    arguments = pair(), other(), pair()
    recorder = stepped(programs, debug.run, programs.skipping, *arguments)
    compare(recorder, stepped(programs, programs.skipping, *arguments), HEADERS)


def test_modules_in_containers_get_what_the_one_before_returned() -> None:
    torch.manual_seed(0)
    network, x = programs.Net(), torch.randn(2, 2, 3, 3)
    compare(stepped(programs, debug.run, network, x), stepped(programs, network, x))
    recorder = stepped(programs, debug.run, programs.differentiated, network, x)
    mirrored(recorder, stepped(programs, programs.differentiated, network, x))


@pytest.mark.parametrize("size", [2, None], ids=["known", "unknown"])
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("function", DECLARED, ids=lambda one: one.__name__)
def test_a_declared_graph_steps_as_it_is_computed_at_once(
    function: Any, backward: bool, size: int | None
) -> None:
    value = [0.5, -1.0]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [size])
        fetched = function(x)
        if backward:
            (fetched,) = tf.gradients(fetched, [x])
        usual = session.run(fetched, {x: value})
        recorder = stepped(programs, lambda: session.run(fetched, {x: value}, debug=True))
    assert recorder.result.tolist() == usual.tolist()
    tf.enable_eager_execution()
    try:
        check = mirrored if backward else compare
        check(recorder, stepped(programs, function, tf.constant(value)), CALLS_OF_LOOPS)
    finally:
        tf.disable_eager_execution()
