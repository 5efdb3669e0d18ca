"""A graph that was noted as it was declared steps as the program that declared it: all lines, all variables."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from tests.debug import literal_programs, noted_programs
from tests.debug.step_recorder import StepRecorder, programs_of, stepped
from tests.debug.test_stepped_lines import ObjectRecorder, parts_of
from twofold import debug

VALUE = [0.5, -1.0]
GRADIENTS = {
    "gradients",
    "optimizer",
    "clipped",
}  # which a program cannot ask for where it is computed at once
PROGRAMS = [one for one in programs_of(noted_programs) if one.__name__ != "py_func"]
AT_ONCE = [one for one in PROGRAMS if one.__name__ not in GRADIENTS]
LINES = inspect.getsource(noted_programs).splitlines()
HEADERS = {k for k, line in enumerate(LINES, 1) if "tf.while_loop" in line or "tf.scan" in line}
"""Lines that come again with each iteration of a loop of the graph."""

Lines = list[tuple[str, int, dict[str, Any]]]


def computed_at_once(program: Callable[..., Any]) -> Lines:
    tf.enable_eager_execution()
    try:
        recorder = ObjectRecorder(inspect.getfile(program))
        recorder.run_steps(program, tf.constant(VALUE))
    finally:
        tf.disable_eager_execution()
    return recorder.all


def noted(program: Callable[..., Any]) -> tuple[Lines, Any, Any]:
    """The lines of a stepped run, its result, and that of a run that is not stepped through."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        with debug.declaring():
            fetched = program(x)
        initial = tf.global_variables_initializer()
        session.run(initial)
        usual = session.run(fetched, {x: VALUE})
        session.run(initial)
        recorder = ObjectRecorder(noted_programs.__file__)
        recorder.run_steps(lambda: session.run(fetched, {x: VALUE}, debug=True))
    return recorder.all, recorder.result, usual


@pytest.mark.parametrize("program", AT_ONCE, ids=lambda one: one.__name__)
def test_a_noted_graph_steps_by_all_lines_with_all_variables(program: Any) -> None:
    found, result, usual = noted(program)
    expected = computed_at_once(program)
    assert result.tolist() == usual.tolist()
    assert [one for one in found if one[1] not in HEADERS] == [
        one for one in expected if one[1] not in HEADERS
    ]
    assert {one[:2] for one in found} == {one[:2] for one in expected}


def declared(program: Callable[..., Any]) -> Lines:
    """The lines of the declaration, with what a session computes for the variables."""
    seen: list[tuple[str, int, dict[str, Any]]] = []

    def follow(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != noted_programs.__file__:
            return None
        if event == "line":
            names = {name: one for name, one in frame.f_locals.items() if name.isidentifier()}
            seen.append((frame.f_code.co_name, frame.f_lineno, names))
        return follow

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        sys.settrace(follow)
        try:
            program(x)
        finally:
            sys.settrace(None)
        initial = tf.global_variables_initializer()

        def value(of: Any) -> Any:
            if isinstance(of, (torch.Tensor, tf.Variable)):
                session.run(initial)
                return "tensor", str(of.dtype), numpy.asarray(session.run(of, {x: VALUE})).tolist()
            if isinstance(of, (tuple, list)):
                return type(of).__name__, [value(one) for one in of]
            return parts_of(of)

        return [(name, line, {one: value(of) for one, of in names.items()}) for name, line, names in seen]


@pytest.mark.parametrize("name", sorted(GRADIENTS))
def test_a_program_that_declares_gradients_steps_as_it_was_declared(name: str) -> None:
    program = getattr(noted_programs, name)
    found, result, usual = noted(program)

    def without_optimizer(lines: Lines) -> Lines:
        return [(one, line, {k: v for k, v in names.items() if k != "opt"}) for one, line, names in lines]

    assert without_optimizer(found) == without_optimizer(declared(program))
    assert numpy.asarray(result).tolist() == numpy.asarray(usual).tolist()


# Programs whose lines are counted from the first

X = [0.5, -1.0]


def lines_of(program: Any, *functions: Any) -> list[str]:
    """What stepping through a noted graph shows: functions, and lines counted from the first of the program's."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        with debug.declaring():
            fetched = program(x)
        session.run(tf.global_variables_initializer())
        recorder = stepped(program, lambda: session.run(fetched, {x: X}, debug=True))
    names = {program.__name__, "cell", "body", "host", "yes", "no"}
    first = program.__code__.co_firstlineno
    return [
        f"{one.function}:{one.line - first}"
        for one in recorder.seen
        if one.function.removesuffix(" (backward)") in names
    ]


def rounds(x: Any) -> Any:
    def cell(h: Any, w: Any) -> Any:
        for _k in range(2):
            a = h * w
            h = tf.tanh(a)
        return h

    w = tf.get_variable("w", initializer=[1.0, 2.0])
    loss = tf.reduce_sum(cell(x, w))
    (g,) = tf.gradients(loss, [w])
    return g


def test_the_backward_pass_is_the_mirror_of_the_forward_one() -> None:
    forward = ["cell:2", "cell:3", "cell:4", "cell:2", "cell:3", "cell:4", "cell:2", "cell:5"]
    backward = ["cell:4", "cell:3", "cell:2", "cell:4", "cell:3"]
    backward = [one.replace(":", " (backward):") for one in ["rounds:8", *backward]]
    assert lines_of(rounds) == [
        *["rounds:1", "rounds:7", "rounds:8", *forward, "rounds:9"],
        *[*backward, "rounds:10"],
    ]


def looped(x: Any) -> Any:
    def body(i: Any, h: Any) -> Any:
        n = 2
        a = h * float(n)
        return i + 1, tf.tanh(a)

    _i, y = tf.while_loop(lambda i, h: i < 2, body, [tf.constant(0), x])
    loss = tf.reduce_sum(y)
    (g,) = tf.gradients(loss, [x])
    return g


def test_loops_of_the_graph_go_backward_by_the_lines_of_their_bodies() -> None:
    once = ["body:2", "body:3", "body:4"]
    back = ["body (backward):4", "body (backward):3"]
    assert lines_of(looped) == [
        *["looped:1", "looped:6", *once, "looped:6", *once, "looped:7", "looped:8"],
        *["looped (backward):7", "looped (backward):6", *back, "looped (backward):6", *back, "looped:9"],
    ]


def hosted(x: Any) -> Any:
    def host(v: Any) -> Any:
        return v * v

    n = 2
    a = x * float(n)
    b = tf.py_func(host, [a], tf.float32)
    c = tf.reshape(b, [2])
    return c + 1.0


def test_a_run_in_parts_steps_by_the_lines_of_each() -> None:
    assert lines_of(hosted) == [*[f"hosted:{k}" for k in (1, 4, 5, 6)], "host:2", "hosted:7", "hosted:8"]


def stopping(x: Any) -> Any:
    y = x * 2.0
    debug.breakpoint()
    z = y + 1.0
    return z


def test_breakpoints_of_the_graph_stop_at_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[dict[str, Any]] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stops.append(dict(sys._getframe(1).f_locals)))
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        with debug.declaring():
            fetched = stopping(x)
        assert session.run(fetched, {x: X}).tolist() == [2.0, -1.0]
        assert [one["y"].tolist() for one in stops] == [[1.0, -2.0]]
        assert debug.value("y", session).value.tolist() == [1.0, -2.0]


def accuracy(y: Any) -> Any:
    close = tf.abs(y) < 1.0
    return tf.reduce_mean(tf.cast(close, tf.float32))


def trained(x: Any) -> Any:
    y = x * 3.0
    seen = {"y": y, "accuracy": accuracy(y)}
    loss = tf.reduce_sum(seen["y"])
    return loss


def test_what_the_run_does_not_compute_is_not_stepped_into() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        with debug.declaring():
            fetched = trained(x)
        recorder = stepped(trained, lambda: session.run(fetched, {x: X}, debug=True))
    assert "accuracy" not in {one.function for one in recorder.seen}
    frame = next(one for one in recorder.frames if one.f_code.co_name == "trained")
    assert frame.f_locals["seen"]["y"].tolist() == [1.5, -3.0]
    assert frame.f_locals["seen"]["accuracy"].name.startswith("Mean")  # the tensor of the graph


def test_what_was_declared_before_is_read_off_its_source() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        y = accuracy(x)
        with debug.declaring():
            fetched = y + trained(x)
        recorder = stepped(trained, lambda: session.run(fetched, {x: X}, debug=True))
    assert {"accuracy", "trained"} <= {one.function for one in recorder.seen}
    assert recorder.result == 0.5 - 1.5  # one of two elements is below one


def declaring_in(graph: Any) -> Any:
    with graph.as_default(), debug.declaring():
        x = tf.constant(X)
        return trained(x)


def test_a_debugger_stops_in_the_program_that_declares() -> None:
    recorder = StepRecorder(__file__)
    graph = tf.Graph()
    fetched = recorder.runcall(declaring_in, graph)
    assert {"declaring_in", "trained", "accuracy"} <= {one.function for one in recorder.seen}
    with tf.Session(graph=graph) as session:
        steps = stepped(trained, lambda: session.run(fetched, debug=True))
    assert [one.function for one in steps.seen if one.function == "accuracy"] == []
    first = trained.__code__.co_firstlineno
    assert [one.line - first for one in steps.seen if one.function == "trained"] == [1, 2, 3, 4]


def busy(x: Any) -> Any:
    total = 0
    for k in range(3000):
        total += k
    return x * float(total)


def test_lines_that_declare_nothing_for_long_are_passed_by() -> None:
    shown = lines_of(busy)
    assert shown[:3] == ["busy:1", "busy:2", "busy:3"] and len(shown) < 4000
    assert shown[-1] == "busy:4"


def in_thread(x: Any, add: Callable[[Any], Any]) -> Any:
    return add(x) * 2.0


def test_functions_made_by_partial_step_as_functions() -> None:
    program = functools.partial(in_thread, add=lambda v: v + 1.0)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        with debug.declaring():
            fetched = program(x)
        recorder = stepped(in_thread, lambda: session.run(fetched, {x: X}, debug=True))
    names = [one.function for one in recorder.seen if one.function in ("in_thread", "<lambda>")]
    assert names[-2:] == ["in_thread", "<lambda>"]


def declares_and_runs() -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        y = noted_programs.continue_loop(x)
        return session.run(y, {x: VALUE}, debug=True)


def test_what_a_debugger_of_python_follows_is_noted() -> None:
    recorder = ObjectRecorder(noted_programs.__file__)
    result = recorder.run_steps(declares_and_runs)
    expected = computed_at_once(noted_programs.continue_loop)
    assert recorder.all[-len(expected) :] == expected
    assert len(recorder.all) == 2 * len(expected)  # as it is declared, and as it is computed
    assert sys.gettrace() is None
    assert result.tolist() == (numpy.asarray(VALUE, "float32") * 1 * 3).tolist()


def test_a_block_notes_where_the_debugger_has_gone() -> None:
    ObjectRecorder(noted_programs.__file__).run_steps(declares_and_runs)
    with tf.Graph().as_default(), tf.Session() as session:
        with debug.declaring():
            x = tf.placeholder(tf.float32, [2])
            fetched = noted_programs.straight(x)
        recorder = ObjectRecorder(noted_programs.__file__)
        recorder.run_steps(lambda: session.run(fetched, {x: VALUE}, debug=True))
    assert recorder.all == computed_at_once(noted_programs.straight)


def unfollowed(x: Any) -> Any:
    y = x * 2.0
    sys.settrace(None)
    z = y + 1.0
    w = z * y
    return w


def test_what_was_not_noted_to_the_end_is_read_off_its_source() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        with debug.declaring():
            fetched = unfollowed(x)
        recorder = stepped(unfollowed, lambda: session.run(fetched, {x: X}, debug=True))
    first = unfollowed.__code__.co_firstlineno
    lines = [one.line - first for one in recorder.seen if one.function == "unfollowed"]
    assert lines == [1, 2, 3, 4, 5] and recorder.result.tolist() == [2.0, 2.0]


def test_a_block_inside_of_another_notes_nothing_twice() -> None:
    with tf.Graph().as_default(), tf.Session() as session, debug.declaring():
        x = tf.placeholder(tf.float32, [2])
        with debug.declaring():
            fetched = noted_programs.straight(x)
        recorder = ObjectRecorder(noted_programs.__file__)
        recorder.run_steps(lambda: session.run(fetched, {x: VALUE}, debug=True))
    assert recorder.all == computed_at_once(noted_programs.straight)


COMPLETE = [
    "straight",
    "helper_twice",
    "tuples",
    "starred",
    "list_comprehension",
    "comprehension_behind",
    "list_grows",
    "dict_updates",
    "inherited",
    "while_loop",
    "while_lambda",
    "cond",
    "cases",
    "loop_in_loop",
    "scan",
    "yield_from",
    "defaults",
    "nested",
    "early_return",
    "named_tuples",
    "dataclass",
    "loop_else",
    "multi_line",
    "delete_names",
    "enumerate_zip",
    "tensor_rows",
    "unused",
]


@pytest.mark.parametrize("name", COMPLETE)
def test_all_lines_of_what_was_not_noted_are_read_off_its_source(name: str) -> None:
    """The lines are all there, in their order, and no variable has another value than the program's."""
    program = getattr(noted_programs, name)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        fetched = program(x)
        session.run(tf.global_variables_initializer())
        recorder = ObjectRecorder(noted_programs.__file__)
        recorder.run_steps(lambda: session.run(fetched, {x: VALUE}, debug=True))
    found, expected = recorder.all, computed_at_once(program)
    assert {one[:2] for one in found} == {one[:2] for one in expected}
    later = iter([one for one in expected if one[1] not in HEADERS])
    for function, line, names in [one for one in found if one[1] not in HEADERS]:
        shown = next((other for *where, other in later if where == [function, line]), None)
        assert shown is not None and {one: shown.get(one) for one in names} == names


LITERALS = [program for program in vars(literal_programs).values() if inspect.isfunction(program)]


@pytest.mark.parametrize("program", LITERALS, ids=lambda program: program.__name__)
def test_numbers_and_texts_are_known_as_they_are_written(program: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        fetched = program(x)
        recorder = ObjectRecorder(literal_programs.__file__)
        recorder.run_steps(lambda: session.run(fetched, {x: VALUE}, debug=True))
    expected = iter(computed_at_once(program))
    shown: set[str] = set()
    for function, line, names in recorder.all:
        there = next((other for *where, other in expected if where == [function, line]), None)
        assert there is not None and {one: there.get(one) for one in names} == names
        shown |= names.keys()
    wanted = {"plain": {"factor", "name", "offset"}, "parameters": {"by"}, "branches": {"limit"}}
    assert wanted.get(program.__name__, set()) <= shown
