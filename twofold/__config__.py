"""What this build is, as text: PyTorch's ``torch.__config__``."""

from twofold import _core
from twofold.version import __version__


def show() -> str:
    """The version, and what computes.

    >>> import twofold as torch
    >>> torch.__config__.show().startswith("Twofold")
    True
    """
    return f"Twofold {__version__} for the CPU:\n  - kernels are compiled by LLVM for this processor\n"


def parallel_info() -> str:
    """How many threads compute.

    >>> import twofold as torch
    >>> "threads" in torch.__config__.parallel_info()
    True
    """
    return f"{_core.threads()} threads of the core's own\n"
