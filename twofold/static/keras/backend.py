"""Sessions, phases and functions of tensors: ``tf.keras.backend``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.api.op_functions import constant as _constant
from twofold.static.arrays import creation, shape_ops
from twofold.static.autodiff.gradients import gradients as _gradients
from twofold.static.functions.printing import print_
from twofold.static.graph.context import at_once
from twofold.static.graph.scopes import control_dependencies
from twofold.static.graph.scopes import name_scope as name_scope
from twofold.static.initializers import RandomNormal, RandomUniform
from twofold.static.keras.backend_nn import *  # noqa: F403
from twofold.static.keras.backend_shapes import *  # noqa: F403
from twofold.static.keras.base_layer import put_value, value_of
from twofold.static.keras.phases import in_test_phase as in_test_phase
from twofold.static.keras.phases import in_train_phase as in_train_phase
from twofold.static.keras.phases import switch as switch
from twofold.static.keras.state import clear_session as clear_session
from twofold.static.keras.state import get_session as get_session
from twofold.static.keras.state import get_uid as get_uid
from twofold.static.keras.state import learning_phase as learning_phase
from twofold.static.keras.state import manual_variable_initialization as manual_variable_initialization
from twofold.static.keras.state import reset_uids as reset_uids
from twofold.static.keras.state import set_learning_phase as set_learning_phase
from twofold.static.keras.state import set_session as set_session
from twofold.static.keras.state import settings
from twofold.static.sparse import SparseTensor, sparse_placeholder, sparse_tensor_to_dense
from twofold.static.variables.variable import Variable, assign, assign_add, assign_sub


def backend() -> str:
    """The name of the backend: "tensorflow"."""
    return "tensorflow"


def floatx() -> str:
    """The dtype of variables: "float32" unless ``set_floatx`` says another one."""
    return settings.floatx


def set_floatx(value: str) -> None:
    """Let variables and inputs have another dtype."""
    if value not in ("float16", "float32", "float64"):
        raise ValueError(f"Unknown floatx type: {value}, at {here()}. Use 'float16', 'float32' or 'float64'.")
    settings.floatx = value


def epsilon() -> float:
    """What keeps divisors from 0: 1e-7 unless ``set_epsilon`` says another number."""
    return settings.epsilon


def set_epsilon(value: float) -> None:
    """Let another small number keep divisors from 0."""
    settings.epsilon = value


def image_data_format() -> str:
    """The order of an image's axes: "channels_last" unless ``set_image_data_format`` says another one."""
    return settings.image_data_format


def set_image_data_format(data_format: str) -> None:
    """Let images have their channels last or first."""
    if data_format not in ("channels_last", "channels_first"):
        what = f"Unknown data_format: {data_format}"
        raise ValueError(f"{what}, at {here()}. Use 'channels_last' or 'channels_first'.")
    settings.image_data_format = data_format


@contextmanager
def learning_phase_scope(value: int) -> Iterator[None]:
    """Inside, layers that are called train (1) or not (0)."""
    before = learning_phase()
    set_learning_phase(value)
    try:
        yield
    finally:
        set_learning_phase(before)


def get_value(x: Any) -> Any:
    """The value of a variable or a tensor."""
    return x.numpy() if at_once() else get_session().run(x)


def batch_get_value(tensors: Iterable[Any]) -> list[Any]:
    """The values of variables."""
    given = list(tensors)
    return [x.numpy() for x in given] if at_once() else get_session().run(given)


def set_value(x: Any, value: Any) -> None:
    """Set a variable."""
    put_value(x, value)


def batch_set_value(tuples: Iterable[tuple[Any, Any]]) -> None:
    """Set variables: pairs of them and values."""
    for variable, value in tuples:
        put_value(variable, value)


def eval(x: Any) -> Any:
    """The value of a tensor or variable."""
    return value_of(x) if isinstance(x, Variable) else get_value(convert_to_tensor(x))


update, update_add, update_sub = assign, assign_add, assign_sub


def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A variable with a first value, of ``floatx()`` unless ``dtype`` is given."""
    first = value if hasattr(value, "type_") else convert_to_tensor(value, dtype or floatx())
    if hasattr(value, "type_") and dtype is not None:
        first = math.cast(value, dtype)
    return Variable(first, name=name, constraint=constraint)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """``tf.constant``, of ``floatx()`` unless ``dtype`` is given."""
    return _constant(value, dtype or floatx(), shape, name=name or "Const")


def placeholder(
    shape: Any = None,
    ndim: int | None = None,
    dtype: Any = None,
    sparse: bool = False,
    name: str | None = None,
) -> Any:
    """A placeholder of a shape, or of so many axes."""
    sizes = [None] * ndim if shape is None and ndim else shape
    kind = as_dtype(dtype or floatx())
    return sparse_placeholder(kind, sizes, name) if sparse else shape_ops.placeholder(kind, sizes, name)


def is_sparse(tensor: Any) -> bool:
    """Whether a tensor is sparse."""
    return isinstance(tensor, SparseTensor)


def to_dense(tensor: Any) -> Any:
    """A sparse tensor as a dense one; a dense one as it is."""
    return sparse_tensor_to_dense(tensor) if is_sparse(tensor) else tensor


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of zeros; of sizes that a run tells, a tensor."""
    made = creation.zeros(shape, dtype or floatx())
    return Variable(made, name=name) if made.get_shape().is_fully_defined() else made


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of ones; of sizes that a run tells, a tensor."""
    made = creation.ones(shape, dtype or floatx())
    return Variable(made, name=name) if made.get_shape().is_fully_defined() else made


def eye(size: int, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of the identity matrix."""
    return Variable(creation.eye(size, dtype=as_dtype(dtype or floatx())), name=name)


def random_uniform_variable(
    shape: Any, low: float, high: float, dtype: Any = None, name: str | None = None, seed: int | None = None
) -> Any:
    """A variable of uniform random numbers."""
    return Variable(RandomUniform(low, high, seed)(list(shape), as_dtype(dtype or floatx())), name=name)


def random_normal_variable(
    shape: Any, mean: float, scale: float, dtype: Any = None, name: str | None = None, seed: int | None = None
) -> Any:
    """A variable of normal random numbers."""
    return Variable(RandomNormal(mean, scale, seed)(list(shape), as_dtype(dtype or floatx())), name=name)


def print_tensor(x: Any, message: str = "") -> Any:
    """A tensor that is printed behind a message when it is computed."""
    printed = print_(message, x, output_stream=sys.stdout)
    with control_dependencies([] if printed is None else [printed]):
        return shape_ops.identity(x)


def gradients(loss: Any, variables: Any) -> list[Any]:
    """``tf.gradients``."""
    return _gradients(loss, variables)


def function(inputs: Any, outputs: Any, updates: Any = (), name: str | None = None) -> Callable[[Any], Any]:
    """A function of a list of arrays that returns those of ``outputs`` and runs ``updates``."""
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    several = isinstance(outputs, (list, tuple))
    fetched = list(outputs) if several else [outputs]
    changes = [assign(*one) if isinstance(one, tuple) else one for one in updates or ()]

    def run(values: Any) -> Any:
        given = values if isinstance(values, (list, tuple)) else [values]
        fed = {key: one for key, one in zip(inputs, given, strict=True) if one is not None}
        found = get_session().run([*fetched, *changes], fed)[: len(fetched)]
        return found if several else found[0]

    run.__name__ = name or "function"
    return run
