"""Switches of matrix products on graphics cards, of which there are none."""

from collections.abc import Callable, Iterator
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


_ways = {"flash": True, "math": True, "mem_efficient": True, "cudnn": True}


def _enabler(way: str) -> Callable[[bool], None]:
    def enable(enabled: bool) -> None:
        _ways[way] = bool(enabled)

    enable.__doc__ = f"Whether attention may be computed in the way ``{way}``; results do not depend on it."
    return enable


def _asker(way: str) -> Callable[[], bool]:
    def enabled() -> bool:
        return _ways[way]

    enabled.__doc__ = f"What was told of the way ``{way}`` to compute attention."
    return enabled


enable_flash_sdp, flash_sdp_enabled = _enabler("flash"), _asker("flash")
enable_math_sdp, math_sdp_enabled = _enabler("math"), _asker("math")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _enabler("mem_efficient"), _asker("mem_efficient")
enable_cudnn_sdp, cudnn_sdp_enabled = _enabler("cudnn"), _asker("cudnn")
