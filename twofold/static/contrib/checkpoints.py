"""Checkpoints of a training in another process, one after the other, as soon as they are there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from twofold.static.train import latest_checkpoint


def wait_for_new_checkpoint(
    checkpoint_dir: Any,
    last_checkpoint: str | None = None,
    seconds_to_sleep: float = 1,
    timeout: float | None = None,
) -> str | None:
    """The latest checkpoint of a directory once it is another one than ``last_checkpoint``.

    Args:
        checkpoint_dir: The directory.
        last_checkpoint: The path of a checkpoint that is known; None for none.
        seconds_to_sleep: How long to wait before the directory is looked at again.
        timeout: After how many seconds None is returned; None to wait for ever.
    """
    stop = None if timeout is None else time.monotonic() + timeout
    while (found := latest_checkpoint(checkpoint_dir)) is None or found == last_checkpoint:
        if stop is not None and time.monotonic() + seconds_to_sleep > stop:
            return None
        time.sleep(seconds_to_sleep)
    return found


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """The paths of new checkpoints of a directory, the latest one each time.

    Args:
        checkpoint_dir: The directory.
        min_interval_secs: At least how many seconds lie between two of them.
        timeout: How many seconds to wait for a new one; None to wait for ever.
        timeout_fn: Called then: whether to stop. Without it the iteration stops.

    >>> import tempfile
    >>> import twofold.static as tf
    >>> list(tf.contrib.training.checkpoints_iterator(tempfile.mkdtemp(), timeout=0))
    []
    """
    last = None
    while True:
        found = wait_for_new_checkpoint(checkpoint_dir, last, timeout=timeout)
        if found is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        began, last = time.monotonic(), found
        yield found
        time.sleep(max(0.0, began + min_interval_secs - time.monotonic()))
