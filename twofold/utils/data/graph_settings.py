"""Settings of all pipes that a pipe stands on."""

from __future__ import annotations

import warnings
from typing import Any

from twofold.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Have all pipes with ``set_shuffle`` shuffle or not, and return the pipe, shuffled at the end if none of them is.

    Args:
        datapipe: The last pipe.
        shuffle: Whether to shuffle; None changes nothing.

    >>> import twofold as torch
    >>> from twofold.utils.data.graph_settings import apply_shuffle_settings
    >>> pipe = torch.utils.data.datapipes.iter.IterableWrapper(range(3)).shuffle().map(lambda x: x)
    >>> list(apply_shuffle_settings(pipe, shuffle=False))
    [0, 1, 2]
    """
    if shuffle is None:
        return datapipe
    found: dict[int, Any] = {}
    _collect(datapipe, found)
    shufflers = [one for one in found.values() if callable(getattr(one, "set_shuffle", None))]
    if shuffle and not shufflers:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end: samples "
            "that are further apart than its buffer_size keep their order. Add one yourself where that matters.",
            stacklevel=3,
        )
        datapipe = datapipe.shuffle()
    for one in shufflers:
        one.set_shuffle(shuffle)
    return datapipe


def _collect(value: Any, found: dict[int, Any]) -> None:
    if isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found)
    elif isinstance(value, (IterDataPipe, MapDataPipe)) and id(value) not in found:
        found[id(value)] = value
        for item in vars(value).values():
            _collect(item, found)
