"""Intel's library of neural networks, which is not used."""


def is_available() -> bool:
    """Whether it is used: no.

    >>> import twofold as torch
    >>> torch.backends.mkldnn.is_available()
    False
    """
    return False
