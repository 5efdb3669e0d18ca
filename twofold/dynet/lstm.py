"""LSTM builders: with gates of their own, with coupled gates, over two directions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dynet.expression import Expression
from twofold.dynet.recurrent import RNNState, Weights, _RNNBuilder
from twofold.dynet.shapes import concatenate
from twofold.frontend.sampling import RANDOM_FUNCTIONS
from twofold.ir.op import REGISTRY

_record = _core.record
_FIRST_MEMORY, _MEMORY, _OUTPUT = (
    REGISTRY[name] for name in ("lstm_first_memory", "lstm_memory", "lstm_output")
)


def _normal(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred * centred).mean(-1, keepdim=True).sqrt() * gain + bias


class VanillaLSTMBuilder(_RNNBuilder):
    """An LSTM whose rows of weights are those of the input, forget and output gates and of the new cell.

    ``c = sigmoid(f + forget_bias) * c + sigmoid(i) * tanh(g)`` and ``h = sigmoid(o) * tanh(c)``; with ``ln_lstm`` the
    products with the input, with the output that comes back, and the cell are normalised.
    Source: Hochreiter, Schmidhuber, Long Short-Term Memory, 1997.

    >>> import twofold.dynet as dy
    >>> builder = dy.VanillaLSTMBuilder(1, 2, 3, dy.Model())
    >>> [p.shape() for p in builder.get_parameters()[0]]
    [(12, 2), (12, 3), (12,)]
    """

    _name = "vanilla-lstm-builder"
    _cells = 1

    def __init__(
        self,
        layers: int,
        input_dim: int,
        hidden_dim: int,
        model: Any,
        ln_lstm: bool = False,
        forget_bias: float = 1.0,
    ) -> None:
        self._normalized, self._bias, self._model = bool(ln_lstm), float(forget_bias), model
        self._norms: list[list[Any]] = []
        super().__init__(layers, input_dim, hidden_dim, model, ln_lstm, forget_bias)

    def _layer(self, x: int, h: int) -> list[Any]:
        made = [self._add(4 * h, x), self._add(4 * h, h), self._add(4 * h, 0)]
        sizes = [(4 * h, 1), (4 * h, 0)] * 2 + [(h, 1), (h, 0)] if self._normalized else []
        self._norms.append([self._model.add_parameters(size, init=value) for size, value in sizes])
        return made

    def _all_params(self) -> list[list[Any]]:
        return [params + norms for params, norms in zip(self._params, self._norms)]

    def set_dropouts(self, d: float, d_r: float) -> None:
        """Set the rates of dropout of inputs and of outputs that come back."""
        self._set_rates(d, d_r, 0.0)

    def _cell(self, layer: int, w: Weights, x: Any, h: Any, c: Any, masks: Any) -> tuple[Any, ...]:
        if masks:
            x = x * masks[0]
            h = h if h is None else h * masks[1]
        if self._normalized:
            gates = w[2] + _normal(x @ w[0], w[5], w[6])
            if h is not None:
                gates = gates + _normal(h @ w[1], w[3], w[4])
        else:
            return self._plain_cell(w, x @ w[0], h, c)
        new = self._memory(gates, c)
        return _record(_OUTPUT, (), (gates, _normal(new, w[7], w[8]))), new

    def _memory(self, gates: Any, c: Any) -> Any:
        return (
            _record(_FIRST_MEMORY, (), (gates,)) if c is None else _record(_MEMORY, (self._bias,), (gates, c))
        )

    def _plain_cell(self, w: Weights, product: Any, h: Any, c: Any) -> tuple[Any, Any]:
        gates = (product if h is None else product + h @ w[1]) + w[2]
        new = self._memory(gates, c)
        return _record(_OUTPUT, (), (gates, new)), new

    def _layer_through(self, layer: int, w: Weights, h: Any, c: Any, inputs: list[Any]) -> list[Any]:
        if self._normalized or type(self)._cell is not VanillaLSTMBuilder._cell:
            return super()._layer_through(layer, w, h, c, inputs)
        outputs = []
        for product in [x @ w[0] for x in inputs]:  # no product of an input waits for the output before
            h, c = self._plain_cell(w, product, h, c)
            outputs.append(h)
        return outputs


LSTMBuilder = VanillaLSTMBuilder


class CompactVanillaLSTMBuilder(VanillaLSTMBuilder):
    """The same LSTM, with noise on its weights if ``set_weightnoise`` asks for it."""

    _name = "compact-vanilla-lstm-builder"

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: Any) -> None:
        super().__init__(layers, input_dim, hidden_dim, model)
        self._spec = self._spec[:3]
        self._noise = 0.0

    def set_weightnoise(self, std: float) -> None:
        """Add normally distributed noise to the weights, other for each input."""
        self._noise = float(std)

    def _cell(self, layer: int, w: Weights, x: Any, h: Any, c: Any, masks: Any) -> tuple[Any, ...]:
        if self._noise:
            w = [one + RANDOM_FUNCTIONS["randn"](*one.shape) * self._noise for one in w]
        return super()._cell(layer, w, x, h, c, masks)


class SparseLSTMBuilder(VanillaLSTMBuilder):
    """The same LSTM with masks of its weights: ``set_sparsity`` removes the smallest weights."""

    def _layer(self, x: int, h: int) -> list[Any]:
        add = self._collection.add_parameters
        made = [self._add(4 * h, x), self._add(4 * h, h)]
        masks = [add((4 * h, x), init=1), add((4 * h, h), init=1)]
        for mask in masks:
            mask.set_updated(False)
        self._norms.append([])
        return [*made, self._add(4 * h, 0), *masks]

    def set_sparsity(self, sparsity: float) -> None:
        """Remove this share of all weights, the smallest ones."""
        weights = [(layer[position], layer[position + 3]) for layer in self._params for position in (0, 1)]
        sizes = numpy.concatenate([numpy.abs(w.as_array() * m.as_array()).ravel() for w, m in weights])
        removed = int(sparsity * sizes.size)
        kept = numpy.ones(sizes.size, numpy.float32)
        kept[numpy.argsort(sizes, kind="stable")[:removed]] = 0
        start = 0
        for _, mask in weights:
            shape = mask.shape()
            size = int(numpy.prod(shape))
            mask.set_value(kept[start : start + size].reshape(shape))
            start += size

    def _cell(self, layer: int, w: Weights, x: Any, h: Any, c: Any, masks: Any) -> tuple[Any, ...]:
        return super()._cell(layer, [w[0] * w[3].detach(), w[1] * w[4].detach(), w[2]], x, h, c, masks)


class CoupledLSTMBuilder(_RNNBuilder):
    """An LSTM whose forget gate is one minus its input gate, and whose gates see the cell.

    Source: Greff et al., LSTM: A Search Space Odyssey, 2017.

    >>> import twofold.dynet as dy
    >>> len(dy.CoupledLSTMBuilder(1, 2, 3, dy.Model()).get_parameters()[0])
    11
    """

    _name = "lstm-builder"
    _cells = 1
    _rates_of = 3

    def _layer(self, x: int, h: int) -> list[Any]:
        gates = [self._add(h, size) for _ in range(2) for size in (x, h, h, 0)]
        return [*gates, self._add(h, x), self._add(h, h), self._add(h, 0)]

    def set_dropouts(self, d: float, d_h: float, d_c: float) -> None:
        """Set the rates of dropout of inputs, of outputs that come back, and of cells that gates see."""
        self._set_rates(d, d_h, d_c)

    def _cell(self, layer: int, w: Weights, x: Any, h: Any, c: Any, masks: Any) -> tuple[Any, ...]:
        if masks:
            x = x * masks[0]
            h = h if h is None else h * masks[1]
        gate, new = x @ w[0] + w[3], x @ w[8] + w[10]
        if h is not None:
            gate = gate + h @ w[1] + (c * masks[2] if masks else c) @ w[2]
            new = new + h @ w[9]
        gate = gate.sigmoid()
        cell = gate * new.tanh()
        if c is not None:
            cell = (1 - gate) * c + cell
        shown = x @ w[4] + (cell * masks[2] if masks else cell) @ w[6] + w[7]
        if h is not None:
            shown = shown + h @ w[5]
        return shown.sigmoid() * cell.tanh(), cell


class FastLSTMBuilder(_RNNBuilder):
    """An LSTM whose forget gate is one minus its input gate; only the output gate sees the cell, element by element."""

    _name = "fast-lstm-builder"
    _cells = 1

    def _layer(self, x: int, h: int) -> list[Any]:
        gates = [self._add(h, size) for _ in range(2) for size in (x, h, 1, 0)]
        return [*gates, self._add(h, x), self._add(h, h), self._add(h, 0)]

    def set_dropout(self, f: float) -> None:
        """Refused: this builder has no dropout."""
        if f:
            raise ValueError("FastLSTMBuilder has no dropout. Use VanillaLSTMBuilder.")

    def _cell(self, layer: int, w: Weights, x: Any, h: Any, c: Any, masks: Any) -> tuple[Any, ...]:
        gate, new, shown = x @ w[0] + w[3], x @ w[8] + w[10], x @ w[4] + w[7]
        if h is not None:
            gate, new, shown = gate + h @ w[1], new + h @ w[9], shown + h @ w[5]
        gate = gate.sigmoid()
        cell = gate * new.tanh()
        if c is not None:
            cell = (1 - gate) * c + cell
        return shown.sigmoid() * cell.tanh(), cell


class BiRNNBuilder:
    """Layers of two networks each, one over the inputs forward and one backward; their outputs are concatenated.

    Args:
        num_layers: How many layers.
        input_dim: The size of an input.
        hidden_dim: The size of both outputs together.
        model: The collection that gets the parameters.
        rnn_builder_factory: The class of the networks.
        builder_layers: Pairs of builders that are there already.

    >>> import twofold.dynet as dy
    >>> builder = dy.BiRNNBuilder(1, 2, 6, dy.Model(), dy.LSTMBuilder)
    >>> [y.dim() for y in builder.transduce([dy.inputVector([1, 2])] * 2)]
    [((6,), 1), ((6,), 1)]
    """

    def __init__(
        self,
        num_layers: int,
        input_dim: int,
        hidden_dim: int,
        model: Any,
        rnn_builder_factory: Any,
        builder_layers: Sequence[tuple[Any, Any]] | None = None,
    ) -> None:
        self.spec = num_layers, input_dim, hidden_dim, rnn_builder_factory, builder_layers
        self.model = model.add_subcollection("birnn")
        if builder_layers is not None:
            self.builder_layers = list(builder_layers)
            return
        if num_layers < 1 or hidden_dim % 2:
            raise ValueError(
                f"BiRNNBuilder: {num_layers} layers of {hidden_dim}; use 1 or more, and an even size"
            )
        self.builder_layers = []
        for layer in range(num_layers):
            size = hidden_dim if layer else input_dim
            pair = [rnn_builder_factory(1, size, hidden_dim // 2, self.model) for _ in range(2)]
            self.builder_layers.append((pair[0], pair[1]))

    @classmethod
    def from_spec(cls, spec: Any, model: Any) -> BiRNNBuilder:
        """A builder with the sizes of another's ``spec``."""
        num_layers, input_dim, hidden_dim, factory, builder_layers = spec
        return cls(num_layers, input_dim, hidden_dim, model, factory, builder_layers)

    def param_collection(self) -> Any:
        """The collection of the parameters."""
        return self.model

    def whoami(self) -> str:
        """The name of the class."""
        return "BiRNNBuilder"

    def set_dropout(self, p: float) -> None:
        """Set the rate of dropout of all networks."""
        for forward, backward in self.builder_layers:
            forward.set_dropout(p)
            backward.set_dropout(p)

    def disable_dropout(self) -> None:
        """Use no dropout."""
        for forward, backward in self.builder_layers:
            forward.disable_dropout()
            backward.disable_dropout()

    def _through(self, layers: Any, es: Iterable[Expression]) -> list[Expression]:
        inputs = list(es)
        for forward, backward in layers:
            ahead = forward.initial_state().transduce(inputs)
            back = backward.initial_state().transduce(reversed(inputs))
            inputs = [concatenate([f, b]) for f, b in zip(ahead, reversed(back))]
        return inputs

    def transduce(self, es: Iterable[Expression]) -> list[Expression]:
        """The outputs for each of several inputs."""
        return self._through(self.builder_layers, es)

    def add_inputs(self, es: Iterable[Expression]) -> list[tuple[RNNState, RNNState]]:
        """The states of both networks of the last layer for each of several inputs."""
        inputs = self._through(self.builder_layers[:-1], es)
        forward, backward = self.builder_layers[-1]
        ahead = forward.initial_state().add_inputs(inputs)
        back = backward.initial_state().add_inputs(reversed(inputs))
        return list(zip(ahead, reversed(back)))
