"""Reductions of the elements that a mask names, as in ``torch.masked``; entries called ``masked.<name>``."""

from twofold.frontend.install import namespace

globals().update(namespace("masked"))
