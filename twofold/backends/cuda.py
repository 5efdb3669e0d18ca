"""Switches of matrix products on graphics cards, of which there are none."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from twofold.errors import ArgumentError

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True)


def is_built() -> bool:
    """Whether graphics cards could be used: no.

    >>> import twofold as torch
    >>> torch.backends.cuda.is_built()
    False
    """
    return False


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Inside, attention may be computed in the ways enabled; results do not depend on it."""
    if not (enable_flash or enable_math or enable_mem_efficient or enable_cudnn):
        raise ArgumentError("sdp_kernel: no way to compute attention is enabled", "Enable one.")
    yield
