"""Recurrent layers as functions of their weights: ``torch.lstm``, ``gru``, ``rnn_tanh`` and ``rnn_relu``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.nn.recurrent import Steps, run_layers

Tensor = _core.Tensor


def _weights(
    params: Sequence[Tensor], has_biases: bool, projected: bool, count: int
) -> list[list[Tensor | None]]:
    """The parameters of each direction of each layer: two weights, two biases and the projection, or None."""
    each = 2 + 2 * bool(has_biases) + projected
    if len(params) != each * count:
        raise RuntimeError(
            f"{len(params)} parameters for {count} layers and directions. Give {each} for each of them."
        )
    found: list[list[Tensor | None]] = []
    for first in range(0, len(params), each):
        given = list(params[first : first + each])
        biases = given[2:4] if has_biases else [None, None]
        found.append([*given[:2], *biases, given[-1] if projected else None])
    return found


def _tensors(name: str, values: Any) -> list[Tensor]:
    found = list(values) if isinstance(values, (list, tuple)) else [values]
    for one in found:
        if not isinstance(one, Tensor):
            raise TypeError(
                f"{name}: {type(one).__name__} where a tensor is needed. Give tensors, and lists of them."
            )
    return found


def _run(name: str, arguments: Sequence[Any]) -> tuple[Tensor, list[Tensor]]:
    """The output and the last states, from the arguments of either form."""
    input, sizes = arguments[:2]
    packed = isinstance(arguments[3], (list, tuple))
    hx, params, has_biases, num_layers, dropout, train, bidirectional = arguments[packed + 1 : packed + 8]
    batch_first = bool(arguments[8]) and not packed
    if not isinstance(num_layers, int):
        raise TypeError(f"{name}: {type(num_layers).__name__} as num_layers. Give a whole number.")
    _tensors(name, input)
    states, params = _tensors(name, hx), _tensors(name, params)
    directions = 2 if bidirectional else 1
    projected = len(states) > 1 and states[0].shape[-1] != states[1].shape[-1]
    weights = _weights(params, has_biases, projected, num_layers * directions)
    if packed:
        steps, rows = Steps(sizes.numpy(), True), input
    else:
        input = input.transpose(0, 1) if batch_first else input
        steps = Steps(numpy.full(input.shape[0], input.shape[1]), False)
        rows = input.reshape((-1, input.shape[2]))
    dropped = float(dropout) if train else 0.0
    output, last = run_layers(name, rows, steps, states, weights, directions, dropped)
    if not packed:
        output = output.reshape((-1, steps.batch, output.shape[1]))
    return output.transpose(0, 1) if batch_first else output, last


def lstm(
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Layers of ``nn.LSTM`` with the given parameters; or ``lstm(data, batch_sizes, hx, params, ..., bidirectional)``.

    Args:
        input: ``(steps, batch, size)``, with ``batch_first`` ``(batch, steps, size)``; the data of a packed sequence.
        hx: The initial hidden and cell states, each ``(layers * directions, batch, size)``.
        params: For each direction of each layer its weights for inputs and states, with ``has_biases`` two biases,
            and the projection where hidden states are of another size than cell states.
        has_biases: Whether there are biases.
        num_layers: How many layers there are.
        dropout: The probability with which outputs between layers become 0 while ``train``.
        train: Whether ``dropout`` is applied.
        bidirectional: Whether each layer has two directions.
        batch_first: Whether the first axis of the input is the batch.

    Returns:
        The output, the last hidden and the last cell states.

    Raises:
        RuntimeError: For another number of parameters.

    >>> import twofold as torch
    >>> layer = torch.nn.LSTM(2, 3)
    >>> x, h = torch.ones(4, 1, 2), torch.zeros(1, 1, 3)
    >>> output, _, _ = torch.lstm(x, (h, h), layer.all_weights[0], True, 1, 0.0, False, False, False)
    >>> torch.equal(output, layer(x)[0])
    True
    """
    given = (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    output, (hidden, cell) = _run("lstm", given)
    return output, hidden, cell


def _of_one_state(name: str, layer: str) -> Callable[..., tuple[Tensor, Tensor]]:
    def layers(
        input: Tensor,
        hx: Tensor,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool = False,
    ) -> tuple[Tensor, Tensor]:
        given = (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
        output, (hidden,) = _run(name, given)
        return output, hidden

    layers.__name__ = layers.__qualname__ = name
    layers.__doc__ = f"""Layers of ``nn.{layer}`` with the given parameters, as ``lstm``: output and last states.

    >>> import twofold as torch
    >>> layer = torch.nn.{layer}
    >>> x, h = torch.ones(4, 1, 2), torch.zeros(1, 1, 3)
    >>> output, _ = torch.{name}(x, h, layer.all_weights[0], True, 1, 0.0, False, False, False)
    >>> torch.equal(output, layer(x)[0])
    True
    """
    return layers


gru = _of_one_state("gru", "GRU(2, 3)")
rnn_tanh = _of_one_state("rnn_tanh", "RNN(2, 3)")
rnn_relu = _of_one_state("rnn_relu", "RNN(2, 3, nonlinearity='relu')")
