"""Scopes, templates and creators of variables, and the names that contrib's layers give them, as in TensorFlow 1.15."""

import numpy as np
import pytest

import twofold.static as tf


def _names(variables):
    return [variable.op.name for variable in variables]


def test_variables_of_a_scope_are_those_inside():
    with tf.variable_scope("layer") as scope:
        tf.get_variable("w", [1])
        tf.get_local_variable("count", [1])
    with tf.variable_scope("layer2"):
        tf.get_variable("w", [1])
    assert _names(scope.global_variables()) == _names(scope.trainable_variables()) == ["layer/w"]
    assert _names(scope.local_variables()) == ["layer/count"]


def test_templates_have_their_scope_and_variables():
    def body(x):
        return x * tf.get_variable("w", [1]) + tf.get_variable("steps", [1], trainable=False)

    made = tf.make_template("part", body)
    assert made.variable_scope is None and made.variables == []
    made(1.0), made(2.0)
    assert made.variable_scope.name == made.variable_scope_name == "part" and made.func is body
    assert _names(made.trainable_variables) == ["part/w"] and _names(made.variables) == [
        "part/w",
        "part/steps",
    ]
    assert _names(made.non_trainable_variables) == ["part/steps"]


def test_creators_of_variables_are_called_from_the_inside():
    calls = []

    def creator(mark):
        def create(make, **options):
            calls.append((mark, options["name"]))
            return make(**{**options, "trainable": mark == "outer"})

        return create

    with tf.variable_creator_scope(creator("outer")), tf.variable_creator_scope(creator("inner")):
        tf.layers.dense(tf.zeros([1, 2]), 3, use_bias=False)
    tf.Variable(0.0)
    assert calls == [("inner", "dense/kernel"), ("outer", "dense/kernel")]
    assert _names(tf.trainable_variables()) == ["dense/kernel", "Variable"]


def test_names_of_layers_of_contrib():
    layers, x = tf.contrib.layers, tf.zeros([2, 8, 8, 3])
    y = layers.repeat(x, 2, layers.conv2d, 4, [3, 3])
    y = layers.stack(layers.flatten(layers.max_pool2d(y, 2)), layers.relu, [5, 6], scope="top")
    assert _names(tf.model_variables())[::2] == [
        "Repeat/convolution2d_1/weights",
        "Repeat/convolution2d_2/weights",
        "top/top_1/weights",
        "top/top_2/weights",
    ]
    assert layers.avg_pool2d(x, 2, outputs_collections="ends").name == "AvgPool2D/AvgPool:0"
    layers.dropout(x, is_training=False, scope="drop", outputs_collections="ends")
    assert list(layers.python.layers.utils.convert_collection_to_dict("ends")) == ["AvgPool2D", "drop"]
    with tf.contrib.framework.arg_scope([layers.conv2d], stride=2):
        assert layers.conv3d(tf.zeros([1, 4, 4, 4, 1]), 2, 1).shape == (1, 4, 4, 4, 2)
    for refused in (layers.conv2d, layers.conv2d_transpose):
        with pytest.raises(ValueError, match="data_format"):
            refused(x, 2, 3, data_format="CHWN")
    with pytest.raises(ValueError, match="rank"):
        layers.conv2d(tf.zeros([2, 8, 3]), 2, 3)
    assert layers.flatten(tf.zeros([3])).shape == (3, 1)


def test_transposed_and_separable_layers():
    random = np.random.default_rng(0)
    volume, signal = random.standard_normal((1, 2, 2, 2, 1)), random.standard_normal((1, 5, 2))
    spread = tf.layers.conv3d_transpose(volume, 1, 2, strides=2, use_bias=False)
    apart = tf.layers.separable_conv1d(signal, 3, 2, depth_multiplier=2, use_bias=False)
    kernel, depthwise, pointwise = tf.global_variables()
    assert [kernel.op.name, depthwise.op.name] == [
        "conv3d_transpose/kernel",
        "separable_conv1d/depthwise_kernel",
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, taps, rows, first, mix = session.run([spread, kernel, apart, depthwise, pointwise])
    expected = np.einsum("bijk,xyz->bixjykz", volume[..., 0], taps[..., 0, 0]).reshape(1, 4, 4, 4, 1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    windows = np.stack([signal[:, :-1], signal[:, 1:]], 1)
    np.testing.assert_allclose(
        rows, np.einsum("bktc,kcm->btcm", windows, first).reshape(1, 4, 4) @ mix[0], atol=1e-6
    )


def test_functions_of_tf_math():
    zero = tf.constant([0.0, 2.0])
    fetches = [
        tf.math.xlogy(zero, zero),
        tf.math.xdivy(zero, zero),
        tf.math.multiply_no_nan([np.inf, 3.0], zero),
        tf.math.reciprocal_no_nan(zero),
        tf.math.reduce_euclidean_norm([[3.0, 4.0]], keepdims=True),
        tf.math.polyval([1.0, 2.0, 3.0], 2.0),
        *tf.gradients(tf.math.reciprocal_no_nan(zero), zero),
    ]
    with tf.Session() as session:
        found = session.run(fetches)
        assert session.run([tf.math.is_non_decreasing([1, 1]), tf.math.is_strictly_increasing([1, 1])]) == [
            True,
            False,
        ]
    expected = [[0, 2 * np.log(2)], [0, 1], [0, 6], [0, 0.5], [[5]], 11, [0, -0.25]]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_seeds_sizes_and_no_penalty():
    assert tf.get_seed(3) == (87654321, 3) and tf.get_seed(None) == (None, None)
    tf.set_random_seed(5)
    assert tf.get_seed(None) == (5, len(tf.get_default_graph().get_operations()))
    shape = tf.placeholder(tf.float32, [None, 3]).shape
    assert [tf.dimension_value(size) for size in shape] == [None, 3] and tf.dimension_at_index(
        shape, 1
    ).value == 3
    with tf.variable_scope("layer", regularizer=tf.contrib.layers.l2_regularizer(0.1)):
        tf.get_variable("w", [1], regularizer=tf.no_regularizer)
    assert tf.losses.get_regularization_losses() == []


def test_variables_of_slim_have_defaults_of_scopes():
    slim = tf.contrib.slim
    with tf.Graph().as_default():
        with slim.arg_scope([slim.variable, slim.model_variable], device="/cpu:0", trainable=False):
            plain = slim.variable("plain", [2], collections=["mine", "mine"])
            model = slim.model_variable("model", [2], collections=["mine"])
        asked = []
        found = slim.variable(
            "own", [3], custom_getter=lambda name, **given: asked.append((name, given)) or name
        )
        assert (plain.device, model.device) == ("/device:CPU:0",) * 2 and not tf.trainable_variables()
        assert tf.get_collection("mine") == [plain, model]
        assert (tf.global_variables(), tf.model_variables()) == ([model], [model])
        assert found == "own" and asked[0][1]["shape"] == [3] and asked[0][1]["reuse"] is not True
        with slim.arg_scope([slim.softmax, slim.maxout], scope="made"):
            assert slim.softmax(tf.zeros([1, 2])).name == "made/Reshape_1:0"


AUTO = tf.AUTO_REUSE


@pytest.mark.parametrize(
    ("outer", "given", "named", "entered"),
    [  # Of TensorFlow 1.15.5: a scope named anew, and one that was made outside with no reuse, inside ``outer``.
        (None, False, False, False),
        (None, AUTO, AUTO, AUTO),
        (True, None, True, False),
        (True, False, True, False),
        (True, AUTO, AUTO, AUTO),
        (AUTO, None, AUTO, False),
        (AUTO, False, AUTO, False),
        (AUTO, True, True, True),
    ],
)
def test_reuse_that_is_false_is_that_of_the_scope_around_a_name_and_of_an_entered_scope_its_own(
    outer: object, given: object, named: object, entered: object
) -> None:
    with tf.Graph().as_default():
        with tf.variable_scope("made") as made:
            pass
        with tf.variable_scope("outer", reuse=outer):
            with tf.variable_scope("inner", reuse=given) as inner:
                assert inner.reuse is named
            with tf.variable_scope(made, reuse=given) as again:
                assert again.reuse is entered
