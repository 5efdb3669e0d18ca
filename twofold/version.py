"""Versions: of the package, and of the libraries of graphics cards, of which there are none."""

__version__ = "0.1.0"
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
git_version = ""
debug = False
