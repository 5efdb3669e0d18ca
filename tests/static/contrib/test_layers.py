"""Layers of ``tf.contrib.layers`` and their default arguments by scopes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.errors import ArgumentError

layers, slim = tf.contrib.layers, tf.contrib.slim


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(value: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(value, feeds)


def names(variables: Any = None) -> list[str]:
    return [variable.name for variable in (tf.global_variables() if variables is None else variables)]


IMAGES = numpy.random.default_rng(0).normal(size=(2, 6, 6, 3)).astype(numpy.float32)


def test_a_convolution_is_that_of_layers_with_relu() -> None:
    y = layers.conv2d(IMAGES, 4, [3, 3], stride=2, scope="c", biases_initializer=tf.ones_initializer())
    weights, bias = tf.trainable_variables()
    assert names() == ["c/weights:0", "c/biases:0"] == names(tf.model_variables())
    plain = tf.nn.relu(tf.nn.conv2d(IMAGES, weights, [1, 2, 2, 1], "SAME") + bias)
    a, b = run([y, plain])
    assert a.shape == (2, 3, 3, 4) and numpy.array_equal(a, b)


@pytest.mark.parametrize(
    ("make", "shape", "expected"),
    [
        (lambda x: layers.conv2d_transpose(x, 4, 3, stride=2), (2, 12, 12, 4), "Conv2d_transpose"),
        (lambda x: layers.separable_conv2d(x, 5, 3), (2, 6, 6, 5), "SeparableConv2d"),
        (lambda x: layers.separable_conv2d(x, None, 3, 2), (2, 6, 6, 6), "SeparableConv2d"),
        (lambda x: layers.conv2d(x, 4, x.shape[1:3], padding="VALID"), (2, 1, 1, 4), "Conv"),
        (lambda x: layers.conv2d(x, int(x.get_shape()[3]) + 1, 1), (2, 6, 6, 4), "Conv"),
        (lambda x: layers.bias_add(x), (2, 6, 6, 3), "BiasAdd"),
        (lambda x: layers.layer_norm(x), (2, 6, 6, 3), "LayerNorm"),
        (lambda x: layers.instance_norm(x), (2, 6, 6, 3), "InstanceNorm"),
        (lambda x: layers.group_norm(x, groups=3), (2, 6, 6, 3), "GroupNorm"),
        (lambda x: layers.batch_norm(x), (2, 6, 6, 3), "BatchNorm"),
    ],
)
def test_layers_have_tensorflows_names_and_shapes(make: Any, shape: Any, expected: str) -> None:
    y = make(tf.constant(IMAGES))
    assert {name.split("/")[0] for name in names()} == {expected} and run(y).shape == shape


def test_weights_are_shared_and_collected() -> None:
    x = tf.ones([2, 3])
    one = layers.fully_connected(x, 4, scope="f", variables_collections=["mine"], outputs_collections="out")
    two = layers.fully_connected(x, 4, scope="f", reuse=True)
    assert names() == ["f/weights:0", "f/biases:0"] == names(tf.get_collection("mine"))
    assert tf.get_collection("out") == [one]
    assert numpy.array_equal(*run([one, two]))


def test_normalised_layers_have_no_bias_and_penalties_are_collected() -> None:
    layers.fully_connected(
        tf.ones([2, 3]), 4, normalizer_fn=layers.batch_norm, weights_regularizer=layers.l2_regularizer(0.5)
    )
    assert not any("biases" in name for name in names())
    weights = tf.trainable_variables()[0]
    penalty, found = run([tf.losses.get_regularization_loss(), weights])
    assert penalty == pytest.approx(0.25 * (found**2).sum(), rel=1e-6)


def test_batch_norm_updates_at_once_or_with_the_step() -> None:
    x = tf.constant([[1.0], [3.0]])
    later = layers.batch_norm(x, decay=0.5, scope="later")
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    now = layers.batch_norm(x, decay=0.5, scope="now", updates_collections=None)
    mine = layers.batch_norm(x, decay=0.5, scope="mine", updates_collections="mine")
    assert (
        len(updates) == len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == len(tf.get_collection("mine")) == 2
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        means = {name.split("/")[0]: v for name, v in zip(names(), tf.global_variables()) if "mean" in name}
        session.run([later, now, mine])
        assert session.run([means[k] for k in ("later", "now", "mine")]) == [0.0, 1.0, 0.0]
        session.run([updates, tf.get_collection("mine")])
        assert session.run([means[k] for k in ("later", "now", "mine")]) == [1.0, 1.0, 1.0]


def test_a_pool_over_the_sizes_of_a_shape() -> None:
    x = tf.constant(IMAGES)
    found = run(slim.avg_pool2d(x, x.get_shape()[1:3]))
    numpy.testing.assert_allclose(found, IMAGES.mean((1, 2), keepdims=True), atol=1e-6)


def test_channels_that_are_not_mixed() -> None:
    y = layers.separable_conv2d(
        IMAGES, None, 1, 2, biases_initializer=tf.ones_initializer(), activation_fn=None
    )
    assert names() == ["SeparableConv2d/depthwise_weights:0", "SeparableConv2d/biases:0"]
    found, weights = run([y, tf.trainable_variables()[0]])
    numpy.testing.assert_allclose(
        found, (IMAGES[..., None] * weights[0, 0]).reshape(2, 6, 6, 6) + 1, rtol=1e-5
    )


def test_a_moving_mean_that_counts_as_started_from_zeros() -> None:
    x = tf.placeholder(tf.float32, [2, 1])
    y = layers.batch_norm(x, decay=0.75, updates_collections=None, zero_debias_moving_mean=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        means = {name.rpartition("/")[2]: v for name, v in zip(names(), tf.global_variables())}
        total = 0.0
        for step, value in enumerate([4.0, 2.0, 7.0], 1):
            session.run(y, {x: [[value - 1], [value + 1]]})
            total = 0.75 * total + 0.25 * value
            assert session.run(means["moving_mean:0"]) == pytest.approx(total / (1 - 0.75**step), rel=1e-6)
        assert session.run(means["moving_variance:0"]) == pytest.approx(2.0 - 0.75**3)  # unbiased ones are 2
    with pytest.raises(ArgumentError, match="is_training"):
        layers.batch_norm(x, is_training=tf.placeholder(tf.bool, []), zero_debias_moving_mean=True)


def test_normalisation_over_axes() -> None:
    x = IMAGES.astype(numpy.float64)

    def standard(axes: Any) -> Any:
        return (x - x.mean(axes, keepdims=True)) / numpy.sqrt(x.var(axes, keepdims=True) + 1e-6)

    grouped = x.reshape(2, 6, 6, 1, 3)
    whole = (grouped - grouped.mean((1, 2, 4), keepdims=True)) / numpy.sqrt(
        grouped.var((1, 2, 4), keepdims=True) + 1e-6
    )
    pairs = [
        (layers.layer_norm(x), standard((1, 2, 3))),
        (layers.instance_norm(x), standard((1, 2))),
        (layers.group_norm(x, groups=1), whole.reshape(x.shape)),
        (layers.group_norm(x, groups=3), standard((1, 2))),
        (layers.unit_norm(x, 3), x / numpy.sqrt((x**2).sum(3, keepdims=True) + 1e-7)),
    ]
    for found, wanted in zip(run([pair[0] for pair in pairs]), [pair[1] for pair in pairs], strict=True):
        numpy.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_scopes_give_arguments_inner_ones_first() -> None:
    x = tf.ones([2, 3])
    outer = slim.arg_scope([slim.fully_connected], activation_fn=None, biases_initializer=None)
    with outer as kept:
        y = slim.fully_connected(x, 4)
        with slim.arg_scope([slim.fully_connected], activation_fn=tf.nn.sigmoid):
            z = slim.fully_connected(x, 4)
            w = slim.fully_connected(x, 4, activation_fn=tf.nn.tanh)
    with slim.arg_scope(kept):
        again = slim.fully_connected(x, 4)
    assert [one.op.type for one in (y, z, w, again)] == ["MatMul", "Sigmoid", "Tanh", "MatMul"]
    assert not any("biases" in name for name in names())
    with pytest.raises(ArgumentError, match="add_arg_scope"), slim.arg_scope([len], a=1):
        pass


def test_layers_above_each_other() -> None:
    x = tf.zeros([2, 6, 6, 3])
    assert slim.repeat(x, 2, slim.conv2d, 4, 3, scope="conv1").shape == (2, 6, 6, 4)
    assert slim.stack(tf.zeros([2, 3]), slim.fully_connected, [5, 6], scope="fc").shape == (2, 6)
    found = {name.rpartition("/")[0] for name in names()}
    assert found == {"conv1/conv1_1", "conv1/conv1_2", "fc/fc_1", "fc/fc_2"}
    assert slim.model_analyzer.analyze_vars(slim.get_model_variables("fc")) == (56, 224)


def test_a_loss_is_optimised() -> None:
    w = tf.Variable([3.0, 4.0])
    step = tf.train.get_or_create_global_step()
    options = {"gradient_multipliers": {w: 2.0}, "clip_gradients": 5.0, "update_ops": []}
    made = layers.optimize_loss(tf.reduce_sum(w * w) / 2, step, 1.0, "SGD", **options)
    assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 2
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(made) == 12.5 and session.run(step) == 1
        numpy.testing.assert_allclose(session.run(w), [0.0, 0.0], atol=1e-6)
    with pytest.raises(ArgumentError, match="optimizer"):
        layers.optimize_loss(tf.reduce_sum(w), None, 1.0, "Best")


def test_settings_by_name() -> None:
    settings = tf.contrib.training.HParams(rate=0.1, sizes=[1, 2], deep=False, name="a")
    settings.parse("rate=2,sizes=[3,4],deep=true,name=b")
    assert settings.values() == {"rate": 2.0, "sizes": [3, 4], "deep": True, "name": "b"}
    assert settings.rate == 2.0 and "deep" in settings
    with pytest.raises(ArgumentError, match="width"):
        settings.parse("width=3")


def test_softmax_takes_a_scope():
    slim = tf.contrib.slim
    with tf.Graph().as_default(), tf.Session() as session:
        made = slim.softmax(tf.constant([[0.0, numpy.log(3.0)]], tf.float32), scope="Predictions")
        numpy.testing.assert_allclose(session.run(made), [[0.25, 0.75]], rtol=1e-6)
        assert made.op.name == "Predictions/Reshape_1"  # what programs freeze graphs to
        wide = slim.softmax(tf.placeholder(tf.float32, [None, 3, 2]))
        assert (wide.op.name, wide.shape.as_list()) == ("softmax/Reshape_1", [None, 3, 2])
        with pytest.raises(ValueError, match="rank"):
            slim.softmax(tf.zeros([3]))


@pytest.mark.parametrize("name", ["layer_norm", "instance_norm", "group_norm"])
def test_variables_of_normalised_values_are_in_order(name):
    with tf.Graph().as_default():
        options = {"groups": 2} if name == "group_norm" else {}
        getattr(tf.contrib.layers, name)(tf.zeros([2, 3, 3, 4]), scope="n", **options)
        assert [one.name for one in tf.trainable_variables()] == ["n/beta:0", "n/gamma:0"]


@pytest.mark.parametrize(
    ("shape", "options", "unbiased", "order"),
    [
        ((4, 1), {}, True, ["beta", "gamma"]),
        ((4, 1), {"fused": False}, False, ["gamma", "beta"]),
        ((4, 1), {"fused": False, "updates_collections": None}, False, ["beta", "gamma"]),
        ((2, 2, 1, 1), {}, True, ["gamma", "beta"]),
        ((2, 2, 1, 1), {"updates_collections": None}, True, ["beta", "gamma"]),
        ((2, 2, 1), {}, False, ["gamma", "beta"]),
        ((2, 2, 1), {"fused": True}, False, ["gamma", "beta"]),
        ((2, 2, 1), {"updates_collections": "mine"}, False, ["beta", "gamma"]),
    ],
)
def test_batch_norm_is_the_fused_one_where_tensorflow_takes_it(
    shape: Any, options: Any, unbiased: bool, order: Any
) -> None:
    x = numpy.array([1.0, 2.0, 4.0, 9.0], numpy.float32)
    y = layers.batch_norm(x.reshape(shape), decay=0.0, scale=True, **options)
    assert names() == [f"BatchNorm/{name}:0" for name in [*order, "moving_mean", "moving_variance"]]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([y, tf.get_collection(tf.GraphKeys.UPDATE_OPS), tf.get_collection("mine")])
        kept = session.run(tf.global_variables()[-1])
    numpy.testing.assert_allclose(kept, [x.var(ddof=int(unbiased))], rtol=1e-6)


def test_spatial_softmax_is_the_mean_position_of_each_channel():
    x = numpy.random.default_rng(0).standard_normal((2, 3, 4, 2)).astype("f")
    weights = numpy.exp(x / 2.0)
    weights /= weights.sum((1, 2), keepdims=True)
    rows = (weights * numpy.linspace(-1, 1, 3)[:, None, None]).sum((1, 2))
    columns = (weights * numpy.linspace(-1, 1, 4)[:, None]).sum((1, 2))
    expected = numpy.stack([rows, columns], -1).reshape(2, 4)  # channel by channel, the row first
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.contrib.layers.spatial_softmax(x, temperature=2.0)
        turned = tf.contrib.layers.spatial_softmax(x.transpose(0, 3, 1, 2), 2.0, data_format="NCHW")
        tf.contrib.layers.embed_sequence([[1, 2]], 4, 3)
        names = [one.name for one in tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)]
        scopes = ["spatial_softmax/temperature:0", "spatial_softmax_1/temperature:0"]
        assert names == [*scopes, "EmbedSequence/embeddings:0"]
        session.run(tf.global_variables_initializer())
        for one in session.run([found, turned]):
            numpy.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-6)
