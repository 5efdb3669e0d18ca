"""Special functions under the names of ``torch.special``; each is an operation entry called ``special.<name>``."""

from twofold.frontend.install import namespace as _namespace

globals().update(_namespace("special"))
