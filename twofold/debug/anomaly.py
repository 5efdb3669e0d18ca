"""The search for the first value that is not finite."""

from __future__ import annotations

from typing import Any

from twofold import _core


class detect_anomaly:
    """A ``with`` block in which a run raises where a result is NaN or infinite, with the line that first made it so.

    Every run, forward and backward, define-by-run or by a session, looks over its results. Where one is not finite,
    what it needs is computed once more, one operation at a time, and the error names the first call that made NaN or
    infinity of finite values: its line, its operands and their values, and why. Infinity that a program gives itself,
    as a mask or a constant, is no anomaly; NaN made of it is. Values that nobody holds, such as what ``where`` leaves
    out, may be what they are.

    Args:
        mode: False turns the search off inside.

    Raises AnomalyError, which is a RuntimeError and a FloatingPointError, from inside the block.

    >>> import twofold as torch
    >>> x = torch.tensor([1.0, 0.0])
    >>> try:
    ...     with torch.detect_anomaly():
    ...         print((x.log() * 0).sum())
    ... except torch.errors.AnomalyError as error:
    ...     print(str(error)[:72])
    log: the first value that is not finite: -inf at index [1], log(0): inpu
    """

    def __init__(self, mode: bool = True) -> None:
        self._mode = "everywhere" if mode else "off"
        self._before: list[str] = []

    def __enter__(self) -> None:
        self._before.append(_core.set_anomaly(self._mode))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                _core.flush()
        finally:
            _core.set_anomaly(self._before.pop())
