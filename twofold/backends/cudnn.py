"""Switches of NVIDIA's library for neural networks, which is not used."""

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether the library is there: no.

    >>> import twofold as torch
    >>> torch.backends.cudnn.benchmark = True
    >>> torch.backends.cudnn.is_available()
    False
    """
    return False


def version() -> None:
    """Which version is there: none."""
