"""Recurrent layers of Keras: cells over the steps of a sequence."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from twofold.runtime.tracing import here
from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.api.signatures import parameters
from twofold.static.arrays import creation, shape_ops
from twofold.static.graph.docstrings import with_example
from twofold.static.keras.base_layer import Layer, made_from
from twofold.static.keras.masking import stepped
from twofold.static.keras.named import serialize
from twofold.static.keras.phases import in_train_phase
from twofold.static.keras.stepping import (
    keep_states,
    kept_states,
    mask_of_outputs,
    reset_kept,
    split_inputs,
    zero_state,
)
from twofold.static.keras.table import TableLayer
from twofold.static.layers.graph_collections import with_loss


def _product(layer: _Gates, h: Any, first: int = 0, count: int | None = None) -> Any:
    """The product of the state with some of the gates' recurrent kernels."""
    units = layer.units
    last = layer.row.gates if count is None else first + count
    kernel = convert_to_tensor(layer.recurrent_kernel)
    if layer.dropped is None:
        found = math.matmul(h, kernel[:, first * units : last * units])
    else:
        parts = [
            math.matmul(h * layer.dropped[gate], kernel[:, gate * units : (gate + 1) * units])
            for gate in range(first, last)
        ]
        found = parts[0] if len(parts) == 1 else shape_ops.concat(parts, -1)
    bias = layer.recurrent_bias()
    return found if bias is None else found + bias[first * units : last * units]


def _simple(layer: _Gates, x: Any, h: Any) -> tuple[Any, Any]:
    made = layer.activation(x + _product(layer, h))
    return made, made


def _lstm(layer: _Gates, x: Any, state: Any) -> tuple[Any, Any]:
    h, c = state
    i, f, g, o = shape_ops.split(x + _product(layer, h), 4, 1)
    gate = layer.recurrent_activation
    c = gate(f) * c + gate(i) * layer.activation(g)
    h = gate(o) * layer.activation(c)
    return h, [h, c]


def _gru(layer: _Gates, x: Any, h: Any) -> tuple[Any, Any]:
    xz, xr, xh = shape_ops.split(x, 3, 1)
    after = layer.reset_after
    inner = _product(layer, h) if after else _product(layer, h, 0, 2)
    hz, hr, *hh = shape_ops.split(inner, 3 if after else 2, 1)
    z, r = layer.recurrent_activation(xz + hz), layer.recurrent_activation(xr + hr)
    candidate = layer.activation(xh + (r * hh[0] if after else _product(layer, r * h, 2)))
    made = z * h + (1.0 - z) * candidate
    return made, made


class _Row(NamedTuple):
    """A kind of recurrent layer: how many gates and states, and its step."""

    gates: int
    states: int
    step: Callable[..., Any]


_OF_STEPS = (
    "units, activation='tanh', recurrent_activation='hard_sigmoid', use_bias=True, "
    "kernel_initializer='glorot_uniform', recurrent_initializer='orthogonal', bias_initializer='zeros', "
    "unit_forget_bias=True, kernel_regularizer=None, recurrent_regularizer=None, bias_regularizer=None, "
)
_CONSTRAINTS = "kernel_constraint=None, recurrent_constraint=None, bias_constraint=None, "


class _Gates(TableLayer):
    """The variables of a step: kernels and bias of all gates, side by side."""

    row: _Row
    reset_after = False
    dropped: list[Any] | None = None
    """For each gate what the state is multiplied by, while a layer drops some of it."""

    def build(self, input_shape: Any) -> None:
        """Kernels and bias of all gates, side by side; with ``reset_after`` a second bias beside the first one."""
        first = input_shape[0] if isinstance(input_shape, list) else input_shape  # states may stand behind
        channels, width = int(first[-1]), self.row.gates * self.units
        bias = [2, width] if self.reset_after else [width]
        self.make_variables(
            {"kernel": [channels, width], "recurrent_kernel": [self.units, width], "bias": bias}
        )

    def make_variables(self, shapes: dict[str, list[int]]) -> None:
        """Kernels and, unless there is none, the bias of the shapes given."""
        for name, shape in shapes.items():
            if name == "bias" and not self.use_bias:
                continue
            own = name.removesuffix("_kernel")
            start = self._bias_initializer() if name == "bias" else getattr(self, f"{own}_initializer")
            penalty, limit = (getattr(self, f"{own}_{kind}") for kind in ("regularizer", "constraint"))
            made = self.add_weight(name, shape, None, start, penalty, None, limit)
            setattr(self, name, made)

    def _bias_initializer(self) -> Any:
        given = self.bias_initializer
        if self.row.states == 1 or not self.unit_forget_bias:
            return given

        def first(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            part = [self.units]
            return shape_ops.concat(
                [given(part, dtype), creation.ones(part, dtype), given([2 * self.units], dtype)], 0
            )

        return first

    def recurrent_bias(self) -> Any:
        """What is added to the product of the state, or None."""
        return convert_to_tensor(self.bias)[1] if self.reset_after and self.use_bias else None

    def seen(self, inputs: Any, masks: list[Any] | None = None) -> Any:
        """The products of inputs (with the channels last) with the kernels of all gates; ``masks`` drop some."""
        kernel, units, rank = convert_to_tensor(self.kernel), self.units, len(inputs.get_shape())
        if masks is None:
            found = math.tensordot(inputs, kernel, [[rank - 1], [0]])
        else:
            parts = [
                math.tensordot(inputs * mask, kernel[:, gate * units : (gate + 1) * units], [[rank - 1], [0]])
                for gate, mask in enumerate(masks)
            ]
            found = parts[0] if len(parts) == 1 else shape_ops.concat(parts, -1)
        if not self.use_bias:
            return found
        bias = convert_to_tensor(self.bias)
        return nn.bias_add(found, bias[0] if self.reset_after else bias)

    def masks(self, rate: float, like: Any, training: Any) -> list[Any] | None:
        """What drops a share of numbers like those given for each gate, the same at all steps, or None."""
        if not 0.0 < rate < 1.0:
            return None
        ones = creation.ones_like(like)
        each = [
            in_train_phase(lambda: nn.dropout(ones, rate=rate), lambda: shape_ops.identity(ones), training)
            for _ in range(1 if self.implementation == 2 else self.row.gates)
        ]
        return each * self.row.gates if len(each) == 1 else each


class Cell(_Gates):
    """Base of the steps of recurrent layers: ``(output, states) = cell(inputs, states)``, for ``RNN``.

    Not offered, and refused: ``dropout``, ``recurrent_dropout``; ``implementation`` changes nothing.
    """

    options = parameters(
        f"{_OF_STEPS}{_CONSTRAINTS}dropout=0.0, recurrent_dropout=0.0, implementation=1, reset_after=False"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.dropout or self.recurrent_dropout:
            what = f"{type(self).__name__}: dropout and recurrent_dropout are not offered"
            raise ValueError(f"{what}, at {here()}. Use the layer, or put a Dropout layer before it.")

    @property
    def state_size(self) -> Any:
        """The size of the state, or of its parts."""
        return [self.units] * self.row.states if self.row.states > 1 else self.units

    @property
    def output_size(self) -> int:
        """The size of the output."""
        units: int = self.units
        return units

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """A state of zeros for a batch, that of the inputs or of the size given."""
        return zero_state(self, inputs, batch_size, dtype)

    def call(self, inputs: Any, states: Any) -> Any:  # type: ignore[override]
        """The output and the list of new states."""
        given = list(states) if isinstance(states, (list, tuple)) else [states]
        output, new = self.row.step(self, self.seen(inputs), given if self.row.states > 1 else given[0])
        return output, new if self.row.states > 1 else [new]


class Recurrent(_Gates):
    """Base of the recurrent layers: inputs (batch, time, channels), the last output or, on demand, all of them.

    Steps that a mask leaves out change nothing. ``dropout`` and ``recurrent_dropout`` drop a share of the inputs and of
    the states while training, the same at all steps: with ``implementation`` 1 others for each gate, with 2 one for
    all. ``stateful`` layers begin where the batch before ended, until ``reset_states``. ``unroll`` changes nothing.
    """

    go_backwards: bool
    supports_masking = True

    options = parameters(
        f"{_OF_STEPS}activity_regularizer=None, {_CONSTRAINTS}dropout=0.0, recurrent_dropout=0.0, implementation=1, "
        "return_sequences=False, return_state=False, go_backwards=False, stateful=False, unroll=False, "
        "time_major=False, reset_after=False"
    )

    states: list[Any] | None = None
    """The states that a stateful layer keeps."""

    def build(self, input_shape: Any) -> None:
        """Kernels, bias and, of a stateful layer, the states."""
        super().build(input_shape)
        first = input_shape[0] if isinstance(input_shape, list) else input_shape
        if self.stateful:
            self.states = kept_states(
                self, first[1 if self.time_major else 0], [[self.units]] * self.row.states
            )

    @staticmethod
    def row_of(gates: int, states: int) -> _Row:
        """A kind of layer whose ``call`` makes the steps."""
        return _Row(gates, states, _lstm)

    def reset_states(self, states: Any = None) -> None:
        """Let a stateful layer begin with zeros, or with the arrays given."""
        reset_kept(self, states)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the steps, where all outputs are returned; the states have none."""
        return mask_of_outputs(self, mask)

    def call(  # type: ignore[override]
        self, inputs: Any, initial_state: Any = None, mask: Any = None, training: Any = None
    ) -> Any:
        """The last output or all, with ``return_state`` also the last states."""
        inputs, initial_state, mask = split_inputs(inputs, initial_state, mask)
        first = inputs[0] if self.time_major else inputs[:, 0]
        dropped = self.masks(self.dropout, first, training)
        whole = (
            None
            if dropped is None
            else [shape_ops.expand_dims(one, 0 if self.time_major else 1) for one in dropped]
        )
        seen = self.seen(inputs, whole)
        zeros = creation.zeros([shape_ops.shape(first)[0], self.units], seen.dtype)
        zeros.set_shape([first.get_shape()[0], self.units])
        start = [zeros] * self.row.states
        if initial_state is not None:
            start = list(initial_state) if isinstance(initial_state, (list, tuple)) else [initial_state]
        elif self.states is not None:
            start = [convert_to_tensor(one) for one in self.states]
        self.dropped = self.masks(self.recurrent_dropout, zeros, training)

        def step(value: Any, before: list[Any]) -> Any:
            output, new = self.row.step(self, value, before if self.row.states > 1 else before[0])
            return output, list(new) if self.row.states > 1 else [new]

        last, outputs, states = stepped(step, seen, start, mask, self.go_backwards, self.time_major)
        keep_states(self, states)
        result = with_loss(outputs if self.return_sequences else last, self.activity_regularizer)
        return [result, *states] if self.return_state else result


def _kinds(
    name: str, text: str, gates: int, states: int, step: Callable[..., Any], without: tuple[str, ...] = ()
) -> tuple[type[Recurrent], type[Cell]]:
    """A kind of layer and its step, which have the options of their bases but for those that say nothing about it."""
    found: list[Any] = []
    for own, base, shown, result in (
        (name, Recurrent, f"print(tf.keras.layers.{name}(4)(tf.zeros([2, 5, 3])).shape)", "(2, 4)"),
        (f"{name}Cell", Cell, "", ""),
    ):
        shown = shown or f"print(tf.keras.layers.RNN(tf.keras.layers.{own}(4))(tf.zeros([2, 5, 3])).shape)"
        members = {
            "row": _Row(gates, states, step),
            "options": {key: value for key, value in base.options.items() if key not in without},
            "takes_training": base is Recurrent,
            "takes_mask": base is Recurrent,
            "__doc__": with_example(
                text if base is Recurrent else f"A step of ``{name}``.", shown, result or "(2, 4)"
            ),
            "__module__": __name__,
        }
        found.append(type(own, (base,), members))
    return found[0], found[1]


_ONE_GATE = ("recurrent_activation", "unit_forget_bias", "reset_after")
SimpleRNN, SimpleRNNCell = _kinds(
    "SimpleRNN", "``activation(x @ kernel + h @ recurrent_kernel + bias)``.", 1, 1, _simple, _ONE_GATE
)
LSTM, LSTMCell = _kinds("LSTM", "Long short-term memory.", 4, 2, _lstm, ("reset_after",))
GRU, GRUCell = _kinds("GRU", "Gated recurrent units.", 3, 1, _gru, ("unit_forget_bias",))


class Wrapper(Layer):
    """Base of layers around another one, ``layer``."""

    def __init__(self, layer: Any, **options: Any) -> None:
        super().__init__(**options)
        self.layer = layer

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer."""
        return {**self._base_config(), "layer": serialize(self.layer)}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The layer of a configuration."""
        return cls(made_from(config["layer"]), **{key: one for key, one in config.items() if key != "layer"})


class Bidirectional(Wrapper):
    """A recurrent layer over the sequence and another one over it reversed.

    ``merge_mode`` is "concat", "sum", "mul", "ave", or None for both outputs. ``backward_layer`` is the other one,
    a layer like ``layer`` unless given.
    """

    def __init__(
        self,
        layer: Any,
        merge_mode: str | None = "concat",
        weights: Any = None,
        backward_layer: Any = None,
        **options: Any,
    ) -> None:
        if merge_mode not in ("concat", "sum", "mul", "ave", None):
            raise ValueError(
                f"Bidirectional: merge_mode {merge_mode!r}. Use 'concat', 'sum', 'mul', 'ave' or None."
            )
        options.setdefault("batch_input_shape", layer.batch_input_shape)
        super().__init__(layer, **options)
        self._merge, self._given, self._other = merge_mode, weights, backward_layer
        self.forward_layer = _again(layer, f"forward_{layer.name}")
        self.backward_layer = backward_layer
        if backward_layer is None:
            self.backward_layer = _again(layer, f"backward_{layer.name}")
            self.backward_layer.go_backwards = not layer.go_backwards
        elif backward_layer.go_backwards == layer.go_backwards:
            raise ValueError(
                f"Forward layer and backward layer should have different `go_backwards` value, at {here()}."
            )

    def _sublayers(self) -> list[Layer]:
        return [self.forward_layer, self.backward_layer]

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer."""
        other = {} if self._other is None else {"backward_layer": serialize(self._other)}
        return {**super().get_config(), "merge_mode": self._merge, **other}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The layers of a configuration."""
        layers = {key: made_from(config[key]) for key in ("layer", "backward_layer") if key in config}
        return cls(**{**config, **layers})

    def reset_states(self) -> None:
        """Let stateful layers begin with zeros."""
        for layer in self._sublayers():
            layer.reset_states()  # type: ignore[attr-defined]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the steps, where all outputs are returned."""
        found = mask[0] if isinstance(mask, list) else mask
        found = found if self.forward_layer.return_sequences else None
        made = [found] if self._merge else [found, found]
        return made if self.forward_layer.return_state or not self._merge else found

    def call(self, inputs: Any, initial_state: Any = None, mask: Any = None) -> Any:
        """What both layers make of the inputs, merged, and behind it their states, if they return these."""
        inputs, initial_state, mask = split_inputs(inputs, initial_state, mask)
        starts: list[Any] = [None, None]
        if initial_state is not None:
            half = len(initial_state) // 2
            starts = [list(initial_state[:half]), list(initial_state[half:])]
        found = [
            layer(inputs, initial_state=start, mask=mask)
            for layer, start in zip((self.forward_layer, self.backward_layer), starts)
        ]
        if self._given is not None:
            self.set_weights(self._given)
            self._given = None
        several = self.forward_layer.return_state
        (ahead, *states), (back, *more) = found if several else ([found[0]], [found[1]])
        if self.forward_layer.return_sequences:
            back = shape_ops.reverse(back, [0 if getattr(self.forward_layer, "time_major", False) else 1])
        made = self._merged(ahead, back)
        return [*(made if isinstance(made, list) else [made]), *states, *more] if several else made

    def _merged(self, ahead: Any, back: Any) -> Any:
        if self._merge is None:
            return [ahead, back]
        if self._merge == "concat":
            return shape_ops.concat([ahead, back], -1)
        return (
            ahead * back if self._merge == "mul" else (ahead + back) * (0.5 if self._merge == "ave" else 1.0)
        )


def _again(layer: Any, name: str) -> Any:
    """A layer with the options of another one, and variables of its own."""
    made = copy.copy(layer)
    made.name, made._scope, made.built = name, None, False
    for kept in ("_own", "_updates", "_state_updates", "_losses", "_calls"):
        setattr(made, kept, [])
    if hasattr(layer, "cell"):
        made.cell = made_from(serialize(layer.cell))
    return made


class TimeDistributed(Wrapper):
    """A layer applied to each step of a sequence."""

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the steps."""
        return mask

    def call(self, inputs: Any) -> Any:
        sizes, dynamic = inputs.get_shape().as_list(), shape_ops.shape(inputs)
        each = [dynamic[axis] if size is None else size for axis, size in enumerate(sizes)]
        flat = shape_ops.reshape(inputs, [-1, *each[2:]])
        flat.set_shape([None, *sizes[2:]])
        made = self.layer(flat)
        own, later = made.get_shape().as_list(), shape_ops.shape(made)
        rest = [later[axis] if size is None else size for axis, size in enumerate(own) if axis]
        made = shape_ops.reshape(made, [*each[:2], *rest])
        made.set_shape([*sizes[:2], *own[1:]])
        return made
