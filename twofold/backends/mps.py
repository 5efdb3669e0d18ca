"""Apple's graphics processors, which are not used."""


def is_available() -> bool:
    """Whether there is one to use: no.

    >>> import twofold as torch
    >>> torch.backends.mps.is_available()
    False
    """
    return False


is_built = is_available
