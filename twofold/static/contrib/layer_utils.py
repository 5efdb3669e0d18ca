"""Names of results in collections, and sizes that layers are given: ``slim.utils``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from twofold.runtime.tracing import here
from twofold.static.api.op_functions import is_tensor_like
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.python import tensor_util
from twofold.static.python.tensor_util import smart_cond as smart_cond
from twofold.static.variables.variable import Variable


def append_tensor_alias(tensor: Any, alias: str) -> Any:
    """The tensor, with another name among its ``aliases``."""
    tensor.aliases = [*getattr(tensor, "aliases", ()), alias.removesuffix("/")]
    return tensor


def get_tensor_aliases(tensor: Any) -> list[str]:
    """The names that a tensor was given, or that of its operation."""
    return list(getattr(tensor, "aliases", ())) or [tensor.name.removesuffix(":0")]


def gather_tensors_aliases(tensors: Iterable[Any]) -> list[str]:
    """The names of several tensors."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def collect_named_outputs(collections: Any, alias: str, outputs: Any) -> Any:
    """A result, entered in collections under a name."""
    if collections:
        get_default_graph().add_to_collections(collections, append_tensor_alias(outputs, alias))
    return outputs


@example(
    "y = tf.contrib.layers.fully_connected(tf.zeros([2, 3]), 4, scope='top', outputs_collections='ends')",
    "print(tf.contrib.slim.utils.convert_collection_to_dict('ends')['top'] is y)",
    "True",
)
def convert_collection_to_dict(collection: str, clear_collection: bool = False) -> dict[str, Any]:
    """The tensors of a collection by their names, in order; ``clear_collection`` empties it."""
    graph = get_default_graph()
    found = {
        alias: tensor for tensor in graph.get_collection(collection) for alias in get_tensor_aliases(tensor)
    }
    if clear_collection:
        graph.clear_collection(collection)
    return found


def constant_value(value_or_tensor_or_var: Any, dtype: Any = None) -> Any:
    """The value where it is known now, None for a variable or what only a run tells.

    Raises ValueError for None, and for a tensor of another dtype than ``dtype``.
    """
    value = value_or_tensor_or_var
    if value is None:
        raise ValueError(f"constant_value: the value is None, at {here()}. Give a value.")
    if not is_tensor_like(value):
        return value
    if dtype is not None and value.dtype != dtype:
        raise ValueError(f"constant_value: {value.dtype} is not {dtype}, at {here()}. Cast the tensor.")
    return None if isinstance(value, Variable) else tensor_util.constant_value(value)


def static_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any]) -> Any:
    """The result of the first function where ``pred``, a Python value, is true, else of the second."""
    if not callable(fn1) or not callable(fn2):
        raise TypeError(f"static_cond: fn1 and fn2 must be callable, at {here()}. Give two functions.")
    return fn1() if pred else fn2()


def _dimension(shape: Any, axis: int, min_rank: int) -> int:
    if not isinstance(shape, TensorShape):
        raise ValueError(f"{shape!r} is no TensorShape, at {here()}. Give tensor.get_shape().")
    if len(shape) < min_rank or shape[axis].value is None:
        what = f"axis {axis} of shape {shape} with a rank of at least {min_rank} is unknown"
        raise ValueError(f"{what}, at {here()}. Give the placeholder that size.")
    return int(shape[axis])


def first_dimension(shape: TensorShape, min_rank: int = 1) -> int:
    """The first size; raises ValueError for an unknown one or a smaller rank."""
    return _dimension(shape, 0, min_rank)


def last_dimension(shape: TensorShape, min_rank: int = 1) -> int:
    """The last size; raises ValueError for an unknown one or a smaller rank."""
    return _dimension(shape, -1, min_rank)


def channel_dimension(shape: TensorShape, data_format: str, min_rank: int = 1) -> int:
    """The number of channels; raises ValueError for an unknown one or a smaller rank."""
    return _dimension(shape, 1 if data_format == "NCHW" else -1, min_rank)


def n_positive_integers(n: int, value: Any) -> tuple[int, ...]:
    """``n`` positive integers, of which one may stand for all; raises ValueError for others.

    >>> import twofold.static as tf
    >>> tf.contrib.slim.utils.n_positive_integers(3, 2)
    (2, 2, 2)
    """
    try:
        found = tuple(map(operator.index, value if isinstance(value, Iterable) else [value] * n))
    except TypeError:
        found = ()
    if n < 1 or len(found) != n or min(found) < 1:
        raise ValueError(f"{value!r} stands for no {n} positive integers, at {here()}. Give one, or {n}.")
    return found


def two_element_tuple(int_or_tuple: Any) -> tuple[int, int]:
    """Two integers, of which one may stand for both; raises ValueError for others."""
    found = tuple(int_or_tuple) if isinstance(int_or_tuple, Iterable) else (int_or_tuple,) * 2
    if len(found) != 2:
        raise ValueError(f"{int_or_tuple!r} are not two integers, at {here()}. Give one, or two.")
    return int(found[0]), int(found[1])


def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """The collections of a variable: those that a dict has for its name, or those of all.

    >>> get_variable_collections({"weights": ["a"]}, "biases") is None, get_variable_collections(["b"], "biases")
    (True, ['b'])
    """
    return (
        variables_collections.get(name) if isinstance(variables_collections, dict) else variables_collections
    )
