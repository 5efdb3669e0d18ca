"""First values of variables: ``tf.keras.initializers``."""

from typing import Any

from twofold.static.keras.named import INITIALIZERS as _INITIALIZERS
from twofold.static.keras.named import found_in as _found_in
from twofold.static.keras.named import look_up as _look_up
from twofold.static.keras.named import serialize as serialize

__getattr__, __dir__ = _look_up(_INITIALIZERS, __name__)


def get(identifier: Any) -> Any:
    """The initializer of a name or of a configuration; any other object is returned, a class called."""
    found = _found_in(_INITIALIZERS, "initializer", identifier)
    return found() if isinstance(identifier, (str, type)) else found


deserialize = get
