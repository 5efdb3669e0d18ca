"""Recurrent builders against their formulas in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import twofold.dynet as dy

INPUT, HIDDEN = 3, 4
RANDOM = np.random.RandomState(2)
INPUTS = [RANDOM.uniform(-1, 1, (INPUT, 2)) for _ in range(3)]
ZERO = np.zeros((HIDDEN, 2))

State = tuple[Any, ...]


@pytest.fixture(autouse=True)
def fresh_graph() -> None:
    dy.renew_cg()


def simple(w: Sequence[Any], x: Any, h: Any) -> State:
    return (np.tanh(w[0] @ x + w[1] @ h + w[2]),)


def gru(w: Sequence[Any], x: Any, h: Any) -> State:
    z = expit(w[0] @ x + w[1] @ h + w[2])
    r = expit(w[3] @ x + w[4] @ h + w[5])
    return ((1 - z) * h + z * np.tanh(w[6] @ x + w[7] @ (r * h) + w[8]),)


def vanilla(w: Sequence[Any], x: Any, h: Any, c: Any, bias: float = 1.0) -> State:
    i, f, o, g = np.split(w[0] @ x + w[1] @ h + w[2], 4)
    c = expit(f + bias) * c + expit(i) * np.tanh(g)
    return expit(o) * np.tanh(c), c


def coupled(w: Sequence[Any], x: Any, h: Any, c: Any) -> State:
    i = expit(w[0] @ x + w[1] @ h + w[2] @ c + w[3])
    c = (1 - i) * c + i * np.tanh(w[8] @ x + w[9] @ h + w[10])
    return expit(w[4] @ x + w[5] @ h + w[6] @ c + w[7]) * np.tanh(c), c


def fast(w: Sequence[Any], x: Any, h: Any, c: Any) -> State:
    i = expit(w[0] @ x + w[1] @ h + w[3])
    c = (1 - i) * c + i * np.tanh(w[8] @ x + w[9] @ h + w[10])
    return expit(w[4] @ x + w[5] @ h + w[7]) * np.tanh(c), c


CELLS = {
    "SimpleRNNBuilder": simple,
    "GRUBuilder": gru,
    "VanillaLSTMBuilder": vanilla,
    "LSTMBuilder": vanilla,
    "CompactVanillaLSTMBuilder": vanilla,
    "SparseLSTMBuilder": vanilla,
    "CoupledLSTMBuilder": coupled,
    "FastLSTMBuilder": fast,
}


def built(name: str, layers: int = 2, **options: Any) -> Any:
    builder = getattr(dy, name)(layers, INPUT, HIDDEN, dy.ParameterCollection(), **options)
    for layer in builder.get_parameters():
        for p in layer[:3] if name == "SparseLSTMBuilder" else layer:
            p.set_value(np.random.RandomState(p._tensor.numel()).uniform(-1, 1, p.shape()))
    return builder


def weights(builder: Any) -> list[list[Any]]:
    arrays = [[p.as_array() for p in layer] for layer in builder.get_parameters()]
    return [[a[:, None] if a.ndim == 1 else a for a in layer] for layer in arrays]


def reference(builder: Any, cell: Any, start: Any = None) -> tuple[list[Any], list[Any]]:
    """The outputs, and the last state: cells of all layers, then their outputs."""
    layers = weights(builder)
    kinds = 2 if cell in (vanilla, coupled, fast) else 1
    states = start or [(ZERO,) * kinds for _ in layers]
    outputs = []
    for x in INPUTS:
        for number, w in enumerate(layers):
            states[number] = cell(w, x, *states[number])
            x = states[number][0]
        outputs.append(x)
    return outputs, [s[1] for s in states if kinds == 2] + [s[0] for s in states]


def inputs() -> list[dy.Expression]:
    return [dy.inputTensor(x, batched=True) for x in INPUTS]


@pytest.mark.parametrize("name", CELLS)
def test_outputs_and_states(name: str) -> None:
    builder = built(name)
    outputs, last = reference(builder, CELLS[name])
    states = builder.initial_state().add_inputs(inputs())
    for state, expected in zip(states, outputs):
        np.testing.assert_allclose(state.output().npvalue(), expected, rtol=1e-5, atol=1e-6)
    for found, expected in zip(states[-1].s(), last):
        np.testing.assert_allclose(found.npvalue(), expected, rtol=1e-5, atol=1e-6)
    assert states[-1].h() == states[-1].s()[-2:] and states[-1].prev() is states[-2]
    for found, expected in zip(builder.initial_state().transduce(inputs()), outputs):
        np.testing.assert_allclose(found.npvalue(), expected, rtol=1e-5, atol=1e-6)
    assert states[0].b() is builder and builder.whoami() == type(builder).__name__


@pytest.mark.parametrize("name", CELLS)
def test_given_states(name: str) -> None:
    builder, cell = built(name), CELLS[name]
    kinds = 2 if cell in (vanilla, coupled, fast) else 1
    given = [RANDOM.uniform(-1, 1, HIDDEN) for _ in range(2 * kinds)]
    columns = [np.repeat(one[:, None], 2, 1) for one in given]
    start = [(columns[2 + i], columns[i]) if kinds == 2 else (columns[i],) for i in range(2)]
    outputs, _ = reference(builder, cell, start)
    state = builder.initial_state([dy.inputVector(one) for one in given])
    assert state.output().vec_value() == state.h()[-1].vec_value()
    for found, expected in zip(state.transduce(inputs()), outputs):
        np.testing.assert_allclose(found.npvalue(), expected, rtol=1e-5, atol=1e-6)
    raw = builder.initial_state_from_raw_vectors(given)
    np.testing.assert_allclose(raw.transduce(inputs())[-1].npvalue(), outputs[-1], rtol=1e-5, atol=1e-6)


def test_states_are_changed() -> None:
    builder = built("LSTMBuilder")
    state = builder.initial_state().add_input(inputs()[0])
    ones = [dy.ones(HIDDEN)] * 2
    assert state.set_h(ones).s() == (*state.s()[:2], *ones)
    assert state.set_s(ones).s() == (*ones, *state.s()[2:])
    assert builder.initial_state().set_h(ones).s()[0].value() == [0] * HIDDEN
    assert builder.initial_state().s() == () and state.set_s().output() is None
    with pytest.raises(ValueError, match="3 expressions for 2 layers"):
        state.set_s([*ones, ones[0]])


def test_forget_bias_and_normalisation() -> None:
    builder = built("VanillaLSTMBuilder", 1, forget_bias=0.25)
    outputs, _ = reference(builder, lambda w, x, h, c: vanilla(w, x, h, c, 0.25), [(ZERO, ZERO)])
    np.testing.assert_allclose(
        builder.initial_state().transduce(inputs())[-1].npvalue(), outputs[-1], rtol=1e-5, atol=1e-6
    )

    def normal(a: Any) -> Any:
        return (a - a.mean(0)) / a.std(0)

    builder = built("VanillaLSTMBuilder", 1, ln_lstm=True)
    (w,), h, c = weights(builder), None, None
    for x in INPUTS:
        gates = normal(w[0] @ x) + w[2] + (0 if h is None else normal(w[1] @ h))
        i, f, o, g = np.split(gates, 4)
        c = (0 if c is None else expit(f + 1) * c) + expit(i) * np.tanh(g)
        h = expit(o) * np.tanh(normal(c))
    found = builder.initial_state().transduce(inputs())[-1]
    np.testing.assert_allclose(found.npvalue(), h, rtol=1e-4, atol=1e-5)


def test_constant_parameters() -> None:
    builder = built("GRUBuilder", 1)
    x = dy.inputVector(INPUTS[0][:, 0])
    dy.sum_elems(builder.initial_state(update=False).add_input(x).output()).backward()
    assert not builder.get_parameters()[0][0].grad_as_array().any()
    dy.sum_elems(builder.initial_state().add_input(x).output()).backward()
    assert builder.get_parameters()[0][0].grad_as_array().any()


def test_expressions_of_parameters_belong_to_a_graph() -> None:
    builder = built("LSTMBuilder", 1)
    with pytest.raises(ValueError, match="initial_state"):
        builder.get_parameter_expressions()
    builder.initial_state()
    assert builder.get_parameter_expressions()[0][0].dim() == ((4 * HIDDEN, INPUT), 1)


@pytest.mark.parametrize("name", ["SimpleRNNBuilder", "LSTMBuilder", "CoupledLSTMBuilder"])
def test_masks_are_those_of_the_graph(name: str) -> None:
    builder = built(name, 1)
    builder.set_dropout(0.5)
    x = dy.inputVector(np.ones(INPUT))
    first, second = (builder.initial_state().transduce([x, x])[-1].value() for _ in range(2))
    assert first == second
    seen = set()
    for _ in range(8):
        dy.renew_cg()
        seen.add(tuple(builder.initial_state().add_input(dy.inputVector(np.ones(INPUT))).output().value()))
    assert len(seen) > 1
    builder.disable_dropout()
    dy.renew_cg()
    plain = builder.initial_state().transduce(inputs())[-1].npvalue()
    np.testing.assert_allclose(plain, reference(builder, CELLS[name])[0][-1], rtol=1e-5, atol=1e-6)
    builder.set_dropout(0.9)
    builder.set_dropout_masks(2)
    same = dy.inputTensor(np.ones((INPUT, 2)), batched=True)
    assert builder.initial_state().add_input(same).output().dim() == ((HIDDEN,), 2)
    with pytest.raises(ValueError):
        builder.set_dropout(2)


def test_gated_units_drop_inputs_and_outputs() -> None:
    builder = built("GRUBuilder", 1)
    builder.set_dropout(0.5)
    state = builder.initial_state().add_input(dy.inputVector(np.ones(INPUT)))
    out, kept = state.output().npvalue(), state.h()[0].npvalue()
    assert np.all((out == 0) | np.isclose(out, 2 * kept, rtol=1e-6))
    builder.disable_dropout()
    np.testing.assert_allclose(
        builder.initial_state().transduce(inputs())[-1].npvalue(), reference(builder, gru)[0][-1], rtol=1e-5
    )


def test_sparse_weights() -> None:
    builder = built("SparseLSTMBuilder", 1)
    w, u = (p.as_array() for p in builder.get_parameters()[0][:2])
    builder.set_sparsity(0.5)
    masks = [p.as_array() for p in builder.get_parameters()[0][3:]]
    sizes = np.concatenate([abs(w).ravel(), abs(u).ravel()])
    kept = np.concatenate([mask.ravel() for mask in masks]) == 1
    assert kept.sum() == sizes.size - sizes.size // 2 and sizes[kept].min() > sizes[~kept].max()
    dy.sum_elems(builder.initial_state().add_input(inputs()[0][:, 0:1]).output()).backward()
    gradient = builder.get_parameters()[0][0].grad_as_array()
    assert gradient.any() and not gradient[masks[0] == 0].any()


def test_noise_of_weights() -> None:
    builder = built("CompactVanillaLSTMBuilder", 1)
    builder.set_weightnoise(0.1)
    x = dy.inputVector(np.ones(INPUT))
    noisy = [builder.initial_state().add_input(x).output().value() for _ in range(2)]
    assert noisy[0] != noisy[1]


def test_two_directions() -> None:
    builder = dy.BiRNNBuilder(2, INPUT, 4, dy.ParameterCollection(), dy.SimpleRNNBuilder)
    xs = [dy.inputVector(x[:, 0]) for x in INPUTS]
    values = [x[:, 0] for x in INPUTS]
    for pair in builder.builder_layers:
        sides = []
        for network, sequence in zip(pair, (values, values[::-1])):
            w, h, outputs = [p.as_array() for p in network.get_parameters()[0]], np.zeros(2), []
            for x in sequence:
                h = simple(w, x, h)[0]
                outputs.append(h)
            sides.append(outputs)
        values = [np.concatenate(both) for both in zip(sides[0], sides[1][::-1])]
    for found, expected in zip(builder.transduce(xs), values):
        np.testing.assert_allclose(found.npvalue(), expected, rtol=1e-5, atol=1e-6)
    for (f, b), expected in zip(builder.add_inputs(xs), values):
        found = dy.concatenate([f.output(), b.output()])
        np.testing.assert_allclose(found.npvalue(), expected, rtol=1e-5, atol=1e-6)
    assert len(builder.param_collection().parameters_list()) == 12
    with pytest.raises(ValueError, match="even"):
        dy.BiRNNBuilder(1, 2, 3, dy.ParameterCollection(), dy.LSTMBuilder)


def test_stacked_states() -> None:
    m = dy.ParameterCollection()
    first, second = dy.SimpleRNNBuilder(1, INPUT, 2, m), dy.GRUBuilder(1, 2, 3, m)
    x = dy.inputVector(INPUTS[0][:, 0])
    stack = dy.StackedRNNState([first.initial_state(), second.initial_state()])
    later = stack.add_inputs([x, x])[-1]
    expected = second.initial_state().transduce(first.initial_state().transduce([x, x]))[-1]
    assert later.output().value() == expected.value()
    assert len(later.h()) == len(later.s()) == 2 and later.prev().prev() is stack


def tree_reference(builder: Any, children: Sequence[tuple[Any, Any]], x: Any) -> tuple[Any, Any]:
    p = {name: value.as_array() for name, value in builder._params[0].items()}

    def gate(kind: str, forget: int | None = None) -> Any:
        total = p["b" + kind] + p["x" + kind] @ x
        for position, (h, c) in enumerate(children):
            index = position if forget is None else 2 * position + forget
            total = total + p["h" + kind][index] @ h
            if kind != "c":
                total = total + p["c" + kind][index] @ c
        return total

    cell = expit(gate("i")) * np.tanh(gate("c"))
    for position, (_, c) in enumerate(children):
        cell = cell + expit(gate("f", position) + 1) * c
    return expit(gate("o")) * np.tanh(cell), cell


def test_tree_lstm() -> None:
    builder = dy.NaryTreeLSTMBuilder(2, 1, INPUT, HIDDEN, dy.ParameterCollection())
    vectors = [x[:, 0] for x in INPUTS]
    nodes = [tree_reference(builder, [], x) for x in vectors[:2]]
    nodes.append(tree_reference(builder, nodes[:2], vectors[2]))
    for _ in range(2):
        builder.start_new_sequence()
        for number, x in enumerate(vectors):
            made = builder.add_input(number, [0, 1] if number == 2 else [], dy.inputVector(x))
            np.testing.assert_allclose(made.npvalue(), nodes[number][0], rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="after 3 nodes"):
        builder.add_input(5, [], dy.inputVector(vectors[0]))
    with pytest.raises(ValueError, match="before it"):
        builder.add_input(3, [3], dy.inputVector(vectors[0]))


@pytest.mark.parametrize("name", ["UnidirectionalTreeLSTMBuilder", "BidirectionalTreeLSTMBuilder"])
def test_trees_read_by_sequences(name: str) -> None:
    builder = getattr(dy, name)(1, 4, 4, dy.ParameterCollection())
    xs = [dy.inputVector(RANDOM.uniform(-1, 1, 4)) for _ in range(3)]
    made = [builder.add_input(i, [0, 1] if i == 2 else [], x) for i, x in enumerate(xs)]
    inner = [builder._builder] if name.startswith("Uni") else builder._builders
    orders = ([made[0], made[1]], [made[1], made[0]])
    expected = [one.initial_state().transduce([xs[2], *order])[-1] for one, order in zip(inner, orders)]
    np.testing.assert_allclose(made[2].value(), dy.concatenate(expected).value(), rtol=1e-6)


@pytest.mark.parametrize("name", ["SimpleRNNBuilder", "GRUBuilder", "LSTMBuilder", "CoupledLSTMBuilder"])
def test_transduce_gives_the_bits_of_adding_inputs(name: str) -> None:
    dy.renew_cg()
    builder = getattr(dy, name)(2, 3, 4, dy.ParameterCollection())
    xs = [dy.inputVector(np.sin(np.arange(3) + i)) for i in range(4)]
    start = builder.initial_state().add_input(xs[3])
    added = [one.output().value() for one in start.add_inputs(xs)]
    assert [one.value() for one in start.transduce(xs)] == added
    assert [one.value() for one in start.transduce(iter(xs))] == added
    batched = start.transduce([dy.inputTensor(np.ones((3, 2)), batched=True)] * 2)
    assert batched[1].dim() == ((4,), 2)
