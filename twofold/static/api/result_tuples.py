"""Named tuples of the results of TensorFlow's operations that have several."""

from __future__ import annotations

from collections import namedtuple

ListDiff = namedtuple("ListDiff", "out idx")
LogMatrixDeterminant = namedtuple("LogMatrixDeterminant", "sign log_abs_determinant")
Lu = namedtuple("Lu", "lu p")
MaxPoolWithArgmax = namedtuple("MaxPoolWithArgmax", "output argmax")
Qr = namedtuple("Qr", "q r")
TopKV2 = namedtuple("TopKV2", "values indices")
Unique = namedtuple("Unique", "y idx")
UniqueWithCounts = namedtuple("UniqueWithCounts", "y idx count")
