"""Channels first gives what channels last gives, transposed: convolutions, pooling, normalisation, layers, blocks."""

import numpy
import pytest

import twofold.static as tf

random = numpy.random.default_rng(0)
SIGNALS = random.random((2, 7, 4)).astype(numpy.float32)
IMAGES = random.random((2, 6, 6, 4)).astype(numpy.float32)
VOLUMES = random.random((1, 4, 4, 4, 2)).astype(numpy.float32)
KERNEL = {1: random.random((3, 4, 5)), 2: random.random((3, 3, 4, 5)), 3: random.random((2, 2, 2, 2, 3))}
KERNEL = {count: value.astype(numpy.float32) for count, value in KERNEL.items()}
DEPTHWISE = random.random((3, 3, 4, 2)).astype(numpy.float32)
POINTWISE = random.random((1, 1, 8, 3)).astype(numpy.float32)
BIAS = random.random(4).astype(numpy.float32)


def letters(first, count=2):
    return {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}[count][first]


def words(first):
    return "channels_first" if first else "channels_last"


def steps(first, size, count=2):
    return [1, 1] + [size] * count if first else [1] + [size] * count + [1]


ONES = tf.ones_initializer()
CASES = {
    "bias_add": (IMAGES, lambda x, f: tf.nn.bias_add(x, BIAS, data_format=letters(f))),
    "conv1d": (SIGNALS, lambda x, f: tf.nn.conv1d(x, KERNEL[1], 2, "SAME", data_format=letters(f, 1))),
    "conv2d": (
        IMAGES,
        lambda x, f: tf.nn.conv2d(x, KERNEL[2], steps(f, 2), "SAME", data_format=letters(f)),
    ),
    "conv3d": (
        VOLUMES,
        lambda x, f: tf.nn.conv3d(x, KERNEL[3], steps(f, 1, 3), "SAME", data_format=letters(f, 3)),
    ),
    "depthwise_conv2d": (
        IMAGES,
        lambda x, f: tf.nn.depthwise_conv2d(x, DEPTHWISE, steps(f, 1), "SAME", data_format=letters(f)),
    ),
    "separable_conv2d": (
        IMAGES,
        lambda x, f: tf.nn.separable_conv2d(
            x, DEPTHWISE, POINTWISE, steps(f, 1), "SAME", data_format=letters(f)
        ),
    ),
    "max_pool": (
        IMAGES,
        lambda x, f: tf.nn.max_pool(x, steps(f, 3), steps(f, 2), "SAME", data_format=letters(f)),
    ),
    "avg_pool3d": (
        VOLUMES,
        lambda x, f: tf.nn.avg_pool3d(x, steps(f, 2, 3), steps(f, 2, 3), "SAME", data_format=letters(f, 3)),
    ),
    "pool 1": (SIGNALS, lambda x, f: tf.nn.pool(x, [3], "AVG", "SAME", data_format=letters(f, 1))),
    "pool 2": (
        IMAGES,
        lambda x, f: tf.nn.pool(x, [3, 2], "MAX", "SAME", strides=[2, 1], data_format=letters(f)),
    ),
    "pool 3": (VOLUMES, lambda x, f: tf.nn.pool(x, [2, 2, 2], "MAX", "VALID", data_format=letters(f, 3))),
    "convolution": (
        IMAGES,
        lambda x, f: tf.nn.convolution(x, KERNEL[2], "SAME", strides=[2, 2], data_format=letters(f)),
    ),
    "space_to_depth": (IMAGES, lambda x, f: tf.space_to_depth(x, 2, data_format=letters(f))),
    "depth_to_space": (IMAGES, lambda x, f: tf.depth_to_space(x, 2, data_format=letters(f))),
    "fused_batch_norm": (
        IMAGES,
        lambda x, f: tf.nn.fused_batch_norm(x, BIAS, BIAS, data_format=letters(f))[0],
    ),
    "fused_batch_norm with averages": (
        IMAGES,
        lambda x, f: tf.nn.fused_batch_norm(
            x, BIAS, BIAS, BIAS, BIAS, data_format=letters(f), is_training=False
        )[0],
    ),
    "layers.conv1d": (
        SIGNALS,
        lambda x, f: tf.layers.conv1d(x, 3, 3, 2, "same", words(f), kernel_initializer=ONES),
    ),
    "layers.conv2d": (
        IMAGES,
        lambda x, f: tf.layers.conv2d(x, 3, 3, data_format=words(f), bias_initializer=ONES),
    ),
    "layers.conv2d_transpose": (
        IMAGES,
        lambda x, f: tf.layers.conv2d_transpose(x, 3, 3, 2, "same", words(f), kernel_initializer=ONES),
    ),
    "layers.separable_conv2d": (
        IMAGES,
        lambda x, f: tf.layers.separable_conv2d(x, 3, 3, data_format=words(f), depthwise_initializer=ONES),
    ),
    "layers.max_pooling1d": (
        SIGNALS,
        lambda x, f: tf.layers.max_pooling1d(x, 3, 2, "same", data_format=words(f)),
    ),
    "layers.average_pooling2d": (
        IMAGES,
        lambda x, f: tf.layers.average_pooling2d(x, 3, 2, data_format=words(f)),
    ),
    "layers.batch_normalization": (
        IMAGES,
        lambda x, f: tf.layers.batch_normalization(x, axis=1 if f else -1, training=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_channels_first_is_channels_last_transposed(name):
    values, make = CASES[name]
    found = []
    for first in (False, True):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(1)
            given = numpy.ascontiguousarray(numpy.moveaxis(values, -1, 1)) if first else values
            made = make(tf.constant(given), first)
            session.run(tf.global_variables_initializer())
            result = session.run(made)
            assert made.shape.as_list() == list(result.shape)
            found.append(numpy.moveaxis(result, 1, -1) if first else result)
    numpy.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-6)


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_flatten_of_channels_first_has_them_last(session):
    first = numpy.moveaxis(IMAGES, -1, 1)
    flat = session.run(tf.layers.flatten(tf.constant(first), data_format="channels_first"))
    numpy.testing.assert_array_equal(flat, IMAGES.reshape(2, -1))


def test_a_bias_that_is_none_raises(session):
    for bias, words in (([1.0, 2.0], "a bias of shape"), (1.0, "a bias of shape")):
        with pytest.raises(ValueError, match=words):
            tf.nn.bias_add(tf.zeros([2, 3]), bias)
    with pytest.raises(ValueError, match="data_format 'HWC'"):
        tf.nn.bias_add(tf.zeros([2, 3]), tf.zeros([3]), "HWC")


def test_the_moving_variance_of_images_is_unbiased(session):
    tf.layers.batch_normalization(tf.constant(IMAGES), momentum=0.0, training=True)
    session.run(tf.global_variables_initializer())
    session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    (variance,) = [v for v in tf.global_variables() if "moving_variance" in v.name]
    numpy.testing.assert_allclose(session.run(variance), IMAGES.var((0, 1, 2), ddof=1), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("virtual_batch_size", 4),
        ("adjustment", lambda shape: shape),
    ],
)
def test_options_of_batch_normalisation_that_are_not_offered_raise(session, name, value):
    with pytest.raises(ValueError, match=f"{name} is not offered"):
        tf.layers.batch_normalization(tf.zeros([2, 3]), **{name: value})


def test_options_of_layers_work_or_raise(session):
    x = tf.constant(IMAGES)
    made = tf.layers.conv2d(
        x, 2, 1, activity_regularizer=tf.reduce_sum, kernel_constraint=tf.abs, name="conv"
    )
    (loss,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)[0].constraint is tf.abs
    session.run(tf.global_variables_initializer())
    found, total = session.run([loss, made])
    numpy.testing.assert_allclose(found, total.sum() / len(total), rtol=1e-5)
    for layer in (tf.layers.conv2d, tf.layers.separable_conv2d, tf.layers.conv2d_transpose):
        with pytest.raises(TypeError, match="nonsense"):
            layer(x, 2, 1, nonsense=1)
    dense = tf.layers.dense(tf.ones([2, 3]), 2, activity_regularizer=tf.reduce_sum, bias_constraint=tf.abs)
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2
    assert dense.shape.as_list() == [2, 2]
