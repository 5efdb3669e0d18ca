"""Losses of Keras as objects, with weights and a reduction: ``tf.keras.losses.Loss``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.runtime.tracing import here
from twofold.signatures import arguments, signature_of
from twofold.static import math
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import shape_ops

_REDUCTIONS = ("auto", "none", "sum", "sum_over_batch_size")


def matched(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Labels and predictions as tensors; a last axis of size 1 that only one of them has is left out."""
    one, two = convert_to_tensor(y_true), convert_to_tensor(y_pred)
    shapes = one.get_shape(), two.get_shape()
    if shapes[0].ndims is None or shapes[1].ndims is None:
        return one, two
    if shapes[1].ndims == shapes[0].ndims + 1 and shapes[1][-1].value == 1:
        two = shape_ops.squeeze(two, [-1])
    elif shapes[0].ndims == shapes[1].ndims + 1 and shapes[0][-1].value in (1, None):
        one = shape_ops.squeeze(one, [-1])
    return one, two


def aligned(weights: Any, values: Any) -> Any:
    """Weights of the dtype of values, with a last axis of size 1 added or left out where they differ by that."""
    found = math.cast(convert_to_tensor(weights), values.dtype)
    ranks = found.get_shape().ndims, values.get_shape().ndims
    if ranks[0] in (0, None) or ranks[1] is None:
        return found
    if ranks[0] == ranks[1] + 1:
        return shape_ops.squeeze(found, [-1])
    return shape_ops.expand_dims(found, -1) if ranks[0] == ranks[1] - 1 else found


def weighted(losses: Any, sample_weight: Any, reduction: str) -> Any:
    """Losses times weights, summed or averaged over all elements (those of weight 0 included), as Keras does it."""
    found = convert_to_tensor(losses)
    if sample_weight is not None:
        found = found * aligned(sample_weight, found)
    if reduction == "none":
        return found
    if reduction == "sum":
        return math.reduce_sum(found)
    count = math.cast(shape_ops.size(found), found.dtype)
    return math.divide_no_nan(math.reduce_sum(found), count)


class Loss:
    """Base of losses: a subclass has ``call(y_true, y_pred)``, which gives numbers for the elements of a batch.

    Args:
        reduction: "sum", "none", or "sum_over_batch_size" (also "auto"): the sum over how many numbers there are.
        name: The name.

    >>> import twofold.static as tf
    >>> class Fourth(tf.keras.losses.Loss):
    ...     def call(self, y_true, y_pred):
    ...         return tf.reduce_sum((y_pred - y_true) ** 4, -1)
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     y_true, y_pred = tf.constant([[1.0], [2.0]]), tf.constant([[2.0], [4.0]])
    ...     print(session.run(Fourth("sum")(y_true, y_pred, sample_weight=[1.0, 0.5])))
    9.0
    """

    def __init__(self, reduction: Any = "auto", name: str | None = None) -> None:
        if reduction not in _REDUCTIONS:
            raise ValueError(
                f"{type(self).__name__}: Invalid Reduction Key {reduction!r}, at {here()}. Use one of "
                f"{', '.join(_REDUCTIONS)}."
            )
        self.reduction, self.name = reduction, name

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal loss."""
        return {"reduction": self.reduction, "name": self.name}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The loss of these arguments."""
        return cls(**config)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Numbers for the elements of a batch."""
        raise NotImplementedError(
            f"{type(self).__name__} has no call(y_true, y_pred), at {here()}. Define it."
        )

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """The loss of a batch: what ``call`` gives, times weights, reduced."""
        return weighted(self.call(y_true, y_pred), sample_weight, self.reduction)


class FunctionLoss(Loss):
    """Base of losses that functions compute, with the options of these."""

    function: Callable[..., Any]
    options: dict[str, Any] = {}
    own_name: str | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = type(self)
        taken = {**cls.options, "reduction": "auto", "name": cls.own_name}
        given = arguments(cls.__name__, signature_of(taken), args, kwargs)
        super().__init__(given.pop("reduction"), given.pop("name"))
        self._options = given

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal loss."""
        return {**super().get_config(), **self._options}

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """What the function gives."""
        return type(self).function(*matched(y_true, y_pred), **self._options)


def loss_of(
    class_name: str, function: Callable[..., Any], name: str | None, **options: Any
) -> type[FunctionLoss]:
    """The class of losses that a function computes; ``options`` are names of its options with their defaults."""
    members = {"function": staticmethod(function), "options": options, "own_name": name}
    members |= {"__doc__": function.__doc__, "__module__": __name__}
    return type(class_name, (FunctionLoss,), members)
