"""Linear algebra under the names of ``torch.linalg``; each is an operation entry called ``linalg.<name>``."""

from twofold.errors import LinAlgError
from twofold.frontend.install import namespace as _namespace

__all__ = ["LinAlgError", *_namespace("linalg")]

globals().update(_namespace("linalg"))
