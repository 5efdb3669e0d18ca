"""Shapes, dimensions, operations, graphs, scopes and sessions as objects: what programs ask of them."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from twofold.errors import ArgumentError


@pytest.fixture(autouse=True)
def graph() -> Any:
    graph = tf.Graph()
    with graph.as_default():
        yield graph


def test_dimensions_compute_and_keep_what_is_unknown() -> None:
    size, unknown = tf.Dimension(7), tf.Dimension(None)
    assert (size * 2).value == (2 * size).value == 14
    assert (size + 2).value == (2 + size).value == 9
    assert (size - 2).value == 5 and (size // 2).value == 3
    assert (size + tf.Dimension(1)).value == 8
    for found in (unknown * 2, unknown + 2, unknown - 2, unknown // 2, size * unknown, size - unknown):
        assert found.value is None
    assert {tf.Dimension(3): "three"}[tf.Dimension(3)] == "three"
    assert int(size) == 7 and size == 7
    with pytest.raises(TypeError, match="unknown until the graph is fed"):
        int(unknown)


def test_shapes_compare_count_and_hash() -> None:
    shape = tf.TensorShape([2, 3])
    assert shape.num_elements() == 6 and tf.TensorShape([]).num_elements() == 1
    assert tf.TensorShape([2, None]).num_elements() is None and tf.TensorShape(None).num_elements() is None
    assert len(shape) == 2 and bool(shape) and not bool(tf.TensorShape(None)) and bool(tf.TensorShape([]))
    assert shape == [2, 3] and shape == tf.TensorShape((2, 3)) and shape != [3, 2] and shape != 6
    assert tf.TensorShape(None) == None and shape != None  # noqa: E711
    assert hash(shape) == hash(tf.TensorShape([2, 3])) and len({shape, tf.TensorShape([2, 3])}) == 1
    with pytest.raises(ValueError, match="unknown rank"):
        len(tf.TensorShape(None))


def test_operations_show_their_parts(graph: Any) -> None:
    x = tf.constant([1.0, 2.0], name="x")
    assert x.op.values() == (x,) and x.op.node_def.name == "x"
    y = tf.add(x, x, name="y")
    z = tf.multiply(y, 2.0, name="z")
    assert [operation.name for operation in y.consumers()] == ["z"]
    assert y.value_index == 0 and z.consumers() == []
    assert "y" in repr(y.op)


def test_graphs_keep_collections_and_feeding(graph: Any) -> None:
    x = tf.constant(1.0)
    tf.add_to_collection("kept", x)
    assert graph.get_collection("kept") == [x]
    graph.clear_collection("kept")
    assert graph.get_collection("kept") == []
    assert graph.is_feedable(x)
    graph.prevent_feeding(x)
    assert not graph.is_feedable(x)
    with tf.Session() as session:
        with pytest.raises(ValueError, match="may not be fed"):
            session.run(x, {x: 2.0})
        assert session.run(x) == 1.0


def test_scopes_switch_to_reuse_and_to_an_initializer() -> None:
    with tf.variable_scope("scope") as scope:
        scope.set_initializer(tf.constant_initializer(4.0))
        first = tf.get_variable("v", [2])
        assert scope.reuse is not True
        scope.reuse_variables()
        assert scope.reuse is True and tf.get_variable("v", [2]) is first
        assert [v.name for v in scope.trainable_variables()] == [first.name]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(first).tolist() == [4.0, 4.0]


def test_variables_change_in_place() -> None:
    v = tf.Variable([3.0, 5.0], name="v")
    less = v.assign_sub([1.0, 2.0])
    assert v.get_shape().as_list() == [2] and "v" in repr(v)
    with pytest.raises(TypeError):
        iter(v)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(less).tolist() == [2.0, 3.0] and session.run(v).tolist() == [2.0, 3.0]


def test_sessions_make_callables_and_become_the_default() -> None:
    x = tf.placeholder(tf.float32, [2])
    y = x * 3.0
    session = tf.Session()
    call = session.make_callable(y, [x])
    assert call([1.0, 2.0]).tolist() == [3.0, 6.0]
    with session.as_default():
        assert tf.get_default_session() is session
        assert y.eval({x: [0.0, 1.0]}).tolist() == [0.0, 3.0]
    assert tf.get_default_session() is None
    assert session.list_devices()
    session.close()


def test_slices_of_tensors_and_tensor_arrays() -> None:
    array = tf.TensorArray(tf.float32, size=2, element_shape=[3])
    array = array.write(0, [1.0, 2.0, 3.0]).identity().write(1, [4.0, 5.0, 6.0])
    assert tf.TensorShape(array.element_shape) == [3]
    with tf.Session() as session:
        assert session.run(array.stack()).tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def test_sparse_tensors_divide() -> None:
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [6.0, 8.0], [2, 2])
    dense = tf.constant([[1.0, 2.0], [4.0, 1.0]])
    assert sparse.graph is dense.graph and "SparseTensor" in repr(sparse)
    with tf.Session() as session:
        assert session.run((sparse / dense).values).tolist() == [3.0, 2.0]


def test_regularizers_and_initializers_of_contrib() -> None:
    layers = tf.contrib.layers
    weights = tf.Variable([[1.0, -2.0], [3.0, -4.0]])
    both = layers.l1_l2_regularizer(0.5, 0.1)
    found = [layers.l1_regularizer(0.5)(weights), layers.l2_regularizer(0.1)(weights), both(weights)]
    total = layers.apply_regularization(layers.l1_regularizer(2.0), [weights, weights])
    rows = layers.one_hot_encoding([1, 0], 3)
    plain = layers.linear(tf.constant([[-1.0, -2.0]]), 2, weights_initializer=tf.ones_initializer())
    drawn = layers.variance_scaling_initializer(factor=3.0, mode="FAN_IN", uniform=True, seed=1)([300, 5])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        numpy.testing.assert_allclose(session.run(found), [5.0, 1.5, 6.5], rtol=1e-6)
        assert session.run(total) == 40.0
        assert session.run(rows).tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
        assert session.run(plain).tolist() == [[-3.0, -3.0]]
        values = session.run(drawn)
        assert abs(values).max() <= (3 * 3.0 / 300) ** 0.5 and abs(values).max() > 0.15
    assert tf.get_collection("regularization_losses")
    with pytest.raises(ValueError, match="negative"):
        layers.l1_regularizer(-1.0)


def test_distributions_give_logarithms_and_modes() -> None:
    normal = tf.distributions.Normal(1.0, 2.0)
    chance = tf.distributions.Bernoulli(probs=[0.2, 0.7])
    with tf.Session() as session:
        at = session.run(
            [normal.cdf(2.0), normal.log_cdf(2.0), normal.log_survival_function(2.0), normal.variance()]
        )
        numpy.testing.assert_allclose(at[1:], [numpy.log(at[0]), numpy.log(1 - at[0]), 4.0], rtol=1e-5)
        assert session.run(chance.mode()).tolist() == [0, 1]
        assert session.run(normal.batch_shape_tensor()).tolist() == []


def test_datasets_are_given_to_functions() -> None:
    twice = tf.data.Dataset.range(3).apply(lambda data: data.map(lambda n: n * 2))
    following = twice.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [int(session.run(following)) for _ in range(3)] == [0, 2, 4]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(following)
    with pytest.raises(ArgumentError, match="map_func returns no dataset"):
        twice.flat_map(lambda n: n)


def test_optimizers_with_momentum_ahead_and_centred_mean() -> None:
    def two_steps(optimizer: Any) -> Any:
        v = tf.Variable([1.0, -2.0])
        step = optimizer.minimize(tf.reduce_sum(tf.square(v)), var_list=[v])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(step)
            session.run(step)
            return session.run(v)

    x, speed = numpy.array([1.0, -2.0]), numpy.zeros(2)
    for _ in range(2):
        slope = 2 * x
        speed = 0.9 * speed + slope
        x = x - 0.1 * (slope + 0.9 * speed)
    found = two_steps(tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True))
    numpy.testing.assert_allclose(found, x, rtol=1e-5)
    x, square, mean, speed = numpy.array([1.0, -2.0]), numpy.ones(2), numpy.zeros(2), numpy.zeros(2)
    for _ in range(2):
        slope = 2 * x
        square = 0.8 * square + 0.2 * slope**2
        mean = 0.8 * mean + 0.2 * slope
        speed = 0.5 * speed + 0.1 * slope / numpy.sqrt(square - mean**2 + 1e-3)
        x = x - speed
    found = two_steps(tf.train.RMSPropOptimizer(0.1, 0.8, 0.5, 1e-3, centered=True))
    numpy.testing.assert_allclose(found, x, rtol=1e-5)


def test_cells_know_their_sizes() -> None:
    cell = tf.nn.rnn_cell
    assert cell.BasicRNNCell(3).output_size == 3 and cell.GRUCell(4).output_size == 4
    stack = cell.MultiRNNCell([cell.GRUCell(4), cell.GRUCell(2)])
    assert stack.output_size == 2
    dropped = cell.DropoutWrapper(cell.GRUCell(4), output_keep_prob=0.5)
    assert dropped.output_size == 4 and dropped.state_size == 4


def test_a_tensor_of_values_becomes_a_constant_and_one_of_the_graph_stays(graph: Any) -> None:
    values = torch.tensor([1.0, 2.0], requires_grad=True)
    made = tf.convert_to_tensor(values)
    assert (made.op.type, made.graph, made.dtype) == ("Const", graph, tf.float32)
    assert tf.convert_to_tensor(made) is made
    for given in (tf.placeholder(tf.float32, [2]), made * 2.0, tf.get_variable("w", [2]).read_value()):
        count = len(graph.get_operations())
        assert tf.convert_to_tensor(given) is given
        assert len(graph.get_operations()) == count
    with tf.Session() as session:
        assert session.run(made).tolist() == [1.0, 2.0]
        values.data[0] = 5.0
        assert session.run(made).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="is not of float64"):
        tf.convert_to_tensor(values, tf.float64)


def test_a_subclass_may_take_the_arguments_of_its_gradients_by_name():
    class Halved(tf.train.GradientDescentOptimizer):
        def compute_gradients(self, loss, var_list, **options):
            return [(g * 0.5, v) for g, v in super().compute_gradients(loss, var_list, **options)]

        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            return super().apply_gradients(grads_and_vars, global_step, name)

    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(1.0)
        step = Halved(0.5).minimize(v * v, var_list=[v])
        session.run(v.initializer)
        session.run(step)
        assert session.run(v) == 0.5


def test_a_set_of_variables_is_initialised():
    with tf.Graph().as_default(), tf.Session() as session:
        made = {tf.Variable(1.0), tf.Variable(2.0)}
        session.run(tf.variables_initializer(made))
        assert sorted(session.run(list(made))) == [1.0, 2.0]


def test_operators_of_tensors_are_given_to_classes_around_them():
    class Around:
        def __init__(self, value):
            self.value = tf.constant(value)

    for name in tf.Tensor.OVERLOADABLE_OPERATORS:
        method = getattr(tf.Tensor, name)
        setattr(Around, name, lambda self, *others, method=method: method(self.value, *others))
    with tf.Graph().as_default(), tf.Session() as session:
        x = Around([1.0, 2.0])
        assert session.run([x + 1.0, 1.0 - x, -x, x[1]])[1].tolist() == [0.0, -1.0]
    assert "__eq__" not in tf.Tensor.OVERLOADABLE_OPERATORS
