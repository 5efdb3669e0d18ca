"""Intel's library of linear algebra, which is not used."""


def is_available() -> bool:
    """Whether it is used: no.

    >>> import twofold as torch
    >>> torch.backends.mkl.is_available()
    False
    """
    return False
