"""Switches of matrix products on graphics cards, of which there are none."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import SimpleNamespace

from twofold.frontend import attention_backends

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True)


def is_built() -> bool:
    """Whether graphics cards could be used: no.

    >>> import twofold as torch
    >>> torch.backends.cuda.is_built()
    False
    """
    return False


def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> AbstractContextManager[None]:
    """Inside, attention may be computed with the backends enabled; see ``torch.nn.attention.sdpa_kernel``."""
    return attention_backends.only(
        {
            "flash": enable_flash,
            "math": enable_math,
            "mem_efficient": enable_mem_efficient,
            "cudnn": enable_cudnn,
        }
    )


def _enabler(way: str) -> Callable[[bool], None]:
    def enable(enabled: bool) -> None:
        attention_backends.allow({way: enabled})

    enable.__doc__ = (
        f"Whether attention may be computed with the backend ``{way}``; results do not depend on it."
    )
    return enable


def _asker(way: str) -> Callable[[], bool]:
    def enabled() -> bool:
        return attention_backends.enabled[way]

    enabled.__doc__ = f"Whether attention may be computed with the backend ``{way}``."
    return enabled


enable_flash_sdp, flash_sdp_enabled = _enabler("flash"), _asker("flash")
enable_math_sdp, math_sdp_enabled = _enabler("math"), _asker("math")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _enabler("mem_efficient"), _asker("mem_efficient")
enable_cudnn_sdp, cudnn_sdp_enabled = _enabler("cudnn"), _asker("cudnn")
