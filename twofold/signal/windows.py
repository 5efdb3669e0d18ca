"""Window functions; each is an operation entry called ``signal.windows.<name>``."""

from twofold.frontend.install import namespace

globals().update(namespace("signal.windows"))
