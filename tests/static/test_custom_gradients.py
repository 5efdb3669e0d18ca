"""Gradients that the program gives; the expected values were recorded from TensorFlow 2.21, ``tf.compat.v1``."""

import numpy
import pytest

import twofold.static as tf
from twofold.static.python.framework import ops


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


@pytest.fixture
def register(request):
    """Enter a gradient function under a name that no other test has."""

    def enter(function):
        name = f"{request.node.name}:{enter.count}"
        enter.count += 1
        tf.RegisterGradient(name)(function)
        return name

    enter.count = 0
    return enter


def overridden(types):
    return tf.get_default_graph().gradient_override_map(types)


def lists(values):
    return [numpy.asarray(value).tolist() for value in values]


@tf.custom_gradient
def doubled(x):
    return x * 2.0, lambda gradient: gradient * 3.0


def test_a_function_with_its_gradient_and_the_gradient_of_that(session):
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)
        return tf.log(1 + e), lambda gradient: gradient * (1 - 1 / (1 + e))

    x = tf.constant([1.0, 100.0])
    first = tf.gradients(log1pexp(x), x)[0]
    numpy.testing.assert_allclose(session.run(first), [0.7310586, 1.0], rtol=1e-6)
    assert session.run(tf.gradients(first, x)[0])[0] == pytest.approx(0.19661194, rel=1e-6)


def test_several_arguments_and_results(session):
    @tf.custom_gradient
    def function(x, y):
        return (x * y, x + y), lambda a, b: (a * y * 10.0 + b, b * 3.0)

    x, y = tf.constant(2.0), tf.constant(5.0)
    a, b = function(x, y)
    slopes = [*tf.gradients(a + 2 * b, [x, y]), *tf.gradients(a, [x, y]), *tf.gradients(b, [x, y])]
    assert session.run([a, b, *slopes]) == [10, 7, 52, 6, 50, 0, 1, 3]


def test_inside_loops_and_choices(session):
    x, choice = tf.constant(1.0), tf.placeholder(tf.bool, [])
    looped = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, doubled(y)), (0, x))[1]
    growing = tf.while_loop(
        lambda i, _: i < 2,
        lambda i, y: (i + 1, tf.concat([y, doubled(y)], 0)),
        (0, tf.stack([x])),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
    )[1]
    assert session.run([looped, tf.gradients(looped, x)[0]]) == [8.0, 27.0]
    assert lists(session.run([growing, tf.gradients(growing, x)[0]])) == [[1, 2, 2, 4], 16]
    chosen = tf.cond(choice, lambda: doubled(x), lambda: x)
    assert [session.run(tf.gradients(chosen, x)[0], {choice: k}) for k in (True, False)] == [3.0, 1.0]
    mapped = tf.map_fn(doubled, tf.stack([x, x]))
    assert session.run(tf.gradients(mapped, x)[0]) == 6.0


def test_variables_of_the_function(session):
    @tf.custom_gradient
    def scaled(x):
        w = tf.get_variable("w", initializer=3.0, use_resource=True)
        return x * w, lambda gradient, variables=None: (gradient * 7.0, [gradient * 11.0])

    x = tf.constant(2.0)
    y = scaled(x)
    slopes = tf.gradients(y, [x, *tf.trainable_variables()])
    session.run(tf.global_variables_initializer())
    assert session.run([y, *slopes]) == [6.0, 7.0, 11.0]

    @tf.custom_gradient
    def wrong(x):
        return x * tf.trainable_variables()[0], lambda gradient: gradient

    with pytest.raises(TypeError, match="take 'variables'"):
        wrong(x)


def test_values_from_outside_have_no_gradient(session):
    w = tf.constant(5.0)
    y = tf.custom_gradient(lambda x: (x * w, lambda gradient: gradient * w))(tf.constant(2.0))
    assert tf.gradients(y, w) == [None]


def test_what_passes_a_gradient_through(session):
    x = tf.constant([1.0, 2.0])
    y = tf.grad_pass_through(tf.round)(x * 1.3)
    numpy.testing.assert_allclose(session.run([y, tf.gradients(y, x)[0]]), [[1, 3], [1.3, 1.3]])
    z = tf.recompute_grad(lambda x: tf.exp(x) * x)(x)
    assert session.run(tf.gradients(z, x)[0])[0] == pytest.approx(5.4365635)


def test_an_operation_with_a_registered_gradient(session, register):
    name = register(lambda op, gradient: [tf.negative(gradient) * 2.0])
    x = tf.constant(3.0)
    with overridden({"Identity": name}):
        y = tf.identity(x * x)
    z = tf.identity(x * x)
    assert session.run([y, *tf.gradients(y * 2, x), *tf.gradients(z, x)]) == [9.0, -24.0, 6.0]
    assert y.op.get_attr("_gradient_op_type") == name.encode()


def test_operators_have_the_types_of_tensorflow(session, register):
    name = register(lambda op, gradient: (gradient * 2.0, gradient * 3.0))
    a, b = tf.constant(3.0), tf.constant(4.0)
    with overridden({"Mul": name}):
        y = a * b + tf.multiply(a, b)
    assert session.run(tf.gradients(y, [a, b])) == [4.0, 6.0]
    found = [(a + b).op.type, (a - b).op.type, (-a).op.type, (a < b).op.type, ((a < b) & (b < a)).op.type]
    assert found == ["AddV2", "Sub", "Neg", "Less", "LogicalAnd"]


def test_guided_backpropagation(session, register):
    def guided(op, gradient):
        zeros = tf.zeros_like(gradient)
        return tf.where(gradient > 0.0, tf.where(op.outputs[0] > 0.0, gradient, zeros), zeros)

    x, w = tf.constant([-1.0, 2.0, 3.0]), tf.constant([1.0, -1.0, 2.0])
    with overridden({"Relu": register(guided)}):
        y = tf.nn.relu(x)
    assert session.run(tf.gradients(y * w, x)[0]).tolist() == [0, 0, 2]


def test_a_python_function_with_a_gradient(session, register):
    x = tf.constant([1.0, 2.0])
    with overridden({"PyFunc": register(lambda op, gradient: [op.inputs[1] * gradient, None])}):
        y = tf.py_func(lambda a, k: a * k, [x, tf.constant(2.0)], tf.float32)
    assert lists(session.run([y, tf.gradients(tf.reduce_sum(y * y), x)[0]])) == [[2, 4], [8, 16]]


def test_the_gradient_of_identity_trains_a_sign(session):
    x = tf.Variable([0.5, -2.0])
    with overridden({"Sign": "Identity"}):
        y = tf.sign(x)
    step = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(y * y * 3.0))
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert session.run(x).tolist() == [-5.5, 4.0]


def test_no_gradient(session, register):
    x = tf.constant(3.0)
    with overridden({"Identity": register(lambda op, gradient: None)}):
        y = tf.identity(x)
    assert tf.gradients(y, x) == [None]
    assert session.run(tf.gradients(y * x, x)[0]) == 3.0
    ops.NotDifferentiable("test_no_gradient")
    with overridden({"Identity": "test_no_gradient"}):
        assert tf.gradients(tf.identity(x), x) == [None]


def test_mistakes(session, register):
    x = tf.constant(3.0)
    name = register(lambda op, gradient: (gradient, gradient))
    with pytest.raises(KeyError, match="Registering two gradient with name"):
        ops.RegisterGradient(name)(lambda op, gradient: gradient)
    with overridden({"Identity": name}):
        y = tf.identity(x)
    with pytest.raises(ValueError, match="Num gradients 2 generated for op Identity"):
        tf.gradients(y, x)
    with overridden({"Identity": "nothing"}):
        z = tf.identity(x)
    with pytest.raises(LookupError, match="none is registered as 'nothing'"):
        tf.gradients(z, x)
    with pytest.raises(TypeError, match="Map type to name"), overridden({"Identity": 3}):
        pass
    with pytest.raises(ValueError, match="Give them by position"):
        doubled(x=x)
    with pytest.raises(RuntimeError, match="has a gradient of its own"):
        tf.hessians(doubled(x), x)
    with overridden({"Identity": register(lambda op, gradient: tf.stack([gradient, gradient]))}):
        wrong = tf.gradients(tf.identity(x), x)[0]
    with pytest.raises(ValueError, match="Return gradients of the types of the inputs"):
        session.run(wrong)
