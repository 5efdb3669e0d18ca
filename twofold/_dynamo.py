"""PyTorch's older names for what ``torch.compiler`` has, and the switches of its compiler, which is not used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from twofold.compiler.interface import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)
from twofold.lazy import other_files

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "reset",
]


class OptimizedModule:
    """The class of modules that PyTorch's compiler returns; here no module is one."""


class Switches(ModuleType):
    """Switches that programs set; they change nothing. They are a module that programs import."""

    def __init__(self, name: str, **values: Any) -> None:
        super().__init__(name, Switches.__doc__)
        vars(self).update(values)
        sys.modules[name] = self

    @contextmanager
    def patch(
        self, name: str | dict[str, Any] | None = None, value: Any = None, **more: Any
    ) -> Iterator[None]:
        """Set switches, given by name or in a dict, inside of a ``with`` block or a decorated function."""
        changes = {**({name: value} if isinstance(name, str) else name or {}), **more}
        before = dict(vars(self))
        vars(self).update(changes)
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)


config = Switches(
    f"{__name__}.config",
    accumulated_cache_size_limit=256,
    allow_unspec_int_on_nn_module=False,
    assume_static_by_default=True,
    automatic_dynamic_shapes=True,
    cache_size_limit=8,
    capture_dynamic_output_shape_ops=False,
    capture_scalar_outputs=False,
    compiled_autograd=False,
    error_on_recompile=False,
    inline_inbuilt_nn_modules=True,
    optimize_ddp=True,
    recompile_limit=8,
    specialize_int=False,
    suppress_errors=False,
    verbose=False,
)


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """Tell PyTorch's compiler that a size varies. Nothing is compiled for a size here, so it is no news."""


def mark_static(t: Any, index: Any = None) -> None:
    """Tell PyTorch's compiler that a size stays; see ``mark_dynamic``."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Tell PyTorch's compiler that a tensor stays where it is in memory, for graphs of another device."""


maybe_mark_dynamic = mark_dynamic


def is_compile_supported(device_type: str) -> bool:
    """Whether programs run compiled on a device: on the CPU.

    >>> from twofold._dynamo.utils import is_compile_supported
    >>> is_compile_supported("cpu"), is_compile_supported("cuda")
    (True, False)
    """
    return device_type == "cpu"


other_files(
    __name__,
    {
        "eval_frame": f"OptimizedModule={__name__}:OptimizedModule",
        "utils": f"is_compile_supported={__name__}:is_compile_supported",
    },
)
