"""Data pipes that are iterated over."""

from twofold.utils.data.datapipes.iter.combining import Concater, Multiplexer, Zipper
from twofold.utils.data.datapipes.iter.files import FileLister, FileOpener
from twofold.utils.data.datapipes.iter.grouping import Batcher, ShardingFilter, UnBatcher
from twofold.utils.data.datapipes.iter.mapping import (
    Collator,
    Filter,
    IterableWrapper,
    Mapper,
    Sampler,
    Shuffler,
)

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "FileLister",
    "FileOpener",
    "Filter",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "UnBatcher",
    "Zipper",
]
