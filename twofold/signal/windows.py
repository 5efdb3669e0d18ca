"""Window functions under the names of ``torch.signal.windows``; each is a function ``signal.windows.<name>``."""

from twofold.frontend.creation import CREATION
from twofold.frontend.install import namespace

_FUNCTIONS = {name: CREATION["signal.windows." + name] for name in namespace("signal.windows")}

__all__ = list(_FUNCTIONS)

globals().update(_FUNCTIONS)
