"""The devices that a program may use: ``tf.config``. The processor is the only one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

from twofold.runtime.tracing import here


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that operations can be placed on."""

    name: str
    device_type: str


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of this machine, those of a type alone if one is given.

    >>> import twofold.static as tf
    >>> tf.config.list_physical_devices("GPU"), len(tf.config.list_physical_devices("CPU"))
    ([], 1)
    """
    found = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    return [one for one in found if device_type in (None, one.device_type)]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that operations can be placed on, those of a type alone if one is given.

    >>> import twofold.static as tf
    >>> tf.config.list_logical_devices()[0].name
    '/device:CPU:0'
    """
    return [LogicalDevice("/device:CPU:0", "CPU")] if device_type in (None, "CPU") else []


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Nothing where the processor is among the devices, or none of a type is asked for; ValueError otherwise.

    >>> import twofold.static as tf
    >>> tf.config.set_visible_devices([], "GPU")
    """
    chosen = list(devices) if isinstance(devices, (list, tuple)) else [devices]
    if any(one not in list_physical_devices() for one in chosen):
        raise ValueError(
            f"set_visible_devices: {devices}, at {here()}. Give devices of list_physical_devices()."
        )
    if device_type in (None, "CPU") and not chosen:
        raise ValueError(f"set_visible_devices: without the processor nothing can run, at {here()}.")


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of this machine, those of a type alone if one is given."""
    return list_physical_devices(device_type)


def _set_memory_growth(device: Any, enable: bool) -> None:
    """Nothing: memory of the processor grows as it is needed; ValueError for another device."""
    if device not in list_physical_devices():
        raise ValueError(
            f"set_memory_growth: {device}, at {here()}. Give a device of list_physical_devices()."
        )


experimental = SimpleNamespace(
    list_physical_devices=list_physical_devices,
    list_logical_devices=list_logical_devices,
    set_visible_devices=set_visible_devices,
    get_visible_devices=get_visible_devices,
    set_memory_growth=_set_memory_growth,
)
