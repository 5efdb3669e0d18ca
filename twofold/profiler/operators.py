"""``torch.ops.profiler``: ranges of profiles that begin with one call and end with another.

Programs that record calls (``torch.fx``) note these, as they have no ``with`` blocks.
"""

from __future__ import annotations

import itertools

import twofold.ops
from twofold import _core
from twofold.frontend.creation import tensor
from twofold.library.namespaces import Library
from twofold.profiler.profiler import record_function

Tensor = _core.Tensor
_library = Library("profiler", "DEF")
_open: dict[int, record_function] = {}
_numbers = itertools.count(1)


def _enter(name: str, args: str | None = None) -> Tensor:
    """Begin a range, and return what ends it."""
    number = next(_numbers)
    _open[number] = record_function(name, args)
    _open[number].__enter__()
    return tensor(number)


def _exit(handle: Tensor) -> None:
    found = _open.pop(int(handle.item()), None)
    if found is None:
        raise RuntimeError("_record_function_exit: the range of this handle has ended.")
    found.__exit__()


_library.define("_record_function_enter(str name, str? args=None) -> Tensor")
_library.impl("_record_function_enter", _enter, "CPU")
_library.define("_record_function_exit(Tensor _0) -> ()")
_library.impl("_record_function_exit", _exit, "CPU")
namespace = twofold.ops.profiler
