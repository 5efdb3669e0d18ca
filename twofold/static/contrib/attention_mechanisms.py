"""How much of each state of an encoder a decoder takes: the mechanisms of ``tf.contrib.seq2seq``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.runtime.pytree import flatten, unflatten
from twofold.runtime.tracing import here
from twofold.static import initializers, math, nn, random
from twofold.static.api.op_functions import as_dtype, convert_to_tensor, snake_case
from twofold.static.api.signatures import parameters, with_parameters
from twofold.static.arrays import creation, selection, shape_ops
from twofold.static.autodiff.clipping import clip_by_value
from twofold.static.control_flow.map_scan import scan
from twofold.static.graph.docstrings import example
from twofold.static.graph.scopes import name_scope
from twofold.static.layers import Dense
from twofold.static.variables.variable_scope import get_variable, variable_scope


@example("tf.round(4.0 * tf.contrib.seq2seq.safe_cumprod([0.5, 0.5, 0.0, 2.0]))", "[2. 1. 0. 0.]")
def safe_cumprod(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Any:
    """``tf.cumprod`` of numbers from 0 to 1 by the sum of their logarithms, which are at least the smallest float's."""
    with name_scope(None, "SafeCumprod", [x]):
        given = convert_to_tensor(x)
        least = numpy.finfo(given.dtype.numpy).tiny
        options = {"axis": axis, "exclusive": exclusive, "reverse": reverse, "name": name}
        return math.exp(math.cumsum(math.log(clip_by_value(given, least, 1)), **options))


class AttentionMechanism:
    """The memory that a decoder looks at: ``keys`` to compare with, ``values`` to take.

    ``query_layer`` and ``memory_layer`` are layers that queries and memory go through, or None.
    ``probability_fn(score, state)`` makes alignments of scores, which are ``score_mask_value`` behind a sequence's end.
    A class of a program's own calls this ``__init__``, and has a ``__call__(query, state)`` that returns alignments and
    the next state.
    """

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: Callable[[Any, Any], Any],
        memory_sequence_length: Any = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        name: str | None = None,
    ) -> None:
        given = convert_to_tensor(memory)
        if check_inner_dims_defined and any(size is None for size in given.get_shape().as_list()[2:]):
            what = f"attention: a memory of shape {given.get_shape()}, whose last sizes must be known, at {here()}"
            raise ArgumentError(what, "Use set_shape.")
        self.query_layer, self.memory_layer, self.values = query_layer, memory_layer, given
        mask = None
        with name_scope(name, "BaseAttentionMechanismInit"):
            if memory_sequence_length is not None:
                mask = shape_ops.sequence_mask(memory_sequence_length, shape_ops.shape(given)[1])
                expanded = shape_ops.reshape(
                    mask, shape_ops.concat([shape_ops.shape(mask), [1] * (given.type_.ndim - 2)], 0)
                )
                self.values = given * math.cast(expanded, given.dtype)
            self.keys = self.values if memory_layer is None else memory_layer(self.values)
        hidden = float("-inf") if score_mask_value is None else score_mask_value

        def probabilities(score: Any, state: Any) -> Any:
            if mask is not None:
                score = selection.where(mask, score, creation.ones_like(score) * hidden)
            return probability_fn(score, state)

        self._probability_fn = probabilities
        sizes = self.keys.type_.shape
        self.batch_size = sizes[0] if sizes[0] >= 0 else shape_ops.shape(self.keys)[0]
        self.alignments_size = sizes[1] if sizes[1] >= 0 else shape_ops.shape(self.keys)[1]

    @property
    def state_size(self) -> Any:
        """The size of the mechanism's state, which is of alignments."""
        return self.alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros for a batch."""
        return creation.zeros([batch_size, self.alignments_size], dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state before the first step: the first alignments."""
        return self.initial_alignments(batch_size, dtype)

    def __call__(self, query: Any, state: Any = None) -> tuple[Any, Any]:
        """How much of each value the query takes, and the next state, which is the same."""
        raise NotImplementedError


def _bahdanau_score(processed_query: Any, keys: Any, options: dict[str, Any]) -> Any:
    """v . tanh(keys + query) with a variable v; ``normalize`` after Salimans and Kingma, 2016."""
    units = keys.get_shape().as_list()[-1]
    vector = get_variable("attention_v", [units], dtype=processed_query.dtype)
    added = keys + shape_ops.expand_dims(processed_query, 1)
    if not options["normalize"]:
        return math.reduce_sum(vector * math.tanh(added), 2)
    dtype = processed_query.dtype
    gain = get_variable(
        "attention_g", [], dtype=dtype, initializer=initializers.constant_initializer(units**-0.5)
    )
    bias = get_variable("attention_b", [units], dtype=dtype, initializer=initializers.zeros_initializer())
    length = math.rsqrt(math.reduce_sum(math.square(vector)))
    return math.reduce_sum(gain * vector * length * math.tanh(added + bias), 2)


def _luong_score(query: Any, keys: Any, options: dict[str, Any]) -> Any:
    """Products of query and keys, with ``scale`` times a variable."""
    if query.type_.shape[-1] != keys.type_.shape[-1]:
        what = f"attention: a query of {query.type_.shape[-1]} features for {keys.type_.shape[-1]} units, at {here()}"
        raise ArgumentError(what, "Give num_units the size of the cell.")
    score = shape_ops.squeeze(math.matmul(shape_ops.expand_dims(query, 1), keys, transpose_b=True), [1])
    if not options["scale"]:
        return score
    ones = initializers.ones_initializer()
    return score * get_variable("attention_g", [], dtype=query.dtype, initializer=ones)


def _biased(compare: Callable[..., Any]) -> Callable[..., Any]:
    """The score of a function and a variable."""

    def score(query: Any, keys: Any, options: dict[str, Any]) -> Any:
        made = compare(query, keys, options)
        start = initializers.constant_initializer(options["score_bias_init"])
        return made + get_variable("attention_score_bias", [], dtype=made.dtype, initializer=start)

    return score


@example(
    "p = [[0.5, 0.5, 1.0]]",
    'tf.contrib.seq2seq.monotonic_attention(p, [[1.0, 0.0, 0.0]], "parallel")',
    "[[0.5  0.25 0.25]]",
)
def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Any:
    """Chances that each value is chosen, going on from the one chosen before (Raffel et al., 2017, eq. 8 and 10).

    Args:
        p_choose_i: Chances to stop at each value, ``[batch, values]``.
        previous_attention: The alignments of the step before.
        mode: "recursive" goes value by value, "parallel" computes sums and products over all, "hard" is for chances
            that are 0 or 1.

    Raises:
        ValueError: ``mode`` is another one.
    """
    chosen, before = convert_to_tensor(p_choose_i), convert_to_tensor(previous_attention)
    if mode == "hard":
        chosen *= math.cumsum(before, 1)
        return chosen * math.cumprod(1.0 - chosen, 1, exclusive=True)
    if mode == "parallel":
        tiny = float(numpy.finfo(chosen.dtype.as_numpy_dtype).tiny)
        logs = math.log(clip_by_value(1.0 - chosen, tiny, 1.0))
        passed = math.exp(math.cumsum(logs, 1, exclusive=True))
        return chosen * passed * math.cumsum(before / clip_by_value(passed, 1e-10, 1.0), 1)
    if mode != "recursive":
        what = f"monotonic_attention: mode {mode!r}, at {here()}"
        raise ValueError(f"{what}. Use 'recursive', 'parallel' or 'hard'.")
    passed = shape_ops.concat([creation.ones_like(chosen[:, :1]), 1.0 - chosen[:, :-1]], 1)
    steps = [shape_ops.transpose(passed), shape_ops.transpose(before)]
    found = scan(lambda kept, step: step[0] * kept + step[1], steps, creation.zeros_like(chosen[:, 0]))
    return chosen * shape_ops.transpose(found)


def _monotonic(noise: float, mode: str, seed: int | None) -> Callable[[Any, Any], Any]:
    """What makes alignments of scores and the alignments before."""

    def probabilities(score: Any, state: Any) -> Any:
        if noise > 0:
            score += noise * random.random_normal(shape_ops.shape(score), dtype=score.dtype, seed=seed)
        chosen = math.cast(score > 0, score.dtype) if mode == "hard" else math.sigmoid(score)
        return monotonic_attention(chosen, state, mode)

    return probabilities


_BEFORE = "self, num_units, memory, memory_sequence_length=None"
_NOISE = "sigmoid_noise=0.0, sigmoid_noise_seed=None, score_bias_init=0.0, mode='parallel'"


def _taking(name: str, options: str, projects_query: bool) -> Callable[..., None]:
    """The ``__init__`` of a mechanism with these ``options``, that has a layer for queries or not."""

    def initialize(self: AttentionMechanism, **given: Any) -> None:
        units, dtype = given["num_units"], given["dtype"]
        dtype = None if dtype is None else as_dtype(dtype)
        if "mode" in given:
            chosen = _monotonic(given["sigmoid_noise"], given["mode"], given["sigmoid_noise_seed"])
        else:
            one = given["probability_fn"] or nn.softmax
            chosen = lambda score, state: one(score)
        query = Dense(units, name="query_layer", use_bias=False, dtype=dtype) if projects_query else None
        memory = Dense(units, name="memory_layer", use_bias=False, dtype=dtype)
        AttentionMechanism.__init__(
            self,
            query,
            given["memory"],
            chosen,
            given["memory_sequence_length"],
            memory,
            score_mask_value=given["score_mask_value"],
        )
        self._num_units, self._name, self._options = units, given["name"], given  # type: ignore[attr-defined]
        self._scope = snake_case(name)  # type: ignore[attr-defined]

    return with_parameters(initialize, parameters(f"{_BEFORE}, {options}, dtype=None, name={name!r}"))


_ADDITIVE = "normalize=False, probability_fn=None, score_mask_value=None"
_PRODUCTS = "scale=False, probability_fn=None, score_mask_value=None"


class _Scored(AttentionMechanism):
    """A mechanism that compares queries with keys in a variable scope of its own."""

    _options: dict[str, Any]
    _scope: str
    _score: Callable[[Any, Any, dict[str, Any]], Any]

    def __call__(self, query: Any, state: Any = None) -> tuple[Any, Any]:
        """How much of each value the query takes, and the next state, which is the same."""
        with variable_scope(None, self._scope):
            processed = query if self.query_layer is None else self.query_layer(query)
            score = self._score(processed, self.keys, self._options)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class _Monotonic(_Scored):
    """A mechanism that never goes back (Raffel et al., 2017): its state are the alignments before."""

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """All of the first value."""
        first = creation.zeros([batch_size], "int32")
        return shape_ops.one_hot(first, self.alignments_size, dtype=dtype)


class BahdanauAttention(_Scored):
    """Additive attention (Bahdanau et al., 2014); with ``normalize`` after Salimans and Kingma, 2016."""

    _score = staticmethod(_bahdanau_score)
    __init__ = _taking("BahdanauAttention", _ADDITIVE, True)


class BahdanauMonotonicAttention(_Monotonic):
    """Additive attention that never goes back (Raffel et al., 2017)."""

    _score = staticmethod(_biased(_bahdanau_score))
    __init__ = _taking(
        "BahdanauMonotonicAttention", f"normalize=False, score_mask_value=None, {_NOISE}", True
    )


class LuongAttention(_Scored):
    """Multiplicative attention (Luong et al., 2015); with ``scale`` times a variable."""

    _score = staticmethod(_luong_score)
    __init__ = _taking("LuongAttention", _PRODUCTS, False)


class LuongMonotonicAttention(_Monotonic):
    """Multiplicative attention that never goes back (Raffel et al., 2017)."""

    _score = staticmethod(_biased(_luong_score))
    __init__ = _taking("LuongMonotonicAttention", f"scale=False, score_mask_value=None, {_NOISE}", False)


_BaseAttentionMechanism = AttentionMechanism


@example("tf.contrib.seq2seq.hardmax([[1.0, 3.0, 2.0]])", "[[0. 1. 0.]]")
def hardmax(logits: Any, name: str | None = None) -> Any:
    """1 for the largest of the last axis, 0 elsewhere."""
    given = convert_to_tensor(logits)
    largest = math.argmax(given, -1)
    return shape_ops.one_hot(largest, shape_ops.shape(given)[-1], dtype=given.dtype, name=name)


@example("tf.contrib.seq2seq.tile_batch(tf.constant([1, 2]), 3)", "[1 1 1 2 2 2]")
def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Each row of a nested structure of batches ``multiplier`` times in a row."""
    values, _, structure = flatten(t, "t")
    return unflatten(structure, [_tiled(convert_to_tensor(one), multiplier, name) for one in values])


def _tiled(value: Any, count: int, name: str | None) -> Any:
    ndim = value.type_.ndim
    apart = shape_ops.tile(shape_ops.expand_dims(value, 1), [1, count, *[1] * (ndim - 1)])
    sizes = shape_ops.shape(value)
    made = shape_ops.reshape(apart, shape_ops.concat([[sizes[0] * count], sizes[1:]], 0), name=name)
    first, *rest = value.get_shape().as_list()
    made.set_shape([None if first is None else first * count, *rest])
    return made
