"""A program that is stepped through comes by all lines that it comes by as it runs, with all that variables hold."""

from __future__ import annotations

import gc
import types
from typing import Any

import pytest

import twofold as torch
from tests.debug import stepped_control, stepped_data, stepped_objects
from tests.debug.step_recorder import StepRecorder, programs_of, stepped, value_of
from twofold import debug

PROGRAMS = [(module, one) for module in (stepped_control, stepped_data) for one in programs_of(module)]


def arguments() -> list[Any]:
    return [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])]


def everything(recorder: StepRecorder) -> list[Any]:
    """All steps of the forward pass, with all tensors, lists and dictionaries of these."""
    forward = [one for one in recorder.seen if not one.function.endswith(" (backward)")]
    return [(*one.what, one.collections) for one in forward]


@pytest.mark.parametrize("compiles", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("module, program", PROGRAMS, ids=lambda one: getattr(one, "__name__", ""))
def test_every_line_is_stepped_through(module: Any, program: Any, compiles: bool) -> None:
    function = torch.compile(program) if compiles else program
    usual = program(*arguments())
    recorder = stepped(module, debug.run, function, *arguments())
    assert everything(recorder) == everything(stepped(module, program, *arguments()))
    assert value_of(recorder.result) == value_of(usual)


class ObjectRecorder(StepRecorder):
    """Notes all variables, whatever they hold."""

    def interaction(self, frame: Any, tb_or_exc: Any) -> None:
        """Called where pdb asks for a command as a line is about to run."""
        if frame.f_code.co_filename == self.file and not frame.f_code.co_name.endswith(" (backward)"):
            names = {name: parts_of(one) for name, one in frame.f_locals.items() if name.isidentifier()}
            names.pop("__exception__", None)  # the debugger's
            self.all = [*getattr(self, "all", ()), (frame.f_code.co_name, frame.f_lineno, names)]
        self.set_step()


def parts_of(value: Any, outer: tuple[int, ...] = ()) -> Any:
    """What can be compared of a value: its class, and what it is made of."""
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype), None if value._is_symbolic else value.detach().tolist()
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)):
        return value.__name__
    if id(value) in outer:
        return "itself"
    outer = (*outer, id(value))
    if isinstance(value, dict):
        keys = [str(parts_of(key)) if isinstance(key, torch.Tensor) else key for key in value]
        return {key: parts_of(one, outer) for key, one in zip(keys, value.values())}
    if isinstance(value, (tuple, list)) or type(value).__name__ == "deque":
        return type(value).__name__, [parts_of(one, outer) for one in value]
    if isinstance(value, stepped_objects.Slotted):
        slots = {name: getattr(value, name) for name in type(value).__slots__ if hasattr(value, name)}
        return type(value).__name__, parts_of(slots | getattr(value, "__dict__", {}), outer)
    if hasattr(value, "__dict__"):
        return type(value).__name__, parts_of(vars(value), outer)
    return repr(value).partition(" at 0x")[0]


OBJECTS = [one for module in (stepped_control, stepped_data, stepped_objects) for one in programs_of(module)]
UNLIKE = {"generator_expr", "optimiser_loop"}  # variables that hold an iterator, or random parameters


@pytest.mark.parametrize("program", OBJECTS, ids=lambda one: one.__name__)
def test_variables_of_all_kinds_hold_what_they_held_at_the_line(program: Any) -> None:
    def recorded(function: Any, *given: Any) -> list[Any]:
        recorder = ObjectRecorder(program.__code__.co_filename)
        recorder.run_steps(function, *given)
        return recorder.all

    program(*arguments())
    found, expected = (recorded(debug.run, program, *arguments()), recorded(program, *arguments()))
    if program.__name__ not in UNLIKE:
        assert found == expected
    assert [one[:2] for one in found] == [one[:2] for one in expected]


def doubled(v: Any) -> Any:
    y = v * 2
    return y


def called_twice(x: Any) -> Any:
    a = doubled(x)
    b = doubled(a)
    b.sum().backward()
    return b


def test_callers_in_a_backward_pass_have_what_their_lines_left() -> None:
    recorder = stepped(called_twice, debug.run, called_twice, torch.ones(2, requires_grad=True))
    callers = [one.values for one in recorder.seen if one.function == "called_twice (backward)"]
    ones = [[float(k)] * 2 for k in (1, 2, 4)]
    assert callers[-2:] == [dict(zip("xab", ones)), dict(zip("xa", ones))]


def test_a_backward_pass_through_rounds_comes_by_each_line_once() -> None:
    def trained(x: Any, w: Any) -> None:
        stepped_control.gru_cell(x, w).sum().backward()

    given = [one.requires_grad_() for one in arguments()]
    recorder = stepped(stepped_control, debug.run, trained, *given)
    first = stepped_control.gru_cell.__code__.co_firstlineno
    lines = [one.line - first for one in recorder.seen if one.function == "gru_cell (backward)"]
    assert [one for one in lines if one > 2] == [6, 5, 4, 3] * 3


def test_what_the_garbage_collector_calls_is_not_stepped_through() -> None:
    """It calls anywhere, also while a run is planned or gradients are recorded."""
    program = next(program for _, program in PROGRAMS if program.__name__ == "newton")
    usual, threshold = program(*arguments()), gc.get_threshold()
    called = []

    def note(phase: str, info: Any) -> None:
        called.append(phase)

    gc.callbacks.append(note)
    gc.set_threshold(20, 1, 1)
    try:
        recorder = stepped(stepped_control, debug.run, program, *arguments())
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(note)
    assert called and "note" not in {one.function for one in recorder.seen}
    assert value_of(program(*arguments())) == value_of(usual)
