"""The devices of this process: ``tensorflow.python.client.device_lib``."""

from __future__ import annotations

import os
from typing import NamedTuple


class DeviceAttributes(NamedTuple):
    """A device: its name, its kind, and how many bytes of memory it has."""

    name: str
    device_type: str
    memory_limit: int
    physical_device_desc: str = ""


def list_local_devices(session_config: object = None) -> list[DeviceAttributes]:
    """The devices of this process, of which there is one; ``session_config`` changes nothing.

    >>> from twofold.static.python.client import device_lib
    >>> [device.name for device in device_lib.list_local_devices()]
    ['/device:CPU:0']
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return [DeviceAttributes("/device:CPU:0", "CPU", memory)]
