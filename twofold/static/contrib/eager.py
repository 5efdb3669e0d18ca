"""Computing at once as TensorFlow 1.5 to 1.15 first had it: ``tf.contrib.eager``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.data.datasets import Dataset
from twofold.static.eager.gradient_tape import GradientTape, executing_eagerly
from twofold.static.eager.gradient_tape import enable_eager_execution as enable_eager_execution
from twofold.static.eager.gradient_tape import executing_eagerly as in_eager_mode  # noqa: F401
from twofold.static.functions.custom_gradients import custom_gradient as custom_gradient
from twofold.static.graph.docstrings import example
from twofold.static.python.positions import enter as _enter
from twofold.static.variables.variable import Variable as _Variable


def num_gpus() -> int:
    """0: there is one device, the CPU.

    >>> import twofold.static as tf
    >>> tf.contrib.eager.num_gpus()
    0
    """
    return 0


@example("print(tf.contrib.eager.Variable(1.0).use_resource)", "True")
class Variable(_Variable):
    """``tf.Variable`` with ``use_resource=True``, the only kind that TensorFlow computes with at once."""

    def __init__(self, *args: Any, **options: Any) -> None:
        if not options.setdefault("use_resource", True):
            raise ArgumentError(f"tfe.Variable: use_resource=False, at {here()}", "Use tf.Variable for it.")
        super().__init__(*args, **options)


class Iterator:
    """The elements of a dataset one after the other, as values; RuntimeError where nothing is computed at once.

    >>> import twofold.static as tf
    >>> tf.reset_default_graph()
    >>> tf.enable_eager_execution()
    >>> rows = tf.contrib.eager.Iterator(tf.data.Dataset.range(3))
    >>> int(rows.next()), [int(row) for row in rows]
    (0, [1, 2])
    >>> tf.disable_eager_execution()
    """

    def __init__(self, dataset: Dataset) -> None:
        self._elements = iter(dataset)
        self._types, self._shapes = dataset.output_types, dataset.output_shapes

    @property
    def output_types(self) -> Any:
        """The dtypes of an element."""
        return self._types

    @property
    def output_shapes(self) -> Any:
        """The shapes of an element, as far as they are known."""
        return self._shapes

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    def next(self) -> Any:
        """The next element; raises StopIteration after the last one."""
        return next(self)

    get_next = next


def _check(what: str) -> None:
    if not executing_eagerly():
        raise RuntimeError(
            f"{what} is only supported when eager execution is enabled, at {here()}. Use tf.gradients."
        )


def implicit_value_and_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns ``f(...)`` and the pairs of gradient and variable, for the trained ones that ``f`` reads.

    The function raises ValueError where ``f`` returns None or reads no variable that is trained.

    >>> import twofold.static as tf
    >>> tf.reset_default_graph()
    >>> tf.enable_eager_execution()
    >>> w = tf.contrib.eager.Variable(3.0)
    >>> value, pairs = tf.contrib.eager.implicit_value_and_gradients(lambda x: w * w * x)(2.0)
    >>> float(value), [(float(gradient), variable is w) for gradient, variable in pairs]
    (18.0, [(12.0, True)])
    >>> tf.disable_eager_execution()
    """

    def found(*args: Any, **kwargs: Any) -> tuple[Any, list[tuple[Any, _Variable]]]:
        _check("implicit_value_and_gradients")
        with GradientTape() as tape:
            value = f(*args, **kwargs)
        if value is None:
            name = getattr(f, "__name__", "f")
            raise ValueError(
                f"Cannot differentiate a function that returns None; did you forget it in {name}?"
            )
        read = list(tape.watched_variables())
        if not read:
            raise ValueError("No trainable variables were accessed while the function was being computed.")
        return value, list(zip(tape.gradient(value, read), read))

    return found


def implicit_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """As ``implicit_value_and_gradients``, without the value.

    >>> import twofold.static as tf
    >>> tf.reset_default_graph()
    >>> tf.enable_eager_execution()
    >>> w = tf.contrib.eager.Variable(3.0)
    >>> [float(gradient) for gradient, _ in tf.contrib.eager.implicit_gradients(lambda: w * w)()]
    [6.0]
    >>> tf.disable_eager_execution()
    """
    both = implicit_value_and_gradients(f)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


def value_and_gradients_function(
    f: Callable[..., Any], params: Sequence[int] | None = None
) -> Callable[..., Any]:
    """A function that returns ``f(...)`` and its gradients by the arguments at the positions ``params`` (None: all).

    ``dy`` weights the elements of the value in the function made.

    >>> import twofold.static as tf
    >>> tf.reset_default_graph()
    >>> tf.enable_eager_execution()
    >>> value, found = tf.contrib.eager.value_and_gradients_function(lambda x, y: x * x * y)(3.0, 2.0)
    >>> float(value), [float(gradient) for gradient in found]
    (18.0, [12.0, 9.0])
    >>> tf.disable_eager_execution()
    """

    def found(*args: Any, dy: Any = None) -> tuple[Any, list[Any]]:
        _check("value_and_gradients_function")
        values = [convert_to_tensor(value).detach() for value in args]
        positions = range(len(values)) if params is None else params
        with GradientTape() as tape:
            for k in positions:
                tape.watch(values[k])
            value = f(*values)
        return value, tape.gradient(
            value, [values[k] for k in positions], None if dy is None else [convert_to_tensor(dy)]
        )

    return found


def gradients_function(f: Callable[..., Any], params: Sequence[int] | None = None) -> Callable[..., Any]:
    """As ``value_and_gradients_function``, without the value.

    >>> import twofold.static as tf
    >>> tf.reset_default_graph()
    >>> tf.enable_eager_execution()
    >>> [float(gradient) for gradient in tf.contrib.eager.gradients_function(lambda x: x * x)(3.0)]
    [6.0]
    >>> tf.disable_eager_execution()
    """
    both = value_and_gradients_function(f, params)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


class Network:
    """Layers that make one: a subclass gives each to ``track_layer`` and says in ``call`` what they compute.

    >>> import twofold.static as tf
    >>> class Two(tf.contrib.eager.Network):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.first = self.track_layer(tf.layers.Dense(4))
    ...         self.last = self.track_layer(tf.layers.Dense(1))
    ...
    ...     def call(self, x):
    ...         return self.last(self.first(x))
    >>> with tf.Graph().as_default():
    ...     network = Two()
    ...     print(network(tf.zeros([5, 3])).shape, len(network.variables))
    (5, 1) 4
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name or type(self).__name__.lower()
        self.layers: list[Any] = []

    def track_layer(self, layer: Any) -> Any:
        """Count the variables of a layer, or of a network, among those of this one; returns it."""
        self.layers.append(layer)
        return layer

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """What the network computes; subclasses say it."""
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    @property
    def variables(self) -> list[Any]:
        """All variables of its layers."""
        return [variable for layer in self.layers for variable in layer.variables]

    @property
    def trainable_variables(self) -> list[Any]:
        """Those of them that are trained."""
        return [variable for layer in self.layers for variable in layer.trainable_variables]

    weights, trainable_weights = variables, trainable_variables


_enter(__name__, {"python.tfe": "contrib.eager"})
