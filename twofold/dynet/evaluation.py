"""Values of several expressions at once, and devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from twofold.dynet.elementwise import check_device
from twofold.dynet.expression import Expression
from twofold.dynet.graph import refresh


def forward(exps: Iterable[Expression], recalculate: bool = False) -> None:
    """Compute the values of expressions now.

    >>> import twofold.dynet as dy
    >>> x = dy.inputVector([1, 2])
    >>> dy.forward([x + 1, x * 2])
    """
    refresh(recalculate)
    for x in exps:
        x._tensor.detach().numpy()


def npvalues(exps: Sequence[Expression], recalculate: bool = False) -> list[numpy.ndarray[Any, Any]]:
    """The values of expressions as arrays."""
    refresh(recalculate)
    return [x.npvalue() for x in exps]


def values(exps: Sequence[Expression], recalculate: bool = False) -> list[Any]:
    """The values of expressions, each as ``value`` gives it."""
    refresh(recalculate)
    return [x.value() for x in exps]


class DeviceInfo:
    """A device."""

    def __init__(self, name: str, id: int, dtype: str) -> None:
        self.name, self.id, self.type = name, id, dtype


def available_devices() -> list[str]:
    """The names of all devices: there is one."""
    return ["CPU"]


def get_device_info(name: str) -> DeviceInfo:
    """The device of a name; raises RuntimeError where there is none."""
    check_device(name)
    return DeviceInfo("CPU", 0, "CPU")
