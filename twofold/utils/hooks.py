"""Handles of hooks: ``torch.utils.hooks``."""

from __future__ import annotations

import itertools
from typing import Any

_numbers = itertools.count()


class RemovableHandle:
    """Takes a hook away again with ``remove``, or at the end of a ``with`` block."""

    def __init__(self, hooks: dict[int, Any]) -> None:
        self._hooks = hooks
        self.id = next(_numbers)

    def remove(self) -> None:
        """Take the hook away."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()
