"""Recurrent layers against loops of NumPy, packed sequences, and layers by their parts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import nn
from twofold.nn.utils import rnn

G = numpy.random.default_rng(3)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + numpy.exp(-x))


def step(kind: str, x: Any, s: Any, states: list[Any]) -> list[Any]:
    """The new states of one row."""
    if kind == "RNN":
        return [numpy.tanh(x + s)]
    if kind == "GRU":
        (xr, xz, xn), (sr, sz, sn) = numpy.split(x, 3), numpy.split(s, 3)
        z, n = sigmoid(xz + sz), numpy.tanh(xn + sigmoid(xr + sr) * sn)
        return [(1 - z) * n + z * states[0]]
    i, f, g, o = numpy.split(x + s, 4)
    c = sigmoid(f) * states[1] + sigmoid(i) * numpy.tanh(g)
    return [sigmoid(o) * numpy.tanh(c), c]


def one_direction(layer: Any, kind: str, k: int, suffix: str, x: Any, states: list[Any]) -> tuple[Any, Any]:
    """Outputs and last states of one sequence ``x [steps, features]``."""
    p = {n: v.detach().numpy().astype(numpy.float64) for n, v in layer.named_parameters()}
    end = f"_l{k}{suffix}"
    outputs = numpy.zeros((len(x), p["weight_hh" + end].shape[1]))
    for t in reversed(range(len(x))) if suffix else range(len(x)):
        given = p["weight_ih" + end] @ x[t] + p["bias_ih" + end]
        states = step(kind, given, p["weight_hh" + end] @ states[0] + p["bias_hh" + end], states)
        if "weight_hr" + end in p:
            states[0] = p["weight_hr" + end] @ states[0]
        outputs[t] = states[0]
    return outputs, states


def expected(layer: Any, kind: str, x: Any, initial: list[Any]) -> tuple[Any, list[Any]]:
    """Outputs ``[steps, width]`` and last states of all layers, of one sequence."""
    last = []
    for k in range(layer.num_layers):
        found = []
        for d, suffix in enumerate(("", "_reverse")[: 2 if layer.bidirectional else 1]):
            number = k * (2 if layer.bidirectional else 1) + d
            out, states = one_direction(layer, kind, k, suffix, x, [one[number] for one in initial])
            found.append(out)
            last.append(states)
        x = numpy.concatenate(found, 1)
    return x, [numpy.array([states[j] for states in last]) for j in range(len(initial))]


def states_of(layer: Any, kind: str, batch: int) -> list[Any]:
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    widths = [getattr(layer, "proj_size", 0) or layer.hidden_size, layer.hidden_size]
    return [G.normal(size=(count, batch, width)) for width in widths[: 2 if kind == "LSTM" else 1]]


def as_argument(states: list[Any], dtype: Any = None) -> Any:
    made = [torch.tensor(one, dtype=dtype) for one in states]
    return tuple(made) if len(made) > 1 else made[0]


def near(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    numpy.testing.assert_allclose(found.detach().numpy(), wanted, rtol=tolerance, atol=tolerance)


LAYERS = [
    *itertools.product(("RNN", "GRU", "LSTM"), (1, 2), (False, True), (0,)),
    ("LSTM", 2, False, 2),
    ("LSTM", 1, True, 2),
]


@pytest.mark.parametrize(("kind", "layers", "both", "projected"), LAYERS)
def test_batch(kind: str, layers: int, both: bool, projected: int) -> None:
    more = {"proj_size": projected} if projected else {}
    layer = getattr(nn, kind)(3, 5, layers, bidirectional=both, dtype=torch.float64, **more)
    x, initial = G.normal(size=(4, 6, 3)), states_of(layer, kind, 6)
    output, last = layer(torch.tensor(x), as_argument(initial))
    last = last if kind == "LSTM" else (last,)
    for k in range(6):
        wanted, states = expected(layer, kind, x[:, k], [one[:, k] for one in initial])
        near(output[:, k], wanted)
        for found, state in zip(last, states, strict=True):
            near(found[:, k], state)


@pytest.mark.parametrize(("kind", "layers", "both", "projected"), LAYERS)
def test_packed_sequences(kind: str, layers: int, both: bool, projected: int) -> None:
    more = {"proj_size": projected} if projected else {}
    layer = getattr(nn, kind)(3, 5, layers, bidirectional=both, dtype=torch.float64, **more)
    lengths = [2, 4, 1, 4]
    x, initial = G.normal(size=(4, 4, 3)), states_of(layer, kind, 4)
    packed = rnn.pack_padded_sequence(torch.tensor(x), lengths, True, enforce_sorted=False)
    output, last = layer(packed, as_argument(initial))
    padded, counts = rnn.pad_packed_sequence(output, True)
    assert counts.tolist() == lengths
    last = last if kind == "LSTM" else (last,)
    for k, length in enumerate(lengths):
        wanted, states = expected(layer, kind, x[k, :length], [one[:, k] for one in initial])
        near(padded[k, :length], wanted)
        assert not padded[k, length:].detach().numpy().any()
        for found, state in zip(last, states, strict=True):
            near(found[:, k], state)


@pytest.mark.parametrize(("kind", "layers", "both", "projected"), LAYERS[::3] + LAYERS[-2:])
def test_gradients(kind: str, layers: int, both: bool, projected: int) -> None:
    more = {"proj_size": projected} if projected else {}
    layer = getattr(nn, kind)(2, 3, layers, bidirectional=both, dtype=torch.float64, **more)
    initial = states_of(layer, kind, 2)
    x = torch.tensor(G.normal(size=(3, 2, 2)), requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]

    def run(x: Any, *values: Any) -> Any:
        for name, value in zip(names, values, strict=True):
            layer._parameters[name] = value
        output, last = layer(x, as_argument(initial))
        return [output, *(last if kind == "LSTM" else [last])]

    values = [torch.tensor(p.detach().numpy(), requires_grad=True) for p in layer.parameters()]
    assert torch.autograd.gradcheck(run, (x, *values))


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("packed", [False, True])
def test_gradients_have_gradients(kind: str, packed: bool) -> None:
    layer = getattr(nn, kind)(2, 3, bidirectional=True, dtype=torch.float64)

    def slope(x: Any) -> Any:
        x = x if x.requires_grad else x.requires_grad_()
        given = rnn.pack_padded_sequence(x, [3, 1]) if packed else x
        output = layer(given)[0]
        output = output.data if packed else output
        return torch.autograd.grad((output**3).sum(), x, create_graph=True)

    x = torch.tensor(G.normal(size=(3, 2, 2)), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: slope(x)[0], (x,), eps=1e-5)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_row_alone_has_the_bits_of_a_batch(kind: str) -> None:
    layer = getattr(nn, kind)(7, 19)
    x = torch.randn(6, 9, 7)
    together = layer(x)[0].detach().numpy()
    for k in range(9):
        numpy.testing.assert_array_equal(layer(x[:, k])[0].detach().numpy(), together[:, k])


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_layer_has_the_bits_of_its_cells(kind: str) -> None:
    layer, cell = getattr(nn, kind)(7, 19), getattr(nn, kind + "Cell")(7, 19)
    cell.load_state_dict({name.removesuffix("_l0"): p for name, p in layer.state_dict().items()})
    x, state = torch.randn(5, 3, 7), None
    found = []
    for t in range(5):
        state = cell(x[t], state)
        found.append((state[0] if kind == "LSTM" else state).detach().numpy())
    numpy.testing.assert_array_equal(layer(x)[0].detach().numpy(), numpy.array(found))


@pytest.mark.parametrize("batch_first", [False, True])
def test_no_batch(batch_first: bool) -> None:
    layer = nn.GRU(3, 4, 2, batch_first=batch_first)
    x = torch.randn(5, 3)
    output, last = layer(x)
    axis = 0 if batch_first else 1
    batched, final = layer(x.unsqueeze(axis))
    near(output, batched.squeeze(axis).detach().numpy(), 0)
    near(last, final.squeeze(1).detach().numpy(), 0)


def test_names_and_text() -> None:
    layer = nn.LSTM(3, 4, 2, bias=False, bidirectional=True, proj_size=2)
    assert list(layer.state_dict())[:4] == [
        "weight_ih_l0",
        "weight_hh_l0",
        "weight_hr_l0",
        "weight_ih_l0_reverse",
    ]
    assert layer.weight_ih_l1.shape == (16, 4)
    assert repr(layer) == "LSTM(3, 4, proj_size=2, num_layers=2, bias=False, bidirectional=True)"
    assert repr(nn.RNNCell(2, 3, nonlinearity="relu")) == "RNNCell(2, 3, nonlinearity=relu)"
    layer.flatten_parameters()


def test_dropout_lies_between_layers() -> None:
    layer = nn.GRU(3, 4, 2, dropout=1.0)
    x = torch.randn(5, 2, 3)
    silent, _ = layer(x)
    again, _ = layer(x * 2)
    near(silent, again.detach().numpy(), 0)
    layer.eval()
    assert (layer(x)[0] != silent).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_computed_in_float32(dtype: Any) -> None:
    layer = nn.LSTM(3, 4, dtype=dtype)
    x = torch.randn(5, 2, 3).to(dtype)
    wide = nn.LSTM(3, 4)
    wide.load_state_dict({name: p.to(torch.float32) for name, p in layer.state_dict().items()})
    output = layer(x)[0]
    assert output.dtype is dtype
    near(output.to(torch.float32), wide(x.to(torch.float32))[0].detach().numpy(), 3e-2)


def test_packing_and_padding() -> None:
    given = [torch.arange(1.0, n + 1) for n in (2, 4, 1)]
    packed = rnn.pack_sequence(given, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    for found, one in zip(rnn.unpack_sequence(packed), given, strict=True):
        assert found.tolist() == one.tolist()
    padded, _ = rnn.pad_packed_sequence(packed, padding_value=-1.0, total_length=5)
    assert padded[:, 2].tolist() == [1, -1, -1, -1, -1]
    left = rnn.pad_sequence(given, True, padding_side="left")
    assert left[2].tolist() == [0, 0, 0, 1]
    assert [one.tolist() for one in rnn.unpad_sequence(rnn.pad_sequence(given), torch.tensor([2, 4, 1]))] == [
        one.tolist() for one in given
    ]


def test_gradients_flow_through_packing() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    packed = rnn.pack_padded_sequence(x, [1, 3], True, enforce_sorted=False)
    padded, _ = rnn.pad_packed_sequence(packed, True)
    (padded * padded).sum().backward()
    assert x.grad.tolist() == [[2, 0, 0], [2, 2, 2]]


def _unrolled(kind: str, x: torch.Tensor, params: list, layers: int, directions: int) -> torch.Tensor:
    """The output of layers, step by step with the cells."""
    cell = getattr(torch, f"{kind}_cell")
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            w_ih, w_hh, b_ih, b_hh = params[4 * (directions * layer + direction) :][:4]
            hidden = torch.zeros(x.shape[1], w_hh.shape[1])
            state: Any = (hidden, hidden) if kind == "lstm" else hidden
            steps = []
            for one in x.flip(0) if direction else x:
                state = cell(one, state, w_ih, w_hh, b_ih, b_hh)
                steps.append(state[0] if kind == "lstm" else state)
            outputs.append(torch.stack(steps).flip(0) if direction else torch.stack(steps))
        x = torch.cat(outputs, -1)
    return x


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_layers_as_functions_of_their_weights(kind: str, directions: int) -> None:
    layers, gates = 2, {"lstm": 4, "gru": 3}.get(kind, 1)
    x = torch.randn(5, 2, 3)
    params: list[torch.Tensor] = []
    for number in range(layers * directions):
        width = 3 if number < directions else 4 * directions
        params += [0.5 * torch.randn(4 * gates, size) for size in (width, 4)]
        params += [0.5 * torch.randn(4 * gates) for _ in range(2)]
    zeros = torch.zeros(layers * directions, 2, 4)
    hx = (zeros, zeros) if kind == "lstm" else zeros
    run = getattr(torch, kind)
    expected = _unrolled(kind, x, params, layers, directions)
    output, *last = run(x, hx, params, True, layers, 0.0, False, directions == 2, False)
    torch.testing.assert_close(output, expected)
    assert len(last) == (2 if kind == "lstm" else 1) and last[0].shape == zeros.shape
    swapped = run(x.transpose(0, 1), hx, params, True, layers, 0.5, False, directions == 2, True)[0]
    torch.testing.assert_close(swapped.transpose(0, 1), expected)
    packed = run(
        x.reshape(10, 3), torch.tensor([2] * 5), hx, params, True, layers, 0.0, False, directions == 2
    )
    torch.testing.assert_close(packed[0].reshape(expected.shape), expected)
    with pytest.raises(RuntimeError, match="parameters"):
        run(x, hx, params[:-1], True, layers, 0.0, False, directions == 2, False)


def test_functions_take_weights_with_a_projection_and_without_biases() -> None:
    layer = torch.nn.LSTM(3, 4, bias=False, proj_size=2)
    x, h, c = torch.randn(5, 2, 3), torch.zeros(1, 2, 2), torch.zeros(1, 2, 4)
    params = [layer.weight_ih_l0, layer.weight_hh_l0, layer.weight_hr_l0]
    output, _, _ = torch.lstm(x, (h, c), params, False, 1, 0.0, False, False, False)
    assert torch.equal(output, layer(x)[0])


@pytest.mark.parametrize("name", ["half", "float", "double", "char", "short", "int", "long", "byte"])
def test_packed_sequences_in_other_dtypes(name: str) -> None:
    packed = rnn.pack_sequence([torch.tensor([1.0, 2.0]), torch.tensor([3.0])])
    made = getattr(packed, name)()
    assert made.data.dtype is getattr(packed.data, name)().dtype and made.data.tolist() == [1.0, 3.0, 2.0]
    assert made.batch_sizes is packed.batch_sizes and not made.is_pinned()
