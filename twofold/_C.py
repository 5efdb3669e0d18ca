"""What programs ask of PyTorch's own C++ module: whether a trace is recorded, and switches of its compiler."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from twofold import _core
from twofold.errors import LinAlgError
from twofold.frontend.mapping import active_mappings
from twofold.frontend.sampling import Generator as Generator
from twofold.frontend.torch_function import DisableTorchFunction as DisableTorchFunction
from twofold.frontend.torch_function import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from twofold.lazy import other_files

_LinAlgError = LinAlgError
_disabled_torch_function_impl = _core.disabled_torch_function


class Graph:
    """The class of PyTorch's own graphs, which annotations of programs name; no object is one."""


class Value:
    """The class of values in PyTorch's own graphs, see ``Graph``."""


def _get_tracing_state() -> None:
    """None: no trace is being made of the calls.

    >>> import twofold as torch
    >>> torch._C._get_tracing_state() is None
    True
    """


def _are_functorch_transforms_active() -> bool:
    """Whether a function runs inside of ``vmap`` or a gradient of ``torch.func``.

    >>> import twofold as torch
    >>> active = torch._C._are_functorch_transforms_active
    >>> active(), torch.func.grad(lambda x: x * active())(torch.tensor(1.0))
    (False, tensor(1.))
    """
    return bool(active_mappings()) or import_module("twofold.func._tape").is_active()


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged, whatever ``event`` names."""


def _switch(name: str, value: bool) -> Callable[[bool], bool]:
    """A function that sets a switch, which changes nothing, and returns what it was."""

    def change(flag: bool) -> bool:
        nonlocal value
        before, value = value, bool(flag)
        return before

    change.__name__ = change.__qualname__ = name
    change.__doc__ = "Set a switch of PyTorch's compiler, which is not used, and return what it was."
    return change


_SWITCHES = {
    "_jit_set_profiling_executor": True,
    "_jit_set_profiling_mode": True,
    "_jit_set_autocast_mode": True,
    "_jit_set_texpr_fuser_enabled": True,
    "_jit_set_nvfuser_enabled": False,
    "_jit_override_can_fuse_on_cpu": False,
    "_jit_override_can_fuse_on_gpu": False,
}
globals().update({name: _switch(name, value) for name, value in _SWITCHES.items()})

other_files(__name__, {"_functorch": "is_batchedtensor=twofold.frontend.mapping:is_batchedtensor"})
