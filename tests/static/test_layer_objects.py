"""Layers as objects."""

import numpy
import pytest

import twofold.static as tf

IMAGES = numpy.random.default_rng(0).standard_normal((2, 6, 6, 3)).astype("f")


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_calls_share_variables(session):
    x = tf.placeholder(tf.float32, [None, 4])
    layer, other = tf.layers.Dense(3, activation=tf.nn.relu), tf.layers.Dense(3, name="last")
    with pytest.raises(AttributeError, match="no variable 'kernel'"):
        getattr(layer, "kernel")  # noqa: B009
    one, two = layer(x), layer(x * 2.0)
    other(one)
    assert [v.name for v in tf.trainable_variables()] == [
        "dense/kernel:0",
        "dense/bias:0",
        "last/kernel:0",
        "last/bias:0",
    ]
    assert layer.weights == tf.trainable_variables()[:2] and layer.kernel is layer.weights[0]
    assert (layer.name, other.name) == ("dense", "last") and layer.bias.shape.as_list() == [3]
    session.run(tf.global_variables_initializer())
    a, b, kernel = session.run([one, two, layer.kernel], {x: numpy.ones((2, 4))})
    numpy.testing.assert_allclose(b, 2 * a, rtol=1e-5)
    numpy.testing.assert_allclose(a[0], numpy.maximum(kernel.sum(0), 0), rtol=1e-5, atol=1e-6)


def test_images(session):
    layers = [
        tf.layers.Conv2D(4, 3, padding="same"),
        tf.layers.BatchNormalization(),
        tf.layers.MaxPooling2D(2, 2),
        tf.layers.Conv2DTranspose(2, 3, 2),
        tf.layers.SeparableConv2D(5, 2),
        tf.layers.AveragePooling2D(2, 2),
        tf.layers.Flatten(),
        tf.layers.Dropout(0.5),
        tf.layers.Dense(2),
    ]
    x = tf.constant(IMAGES)
    for layer in layers:
        x = layer(x)
    assert x.get_shape().as_list() == [2, 2]
    assert layers[1].name == "batch_normalization" and len(layers[1].variables) == 4
    assert len(layers[1].trainable_variables) == 2
    session.run(tf.global_variables_initializer())
    assert numpy.isfinite(session.run(x)).all()


def test_layers_in_reused_scopes(session):
    x = tf.ones([2, 4])
    with tf.variable_scope("net"):
        one = tf.layers.Dense(3)(x)
    with tf.variable_scope("net", reuse=True):
        two = tf.layers.Dense(3)(x)
    session.run(tf.global_variables_initializer())
    a, b = session.run([one, two])
    assert (a == b).all() and len(tf.trainable_variables()) == 2


def test_other_modes(session):
    drop = tf.layers.Dropout(0.5)
    x = tf.ones([50])
    kept, dropped = session.run([drop(x), drop(x, training=True)])
    assert (kept == 1).all() and set(dropped.tolist()) == {0.0, 2.0}


def test_training_that_a_constant_tells_is_known():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(numpy.ones((20, 30), "f"))
        trained = tf.layers.dropout(
            x, 0.5, training=tf.convert_to_tensor("train")
        )  # a text that is not empty
        kept = tf.layers.dropout(x, 0.5, training=tf.constant(False))
        tf.layers.batch_normalization(x, training=tf.constant(False))
        assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
        found, same = session.run([trained, kept])
    assert 0 < (found == 0).mean() < 1 and (same == 1).all()


def test_a_layer_without_bias_says_so():
    with tf.Graph().as_default():
        layer = tf.layers.Dense(3, use_bias=False)
        layer(tf.zeros([2, 4]))
        assert layer.bias is None and layer.kernel.shape.as_list() == [4, 3]


def test_layers_of_one_name_have_variables_of_their_own(session):
    x = tf.ones([2, 3])
    layer = tf.layers.Dense(4, name="a")
    found = [layer(x), layer(x), tf.layers.Dense(4, name="a", dtype=tf.float32)(x)]
    assert [one.op.name for one in found] == ["a/BiasAdd", "a/BiasAdd_1", "a_1/BiasAdd"]
    names = [one.op.name for one in tf.trainable_variables()]
    assert names == ["a/kernel", "a/bias", "a_1/kernel", "a_1/bias"]
    assert (layer.units, layer.use_bias) == (4, True) and layer.kernel.op.name == "a/kernel"
    with pytest.raises(AttributeError, match="no attribute 'filters'"):
        getattr(layer, "filters")  # noqa: B009
    with tf.variable_scope("b"):
        tf.layers.Dense(4, name="a")(x)
    with tf.variable_scope("b", reuse=True):
        tf.layers.Dense(4, name="a")(x)
    assert len(tf.trainable_variables()) == 6
    with pytest.raises(ValueError, match="is not of float64"):
        tf.layers.Dense(4, dtype=tf.float64)(x)


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (lambda x: tf.layers.dense(x, 3), [2], r"dense: 'x:0' float32\[2\] .* has 1 axes.*Give at least 2"),
        (lambda x: tf.layers.conv2d(x, 3, 2), [4, 5, 3], r"conv2d: 'x:0' .* has 3 axes.*Give 4"),
        (lambda x: tf.layers.max_pooling2d(x, 2, 2), [4, 5, 3], "max_pooling2d: .* has 3 axes.*Give 4"),
        (lambda x: tf.nn.avg_pool(x, 2, 2, "VALID"), [4, 5, 3], "avg_pool: .* has 3 axes.*Give 4"),
        (tf.layers.batch_normalization, [4, None], r"axis 1 of 'x:0' .*, its channels, is of unknown size"),
    ],
)  # fmt: skip
def test_inputs_with_another_number_of_axes(session, layer, shape, message):
    x = tf.placeholder(tf.float32, shape, name="x")
    with pytest.raises(ValueError, match=message):
        layer(x)
