"""An editor that speaks debugpy's protocol stops in a graph, looks at variables, steps, and steps back."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.debug import stepped_programs as programs

pytest.importorskip("debugpy")

FILE = programs.__file__
LINE = programs.straight.__code__.co_firstlineno + 3
PROGRAM = """
import debugpy
print(debugpy.listen(("127.0.0.1", 0))[1], flush=True)
debugpy.wait_for_client()
import twofold as torch
from tests.debug import stepped_programs as programs
x, w = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, -1.0], [0.25, 2.0]])
torch.debug.run(programs.straight, x, w)
"""


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


def test_breakpoint_variables_step_and_step_back() -> None:
    environment = {**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    command = [sys.executable, "-Xfrozen_modules=off", "-c", PROGRAM]
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=root)
    try:
        assert process.stdout is not None
        editor = Editor(int(process.stdout.readline()))
        editor.request("initialize", adapterID="test", pathFormat="path")
        editor.send("attach", justMyCode=False)
        editor.event("initialized")
        editor.request("setBreakpoints", source={"path": FILE}, breakpoints=[{"line": LINE}])
        editor.request("configurationDone")
        thread, frame = editor.stop()
        assert (frame["name"], frame["line"]) == ("straight", LINE)
        scopes = editor.request("scopes", frameId=frame["id"])["scopes"]
        reference = scopes[0]["variablesReference"]
        shown = editor.request("variables", variablesReference=reference)["variables"]
        assert {one["name"]: one["value"] for one in shown}["h"] == "tensor([[1., 3.]])"
        editor.request("next", threadId=thread)
        thread, frame = editor.stop()
        assert frame["line"] == LINE + 1
        editor.request("evaluate", expression="back()", frameId=frame["id"], context="repl")
        editor.request("next", threadId=thread)
        thread, frame = editor.stop()
        assert frame["line"] == LINE
        editor.request("continue", threadId=thread)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
