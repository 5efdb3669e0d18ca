"""Switches of matrix products on graphics cards, of which there are none."""

from types import SimpleNamespace

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True)


def is_built() -> bool:
    """Whether graphics cards could be used: no.

    >>> import twofold as torch
    >>> torch.backends.cuda.is_built()
    False
    """
    return False
