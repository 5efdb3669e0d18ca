"""Device strings of TensorFlow: read, merged where blocks are nested, and checked against the one device there is."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from twofold.runtime.tracing import here

HERE = "/job:localhost/replica:0/task:0/device:CPU:0"
"""The only device."""
_KINDS = frozenset({"CPU", "GPU", "TPU"})


class DeviceSpec(NamedTuple):
    """The parts of a device string; None where it leaves one open.

    >>> import twofold.static as tf
    >>> tf.DeviceSpec.from_string("/job:ps/gpu:1").to_string()
    '/job:ps/device:GPU:1'
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    def __str__(self) -> str:
        text = "" if self.job is None else f"/job:{self.job}"
        text += "" if self.replica is None else f"/replica:{self.replica}"
        text += "" if self.task is None else f"/task:{self.task}"
        return (
            text
            if self.device_type is None
            else f"{text}/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}"
        )

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """The parts of a device string; raises ValueError for what is none."""
        return parse(spec)

    def to_string(self) -> str:
        """The device string."""
        return str(self)

    def inside(self, outer: DeviceSpec) -> DeviceSpec:
        """This one, with what it leaves open as ``outer`` says."""
        device = outer if self.device_type is None else self
        return DeviceSpec(
            outer.job if self.job is None else self.job,
            outer.replica if self.replica is None else self.replica,
            outer.task if self.task is None else self.task,
            device.device_type,
            device.device_index,
        )

    def is_local(self, tasks: Collection[tuple[str, int]]) -> bool:
        """Whether the job, replica and task are this process, which has ``tasks`` of a cluster."""
        if self.replica not in (None, 0):
            return False
        chosen = [task for task in tasks or [("localhost", 0)] if self.job in (None, task[0])]
        return any(self.task in (None, number) for _, number in chosen)

    def is_here(self, tasks: Collection[tuple[str, int]]) -> bool:
        """Whether this is the processor, the only device."""
        return self.is_local(tasks) and self.device_type in (None, "CPU") and self.device_index in (None, 0)


def parse(text: str) -> DeviceSpec:
    """The parts of a device string; raises ValueError for what is none."""
    found: dict[str, Any] = {}
    for part in filter(None, text.split("/")):
        name, *values = part.split(":")
        if name in ("job", "replica", "task") and len(values) == 1:
            found[name] = values[0] if name == "job" else _number(values[0], text)
            continue
        if name.lower() == "device" and len(values) in (1, 2):
            name, *values = values
        elif name.upper() not in _KINDS or len(values) > 1:
            raise ValueError(
                f"Unknown attribute '{name}' is encountered while parsing the device spec: '{text}', at {here()}. "
                "Write '/job:worker/task:0/device:CPU:0', or a part of it."
            )
        if "device_type" in found:
            raise ValueError(
                f"Multiple device types are not allowed while parsing the device spec: {text}, at {here()}."
            )
        found["device_type"] = name.upper()
        found["device_index"] = None if not values or values[0] == "*" else _number(values[0], text)
    return DeviceSpec(**found)


def _number(text: str, whole: str) -> int:
    if not text.isdigit():
        raise ValueError(
            f"'{text}' is not a number in the device spec: '{whole}', at {here()}. Count from 0."
        )
    return int(text)


def check_device(what: str, device: Any) -> None:
    """Raise ValueError for a device string that is none, TypeError for what is no device."""
    if device is None or callable(device) or isinstance(device, DeviceSpec):
        return
    if not isinstance(device, str):
        raise TypeError(
            f"{what}: a device of type {type(device).__name__}, at {here()}. Give a string, such as '/cpu:0'."
        )
    parse(device)


def placed(devices: Iterable[Any], operation: Any) -> str:
    """The device of an operation inside blocks, given from the outermost: a string, '' if all is left open."""
    found = DeviceSpec()
    for device in devices:
        wanted = device(operation) if callable(device) else device
        check_device("device", wanted)
        if wanted is None:
            found = found if callable(device) else DeviceSpec()
        elif not callable(wanted):
            found = (wanted if isinstance(wanted, DeviceSpec) else parse(wanted)).inside(found)
    return str(found)


def trouble(device: str, soft: bool, tasks: Collection[tuple[str, int]]) -> bool:
    """Whether no device fits; with ``soft`` any device of this process stands for any other.

    ``tasks`` are the jobs and tasks of a cluster that are in this process.
    """
    spec = parse(device)
    return not (spec.is_local(tasks) if soft else spec.is_here(tasks))


def show_placement(operations: Iterable[Any]) -> None:
    """Write to standard error where operations run."""
    for operation in operations:
        print(f"{operation.name}: ({operation.type}): {HERE}", file=sys.stderr)
