"""Gradients beside differences of values: ``tf.test.compute_gradient``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from twofold.errors import GraphError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.autodiff.gradients import gradients
from twofold.static.autodiff.indexed_slices import IndexedSlices
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_session


class _Jacobians:
    """Derivatives of the elements of ``y`` by those of ``x``, both ways, for one value of ``x``."""

    def __init__(
        self, x: Any, value: numpy.ndarray, y: Any, y_shape: Sequence[int], feeds: Mapping[Any, Any]
    ) -> None:
        self.x, self.y, self.value, self.feeds = x, y, value, dict(feeds)
        self.y_shape = tuple(y_shape)
        self.session = get_default_session()
        if self.session is None:
            raise GraphError(
                f"compute_gradient: no default session, at {here()}", "Use `with session.as_default():`."
            )

    def _run(self, fetch: Any, value: numpy.ndarray, feeds: Mapping[Any, Any] | None = None) -> Any:
        return self.session.run(fetch, {**self.feeds, self.x: value, **(feeds or {})})

    def by_gradients(self) -> numpy.ndarray:
        """What ``tf.gradients`` gives: a row for each element of ``x``, a column for each of ``y``."""
        count = int(numpy.prod(self.y_shape))
        seed = convert_to_tensor(numpy.zeros(self.y_shape, self.value.dtype))
        [found] = gradients(self.y, self.x, seed)
        made = numpy.zeros((self.value.size, count), self.value.dtype)
        for column in range(count if found is not None else 0):
            unit = numpy.zeros(count, self.value.dtype)
            unit[column] = 1
            dense = convert_to_tensor(found) if isinstance(found, IndexedSlices) else found
            row = self._run(dense, self.value, {seed: unit.reshape(self.y_shape)})
            made[:, column] = numpy.asarray(row).ravel()
        return made

    def by_differences(self, delta: float) -> numpy.ndarray:
        """Differences of values ``delta`` beside each element, over twice that."""
        rows = []
        for position in range(self.value.size):
            step = numpy.zeros(self.value.size, self.value.dtype)
            step[position] = delta
            step = step.reshape(self.value.shape)
            above, below = self._run(self.y, self.value + step), self._run(self.y, self.value - step)
            rows.append((numpy.asarray(above) - numpy.asarray(below)).ravel() / (2 * delta))
        return numpy.array(rows, self.value.dtype).reshape(self.value.size, -1)


@example(
    "x = tf.constant([1.0, 2.0])",
    "with session.as_default():",
    "    by_gradients, by_differences = tf.test.compute_gradient(x, [2], tf.square(x), [2], [1.0, 2.0])",
    "print(by_gradients)",
    "[[2. 0.]\n [0. 4.]]",
)
def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> Any:
    """Derivatives of ``y`` by ``x`` in the default session, by ``tf.gradients`` and by differences.

    Args:
        x: A tensor, or a list of them, for which there is then a list of pairs.
        x_shape: Its shape, or a list of shapes.
        y: A tensor that depends on it.
        y_shape: The shape of ``y``.
        x_init_value: The value at which derivatives are taken, or a list; random ones unless given.
        delta: How far the values lie beside it.
        init_targets: Operations that are run before.
        extra_feed_dict: What is fed besides.

    Returns:
        Two arrays, with a row for each element of ``x`` and a column for each of ``y``.
    """
    session = get_default_session()
    for target in init_targets or ():
        session.run(target)
    if isinstance(x, (list, tuple)):
        values = x_init_value or [None] * len(x)
        rows = zip(x, x_shape, values, strict=True)
        return [_pair(one, shape, y, y_shape, value, delta, extra_feed_dict) for one, shape, value in rows]
    return _pair(x, x_shape, y, y_shape, x_init_value, delta, extra_feed_dict)


def _pair(x: Any, x_shape: Any, y: Any, y_shape: Any, value: Any, delta: float, feeds: Any) -> Any:
    dtype = numpy.dtype(x.dtype.as_numpy_dtype)
    given = numpy.random.default_rng().random(tuple(x_shape)) if value is None else value
    made = _Jacobians(x, numpy.asarray(given, dtype), y, y_shape, feeds or {})
    return made.by_gradients(), made.by_differences(delta)


@example(
    "x = tf.constant([1.0, 2.0])",
    "with session.as_default():",
    "    print(tf.test.compute_gradient_error(x, [2], tf.square(x), [2]) < 0.01)",
    "True",
)
def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> float:
    """The largest difference between the two arrays of ``compute_gradient``, whose arguments these are."""
    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    pairs = found if isinstance(found, list) else [found]
    return max((float(numpy.abs(one - other).max()) for one, other in pairs if one.size), default=0.0)
