"""Sessions, phases and small functions of tensors: ``tf.keras.backend``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.static import math, nn, random
from twofold.static.api.op_functions import constant as _constant
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.arrays.selection import where
from twofold.static.autodiff import clipping
from twofold.static.autodiff.gradients import gradients as _gradients
from twofold.static.control_flow.conditional import cond
from twofold.static.graph.docstrings import described
from twofold.static.keras.state import clear_session as clear_session
from twofold.static.keras.state import get_session as get_session
from twofold.static.keras.state import learning_phase as learning_phase
from twofold.static.keras.state import set_learning_phase as set_learning_phase
from twofold.static.keras.state import set_session as set_session
from twofold.static.variables.variable import Variable, assign, assign_add, assign_sub


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


def _reduced(name: str, more: str = "", first: Callable[[Any], Any] = lambda x: x) -> Callable[..., Any]:
    """A reduction of ``tf`` by Keras's name, of what ``first`` makes of a tensor."""
    reduce = getattr(math, f"reduce_{name}")

    def reduced(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return reduce(first(x), axis, keepdims)

    return described(reduced, name, f"``tf.reduce_{name}``{more}.")


def _as_floats(x: Any) -> Any:
    given = convert_to_tensor(x)
    return math.cast(given, "float32") if given.dtype.kind == "b" else given


def _as_bools(x: Any) -> Any:
    return math.cast(x, "bool")


mean = _reduced("mean", ", of bools as float32", _as_floats)
sum, max, prod, min = map(_reduced, ("sum", "max", "prod", "min"))
any, all = (_reduced(name, ", of numbers whether they are not 0", _as_bools) for name in ("any", "all"))


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
maximum, minimum, sin, cos, round, sign = (
    math.maximum,
    math.minimum,
    math.sin,
    math.cos,
    math.round,
    math.sign,
)
cumsum, cumprod, not_equal, less, less_equal, greater_equal = (
    math.cumsum,
    math.cumprod,
    math.not_equal,
    math.less,
    math.less_equal,
    math.greater_equal,
)
elu, softplus, softsign, bias_add, argmin = nn.elu, nn.softplus, nn.softsign, nn.bias_add, math.argmin
stack, tile, gather, reverse = shape_ops.stack, shape_ops.tile, shape_ops.gather, shape_ops.reverse
stop_gradient, permute_dimensions = math.stop_gradient, shape_ops.transpose
update, update_add, update_sub = assign, assign_add, assign_sub


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The variance, of all elements together or along ``axis``."""
    return mean(math.square(x - mean(x, axis, True)), axis, keepdims)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The standard deviation, the square root of ``var``."""
    return math.sqrt(var(x, axis, keepdims))


def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A variable with a first value, of float32 unless ``dtype`` is given."""
    return Variable(convert_to_tensor(value, dtype or floatx()), name=name, constraint=constraint)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """``tf.constant``, of float32 unless ``dtype`` is given."""
    return _constant(value, dtype or floatx(), shape, name=name or "Const")


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of zeros."""
    return Variable(creation.zeros(shape, dtype or floatx()), name=name)


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of ones."""
    return Variable(creation.ones(shape, dtype or floatx()), name=name)


def ndim(x: Any) -> int | None:
    """The number of axes."""
    return convert_to_tensor(x).get_shape().ndims


def dtype(x: Any) -> str:
    """The name of the dtype."""
    name: str = convert_to_tensor(x).dtype.name
    return name


def eval(x: Any) -> Any:
    """The value of a tensor or variable."""
    return get_value(x)


def batch_flatten(x: Any) -> Any:
    """Each element of a batch as a vector."""
    return shape_ops.reshape(x, [-1, *_product(convert_to_tensor(x).get_shape().as_list()[1:])])


def _product(sizes: list[Any]) -> list[int]:
    total = 1
    for size in sizes:
        total *= int(size)
    return [total]


def gradients(loss: Any, variables: Any) -> list[Any]:
    """``tf.gradients``."""
    return _gradients(loss, variables)


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One value or the other: by a bool what ``tf.cond`` gives, by elements what ``tf.where`` gives."""
    chosen = math.cast(condition, "bool")
    if ndim(chosen) == 0:
        one, two = (
            one if callable(one) else lambda one=one: shape_ops.identity(one)
            for one in (then_expression, else_expression)
        )
        return cond(chosen, one, two)
    one, two = (
        one() if callable(one) else convert_to_tensor(one) for one in (then_expression, else_expression)
    )
    missing = (ndim(one) or 0) - (ndim(chosen) or 0)
    for _ in range(missing):
        chosen = shape_ops.expand_dims(chosen, -1)
    return where(math.logical_and(chosen, creation.ones_like(one, "bool")), one, two)


def function(inputs: Any, outputs: Any, updates: Any = (), name: str | None = None) -> Callable[[Any], Any]:
    """A function of a list of arrays that returns those of ``outputs`` and runs ``updates``."""
    several = isinstance(outputs, (list, tuple))
    fetched = list(outputs) if several else [outputs]
    changes = [assign(*one) if isinstance(one, tuple) else one for one in updates or ()]

    def run(values: Any) -> Any:
        found = get_session().run([*fetched, *changes], dict(zip(inputs, values, strict=True)))[
            : len(fetched)
        ]
        return found if several else found[0]

    run.__name__ = name or "function"
    return run
