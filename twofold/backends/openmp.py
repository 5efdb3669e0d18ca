"""OpenMP, which is not used."""


def is_available() -> bool:
    """Whether it is used: no.

    >>> import twofold as torch
    >>> torch.backends.openmp.is_available()
    False
    """
    return False
