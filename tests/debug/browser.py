"""A browser without a window, asked through its protocol for developers."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_COMMAND, _ANSWER = 3, 4  # descriptors that the protocol uses in the browser


class Browser:
    """One page of a browser: evaluates expressions in it, and takes pictures of it."""

    def __init__(self, page: Path, profile: Path, size: tuple[int, int] = (1400, 900)) -> None:
        theirs, self._write = os.pipe()
        self._read, answers = os.pipe()

        def connect() -> None:
            high = [os.dup(theirs), os.dup(answers)]
            while min(high) <= _ANSWER:
                high = [os.dup(one) for one in high]
            os.dup2(high[0], _COMMAND)
            os.dup2(high[1], _ANSWER)

        self._process = subprocess.Popen(
            [
                str(CHROMIUM), *FLAGS, "--hide-scrollbars",
                "--remote-debugging-pipe", f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=connect,
        )  # fmt: skip
        os.close(theirs)
        os.close(answers)
        self._rest, self._count, self._session = b"", 0, ""
        target = self._ask("Target.createTarget", url=page.as_uri())["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        while self.value("location.href + document.readyState") != page.as_uri() + "complete":
            time.sleep(0.02)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        command = {"id": self._count, "method": method, "params": params}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while True:
            message, end, rest = self._rest.partition(b"\0")
            if not end:
                self._rest += os.read(self._read, 1 << 20)
                continue
            self._rest = rest
            answer = json.loads(message)
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                found: dict[str, Any] = answer["result"]
                return found

    def value(self, expression: str) -> Any:
        """What an expression of the page's language, or the promise that it is, becomes."""
        found = self._ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """Write what the page shows as PNG."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot")["data"]))
