"""Values and messages of tensors: ``tf.contrib.util``."""

from twofold.static.python.tensor_util import constant_value as constant_value
from twofold.static.python.tensor_util import make_ndarray as make_ndarray
from twofold.static.python.tensor_util import make_tensor_proto as make_tensor_proto
