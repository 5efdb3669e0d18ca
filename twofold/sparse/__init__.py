"""Sparse tensors as in ``torch.sparse``: the coordinates and values of some elements; all others are zero."""

from twofold.sparse.coordinates import TYPES as _TYPES
from twofold.sparse.coordinates import SparseTensor
from twofold.sparse.functions import addmm, log_softmax, mm, softmax, sum

globals().update(_TYPES)

__all__ = ["SparseTensor", "addmm", "log_softmax", "mm", "softmax", "sum", *_TYPES]
