"""Metrics of Keras that gather over batches: ``tf.keras.metrics.Metric`` and the means."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from twofold.runtime.tracing import here
from twofold.signatures import arguments, signature_of
from twofold.signatures import parameters as parameters_of
from twofold.static import math
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.control_flow.dependencies import group
from twofold.static.graph.context import at_once
from twofold.static.graph.graph import get_default_graph, operation_of
from twofold.static.graph.scopes import control_dependencies
from twofold.static.keras.base_layer import Layer, as_initializer, put_value
from twofold.static.keras.loss_objects import aligned, matched
from twofold.static.keras.state import keep_state, settings
from twofold.static.variables.variable import Variable


def _updating(function: Callable[..., Any]) -> Callable[..., Any]:
    """An ``update_state`` that returns the operation of all updates that it declares, with or without saying so."""

    @functools.wraps(function)
    def update_state(self: Any, *args: Any, **kwargs: Any) -> Any:
        if at_once():
            function(self, *args, **kwargs)
            return None
        graph = get_default_graph()
        start = graph.version
        made = function(self, *args, **kwargs)
        updates = [one for one in graph.get_operations()[start:] if one.updates]
        if made is not None:
            updates.append(operation_of(made) if hasattr(made, "type_") else made)
        return group(*dict.fromkeys(updates))

    update_state.gathers = True  # type: ignore[attr-defined]
    return update_state


class Metric(Layer):
    """Base of metrics: a subclass makes variables by ``add_weight``, and has ``update_state`` and ``result``.

    Args:
        name: After the class unless given.
        dtype: Of the variables, float32 unless given.

    >>> import twofold.static as tf
    >>> class Largest(tf.keras.metrics.Metric):
    ...     def __init__(self, **options):
    ...         super().__init__(**options)
    ...         self.largest = self.add_weight("largest", initializer="zeros")
    ...     def update_state(self, y_true, y_pred, sample_weight=None):
    ...         self.largest.assign(tf.maximum(self.largest, tf.reduce_max(tf.abs(y_true - y_pred))))
    ...     def result(self):
    ...         return self.largest
    >>> with tf.Graph().as_default():
    ...     session = tf.keras.backend.get_session()
    ...     metric = Largest()
    ...     step = metric.update_state(tf.constant([1.0, 2.0]), tf.constant([1.5, 0.0]))
    ...     _ = tf.keras.backend.get_session().run(step)
    ...     print(session.run(metric.result()))
    2.0
    """

    stateful = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = vars(cls).get("update_state")
        if own is not None and not hasattr(own, "gathers"):
            cls.update_state = _updating(own)  # type: ignore[method-assign]

    def __init__(self, name: str | None = None, dtype: Any = None, **options: Any) -> None:
        super().__init__(name=name, dtype=dtype or settings.floatx, **options)
        self.built = True

    def add_weight(  # type: ignore[override]
        self,
        name: str,
        shape: Any = (),
        aggregation: Any = None,
        synchronization: Any = None,
        initializer: Any = None,
        dtype: Any = None,
    ) -> Variable:
        """A variable of what is gathered, in no collection; models begin with its first value in each epoch.

        ``aggregation`` and ``synchronization`` are about several machines and change nothing on one.
        """
        kind = as_dtype(dtype or self.dtype)
        first = as_initializer(initializer or "zeros")
        made = Variable(lambda: first(list(shape), dtype=kind), False, [], name=name, use_resource=True)
        self._own.append(made)
        if not at_once():
            keep_state(made)
        return made

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """Take in a batch: the operation that does, or None where operations are computed at once."""
        raise NotImplementedError(f"{type(self).__name__} has no update_state, at {here()}. Define it.")

    def result(self) -> Any:
        """What the variables say."""
        raise NotImplementedError(f"{type(self).__name__} has no result(), at {here()}. Define it.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Take in a batch, and give the result after it."""
        made = self.update_state(*args, **kwargs)
        with control_dependencies([] if made is None else [made]):
            return shape_ops.identity(convert_to_tensor(self.result()))

    def reset_states(self) -> None:
        """Begin again: zeros in all variables."""
        for variable in self.weights:
            put_value(variable, numpy.zeros(variable.get_shape().as_list(), variable.dtype.numpy))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal metric."""
        assert self.dtype is not None
        return {"name": self.name, "dtype": self.dtype.name}


def spread(weights: Any, values: Any, reduce: Callable[..., Any]) -> tuple[Any, Any]:
    """Values, and a weight for each: those of fewer axes weight what ``reduce`` makes of the values behind these."""
    found = aligned(weights, values)
    ranks = found.get_shape().ndims, values.get_shape().ndims
    if ranks[0] and ranks[1] is not None and ranks[0] < ranks[1]:
        values = reduce(values, list(range(ranks[0], ranks[1])))
    return values, found * creation.ones_like(values)


class _Reduce(Metric):
    """What is summed over batches."""

    def __init__(self, name: str | None, dtype: Any) -> None:
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_weight("total")

    def update_state(self, values: Any, sample_weight: Any = None) -> Any:
        """Take in values, and their weights."""
        found = math.cast(convert_to_tensor(values), self.dtype)
        weights = None
        if sample_weight is not None:
            found, weights = spread(sample_weight, found, self._inner)
            found = found * weights
        updates = [self.total.assign_add(math.reduce_sum(found))]
        updates += self._counted(found, weights)
        return None if at_once() else group(*updates)

    _inner: Callable[..., Any] = staticmethod(math.reduce_sum)

    def _counted(self, values: Any, weights: Any) -> list[Any]:
        return []

    def result(self) -> Any:
        """The sum."""
        return shape_ops.identity(self.total)


class Sum(_Reduce):
    """The (weighted) sum of values.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     total = tf.keras.metrics.Sum()([1.0, 3.0, 5.0])
    ...     print(tf.keras.backend.get_session().run(total))
    9.0
    """

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(name, dtype)


class Mean(_Reduce):
    """The (weighted) mean of values.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     mean = tf.keras.metrics.Mean()([1.0, 3.0, 5.0], sample_weight=[1.0, 1.0, 0.0])
    ...     print(tf.keras.backend.get_session().run(mean))
    2.0
    """

    _inner = staticmethod(math.reduce_mean)

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.count = self.add_weight("count")

    def _counted(self, values: Any, weights: Any) -> list[Any]:
        many = shape_ops.size(values) if weights is None else math.reduce_sum(weights)
        return [self.count.assign_add(math.cast(many, self.dtype))]

    def result(self) -> Any:
        """The mean; 0 before there are any values."""
        return math.divide_no_nan(convert_to_tensor(self.total), convert_to_tensor(self.count))


class MeanOfFunction(Mean):
    """The mean of what a function of labels and predictions gives."""

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **options: Any
    ) -> None:
        super().__init__(name, dtype)
        self._fn, self._options = fn, options

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        """Take in labels and predictions, and their weights."""
        pair = [math.cast(convert_to_tensor(one), self.dtype) for one in (y_true, y_pred)]
        return super().update_state(self._fn(*matched(*pair), **self._options), sample_weight)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal metric."""
        return {**super().get_config(), **self._options}


class _OfTable(MeanOfFunction):
    """Base of metrics that are the mean of a function of a table."""

    function: Callable[..., Any]
    parameters: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = type(self)
        given = arguments(cls.__name__, signature_of(cls.parameters), args, kwargs)
        super().__init__(cls.function, given.pop("name"), given.pop("dtype"), **given)


def metric_of(class_name: str, function: Callable[..., Any], parameters: str) -> type[MeanOfFunction]:
    """The class of metrics that are means of a function; ``parameters``: ``name``, ``dtype`` and its options."""
    members = {
        "function": staticmethod(function),
        "parameters": parameters_of(parameters),
        "__doc__": f"The mean over batches of ``{getattr(function, '__name__', class_name)}``: {function.__doc__}",
        "__module__": __name__,
    }
    return type(class_name, (_OfTable,), members)
