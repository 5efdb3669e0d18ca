"""An editor that speaks debugpy's protocol stops in a graph, looks at variables, steps, and steps back."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from tests.debug import debugged_programs
from tests.debug import stepped_programs as programs
from tests.debug.test_stepping import HEADERS

pytest.importorskip("debugpy")

FILE = programs.__file__
LINE = programs.straight.__code__.co_firstlineno + 3
ATTACHED = """
import debugpy
print(debugpy.listen(("127.0.0.1", 0))[1], flush=True)
debugpy.wait_for_client()
import twofold as torch
from tests.debug import stepped_programs as programs
"""
PROGRAM = """
x, w = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, -1.0], [0.25, 2.0]])
torch.debug.run(programs.straight, x, w)
"""
ROOT = Path(__file__).resolve().parents[2]


class Editor:
    """A client of the protocol."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rb")
        self.events: list[Any] = []
        self.count = 0

    def send(self, command: str, **arguments: Any) -> int:
        self.count += 1
        message = {"seq": self.count, "type": "request", "command": command, "arguments": arguments}
        data = json.dumps(message).encode()
        self.socket.sendall(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        return self.count

    def read(self) -> Any:
        length = 0
        while line := self.file.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(self.file.read(length))

    def request(self, command: str, **arguments: Any) -> Any:
        number = self.send(command, **arguments)
        while (message := self.read()).get("request_seq") != number:
            if message["type"] == "event":
                self.events.append(message)
        assert message["success"], message
        return message.get("body")

    def event(self, name: str) -> Any:
        while not any(event["event"] == name for event in self.events):
            self.events.append(message) if (message := self.read())["type"] == "event" else None
        return self.events.pop(next(k for k, one in enumerate(self.events) if one["event"] == name)).get(
            "body"
        )

    def stop(self) -> tuple[int, Any]:
        """The thread and the innermost frame where the program stops."""
        thread = self.event("stopped")["threadId"]
        return thread, self.request("stackTrace", threadId=thread)["stackFrames"][0]

    def tensors(self, frame: Any) -> dict[str, str]:
        """The variables of a frame that hold tensors, as an editor shows them."""
        scopes = self.request("scopes", frameId=frame["id"])["scopes"]
        shown = self.request("variables", variablesReference=scopes[0]["variablesReference"])["variables"]
        return {one["name"]: one["value"] for one in shown if one["value"].startswith("tensor(")}


@contextlib.contextmanager
def attached(program: str, breakpoints: dict[str, list[int]]) -> Iterator[tuple[Editor, Any]]:
    """An editor with breakpoints by file and line, and the process that runs a program."""
    environment = {**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    command = [sys.executable, "-Xfrozen_modules=off", "-c", ATTACHED + program]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
    try:
        assert process.stdout is not None
        editor = Editor(int(process.stdout.readline()))
        editor.request("initialize", adapterID="test", pathFormat="path")
        editor.send("attach", justMyCode=False)
        editor.event("initialized")
        for path, lines in breakpoints.items():
            editor.request("setBreakpoints", source={"path": path}, breakpoints=[{"line": k} for k in lines])
        editor.request("configurationDone")
        yield editor, process
    finally:
        process.kill()
        process.wait()


def test_breakpoint_variables_step_and_step_back() -> None:
    with attached(PROGRAM, {FILE: [LINE]}) as (editor, process):
        thread, frame = editor.stop()
        assert (frame["name"], frame["line"]) == ("straight", LINE)
        assert editor.tensors(frame)["h"] == "tensor([[1., 3.]])"
        editor.request("next", threadId=thread)
        thread, frame = editor.stop()
        assert frame["line"] == LINE + 1
        editor.request("evaluate", expression="back()", frameId=frame["id"], context="repl")
        editor.request("next", threadId=thread)
        thread, frame = editor.stop()
        assert frame["line"] == LINE
        editor.request("continue", threadId=thread)
        assert process.wait(timeout=60) == 0


def lines_of(function: Any) -> list[int]:
    """The lines of a function that run."""
    first = function.__code__.co_firstlineno
    return sorted({line for *_, line in function.__code__.co_lines() if line and line > first})


def stops_of_all() -> dict[str, list[tuple[str, int, dict[str, str]]]]:
    """Where an editor that stops at every line of the programs stops, with the tensors that it shows there."""
    functions = [one for one in vars(programs).values() if isinstance(one, FunctionType)]
    functions.remove(programs.differentiated)
    lines = [line for one in functions if one.__code__.co_filename == FILE for line in lines_of(one)]
    mark = lines_of(debugged_programs.mark)
    seen: dict[str, list[tuple[str, int, dict[str, str]]]] = {}
    run = "from tests.debug import debugged_programs\ndebugged_programs.run_all()\n"
    with attached(run, {FILE: lines, debugged_programs.__file__: mark}) as (editor, process):
        what = ""
        while what != "end":
            thread, frame = editor.stop()
            if frame["name"] == "mark":
                shown = editor.request("evaluate", expression="what", frameId=frame["id"], context="watch")
                what = shown["result"].strip("'")
                seen[what] = []
            else:
                seen[what].append((frame["name"], frame["line"], editor.tensors(frame)))
            editor.request("continue", threadId=thread)
        assert process.wait(timeout=60) == 0
    return seen


def test_an_editor_stops_in_graphs_as_it_does_in_the_programs() -> None:
    seen = stops_of_all()
    names = [name.removesuffix(" stepped") for name in seen if name.endswith(" stepped")]
    assert len(names) >= 10
    for name in names:
        stepped = [one for one in seen[f"{name} stepped"] if one[1] not in HEADERS]
        known = {one[:2] for one in stepped}
        plain = [one for one in seen[f"{name} plain"] if one[:2] in known]
        assert len(stepped) > 2 and [one[:2] for one in stepped] == [one[:2] for one in plain], name
        if any(shown for *_, shown in plain):  # not expressions of DyNet's, which show no values
            assert stepped == plain, name
