"""Modules that programs import from, and names of tensors, as in TensorFlow 1.15."""

import importlib

import numpy as np
import pytest

import twofold.static as tf
from twofold.static.python.framework import function
from twofold.static.python.util import nest, tf_inspect


@pytest.mark.parametrize(
    "module, name",
    [
        ("contrib.distributions", "Normal"),
        ("contrib.eager.python.tfe", "num_gpus"),
        ("contrib.keras.layers", "Dense"),
        ("contrib.signal", "stft"),
        ("python.eager.context", "executing_eagerly"),
        ("python.estimator.util", "fn_args"),
        ("python.framework.function", "Defun"),
        ("python.ops.gradient_checker", "compute_gradient_error"),
        ("python.ops.init_ops", "Initializer"),
        ("python.util.all_util", "remove_undocumented"),
        ("python.util.deprecation", "silence"),
        ("python.util.nest", "flatten_up_to"),
    ],
)
def test_imports(module, name):
    found = importlib.import_module(f"twofold.static.{module}")
    assert callable(getattr(found, name)) and name in dir(found)


def test_names_of_losses_and_penalties():
    x = tf.constant([[1.0, 2.0]])
    assert tf.cast(x, tf.float32) is x and tf.to_float(x) is x
    assert tf.losses.mean_squared_error([[1, 0]], x).name == "mean_squared_error/value:0"
    assert tf.losses.softmax_cross_entropy([[1, 0]], x).name == "softmax_cross_entropy_loss/value:0"
    with tf.variable_scope("part"):
        tf.get_variable("w", [2], regularizer=tf.contrib.layers.l2_regularizer(0.1))
        tf.get_variable("v", [2], regularizer=tf.contrib.layers.l1_regularizer(0.0))
    names = [loss.name for loss in tf.losses.get_regularization_losses()]
    assert names == ["part/w/Regularizer/l2_regularizer:0"]
    with pytest.raises(ValueError, match="integer"):
        tf.contrib.layers.l1_regularizer(1)


def test_classes_and_weights_with_a_last_axis_of_one():
    scores = np.array([[1.0, 2.0], [0.5, 0.0]], np.float32)
    plain = tf.losses.sparse_softmax_cross_entropy([0, 1], scores, weights=[1.0, 3.0])
    other = tf.losses.sparse_softmax_cross_entropy([[0], [1]], scores, weights=[[1.0], [3.0]])
    rows = np.log(np.exp(scores).sum(1)) - scores[[0, 1], [0, 1]]
    with tf.Session() as session:
        np.testing.assert_allclose(session.run([plain, other]), [(rows * [1, 3]).sum() / 2] * 2, rtol=1e-6)


def test_functions_with_gradients_of_their_own():
    @function.Defun(tf.float32, tf.float32, python_grad_func=lambda call, g: (g * call.inputs[1], 7 * g))
    def product(a, b):
        return a * b

    @function.Defun()
    def minus(a, g):
        return -g

    @function.Defun(grad_func=minus, shape_func=lambda call: [call.inputs[0].shape])
    def doubled(a):
        return 2 * a

    a, b = tf.get_variable("a", initializer=[2.0]), tf.constant([5.0])
    found = [product(a, b), *tf.gradients(product(a, b), [a, b]), *tf.gradients(doubled(a), a)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert [float(value[0]) for value in session.run(found)] == [10, 5, 7, -1]
    with pytest.raises(ValueError, match="expected number of arguments"):
        product(a)


def test_gradients_beside_differences():
    x, w = tf.placeholder(tf.float64, [2]), tf.constant([[1.0, 2.0], [3.0, 4.0]], tf.float64)
    y = tf.linalg.matvec(w, tf.square(x))
    with tf.Session().as_default():
        found, differences = tf.test.compute_gradient(x, [2], y, [2], np.array([1.0, -1.0]))
        np.testing.assert_allclose(found, [[2, 6], [-4, -8]])
        np.testing.assert_allclose(differences, found, atol=1e-6)
        assert tf.test.compute_gradient_error(x, [2], y, [2]) < 1e-6


def test_structures_up_to_others():
    assert nest.map_structure_up_to([0, (0,)], str, [[1, 2], ({3: 4},)]) == ["[1, 2]", ("{3: 4}",)]
    with pytest.raises(ValueError, match="lengths"):
        nest.assert_shallow_structure([0, 0], [1])
    with pytest.raises(TypeError, match="no structure"):
        nest.flatten_up_to([[0]], [1])
    assert tf_inspect.getargspec(lambda a, b=2, *c, **d: None) == (["a", "b"], "c", "d", (2,))


def test_constants_of_bfloat16_and_empty_lists():
    half = tf.constant([2.0, 3.5], tf.bfloat16)
    variable = tf.get_variable("v", [1], tf.bfloat16, initializer=tf.ones_initializer())
    joined = tf.concat([tf.constant([1]), []], 0)
    assert (half.dtype, variable.dtype, joined.dtype) == (tf.bfloat16, tf.bfloat16, tf.int32)
    assert (half + [1.0, 2.0]).dtype == tf.add(half, [1.0, 2.0]).dtype == tf.bfloat16
    with tf.Session() as session:
        assert session.run(tf.cast(half, tf.float32)).tolist() == [2.0, 3.5]


def test_halves_are_normalised_in_float32():
    x = np.random.default_rng(0).standard_normal((2, 3, 3, 2)).astype(np.float16)
    y, mean, variance = tf.nn.fused_batch_norm(x, [1.0, 1.0], [0.0, 0.0])
    assert (y.dtype, mean.dtype, variance.dtype) == (tf.float16, tf.float32, tf.float32)
    with tf.Session() as session:
        found = session.run([mean, variance])
    wide = x.astype(np.float64).reshape(-1, 2)
    np.testing.assert_allclose(found, [wide.mean(0), wide.var(0, ddof=1)], rtol=1e-5)
