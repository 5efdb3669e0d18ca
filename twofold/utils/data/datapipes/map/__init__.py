"""Data pipes that are indexed."""

from twofold.utils.data.datapipes.map.pipes import Batcher, Concater, Mapper, SequenceWrapper, Zipper

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Zipper"]
