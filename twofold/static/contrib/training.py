"""Settings of a model by name: ``tf.contrib.training``."""

from __future__ import annotations

import json
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.contrib.bucketing import bucket as bucket
from twofold.static.contrib.bucketing import bucket_by_sequence_length as bucket_by_sequence_length
from twofold.static.contrib.checkpoints import checkpoints_iterator as checkpoints_iterator
from twofold.static.contrib.checkpoints import wait_for_new_checkpoint as wait_for_new_checkpoint
from twofold.static.contrib.slim.learning import add_gradients_summaries as add_gradients_summaries
from twofold.static.contrib.slim.learning import clip_gradient_norms as clip_gradient_norms
from twofold.static.contrib.slim.learning import create_train_op as create_train_op
from twofold.static.contrib.slim.learning import multiply_gradients as multiply_gradients


class HParams:
    """Settings as attributes, whose types are those of their first values.

    >>> import twofold.static as tf
    >>> settings = tf.contrib.training.HParams(rate=0.1, layers=[64, 32])
    >>> print(settings.parse("rate=0.5,layers=[8]").values())
    {'rate': 0.5, 'layers': [8]}
    """

    def __init__(self, **kwargs: Any) -> None:
        self._names: list[str] = []
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Add a setting; raises ValueError for a name that is taken."""
        if hasattr(self, name):
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        self._names.append(name)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Change a setting."""
        if name not in self._names:
            raise KeyError(name)
        setattr(self, name, _converted(getattr(self, name), value))

    def del_hparam(self, name: str) -> None:
        """Take a setting away."""
        self._names.remove(name)
        delattr(self, name)

    def values(self) -> dict[str, Any]:
        """All settings."""
        return {name: getattr(self, name) for name in self._names}

    def get(self, key: str, default: Any = None) -> Any:
        """A setting, or ``default``."""
        return getattr(self, key) if key in self._names else default

    def override_from_dict(self, values_dict: dict[str, Any]) -> HParams:
        """Change the settings given."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse(self, values: str) -> HParams:
        """Change settings by a string such as ``rate=0.5,layers=[8,8],name=a``."""
        for part in _parts(values):
            name, equals, text = part.partition("=")
            if not equals or name.strip() not in self._names:
                fix = f"Write name=value, with a name of {', '.join(self._names)}."
                raise ArgumentError(f"HParams.parse: {part!r}, at {here()}", fix)
            old = getattr(self, name.strip())
            if text.startswith("["):
                kind = old[0] if isinstance(old, list) and old else ""
                given: Any = [_read(kind, one.strip()) for one in text[1:-1].split(",") if one.strip()]
                setattr(self, name.strip(), given)
            else:
                setattr(self, name.strip(), _read(old, text.strip()))
        return self

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """All settings as JSON."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json: str) -> HParams:
        """Change the settings of a JSON string."""
        return self.override_from_dict(json.loads(values_json))

    def __contains__(self, key: str) -> bool:
        return key in self._names

    def __str__(self) -> str:
        return str(sorted(self.values().items()))


def _parts(text: str) -> list[str]:
    """The string split at commas outside brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [one for one in found if one.strip()]


def _read(old: Any, text: str) -> Any:
    if isinstance(old, bool):
        if text.lower() not in ("true", "false", "1", "0"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text.lower() in ("true", "1")
    return _converted(old, text)


def _converted(old: Any, value: Any) -> Any:
    if old is None or isinstance(old, (list, tuple)) or isinstance(value, (list, tuple)):
        return value
    return type(old)(value)
