"""PyTorch's older names for what ``torch.compiler`` has, and the switches of its compiler, which is not used."""

from __future__ import annotations

from types import SimpleNamespace

from twofold.compiler.interface import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "is_compiling",
    "list_backends",
    "reset",
]

config = SimpleNamespace(
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
"""Switches that programs set; they change nothing."""
