"""Gradients of parameters and expressions, and graphs whose inputs are assigned."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import twofold.dynet as dy


@pytest.fixture(autouse=True)
def fresh_graph() -> None:
    dy.renew_cg()


def test_gradients_of_parameters_add_up() -> None:
    m = dy.ParameterCollection()
    w = m.parameters_from_numpy(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    x = dy.inputVector([1, -1, 2])
    loss = dy.squared_norm(w * x)
    y = np.array([5.0, 11.0])
    expected = 2 * np.outer(y, [1, -1, 2])
    loss.backward()
    np.testing.assert_allclose(w.grad_as_array(), expected)
    loss.backward()
    np.testing.assert_allclose(w.grad_as_array(), 2 * expected)
    w.scale_gradient(0.5)
    np.testing.assert_allclose(w.grad_as_array(), expected)


def test_gradients_of_a_batch_are_summed() -> None:
    m = dy.ParameterCollection()
    w = m.parameters_from_numpy(np.array([[2.0, -1.0]]))
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    dy.square(w * dy.inputTensor(x, batched=True)).backward()
    np.testing.assert_allclose(w.grad_as_array(), 2 * (np.array([[2.0, -1.0]]) @ x) @ x.T)


def test_gradients_of_expressions() -> None:
    x = dy.inputVector([1, 2, 3])
    y = dy.square(x)
    dy.sum_elems(dy.cmult(y, y)).backward(full=True)
    np.testing.assert_allclose(y.gradient(), [2, 8, 18])
    np.testing.assert_allclose(x.gradient(), [4, 32, 108])
    assert not dy.nobackprop(x).gradient().any()


def test_gradients_need_a_backward_pass_of_one_number() -> None:
    x = dy.inputVector([1, 2, 3])
    with pytest.raises(RuntimeError, match="backward"):
        x.gradient()
    with pytest.raises(ValueError, match="single number"):
        x.backward()


def test_gradients_are_passed_blocked_and_scaled() -> None:
    m = dy.ParameterCollection()
    w = m.add_parameters(2, init=np.array([0.3, 0.8]))

    def gradient(made: dy.Expression) -> list[float]:
        w.scale_gradient(0)
        dy.dot_product(made, dy.inputVector([1, 3])).backward()
        return np.round(w.grad_as_array(), 6).tolist()

    assert gradient(dy.nobackprop(w) + w) == [1, 3]
    assert gradient(dy.flip_gradient(w)) == [-1, -3]
    assert gradient(dy.scale_gradient(w, 0.5)) == [0.5, 1.5]
    assert gradient(dy.round(w, "straight_through_gradient")) == [1, 3]
    assert gradient(dy.floor(w, "zero_gradient") + w) == [1, 3]
    assert gradient(dy.parameter(w) * 2) == [2, 6]
    assert gradient(w.expr(update=False) + w) == [1, 3]


def test_looked_up_rows_get_gradients() -> None:
    m = dy.ParameterCollection()
    table = m.add_lookup_parameters((5, 2), init=np.arange(10.0).reshape(5, 2))
    constant = dy.lookup(table, 4, update=False)
    loss = dy.sum_elems(table[1] + table[1] * 2 + constant) + dy.sum_batches(
        dy.sum_elems(table.batch([0, 3]))
    )
    assert loss.value() == 3 * 5 + 17 + 1 + 13
    loss.backward()
    np.testing.assert_allclose(table.grad_as_array()[:, 0], [1, 3, 0, 1, 0])
    np.testing.assert_allclose(table.row_grad_as_array(1), [3, 3])
    with pytest.raises(IndexError):
        table[5]


def test_tables_of_matrices() -> None:
    values = np.arange(24.0).reshape(4, 2, 3)
    table = dy.ParameterCollection().add_lookup_parameters((4, 2, 3), init=values)
    assert (table[2].npvalue() == values[2]).all() and table.shape() == (4, 2, 3)
    assert (table.batch([3, 0]).npvalue() == values[[3, 0]].transpose(1, 2, 0)).all()
    dy.sum_elems(dy.cmult(table[1], dy.inputTensor(values[0]))).backward()
    np.testing.assert_allclose(table.grad_as_array()[1], values[0])


def test_inputs_are_assigned() -> None:
    m = dy.ParameterCollection()
    w, b = m.add_parameters((1, 2), init=np.array([[2.0, 3.0]])), m.add_parameters(1, init=1)
    builder = dy.SimpleRNNBuilder(1, 2, 2, m)
    table = m.add_lookup_parameters((3, 2), init=np.arange(6.0).reshape(3, 2))
    x, y, row = dy.vecInput(2), dy.scalarInput(0), dy.lookup(table)
    loss = dy.squared_distance(w * (x + row) + b, y)
    state = builder.initial_state().add_input(x)
    trainer = dy.SimpleSGDTrainer(m, 0.01)
    x.set([1, -1])
    y.set(4)
    assert loss.value() == (2 * 1 - 3 * 0 + 1 - 4) ** 2
    loss.backward()
    trainer.update()
    assert loss.value() == 1
    assert loss.value(recalculate=True) != 1
    w.set_value(np.array([[0.0, 1.0]]))
    b.zero()
    row.set(2)
    table.init_from_array(np.arange(6.0).reshape(3, 2))
    assert loss.value(recalculate=True) == 0
    before = state.output().npvalue()
    x.set([1, 0])
    assert (state.output().npvalue() != before).any()
    picked = dy.pick(x)
    assert picked.value() == 1
    picked.set_index(1)
    assert picked.value() == 0


def test_inputs_that_were_not_noted_are_not_assigned() -> None:
    x = dy.inputVector([1, 2])
    with pytest.raises(RuntimeError, match="vecInput"):
        x.set([3, 4])
    w = dy.ParameterCollection().add_parameters(2, init=1)
    y = w * 2
    assert y.value(recalculate=True) == [2, 2]
    w.zero()
    assert y.value() == [2, 2]
    with pytest.raises(RuntimeError, match="recalculate"):
        y.value(recalculate=True)


def test_checked_graphs() -> None:
    dy.renew_cg(immediate_compute=True, check_validity=True)
    x = dy.inputVector([0, 1])
    assert (x + 1).value() == [1, 2]
    with pytest.raises(RuntimeError, match="infinite or not a number"):
        dy.log(x)
    dy.renew_cg()
    assert dy.log(dy.inputVector([0])).value() == -np.inf


def test_graph_versions() -> None:
    before = dy.cg_version()
    assert dy.renew_cg() is dy.cg() and dy.cg_version() == before + 1 == dy.cg().version()
    x = dy.vecInput(1)
    y = x + 1
    dy.cg_checkpoint()
    z = y + 1
    dy.cg_revert()
    x.set([5])
    assert y.value() == 6 and z.value() == 2


def test_several_values_at_once() -> None:
    x = dy.inputVector([1, 2])
    dy.forward([x, x + 1])
    assert [v.tolist() for v in dy.npvalues([x, x * 2])] == [[1, 2], [2, 4]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: dy.zeros(3),
        lambda: dy.ones(3),
        lambda: dy.constant(3, 2.0),
        lambda: dy.random_normal(3),
        lambda: dy.random_uniform(3, -1, 1),
        lambda: dy.random_bernoulli(3, 0.5),
        lambda: dy.random_gumbel(3),
    ],
)
def test_expressions_without_operands_have_gradients(make: Callable[[], dy.Expression]) -> None:
    x = make()
    dy.dot_product(x, dy.inputVector([1, -2, 3])).backward(full=True)
    np.testing.assert_array_equal(x.gradient(), [1, -2, 3])


def test_an_expression_is_made_empty_and_set_later() -> None:
    class Layer:
        w = dy.Expression()

    assert isinstance(Layer.w, dy.Expression)
    with pytest.raises(AttributeError):
        Layer.w.value()


def test_names_before_dynet_2() -> None:
    x = dy.inputTensor([[1, 2], [3, 4]])
    assert dy.sum_cols(x).value() == [3.0, 7.0]
    np.testing.assert_array_equal(dy.cwise_multiply(x, x).npvalue(), [[1, 4], [9, 16]])


def test_what_an_assigned_input_held_before_is_let_go() -> None:
    # a loop that declares its graph once kept all numbers ever assigned, and each backward pass visited them
    x = dy.vecInput(2)
    noise = dy.random_uniform(2, 0, 1)
    loss = dy.squared_norm(dy.cmult(x, noise))
    earlier = []
    for _ in range(3):
        earlier += [weakref.ref(x._tensor), weakref.ref(noise._tensor)]
        x.set([1, 2])
        loss.scalar_value()
        loss.backward()
        np.testing.assert_allclose(x.gradient(), 2 * np.array([1, 2]) * noise.npvalue() ** 2, rtol=1e-6)
    gc.collect()
    assert [one() for one in earlier] == [None] * len(earlier)
