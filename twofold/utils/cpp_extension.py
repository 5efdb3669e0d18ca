"""Extensions in C++ and CUDA under PyTorch's name: importable, so that programs with another way run; none is built."""

from __future__ import annotations

from typing import Any, NoReturn

CUDA_HOME = ROCM_HOME = CUDNN_HOME = None


def _missing(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise RuntimeError: extensions are built against PyTorch.

    >>> import twofold as torch
    >>> from twofold.utils.cpp_extension import load
    >>> load(name="fused", sources=["fused.cpp"])
    Traceback (most recent call last):
        ...
    RuntimeError: cpp_extension: extensions in C++ are built against PyTorch. Use functions of tensors.
    """
    raise RuntimeError(
        "cpp_extension: extensions in C++ are built against PyTorch. Use functions of tensors."
    )


load = load_inline = CppExtension = CUDAExtension = include_paths = library_paths = _missing


class BuildExtension:
    """PyTorch's command that builds extensions: making one raises RuntimeError."""

    __init__ = _missing
    with_options = staticmethod(_missing)
