"""A line that shows how far a program has come: tqdm where it is installed, plain prints otherwise."""

from __future__ import annotations

import sys
from typing import Any

try:
    from tqdm import tqdm
except ImportError:
    tqdm = None


class Progress:
    """Counts ``total`` steps under a title and shows the latest loss."""

    def __init__(self, title: str, total: int) -> None:
        self._title = title
        self._total = total
        self._done = 0
        self._loss = 0.0
        self._bar: Any = None if tqdm is None else tqdm(total=total, desc=title, unit="step")

    def advance(self, loss: float) -> None:
        """One more step is done."""
        self._done += 1
        self._loss = loss
        if self._bar is not None:
            self._bar.update()
            if self._done % 10 == 0 or self._done == self._total:
                self._bar.set_postfix_str(f"loss {loss:.4f}", refresh=False)
        elif self._done % max(1, self._total // 10) == 0:
            print(f"{self._title}: step {self._done} of {self._total}, loss {loss:.4f}", file=sys.stderr)

    def close(self) -> None:
        """Leave the line as it is."""
        if self._bar is not None:
            self._bar.close()
