"""``TorchVersion``: a version string that compares as a version."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_PATTERN = re.compile(
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<stage>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<stage_number>\d*))?"
    r"(?:-(?P<bare_post>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_number>\d*))?"
    r"(?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_number>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_FINAL = 3


def _ordered(text: str) -> tuple[Any, ...] | None:
    """A key in the order of PEP 440; None for a text that is no version."""
    found = _PATTERN.fullmatch(text.strip())
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while release and release[-1] == 0:
        release.pop()
    stage, has_post = found["stage"], bool(found["post"] or found["bare_post"])
    post = int(found["bare_post"] or found["post_number"] or 0) if has_post else -1
    if stage:
        rank = (_STAGES[stage.lower()], int(found["stage_number"] or 0))
    else:
        rank = (-1 if found["dev"] and not has_post else _FINAL, 0)
    dev = int(found["dev_number"] or 0) if found["dev"] else float("inf")
    local = re.split("[-_.]", found["local"].lower()) if found["local"] else []
    # a local label orders numbers after words, and none at all first
    parts = tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in local)
    return int(found["epoch"] or 0), tuple(release), rank, post, dev, parts


class TorchVersion(str):
    """A string that compares with versions given as strings or tuples, or as objects whose ``str`` is one.

    Beside what is no version it compares as a string.

    >>> from twofold.torch_version import TorchVersion
    >>> TorchVersion("1.10.0") > "1.9", TorchVersion("1.10.0") >= (1, 10), TorchVersion("1.10.0a") < "1.10"
    (True, True, True)
    """

    __slots__ = ()

    def _keys(self, other: Any) -> tuple[Any, Any] | None:
        if isinstance(other, Iterable) and not isinstance(other, str):
            other = ".".join(str(part) for part in other)
        mine, others = _ordered(str(self)), _ordered(str(other))
        return None if mine is None or others is None else (mine, others)

    def __eq__(self, other: object) -> bool:
        keys = self._keys(other)
        return str.__eq__(self, other) is True if keys is None else keys[0] == keys[1]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        keys = self._keys(other)
        return str.__lt__(self, other) if keys is None else keys[0] < keys[1]

    def __le__(self, other: Any) -> bool:
        keys = self._keys(other)
        return str.__le__(self, other) if keys is None else keys[0] <= keys[1]

    def __gt__(self, other: Any) -> bool:
        keys = self._keys(other)
        return str.__gt__(self, other) if keys is None else keys[0] > keys[1]

    def __ge__(self, other: Any) -> bool:
        keys = self._keys(other)
        return str.__ge__(self, other) if keys is None else keys[0] >= keys[1]

    __hash__ = str.__hash__
