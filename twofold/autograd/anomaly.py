"""PyTorch's names for the search for the first gradient that holds NaN, see ``twofold.detect_anomaly``."""

from __future__ import annotations

import warnings
from typing import Any

from twofold import _core
from twofold.frontend.tensor_hooks import may_be_pending


class _Mode:
    enabled = False
    check_nan = True


def _set(enabled: bool, check_nan: bool) -> None:
    if enabled and not _Mode.enabled and may_be_pending():
        # passes from before are not searched; forward calls stay in the trace, whose operations an error names
        _core.flush()
    _Mode.enabled, _Mode.check_nan = enabled, check_nan
    _core.set_anomaly("backward" if enabled and check_nan else "off")


def is_anomaly_enabled() -> bool:
    """Whether gradients are searched for NaN.

    >>> import twofold as torch
    >>> torch.autograd.anomaly.is_anomaly_enabled()
    False
    """
    return _Mode.enabled


class set_detect_anomaly:
    """Set whether backward passes search for NaN; as a ``with`` block it is set back at the end.

    Args:
        mode: Whether a backward pass runs at once and raises RuntimeError, with the line of the forward call, where
            what it makes holds NaN.
        check_nan: False makes the mode search for nothing.

    >>> import twofold as torch
    >>> x = torch.tensor(-1.0, requires_grad=True)
    >>> with torch.autograd.set_detect_anomaly(True):
    ...     try:
    ...         x.sqrt().backward()
    ...     except RuntimeError as error:
    ...         print(str(error)[:50])
    Function 'SqrtBackward' returned nan values in its
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (_Mode.enabled, _Mode.check_nan)
        _set(bool(mode), bool(check_nan))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        _set(*self._before)


class detect_anomaly:
    """A ``with`` block whose backward passes raise RuntimeError where a gradient becomes NaN.

    >>> import warnings
    >>> import twofold as torch
    >>> x = torch.tensor(0.0, requires_grad=True)
    >>> warnings.simplefilter("ignore")
    >>> with torch.autograd.detect_anomaly():
    ...     (x * 2).backward()
    >>> x.grad
    tensor(2.)
    """

    def __init__(self, check_nan: bool = True) -> None:
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled "
            "for debugging.",
            stacklevel=2,
        )
        self.check_nan = bool(check_nan)
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._before.append((_Mode.enabled, _Mode.check_nan))
        _set(True, self.check_nan)

    def __exit__(self, *error: Any) -> None:
        _set(*self._before.pop())
