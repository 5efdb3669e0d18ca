"""Sessions, phases and small functions of tensors: ``tf.keras.backend``."""

from __future__ import annotations

from typing import Any

from twofold.static import math, nn, random
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.autodiff import clipping
from twofold.static.keras.state import clear_session as clear_session
from twofold.static.keras.state import get_session as get_session
from twofold.static.keras.state import learning_phase as learning_phase
from twofold.static.keras.state import set_learning_phase as set_learning_phase
from twofold.static.keras.state import set_session as set_session


def floatx() -> str:
    """The dtype of variables: "float32"."""
    return "float32"


def epsilon() -> float:
    """What keeps divisors from 0: 1e-7."""
    return 1e-7


def image_data_format() -> str:
    """The order of an image's axes: "channels_last"."""
    return "channels_last"


def int_shape(x: Any) -> tuple[int | None, ...]:
    """The shape with None for unknown sizes."""
    return tuple(convert_to_tensor(x).get_shape().as_list())


def get_value(x: Any) -> Any:
    """The value of a variable."""
    return get_session().run(x)


def set_value(x: Any, value: Any) -> None:
    """Set a variable."""
    x.load(value, get_session())


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """``tf.reduce_mean``, of bools as float32."""
    given = convert_to_tensor(x)
    return math.reduce_mean(math.cast(given, "float32") if given.dtype.kind == "b" else given, axis, keepdims)


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """``tf.reduce_sum``."""
    return math.reduce_sum(x, axis, keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """``tf.reduce_max``."""
    return math.reduce_max(x, axis, keepdims)


def clip(x: Any, min_value: Any, max_value: Any) -> Any:
    """``tf.clip_by_value``."""
    return clipping.clip_by_value(x, min_value, max_value)


def random_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = "float32", seed: int | None = None
) -> Any:
    """``tf.random_normal``."""
    return random.random_normal(shape, mean, stddev, dtype, seed)


abs, exp, log, square, sqrt, pow = math.abs, math.exp, math.log, math.square, math.sqrt, math.pow
argmax, cast, equal, dot, greater = math.argmax, math.cast, math.equal, math.matmul, math.greater
reshape, concatenate, expand_dims, squeeze, shape = (
    shape_ops.reshape,
    shape_ops.concat,
    shape_ops.expand_dims,
    shape_ops.squeeze,
    shape_ops.shape,
)
relu, sigmoid, softmax, tanh, l2_normalize = nn.relu, nn.sigmoid, nn.softmax, nn.tanh, nn.l2_normalize
zeros_like, ones_like, flatten, transpose = (
    creation.zeros_like,
    creation.ones_like,
    lambda x: shape_ops.reshape(x, [-1]),
    shape_ops.transpose,
)
