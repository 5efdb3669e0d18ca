"""Recurrent layers of Keras: cells over the steps of a sequence."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.api.signatures import parameters
from twofold.static.arrays import creation, shape_ops
from twofold.static.graph.docstrings import with_example
from twofold.static.keras.base_layer import Layer, made_from
from twofold.static.keras.named import serialize
from twofold.static.keras.stepping import zero_state
from twofold.static.keras.table import TableLayer
from twofold.static.recurrent.rnn import dynamic_rnn


class _Cell:
    """A step of a recurrent layer, as ``dynamic_rnn`` takes it; the products with the inputs are made before."""

    def __init__(self, layer: Recurrent) -> None:
        self._layer = layer
        self.output_size = layer.units
        self.state_size = [layer.units] * layer.row.states if layer.row.states > 1 else layer.units

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros."""
        made = [creation.zeros([batch_size, self.output_size], dtype) for _ in range(self._layer.row.states)]
        return made if len(made) > 1 else made[0]

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return self._layer.row.step(self._layer, inputs, state)


def _product(layer: Recurrent, h: Any, first: int = 0, count: int | None = None) -> Any:
    """The product of the state with some of the gates' recurrent kernels."""
    kernel, units = layer.recurrent_kernel, layer.units
    last = None if count is None else (first + count) * units
    return math.matmul(h, convert_to_tensor(kernel)[:, first * units : last])


def _simple(layer: Recurrent, x: Any, h: Any) -> tuple[Any, Any]:
    made = layer.activation(x + _product(layer, h))
    return made, made


def _lstm(layer: Recurrent, x: Any, state: Any) -> tuple[Any, Any]:
    h, c = state
    i, f, g, o = shape_ops.split(x + _product(layer, h), 4, 1)
    gate = layer.recurrent_activation
    c = gate(f) * c + gate(i) * layer.activation(g)
    h = gate(o) * layer.activation(c)
    return h, [h, c]


def _gru(layer: Recurrent, x: Any, h: Any) -> tuple[Any, Any]:
    xz, xr, xh = shape_ops.split(x, 3, 1)
    hz, hr = shape_ops.split(_product(layer, h, 0, 2), 2, 1)
    z, r = layer.recurrent_activation(xz + hz), layer.recurrent_activation(xr + hr)
    candidate = layer.activation(xh + _product(layer, r * h, 2))
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
    "unit_forget_bias=True, kernel_regularizer=None, recurrent_regularizer=None, bias_regularizer=None"
)
_NOT_OFFERED = ("dropout", "recurrent_dropout", "stateful", "reset_after")


class _Gates(TableLayer):
    """The variables of a step: kernels and bias of all gates, side by side."""

    row: _Row
    options = parameters(
        f"{_OF_STEPS}, dropout=0.0, recurrent_dropout=0.0, implementation=1, reset_after=False"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if any(getattr(self, name, None) for name in _NOT_OFFERED):
            what = f"{', '.join(_NOT_OFFERED[:-1])} and {_NOT_OFFERED[-1]} are not offered"
            raise ValueError(f"{type(self).__name__}: {what}. Put a Dropout layer before it.")

    def build(self, input_shape: Any) -> None:
        """Kernels and bias of all gates, side by side."""
        first = input_shape[0] if isinstance(input_shape, list) else input_shape  # states may stand behind
        channels, width = int(first[-1]), self.row.gates * self.units
        shapes = {"kernel": [channels, width], "recurrent_kernel": [self.units, width], "bias": [width]}
        if not self.use_bias:
            del shapes["bias"]
        for name, shape in shapes.items():
            own = name.removesuffix("_kernel")
            first = self._bias_initializer() if name == "bias" else getattr(self, f"{own}_initializer")
            setattr(
                self, name, self.add_weight(name, shape, None, first, getattr(self, f"{own}_regularizer"))
            )

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


class Cell(_Gates):
    """Base of the steps of recurrent layers: ``(output, states) = cell(inputs, states)``, for ``RNN``.

    Not offered, and refused: ``dropout``, ``recurrent_dropout``, ``reset_after``; ``implementation`` changes nothing.
    """

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
        seen = math.matmul(inputs, self.kernel)
        seen = nn.bias_add(seen, self.bias) if self.use_bias else seen
        given = list(states) if isinstance(states, (list, tuple)) else [states]
        output, new = self.row.step(self, seen, given if self.row.states > 1 else given[0])
        return output, new if self.row.states > 1 else [new]


class Recurrent(_Gates):
    """Base of the recurrent layers: inputs (batch, time, channels), the last output or, on demand, all of them.

    Not offered, and refused: ``dropout``, ``recurrent_dropout``, ``stateful``, ``reset_after``. ``implementation`` and
    ``unroll`` change nothing that is computed.
    """

    go_backwards: bool

    options = parameters(
        f"{_OF_STEPS}, return_sequences=False, return_state=False, go_backwards=False, dropout=0.0, "
        "recurrent_dropout=0.0, stateful=False, unroll=False, implementation=1, reset_after=False"
    )

    def call(self, inputs: Any, initial_state: Any = None) -> Any:  # type: ignore[override]
        """The last output or all, with ``return_state`` also the last states."""
        if isinstance(inputs, list):
            inputs, *rest = inputs
            initial_state = initial_state or rest
        x = shape_ops.reverse(inputs, [1]) if self.go_backwards else inputs
        seen = math.tensordot(x, convert_to_tensor(self.kernel), [[2], [0]])
        if self.use_bias:
            seen = nn.bias_add(seen, self.bias)
        start = (
            initial_state[0]
            if isinstance(initial_state, (list, tuple)) and self.row.states == 1
            else initial_state
        )
        outputs, state = dynamic_rnn(_Cell(self), seen, initial_state=start, dtype=seen.dtype)
        states = list(state) if self.row.states > 1 else [state]
        result = outputs if self.return_sequences else states[0]
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

    ``merge_mode`` is "concat", "sum", "mul", "ave", or None for both outputs.
    """

    def __init__(self, layer: Recurrent, merge_mode: str | None = "concat", **options: Any) -> None:
        if merge_mode not in ("concat", "sum", "mul", "ave", None):
            raise ValueError(
                f"Bidirectional: merge_mode {merge_mode!r}. Use 'concat', 'sum', 'mul', 'ave' or None."
            )
        if layer.return_state:
            raise ValueError("Bidirectional: return_state is not offered. Use two layers.")
        options.setdefault("batch_input_shape", layer.batch_input_shape)
        super().__init__(layer, **options)
        self._merge = merge_mode
        self.forward_layer, self.backward_layer = copy.copy(layer), copy.copy(layer)
        self.backward_layer.go_backwards = not layer.go_backwards
        for made, direction in ((self.forward_layer, "forward"), (self.backward_layer, "backward")):
            made.name = f"{direction}_{layer.name}"
            for name in ("_own", "_updates", "_losses", "_calls"):
                setattr(made, name, [])

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer."""
        return {**super().get_config(), "merge_mode": self._merge}

    def call(self, inputs: Any) -> Any:
        ahead, back = self.forward_layer(inputs), self.backward_layer(inputs)
        if self.forward_layer.return_sequences:
            back = shape_ops.reverse(back, [1])
        if self._merge is None:
            return [ahead, back]
        if self._merge == "concat":
            return shape_ops.concat([ahead, back], -1)
        return (
            ahead * back if self._merge == "mul" else (ahead + back) * (0.5 if self._merge == "ave" else 1.0)
        )


class TimeDistributed(Wrapper):
    """A layer applied to each step of a sequence."""

    def call(self, inputs: Any) -> Any:
        sizes = inputs.type_.shape
        counts = [size if size >= 0 else shape_ops.shape(inputs)[axis] for axis, size in enumerate(sizes[:2])]
        made = self.layer(shape_ops.reshape(inputs, [-1, *sizes[2:]]))
        return shape_ops.reshape(made, [*counts, *made.type_.shape[1:]])
