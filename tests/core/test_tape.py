"""What tools that step through programs ask of the core: the tape, lines as code, calls that no debugger follows."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import twofold as torch
from twofold import _core
from twofold.debug.recording import Recording, recorded


def test_a_thread_keeps_what_it_runs_with_its_lines_and_values() -> None:
    def program(x: Any) -> Any:
        y = x * 2
        return y.exp()

    x = torch.tensor([0.0, 1.0])
    x.tolist()
    _core.flush()
    tape: list[Any] = []
    assert _core.set_tape(tape) is None
    try:
        result = program(x)
        result.tolist()
    finally:
        assert _core.set_tape(None) is tape
    (x * 3).tolist()
    ((leaves, entries, lines, results),) = tape
    assert [entry[2].name for entry in entries] == ["multiply", "exp"]
    assert [entry[1] for entry in entries] == [[-1, -2], [0]]
    assert leaves[0].tolist() == [0.0, 1.0] and leaves[1] == 2
    assert _core.value_key(leaves[0]) == _core.value_key(x)
    first = program.__code__.co_firstlineno
    for (location, forward), line in zip(lines, (first + 1, first + 2)):
        code, offset = _core.location_codes(location)[0]
        assert code is program.__code__ and forward == 0
        assert offset == line if sys.version_info < (3, 11) else line in lines_at(code, offset)
    ((entry, value),) = results
    assert entry == 1 and _core.value_key(value) == _core.value_key(result)


def lines_at(code: Any, offset: int) -> set[int]:
    return {line for begin, end, line in code.co_lines() if begin <= offset < end and line}


def test_no_debugger_follows_an_untraced_call_and_it_follows_those_inside_that_ask_for_it() -> None:
    seen = []

    def inner() -> int:
        return 5

    def outer() -> int:
        return _core.call_traced(inner) + 1

    def watch(frame: Any, event: str, argument: Any) -> Any:
        if event == "call":
            seen.append(frame.f_code.co_name)
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        value = _core.call_untraced(outer)
    finally:
        sys.settrace(before)
    assert value == 6 and seen == ["inner"]


def test_debuggers_on_monitoring_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """``sys.monitoring`` is in Python 3.12; a stand-in answers as it does."""
    tool: list[Any] = [None]
    stand_in = SimpleNamespace(DEBUGGER_ID=0, get_tool=lambda number: tool[number])
    monkeypatch.setattr(sys, "monitoring", stand_in, raising=False)
    sys.audit("sys.monitoring.register_callback", None)
    _core.flush()
    y = torch.ones(3) * 2
    assert _core.pending() > 0
    tool[0] = "a debugger"
    z = y * 2
    assert _core.pending() == 0
    tool[0] = None
    assert (z * 2).tolist() == [8, 8, 8]


def test_chains_stay_whole_while_another_thread_records() -> None:
    def deep(x: Any, count: int) -> Any:
        return deep(x, count - 1) if count else torch.tanh(x)

    def record() -> None:
        with recorded():
            torch.ones(2).tolist()

    x = torch.ones(3)
    x.tolist()
    with recorded() as tape:
        thread = threading.Thread(target=record)
        thread.start()
        thread.join()
        deep(x, 30).tolist()
    recording = Recording()
    recording.add_tape(tape)
    assert [sum(site.code is deep.__code__ for site in call.chain) for call in recording.calls] == [31]
