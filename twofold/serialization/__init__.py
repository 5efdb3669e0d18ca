"""Checkpoints: saving and loading states, PyTorch's format both ways, with nothing of a file being run."""

from twofold.serialization.checkpoint import DEFAULT_PROTOCOL, FILE_LIKE, MAP_LOCATION, load, save
from twofold.serialization.safe import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from twofold.serialization.storages import default_restore_location
from twofold.tracebacks import guard_namespace as _guard_namespace

__all__ = [
    "DEFAULT_PROTOCOL",
    "FILE_LIKE",
    "MAP_LOCATION",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]

_guard_namespace(globals())
