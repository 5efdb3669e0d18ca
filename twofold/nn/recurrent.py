"""Recurrent layers and cells.

The product of the inputs of all steps with their weights is one matrix product; the steps themselves are one
operation (``ops.recurrent``), forward and backward.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.frontend.creation import tensor
from twofold.frontend.options import check_device
from twofold.frontend.sampling import dropout
from twofold.nn import functional, init
from twofold.nn.layers import new_parameter
from twofold.nn.module import Module
from twofold.nn.utils.rnn import PackedSequence
from twofold.ops.base import FUNCTIONS, apply
from twofold.ops.sequence.recurrent import sequence
from twofold.ops.sequence.recurrent_formulas import CELLS
from twofold.runtime.tracing import message

Tensor = _core.Tensor
F: Any = functional


class Steps:
    """How the rows of a layer's input are divided into steps, and where states begin and end."""

    def __init__(self, sizes: numpy.ndarray, packed: bool) -> None:
        self.sizes, self.packed = sizes, packed
        self.batch = int(sizes[0])
        self.starts = numpy.cumsum(sizes) - sizes
        self._packing: dict[bool, tuple[Tensor, ...]] = {}

    def packing(self, reverse: bool) -> tuple[Tensor, ...]:
        """Sizes of the steps, and for each row the row of its state before; nothing where all are equal."""
        if not self.packed:
            return ()
        if reverse not in self._packing:
            rows = int(self.sizes.sum())
            previous = []
            for t, size in enumerate(self.sizes):
                number = numpy.arange(size)
                if not reverse:
                    previous.append(self.starts[t] - self.sizes[t - 1] + self.batch + number if t else number)
                    continue
                later = self.sizes[t + 1] if t + 1 < self.sizes.size else 0
                previous.append(numpy.where(number < later, self.starts[t] + size + number, rows + number))
            self._packing[reverse] = (tensor(self.sizes), tensor(numpy.concatenate(previous)))
        return self._packing[reverse]

    def last(self, states: Tensor, reverse: bool) -> Tensor:
        """The rows of ``states`` at the last step of each sequence."""
        if reverse or not self.packed:
            begin = 0 if reverse else states.shape[0] - self.batch
            return states[begin : begin + self.batch]
        lengths = (self.sizes[:, None] > numpy.arange(self.batch)[None, :]).sum(0)
        return states.index_select(0, tensor(self.starts[lengths - 1] + numpy.arange(self.batch)))


def _projected(
    x: Tensor, bias: Tensor, weights: Sequence[Tensor], states: Sequence[Tensor], reverse: bool, steps: Steps
) -> tuple[Tensor, list[Tensor]]:
    """A layer whose hidden states are projected: step by step, as the projection lies in the way of one."""
    w_hh, w_hr = weights
    kept: dict[int, Tensor] = {}
    ended: list[list[Tensor]] = []
    now: list[Tensor] = []
    order = range(steps.sizes.size)
    for t in reversed(order) if reverse else order:
        size, start = int(steps.sizes[t]), int(steps.starts[t])
        count = now[0].shape[0] if now else 0
        if size > count:
            begun = [first[count:size] for first in states]
            now = [FUNCTIONS["cat"]([*pair]) for pair in zip(now, begun, strict=True)] if now else begun
        elif size < count:
            ended.insert(0, [one[size:] for one in now])
            now = [one[:size] for one in now]
        values = (x[start : start + size], F.linear(now[0], w_hh, bias), now[1])
        h, c = (_projected_step(values, part) for part in (4, 5))
        kept[t] = F.linear(h, w_hr)
        now = [kept[t], c]
    last = [FUNCTIONS["cat"]([now[k], *[pair[k] for pair in ended]]) for k in range(2)]
    return FUNCTIONS["cat"]([kept[t] for t in order]), last


def _projected_step(values: Sequence[Tensor], part: int) -> Tensor:
    # the projected state takes no part in the formula beside its product
    x, s, c = values
    return apply("recurrent_step", x, s, c, c, attrs=("lstm", part))


def _direction(
    name: str, x: Tensor, weights: Sequence[Tensor], states: Sequence[Tensor], reverse: bool, steps: Steps
) -> tuple[Tensor, list[Tensor]]:
    """Outputs of all rows, and the last states, of one direction of one layer."""
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    cell, hidden = CELLS[name], w_hh.shape[0] // CELLS[name].gates
    given = F.linear(x, w_ih, b_ih)
    if cell.states == 1 and cell.gates > 1 and given.dtype is not states[0].dtype:
        given = given.to(
            states[0].dtype
        )  # in an autocast region: the new state is a mean with the one before
    bias = FUNCTIONS["zeros"]((w_hh.shape[0],), dtype=x.dtype) if b_hh is None else b_hh
    if w_hr is not None:
        return _projected(given, bias, (w_hh, w_hr), states, reverse, steps)
    found = sequence(name, given, bias, w_hh, states, reverse, steps.packing(reverse))
    last = steps.last(found, reverse)
    parts = [last[:, k * hidden : (k + 1) * hidden] for k in range(cell.states)]
    return found[:, :hidden] if cell.states > 1 else found, parts


def run_layers(
    name: str,
    rows: Tensor,
    steps: Steps,
    initial: Sequence[Tensor],
    weights: Sequence[Sequence[Any]],
    directions: int,
    dropped: float,
) -> tuple[Tensor, list[Tensor]]:
    """The output of the last layer, and the last states of all, for the weights of each direction of each layer.

    Between layers elements become 0 with the probability ``dropped``.
    """
    last: list[list[Tensor]] = [[] for _ in initial]
    for first in range(0, len(weights), directions):
        outputs = []
        for number in range(first, first + directions):
            states = [one[number] for one in initial]
            out, ends = _direction(name, rows, weights[number], states, number > first, steps)
            outputs.append(out)
            for gathered, end in zip(last, ends, strict=True):
                gathered.append(end)
        rows = FUNCTIONS["cat"](outputs, 1) if len(outputs) > 1 else outputs[0]
        if dropped and first + directions < len(weights):
            rows = dropout(rows, dropped, True)
    return rows, [FUNCTIONS["stack"](ends) for ends in last]


_STEMS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")


class RNNBase(Module):
    """Base of ``RNN``, ``LSTM`` and ``GRU``: layers of one kind of cell, in one or both directions.

    >>> import twofold as torch
    >>> layers = torch.nn.RNNBase("GRU", 3, 4)
    >>> layers.weight_ih_l0.shape, layers.weight_hh_l0.shape
    (twofold.Size([12, 3]), twofold.Size([12, 4]))
    """

    batch_first: bool

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__()
        _check(hidden_size, num_layers, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._name_weights()
        gates, shown = CELLS[mode.lower()].gates * hidden_size, proj_size or hidden_size
        for number, names in enumerate(self._names):
            width = input_size if number < self._directions else shown * self._directions
            sizes = ((gates, width), (gates, shown), (gates,), (gates,), (proj_size, hidden_size))
            for stem, name, size in zip(_STEMS, names, sizes, strict=True):
                if (bias or not stem.startswith("bias")) and (proj_size or stem != "weight_hr"):
                    setattr(self, name, new_parameter(*size, dtype=dtype))
        self.reset_parameters()

    def _name_weights(self) -> None:
        """Name the parameters of each direction of each layer."""
        self._directions = 2 if self.bidirectional else 1
        self._names = [
            tuple(f"{stem}_l{layer}{suffix}" for stem in _STEMS)
            for layer in range(self.num_layers)
            for suffix in ("", "_reverse")[: self._directions]
        ]

    def __setstate__(self, kept: dict[str, Any]) -> None:
        super().__setstate__(kept)
        self._name_weights()

    def reset_parameters(self) -> None:
        """Sample new parameters, evenly from ``[-b, b)`` with ``b = 1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: parameters need no common memory."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each direction of each layer."""
        return [[getattr(self, name) for name in names if hasattr(self, name)] for names in self._names]

    def extra_repr(self) -> str:
        """Sizes and all settings that differ from the defaults."""
        shown = f"{self.input_size}, {self.hidden_size}"
        for name, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            value = getattr(self, name)
            if value != default:
                shown += f", {name}={value}"
        return shown

    def _rows(self, input: Any, states: Any) -> tuple[Tensor, Steps, Any]:
        """The input as rows step by step, and the initial states in the same order."""
        given = input.data if isinstance(input, PackedSequence) else input
        if isinstance(input, PackedSequence):
            if states is not None and input.sorted_indices is not None:
                states = [one.index_select(1, input.sorted_indices) for one in states]
            rows, sizes = input.data, input.batch_sizes.numpy()
            steps = Steps(sizes, True)
        else:
            input = input.transpose(0, 1) if self.batch_first else input
            rows = input.reshape((-1, input.shape[2]))
            steps = Steps(numpy.full(input.shape[0], input.shape[1]), False)
        weight = getattr(self, self._names[0][0])
        if rows.dtype is not weight.dtype and not _core.autocast_state()[0]:
            what = f"RNN input dtype ({rows.dtype!r}) does not match weight dtype ({weight.dtype!r})"
            fix = f"Convert input: input.to({weight.dtype!r}), or convert model: model.to({rows.dtype!r})"
            raise ValueError(message(what, fix, input=given, weight=weight))
        if rows.shape[-1] != self.input_size:
            what = f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {rows.shape[-1]}"
            fix = f"Make its last axis {self.input_size}."
            raise RuntimeError(message(what, fix, input=given, weight=weight))
        return rows, steps, states

    def _initial(self, rows: Tensor, batch: int, states: Any) -> list[Tensor]:
        count = self.num_layers * self._directions
        widths = [self.proj_size or self.hidden_size, self.hidden_size][: CELLS[self.mode.lower()].states]
        if states is None:
            return [FUNCTIONS["zeros"]((count, batch, width), dtype=rows.dtype) for width in widths]
        if len(states) != len(widths):
            what = f"{self.mode}: {len(states)} initial states, expected {len(widths)}"
            raise RuntimeError(message(what, "Give (h, c)." if len(widths) == 2 else "Give one."))
        for k, (state, width) in enumerate(zip(states, widths, strict=True)):
            if tuple(state.shape) != (count, batch, width):
                what = "hidden" if len(widths) == 1 else f"hidden[{k}]"
                found = f"Expected {what} size {(count, batch, width)}, got {list(state.shape)}"
                fix = "Give (layers * directions, batch, size)."
                raise RuntimeError(message(found, fix, **{what: state}))
            if state.dtype is not rows.dtype and not _core.autocast_state()[0]:
                found = f"Expected hidden of {rows.dtype!r}, as the input, got {state.dtype!r}"
                raise RuntimeError(message(found, f"Convert it: hx.to({rows.dtype!r}).", hidden=state))
        return list(states)

    def _layers(self, rows: Tensor, steps: Steps, initial: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """The output of the last layer, and the last states of all."""
        weights = [[getattr(self, name, None) for name in names] for names in self._names]
        dropped = self.dropout if self.training else 0.0
        return run_layers(self.mode.lower(), rows, steps, initial, weights, self._directions, dropped)

    def _run(self, input: Any, states: Any) -> tuple[Any, list[Tensor]]:
        packed = isinstance(input, PackedSequence)
        if not packed and input.ndim not in (2, 3):
            what = f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D instead"
            raise ValueError(message(what, "Give (steps, batch, size), or leave out the batch.", input=input))
        single = not packed and input.ndim == 2
        if states is not None and not packed:
            for one in states:
                if one.ndim != input.ndim:
                    kind = "unbatched 2-D" if single else "batched 3-D"
                    what = f"For {kind} input, hx should also be {input.ndim}-D but got {one.ndim}-D tensor"
                    fix = f"Give (layers * directions, {'size' if single else 'batch, size'})."
                    raise RuntimeError(message(what, fix, input=input, hx=one))
        if single:
            input = input.unsqueeze(0 if self.batch_first else 1)
            states = None if states is None else [one.unsqueeze(1) for one in states]
        if not packed and input.shape[1 if self.batch_first else 0] == 0:
            what = "Expected sequence length to be larger than 0 in RNN"
            raise RuntimeError(message(what, "Give at least one step.", input=input))
        rows, steps, states = self._rows(input, states)
        initial = self._initial(rows, steps.batch, states)
        found, last = self._layers(rows, steps, initial)
        if isinstance(input, PackedSequence):
            if input.unsorted_indices is not None:
                last = [one.index_select(1, input.unsorted_indices) for one in last]
            return PackedSequence(found, *input[1:]), last
        output = found.reshape((-1, steps.batch, found.shape[1]))
        output = output.transpose(0, 1) if self.batch_first else output
        if single:
            return output.squeeze(0 if self.batch_first else 1), [one.squeeze(1) for one in last]
        return output, last


def _check(hidden_size: int, num_layers: int, dropout: float, proj_size: int) -> None:
    """Raise for settings that make no layer, with PyTorch's message."""
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
            f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    if not isinstance(hidden_size, int):
        raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
    for name, value in (("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNN(RNNBase):
    """``h' = tanh(w_ih @ x + b_ih + w_hh @ h + b_hh)`` step by step, or with ``relu``.

    Takes ``(steps, batch, input_size)`` and initial states ``(layers * directions, batch, hidden_size)``;
    returns the outputs of the last layer at all steps and the last states of all layers. Source: Elman,
    Finding Structure in Time, 1990.

    >>> import twofold as torch
    >>> output, h = torch.nn.RNN(3, 4, num_layers=2)(torch.ones(5, 2, 3))
    >>> output.shape, h.shape
    (twofold.Size([5, 2, 4]), twofold.Size([2, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        more = (num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, *more)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Outputs of all steps, and the last states."""
        output, last = self._run(input, None if hx is None else [hx])
        return output, last[0]


class GRU(RNNBase):
    """Gated recurrent units; see ``gru_cell`` for the formula and ``RNN`` for shapes.

    Source: Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014.

    >>> import twofold as torch
    >>> output, h = torch.nn.GRU(3, 4, bidirectional=True)(torch.ones(5, 2, 3))
    >>> output.shape, h.shape
    (twofold.Size([5, 2, 8]), twofold.Size([2, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        more = (num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__("GRU", input_size, hidden_size, *more)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Outputs of all steps, and the last states."""
        output, last = self._run(input, None if hx is None else [hx])
        return output, last[0]


class LSTM(RNNBase):
    """Long short-term memory; see ``lstm_cell`` for the formula and ``RNN`` for shapes.

    With ``proj_size`` hidden states are projected to that size. Takes and returns the states as ``(h, c)``.
    Source: Hochreiter, Schmidhuber, Long Short-Term Memory, 1997; projection: Sak et al. 2014.

    >>> import twofold as torch
    >>> output, (h, c) = torch.nn.LSTM(3, 4, batch_first=True)(torch.ones(2, 5, 3))
    >>> output.shape, c.shape
    (twofold.Size([2, 5, 4]), twofold.Size([1, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        more = (num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype)
        super().__init__("LSTM", input_size, hidden_size, *more)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        """Outputs of all steps, and the last states ``(h, c)``."""
        output, last = self._run(input, hx)
        return output, (last[0], last[1])


class RNNCellBase(Module):
    """Base of the cells: weights for the input and for the state before.

    >>> import twofold as torch
    >>> torch.nn.RNNCellBase(3, 4, bias=True, num_chunks=2).weight_ih.shape
    twofold.Size([8, 3])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        self.weight_ih = new_parameter(num_chunks * hidden_size, input_size, dtype=dtype)
        self.weight_hh = new_parameter(num_chunks * hidden_size, hidden_size, dtype=dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(
                name, new_parameter(num_chunks * hidden_size, dtype=dtype) if bias else None
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sample new parameters, evenly from ``[-b, b)`` with ``b = 1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        """Sizes, bias and nonlinearity."""
        shown = f"{self.input_size}, {self.hidden_size}"
        shown += "" if self.bias else ", bias=False"
        kind = getattr(self, "nonlinearity", "tanh")
        return shown + (f", nonlinearity={kind}" if kind != "tanh" else "")

    def _step(self, function: Any, input: Tensor, states: Sequence[Tensor] | None, count: int) -> Any:
        """One step, also of a single vector, from zeros where no state is given."""
        name = type(self).__name__
        if input.ndim not in (1, 2):
            what = f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead"
            raise ValueError(message(what, "Give (batch, size), or leave out the batch.", input=input))
        if states is None:
            shape = (*input.shape[:-1], self.hidden_size)
            states = [FUNCTIONS["zeros"](shape, dtype=input.dtype)] * count
        for one in states:
            if one.ndim not in (1, 2):
                what = f"{name}: Expected hidden to be 1D or 2D, got {one.ndim}D instead"
                raise ValueError(message(what, "Give (batch, size), or leave out the batch.", hidden=one))
        hidden = tuple(states) if count > 1 else states[0]
        return function(input, hidden, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class RNNCell(RNNCellBase):
    """One step of ``RNN``.

    >>> import twofold as torch
    >>> torch.nn.RNNCell(3, 4)(torch.ones(2, 3)).shape
    twofold.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The new state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        step = getattr(F, f"rnn_{self.nonlinearity}_cell")
        return self._step(step, input, None if hx is None else [hx], 1)


class LSTMCell(RNNCellBase):
    """One step of ``LSTM``; takes and returns ``(h, c)``.

    >>> import twofold as torch
    >>> h, c = torch.nn.LSTMCell(3, 4)(torch.ones(2, 3))
    >>> h.shape
    twofold.Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        """The new states ``(h, c)``."""
        h, c = self._step(F.lstm_cell, input, hx, 2)
        return h, c


class GRUCell(RNNCellBase):
    """One step of ``GRU``.

    >>> import twofold as torch
    >>> torch.nn.GRUCell(3, 4)(torch.ones(2, 3)).shape
    twofold.Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The new state."""
        return self._step(F.gru_cell, input, None if hx is None else [hx], 1)
