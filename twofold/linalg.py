"""Linear algebra under the names of ``torch.linalg``; each is an operation entry called ``linalg.<name>``."""

from twofold.errors import LinAlgError
from twofold.frontend.install import namespace

__all__ = ["LinAlgError", *namespace("linalg")]

globals().update(namespace("linalg"))
