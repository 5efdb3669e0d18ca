"""How far something has come that takes over two seconds: shown by tqdm, where it is installed and somebody looks."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Any

_SECONDS = 2.0


class Progress:
    """Counts ``total`` parts of what is in a ``with`` block; a bar appears when that has taken two seconds.

    In a terminal or a notebook alone; what is quick imports nothing.
    """

    def __init__(self, title: str, total: int, unit: str) -> None:
        self._options = {"desc": title, "total": total, "unit": unit, "leave": False}
        self._total = total
        self._start = time.monotonic()
        self._done = 0
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, parts: int = 1) -> None:
        """Some parts are done."""
        self._done += parts
        if self._bar is not None:
            self._bar.update(parts)
        elif time.monotonic() - self._start > _SECONDS and self._done < self._total and _is_seen():
            self._bar = import_module("tqdm.auto").tqdm(initial=self._done, **self._options)


def _is_seen() -> bool:
    """Whether there is tqdm, and somebody to look at it."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return (terminal or "ipykernel" in sys.modules) and find_spec("tqdm") is not None
