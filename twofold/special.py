"""Special functions under the names of ``torch.special``; each is an operation entry called ``special.<name>``."""

from twofold.frontend.install import namespace

globals().update(namespace("special"))
