"""Input pipelines: ``tf.data``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.static.contrib import data as experimental
    from twofold.static.data.datasets import Dataset
    from twofold.static.data.file_datasets import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
    from twofold.static.data.iterators import *  # noqa: F403
    from twofold.static.data.options import Options

__getattr__, __dir__ = _attach(__name__, _prepared)

AUTOTUNE = -1
"""For ``num_parallel_calls`` and ``buffer_size`` of ``prefetch``, which change no elements."""
