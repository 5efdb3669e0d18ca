"""Data pipes: data sets that are chained by methods."""

from twofold.utils.data.datapipes import datapipe, iter, map

__all__ = ["datapipe", "iter", "map"]
