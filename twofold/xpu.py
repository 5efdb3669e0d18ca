"""What programs ask about Intel's graphics cards, of which none is used."""


def is_available() -> bool:
    """Whether there is one to use: no.

    >>> import twofold as torch
    >>> torch.xpu.is_available(), torch.xpu.device_count()
    (False, 0)
    """
    return False


def device_count() -> int:
    """How many there are: 0."""
    return 0
