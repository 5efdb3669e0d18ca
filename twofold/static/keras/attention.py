"""Attention of Keras: steps of one sequence, weighted for each step of another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.runtime.tracing import here
from twofold.static import math, nn
from twofold.static.arrays import creation, shape_ops
from twofold.static.keras.base_layer import Layer


class _Attention(Layer):
    """Base of layers of a list: queries, values and, unless they are the values, keys."""

    def __init__(self, use_scale: bool, causal: bool, options: dict[str, Any]) -> None:
        super().__init__(**options)
        self.use_scale, self.causal = use_scale, causal
        self.scale: Any = None

    def scores(self, query: Any, key: Any) -> Any:
        """How much each value (last axis) weighs for each query, before the softmax."""
        raise NotImplementedError

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """The weighted sums of the values; masked values weigh nothing, masked queries give zeros."""
        if not isinstance(inputs, list) or not 2 <= len(inputs) <= 3:
            raise ValueError(
                f"{type(self).__name__} layer must be called on a list of 2 or 3 inputs, namely [query, value] or "
                f"[query, value, key], at {here()}."
            )
        query, value, *rest = inputs
        kept: Sequence[Any] = mask if mask is not None else (None, None)
        found = self.scores(query, rest[0] if rest else value)
        allowed = None if kept[1] is None else shape_ops.expand_dims(kept[1], -2)
        if self.causal:
            sizes = shape_ops.shape(found)
            earlier = creation.range(sizes[2])[None, None, :] <= creation.range(sizes[1])[None, :, None]
            allowed = earlier if allowed is None else math.logical_and(allowed, earlier)
        if allowed is not None:
            found -= 1e9 * (1.0 - math.cast(allowed, found.dtype))
        made = math.matmul(nn.softmax(found), value)
        return made if kept[0] is None else made * math.cast(shape_ops.expand_dims(kept[0], -1), made.dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the queries."""
        return None if mask is None else mask[0]

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer."""
        return {**self._base_config(), "use_scale": self.use_scale, "causal": self.causal}


class Attention(_Attention):
    """Attention by products of queries and keys (Luong et al. 2015), which ``use_scale`` has a variable for.

    With ``causal`` a query sees no values behind its own position.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     print(tf.keras.layers.Attention()([tf.zeros([2, 3, 4]), tf.zeros([2, 5, 4])]).shape)
    (2, 3, 4)
    """

    def __init__(self, use_scale: bool = False, causal: bool = False, **options: Any) -> None:
        super().__init__(use_scale, causal, options)

    def build(self, input_shape: Any) -> None:
        """The scale, 1 at first."""
        self.scale = self.add_weight("scale", [], initializer="ones") if self.use_scale else None

    def scores(self, query: Any, key: Any) -> Any:
        """The products."""
        found = math.matmul(query, key, transpose_b=True)
        return found if self.scale is None else found * self.scale


class AdditiveAttention(_Attention):
    """Attention by ``tanh(query + key)``, summed with weights that are variables with ``use_scale`` (Bahdanau 2015).

    With ``causal`` a query sees no values behind its own position.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     print(tf.keras.layers.AdditiveAttention(False)([tf.zeros([2, 3, 4]), tf.zeros([2, 5, 4])]).shape)
    (2, 3, 4)
    """

    def __init__(self, use_scale: bool = True, causal: bool = False, **options: Any) -> None:
        super().__init__(use_scale, causal, options)

    def build(self, input_shape: Any) -> None:
        """The weights of the sum."""
        size = int(input_shape[1][-1])
        self.scale = (
            self.add_weight("scale", [size], initializer="glorot_uniform") if self.use_scale else None
        )

    def scores(self, query: Any, key: Any) -> Any:
        """The sums."""
        both = math.tanh(shape_ops.expand_dims(query, -2) + shape_ops.expand_dims(key, -3))
        return math.reduce_sum(both if self.scale is None else both * self.scale, -1)
