"""Versions: of PyTorch's names that the package has, of the package, and of libraries of graphics cards (none)."""

from twofold.torch_version import TorchVersion

package = "0.1.0"
__version__ = TorchVersion(f"2.13.0+twofold.{package}")
"""What programs ask for before they use a name: the version of PyTorch that has the names and meanings of this one."""
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
git_version = ""
debug = False
