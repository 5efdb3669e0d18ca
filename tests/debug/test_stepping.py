"""A compiled graph under a debugger shows the lines and values that plain define-by-run shows."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.debug as debug
import twofold.dynet as dy
import twofold.static as tf
from tests.debug import stepped_programs as programs
from tests.debug.step_recorder import (
    StepRecorder,
    compare,
    compare_declared,
    declared_and_at_once,
    stepped,
    value_of,
)
from twofold.debug.interpreter import _Lines
from twofold.errors import ArgumentError


def tensor(*values: Any) -> Any:
    return torch.tensor(list(values))


def weights() -> Any:
    return tensor([0.5, -1.0], [0.25, 2.0])


def matrix() -> Any:
    return dy.inputTensor([[0.5, -1.0], [0.25, 2.0]])


def vector() -> Any:
    return dy.inputVector([1.0, -2.0])


BY_RUN = {
    "straight": (programs.straight, lambda: (tensor([1.0, 2.0]), weights())),
    "unrolled": (programs.unrolled, lambda: (tensor(0.5, -1.0), torch.tensor(2.0))),
    "tuples": (programs.tuples, lambda: (tensor(1.0, 2.0), tensor(3.0, 5.0))),
    "in_place": (programs.in_place, lambda: (tensor(1.0, 2.0),)),
    "branching": (programs.branching, lambda: (tensor(1.0, 2.0),)),
    "tree": (programs.tree, lambda: (2, tensor(1.0, -2.0))),
    "columns": (programs.columns, lambda: (matrix(), vector())),
    "encoded": (programs.encoded, lambda: (matrix(), vector())),
    "trained": (programs.trained, lambda: (tensor([1.0, 2.0]), weights(), tensor([0.0, 1.0]))),
}


@pytest.mark.parametrize("name", BY_RUN)
def test_a_graph_steps_as_the_program_does(name: str) -> None:
    function, arguments = BY_RUN[name]
    recorder = stepped(programs, debug.run, function, *arguments())
    compare(recorder, stepped(programs, function, *arguments()))
    assert numpy.array_equal(
        numpy.asarray(value_of(recorder.result)), numpy.asarray(value_of(function(*arguments())))
    )


def test_a_builder_steps_as_the_program_does() -> None:
    builder = dy.LSTMBuilder(1, 2, 2, dy.ParameterCollection())
    recorder = stepped(programs, debug.run, programs.read_by_a_builder, builder, vector(), matrix())
    compare(recorder, stepped(programs, programs.read_by_a_builder, builder, vector(), matrix()))


def test_a_module_steps_as_it_does_uncompiled() -> None:
    torch.manual_seed(0)
    network = programs.Network(3)
    x = torch.ones(2, 3)
    recorder = stepped(programs, debug.run, network, x)
    compare(recorder, stepped(programs, network, x))


def test_a_compiled_function_steps_as_it_does_uncompiled() -> None:
    compiled = torch.compile(programs.unrolled)
    arguments = tensor(0.5, -1.0), torch.tensor(2.0)
    compiled(*arguments)
    recorder = stepped(programs, debug.run, compiled, *arguments)
    compare(recorder, stepped(programs, programs.unrolled, *arguments))


def test_what_steps_is_the_graph_that_a_compiled_function_runs() -> None:
    @torch.compile
    def doubled(x: Any) -> Any:
        y = x * 2.0
        return y, y + 1.0

    x = tensor(0.5, -1.0)
    usual = doubled(x)
    stepped = debug.run(doubled, x)
    assert len(doubled.graphs) == 1
    assert [one.tolist() for one in stepped] == [one.tolist() for one in usual]
    assert (
        debug.run(doubled, tensor(1.0)).__len__() == 2 and len(doubled.graphs) == 2
    )  # other types: another graph


DECLARED = [programs.declared, programs.chosen, programs.nested, programs.scanned]
HEADERS = {
    programs.branching.__code__.co_firstlineno + 6,
    *[
        function.__code__.co_firstlineno + 2
        for function in (
            programs.declared,
            programs.chosen,
            programs.nested,
            programs.outer_body,
            programs.scanned,
        )
    ],
}


@pytest.mark.parametrize("function", DECLARED, ids=lambda one: one.__name__)
def test_a_declared_graph_steps_as_the_program_computed_at_once(function: Any) -> None:
    compare_declared(programs, function, HEADERS)


@pytest.mark.parametrize("name", BY_RUN)
def test_the_backward_pass_is_the_mirror_of_the_forward_pass(name: str) -> None:
    """Backward, a line shows the variables as its statement left them."""
    function, arguments = BY_RUN[name]
    recorder = stepped(programs, debug.run, programs.differentiated, function, *requiring(arguments()))
    mirrored(recorder, stepped(programs, programs.differentiated, function, *requiring(arguments())), HEADERS)


def test_the_backward_pass_of_a_module_is_the_mirror() -> None:
    torch.manual_seed(0)
    network = programs.Network(3)
    x = torch.ones(2, 3)
    recorder = stepped(programs, debug.run, programs.differentiated, network, x)
    mirrored(recorder, stepped(programs, programs.differentiated, network, x))


@pytest.mark.parametrize("function", DECLARED, ids=lambda one: one.__name__)
def test_the_backward_pass_of_a_declared_graph_is_the_mirror(function: Any) -> None:
    steps = declared_and_at_once(programs, function, lambda result, x: tf.gradients(result, [x])[0])
    mirrored(*steps, HEADERS)


def mirrored(recorder: StepRecorder, straight: StepRecorder, headers: Collection[int] = ()) -> None:
    """The steps of a backward pass are those of the forward pass from the last to the first.

    The ``headers`` of loops and branches come before what stands in them in both directions.
    """
    forward = [one for one in straight.seen if one.function != "differentiated"]
    backward = [one for one in recorder.seen if one.function.endswith(" (backward)")]
    lines = {(one.function.removesuffix(" (backward)"), one.line) for one in backward}
    lines &= {one for one in straight.recorded_on if one[0] != "differentiated" and one[1] not in headers}
    expected = []
    for k, one in enumerate(forward):
        if one[:2] in lines:
            later = [other.values for other in forward[k + 1 :] if other.frame == one.frame]
            expected.append((one.function, one.line, later[0] if later else one.values))
    found = [(one.function.removesuffix(" (backward)"), one.line, one.values) for one in backward]
    found = [one for one in found if one[:2] in lines]
    assert len(found) > 1 and found == expected[::-1]


def requiring(arguments: Any) -> list[Any]:
    for one in arguments:
        tensor = getattr(one, "_tensor", one)
        if isinstance(tensor, torch.Tensor):
            tensor.requires_grad_()
    return list(arguments)


def test_going_back_to_a_line_that_computes_nothing() -> None:
    class Going(StepRecorder):
        def interaction(self, frame: Any, tb_or_exc: Any) -> None:
            super().interaction(frame, tb_or_exc)
            if len(self.seen) == 5:
                frame.f_globals["back"](1)
            elif len(self.seen) == 8:
                frame.f_globals["goto"](header)

    header = programs.looped.__code__.co_firstlineno + 2
    recorder = Going(programs.__file__)
    recorder.run_steps(debug.run, programs.looped, tensor(1.0, 2.0))
    first = stepped(programs, programs.looped, tensor(1.0, 2.0)).seen
    expected = [*first[:5], *first[3:6], *first[3:]]
    assert [one.what for one in recorder.seen] == [one.what for one in expected]


def test_what_is_no_tensor_is_returned() -> None:
    def described(x: Any, *, scale: float = 2.0) -> Any:
        return {"y": x * scale, "n": 3, "parts": [x, (x + 1,)]}

    found = debug.run(described, tensor(1.0, 2.0), scale=3.0)
    assert (
        value_of(found["y"]) == [3.0, 6.0]
        and found["n"] == 3
        and value_of(found["parts"][1][0]) == [2.0, 3.0]
    )
    with pytest.raises(ArgumentError, match="NoneType cannot be called"):
        debug.run(None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="Tensor is no run"):
        debug.value("x", tensor(1.0))


def test_lines_of_frames_are_those_that_python_tells() -> None:
    lines, found = _Lines(), []

    def noted(value: int) -> int:
        frame = sys._getframe(1)
        found.append((lines.of(frame), frame.f_lineno))
        return value

    for k in range(2):
        noted(
            noted(k)
            + noted(1)
        )  # fmt: skip
    assert len(found) == 6 and all(one == told for one, told in found) and len(set(found)) == 3


def multiples(x: Any) -> Any:
    for k in range(2):
        h = x * k
        yield h


def summed(x: Any) -> Any:
    made = multiples(x)
    total = next(made)
    for h in made:
        total = total + h
    return total


def test_generators_show_where_they_stand() -> None:
    steps = stepped(summed, debug.run, summed, tensor(1.0, 2.0))
    frames = [one.f_locals["made"] for one in steps.frames if "made" in one.f_locals]
    first = multiples.__code__.co_firstlineno
    assert repr(frames[-1]).startswith("<generator object multiples at 0x")
    lines = []

    class Recorder(StepRecorder):
        def interaction(self, frame: Any, tb_or_exc: Any) -> None:
            made = frame.f_locals.get("made")
            if made is not None:
                inner = made.gi_frame
                lines.append(inner and (inner.f_lineno - first, value_of(inner.f_locals.get("h", x))))
            super().interaction(frame, tb_or_exc)

    x = tensor(1.0, 2.0)
    Recorder(__file__).run_steps(debug.run, summed, x)
    zero, one = [0.0, 0.0], [1.0, 2.0]
    assert lines == [(0, one), (3, zero), (3, one), (3, one), None]
    with pytest.raises(RuntimeError, match="cannot go on"):
        next(frames[-1])


def test_tensors_of_arrays_have_what_they_had_at_the_line() -> None:
    array = numpy.asarray([1.0, 2.0], "float32")

    def program(x: Any) -> Any:
        y = x * 2
        total = y.sum().item()
        array[:] = 0.0
        return x + total

    steps = stepped(program, debug.run, program, torch.from_numpy(array))
    shown = [one.values["x"] for one in steps.seen]
    assert shown == [[1.0, 2.0]] * 3 + [[0.0, 0.0]] and value_of(steps.result) == [6.0, 6.0]
