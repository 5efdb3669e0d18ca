"""States of recurrent networks, the base of their builders, and the simple and gated builders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from twofold.dynet.expression import Expression
from twofold.dynet.graph import operation, state
from twofold.dynet.inputs import inputTensor
from twofold.dynet.noise import bernoulli
from twofold.errors import ShapeError
from twofold.frontend.creation import CREATION

Weights = Sequence[Any]
"""The stored tensors of the parameters of a layer."""


class RNNState:
    """A state of a network; adding an input gives another and leaves this one as it is.

    >>> import twofold.dynet as dy
    >>> builder = dy.SimpleRNNBuilder(1, 2, 3, dy.Model())
    >>> first = builder.initial_state().add_input(dy.inputVector([1, 2]))
    >>> len(first.output().value()), first.prev().output()
    (3, None)
    """

    __slots__ = ("_builder", "_out", "_prev", "_state", "_weights")

    def __init__(self, builder: _RNNBuilder, weights: Any, given: Any, prev: RNNState | None) -> None:
        self._builder, self._weights, self._state, self._prev = builder, weights, given, prev
        self._out = given[-1] if given else None

    def add_input(self, x: Expression) -> RNNState:
        """The state after one more input."""
        builder = self._builder
        try:
            made = builder._step(x, self._state, self._weights)
        except ShapeError as error:
            builder._check_input(x)
            raise error
        new = RNNState(builder, self._weights, made, self)
        if builder._output_rate:
            new._out = builder._dropped_output(made[-1])
        return new

    def add_inputs(self, xs: Iterable[Expression]) -> list[RNNState]:
        """The states after each of several inputs."""
        states, current = [], self
        for x in xs:
            current = current.add_input(x)
            states.append(current)
        return states

    def transduce(self, xs: Iterable[Expression]) -> list[Expression]:
        """The outputs after each of several inputs."""
        xs, builder = xs if isinstance(xs, list) else list(xs), self._builder
        if state.watcher is None and not (any(builder._rates) or builder._output_rate):
            inputs = [x._tensor for x in xs if x._batch == 1 and x._tensor.ndim]
            if len(inputs) == len(xs) and all(one._batch == 1 for one in self._state or ()):
                try:
                    return [Expression(one) for one in builder._through(self._weights, self._state, inputs)]
                except ShapeError as error:
                    for x in xs:
                        builder._check_input(x)
                    raise error
        outputs, current = [], self
        for x in xs:
            current = current.add_input(x)
            outputs.append(current._out)
        return outputs  # type: ignore[return-value]

    def output(self) -> Expression | None:
        """The output of the last layer; None before the first input."""
        return self._out

    def h(self) -> tuple[Expression, ...]:
        """The output of each layer."""
        return self._state[-self._builder._layers :] if self._state else ()

    def s(self) -> tuple[Expression, ...]:
        """Everything that the next state depends on: of an LSTM the cells of all layers, then their outputs."""
        return self._state or ()

    def prev(self) -> RNNState | None:
        """The state before."""
        return self._prev

    def b(self) -> _RNNBuilder:
        """The builder."""
        return self._builder

    def set_h(self, es: Sequence[Expression] | None = None) -> RNNState:
        """A state with other outputs of the layers, and the cells of this one."""
        if not es:
            return RNNState(self._builder, self._weights, None, self)
        count = self._builder._layers
        if len(es) != count:
            raise ValueError(f"set_h: {len(es)} expressions for {count} layers")
        self._builder._check_states("set_h", es)
        cells = self._state[:-count] if self._state else self._builder._zeros()
        return RNNState(self._builder, self._weights, (*cells, *es), self)

    def set_s(self, es: Sequence[Expression] | None = None) -> RNNState:
        """A state with other values of ``s``, or of an LSTM with other cells alone."""
        if not es:
            return RNNState(self._builder, self._weights, None, self)
        builder, es = self._builder, tuple(es)
        builder._check_states("set_s", es)
        count = builder._layers
        if len(es) == count and builder._cells:
            es += self._state[-count:] if self._state else builder._zeros()
        if len(es) != count * (1 + builder._cells):
            raise ValueError(f"set_s: {len(es)} expressions for {count} layers of {builder.whoami()}")
        return RNNState(builder, self._weights, es, self)


class _RNNBuilder:
    """Base of the builders: layers of parameters and one step of them.

    A subclass names its parameters by ``_shapes`` and computes a layer by ``_cell``.
    """

    _name = ""
    _cells = 0
    """1 where a layer has a cell beside its output."""
    _rates_of = 2
    """How many masks variational dropout has: of input, output and cell."""

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: Any, *options: Any) -> None:
        self._spec = (int(layers), int(input_dim), int(hidden_dim), *options)
        self._layers, self._hidden = int(layers), int(hidden_dim)
        self._input = int(input_dim)
        self._collection = model.add_subcollection(self._name)
        self._params: list[list[Any]] = []
        for layer in range(self._layers):
            sizes = {"x": self._input if layer == 0 else self._hidden, "h": self._hidden}
            self._params.append(self._layer(sizes["x"], sizes["h"]))
        self._rates = (0.0, 0.0, 0.0)
        self._output_rate = 0.0
        self._masks: list[list[Any]] | None = None
        self._start: dict[bool, RNNState] = {}

    def _layer(self, x: int, h: int) -> list[Any]:
        raise NotImplementedError(f"{type(self).__name__} must define _layer")

    def _add(self, rows: int, columns: int) -> Any:
        return self._collection.add_parameters(
            (rows, columns) if columns else rows, init=None if columns else 0
        )

    @classmethod
    def from_spec(cls, spec: Any, model: Any) -> _RNNBuilder:
        """A builder with the sizes of another's ``spec``."""
        layers, input_dim, hidden_dim, *options = spec
        return cls(layers, input_dim, hidden_dim, model, *options)

    @property
    def spec(self) -> tuple[Any, ...]:
        """The sizes, from which ``from_spec`` makes another."""
        return self._spec

    def whoami(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def param_collection(self) -> Any:
        """The collection of the parameters."""
        return self._collection

    def get_parameters(self) -> list[list[Any]]:
        """The parameters of each layer."""
        return [list(layer) for layer in self._params]

    def get_parameter_expressions(self) -> list[list[Any]]:
        """The parameters of each layer as expressions of the current graph.

        Raises ValueError before ``initial_state`` of this graph.
        """
        if not self._start:
            raise ValueError("get_parameter_expressions: call initial_state() in this graph first")
        return self.get_parameters()

    def _check_input(self, x: Expression) -> None:
        """Raise ShapeError unless an input has the size that the builder was made for."""
        found, wanted = x.dim()[0], self._input
        if found != (wanted,):
            what = f"add_input: an input of dimensions {found} ({x._tensor._where}) for a {self.whoami()} that takes "
            raise ShapeError(
                f"{what}({wanted},)", f"Give inputs of {wanted} numbers, or the builder another input_dim."
            )

    def _check_states(self, function: str, es: Sequence[Expression]) -> None:
        """Raise ShapeError unless each state has the size of a layer."""
        for one in es:
            if one.dim()[0] != (self._hidden,):
                raise ShapeError(
                    f"{function}: a state of dimensions {one.dim()[0]} ({one._tensor._where}) for layers of "
                    f"({self._hidden},)",
                    f"Give states of {self._hidden} numbers, or the builder another hidden_dim.",
                )

    def _forget(self) -> None:
        """Drop what belongs to a graph."""
        self._start, self._masks = {}, None

    def initial_state(self, vecs: Sequence[Expression] | None = None, update: bool = True) -> RNNState:
        """The state before the first input.

        Args:
            vecs: The values of ``s``; without them nothing flows from before the first input.
            update: Whether gradients flow into the parameters.
        """
        start = self._start.get(update)
        if start is None:
            if not self._start:
                state.dependents.append(self)
            weights = [
                [p._tensor if update else p._tensor.detach() for p in layer] for layer in self._all_params()
            ]
            start = self._start[update] = RNNState(self, weights, None, None)
        return start if vecs is None else start.set_s(vecs)

    def _all_params(self) -> list[list[Any]]:
        return self._params

    def initial_state_from_raw_vectors(self, vecs: Sequence[Any], update: bool = True) -> RNNState:
        """``initial_state`` with arrays."""
        return self.initial_state([inputTensor(v) for v in vecs], update)

    def set_dropout(self, f: float) -> None:
        """Set one rate of variational dropout: masks are the same for all inputs of a graph."""
        self._set_rates(f, f, f)

    def disable_dropout(self) -> None:
        """Use no dropout."""
        self._set_rates(0.0, 0.0, 0.0)

    def _set_rates(self, *rates: float) -> None:
        if not all(0 <= rate <= 1 for rate in rates):
            raise ValueError(f"a rate of dropout lies between 0 and 1; these are {rates}")
        self._rates, self._masks = (rates[0], rates[1], rates[2]), None

    def set_dropout_masks(self, batch_size: int = 1) -> None:
        """Sample the masks now, other ones for each element of a batch."""
        self._masks = []
        for layer in range(self._layers):
            sizes = (self._input if layer == 0 else self._hidden, self._hidden, self._hidden)
            self._masks.append([])
            for size, rate in zip(sizes[: self._rates_of], self._rates):
                shape = (batch_size, size) if batch_size != 1 else (size,)
                self._masks[-1].append(bernoulli(shape, 1 - rate, 1 / (1 - rate) if rate < 1 else 0.0))

    def _through(self, weights: Any, before: Any, inputs: list[Any]) -> list[Any]:
        """The outputs for the stored tensors of all inputs, layer by layer, without dropout."""
        for layer, w in enumerate(weights):
            h, c = None, None
            if before is not None:
                h, c = before[layer - self._layers]._tensor, before[layer]._tensor
            inputs = self._layer_through(layer, w, h, c, inputs)
        return inputs

    def _layer_through(self, layer: int, w: Weights, h: Any, c: Any, inputs: list[Any]) -> list[Any]:
        outputs = []
        for x in inputs:
            made = self._cell(layer, w, x, h, c, None)
            h, c = made[0], made[-1]
            outputs.append(h)
        return outputs

    def _zeros(self) -> tuple[Expression, ...]:
        return tuple(Expression(CREATION["zeros"](self._hidden)) for _ in range(self._layers))

    def _dropped_output(self, h: Expression) -> Expression:
        raise NotImplementedError(f"{type(self).__name__} has no dropout of its output")

    def _step(self, x: Expression, before: Any, weights: Any) -> tuple[Expression, ...]:
        """All values of ``s`` after an input."""
        return _stepped(self, x, before, weights)

    def _cell(self, layer: int, w: Weights, x: Any, h: Any, c: Any, masks: Any) -> tuple[Any, ...]:
        """The output of a layer, and its cell if it has one, from stored tensors."""
        raise NotImplementedError(f"{type(self).__name__} must define _cell")


@operation
def _stepped(builder: _RNNBuilder, x: Expression, before: Any, weights: Any) -> tuple[Expression, ...]:
    count, batch = builder._layers, x._batch
    if any(builder._rates) and builder._masks is None:
        builder.set_dropout_masks(batch)
    masks = builder._masks
    value, cells, outputs = x._tensor, [], []
    if value.ndim == 0:
        value = value.reshape(1)
    for layer in range(count):
        h = c = None
        if before is not None:
            last = before[layer - count]
            h, batch = last._tensor, max(batch, last._batch)
            if builder._cells:
                cell = before[layer]
                c, batch = cell._tensor, max(batch, cell._batch)
        made = builder._cell(layer, weights[layer], value, h, c, masks[layer] if masks else None)
        value = made[0]
        outputs.append(Expression(value, batch))
        if builder._cells:
            cells.append(Expression(made[1], batch))
    return (*cells, *outputs)


class SimpleRNNBuilder(_RNNBuilder):
    """``h = tanh(Wx * x + Wh * h + b)``.

    >>> import twofold.dynet as dy
    >>> builder = dy.SimpleRNNBuilder(1, 2, 3, dy.Model())
    >>> [p.shape() for p in builder.get_parameters()[0]]
    [(3, 2), (3, 3), (3,)]
    """

    _name = "simple-rnn-builder"

    def _layer(self, x: int, h: int) -> list[Any]:
        return [self._add(h, x), self._add(h, h), self._add(h, 0)]

    def set_dropouts(self, d: float, d_h: float) -> None:
        """Set the rates of dropout of inputs and of outputs that come back."""
        self._set_rates(d, d_h, 0.0)

    def _cell(self, layer: int, w: Weights, x: Any, h: Any, c: Any, masks: Any) -> tuple[Any, ...]:
        if masks:
            x = x * masks[0]
        total = x @ w[0] + w[2]
        if h is not None:
            total = total + (h * masks[1] if masks else h) @ w[1]
        return (total.tanh(),)


class GRUBuilder(_RNNBuilder):
    """Gated recurrent units: ``h = (1 - z) * h + z * tanh(Wx * x + Wh * (r * h) + b)`` with gates ``z`` and ``r``.

    Dropout is of inputs and outputs, other for each input.
    Source: Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014.

    >>> import twofold.dynet as dy
    >>> len(dy.GRUBuilder(2, 4, 3, dy.Model()).get_parameters()[1])
    9
    """

    _name = "gru-builder"

    def _layer(self, x: int, h: int) -> list[Any]:
        return [self._add(h, size) for _ in range(3) for size in (x, h, 0)]

    def set_dropout(self, f: float) -> None:
        """Set the rate of dropout of inputs and outputs."""
        if not 0 <= f <= 1:
            raise ValueError(f"a rate of dropout lies between 0 and 1; this is {f}")
        self._output_rate = f

    def disable_dropout(self) -> None:
        """Use no dropout."""
        self._output_rate = 0.0

    def _mask(self, value: Any) -> Any:
        rate = self._output_rate
        return value * bernoulli(value.shape, 1 - rate, 1 / (1 - rate) if rate < 1 else 0.0)

    def _dropped_output(self, h: Expression) -> Expression:
        return Expression(self._mask(h._tensor), h._batch)

    def _cell(self, layer: int, w: Weights, x: Any, h: Any, c: Any, masks: Any) -> tuple[Any, ...]:
        if self._output_rate:
            x = self._mask(x)
        if h is None:
            z = (x @ w[0] + w[2]).sigmoid()
            return (z * (x @ w[6] + w[8]).tanh(),)
        z = (x @ w[0] + h @ w[1] + w[2]).sigmoid()
        r = (x @ w[3] + h @ w[4] + w[5]).sigmoid()
        new = (x @ w[6] + (r * h) @ w[7] + w[8]).tanh()
        return ((1 - z) * h + z * new,)


class StackedRNNState:
    """States of builders of which each takes the output of the one before."""

    def __init__(self, states: Sequence[Any], prev: StackedRNNState | None = None) -> None:
        self.states, self._prev = list(states), prev

    def add_input(self, x: Expression) -> StackedRNNState:
        """The states after one more input."""
        states = []
        for one in self.states:
            states.append(one.add_input(x))
            x = states[-1].output()
        return StackedRNNState(states, self)

    def add_inputs(self, xs: Iterable[Expression]) -> list[StackedRNNState]:
        """The states after each of several inputs."""
        states, current = [], self
        for x in xs:
            current = current.add_input(x)
            states.append(current)
        return states

    def output(self) -> Expression | None:
        """The output of the last builder."""
        return self.states[-1].output()

    def prev(self) -> StackedRNNState | None:
        """The states before."""
        return self._prev

    def h(self) -> list[tuple[Expression, ...]]:
        """The outputs of each builder's layers."""
        return [one.h() for one in self.states]

    def s(self) -> list[tuple[Expression, ...]]:
        """What the next states depend on, for each builder."""
        return [one.s() for one in self.states]
