"""Keras's layers on placeholders, against NumPy."""

import numpy
import pytest

import twofold.static as tf

L = tf.keras.layers
R = numpy.random.default_rng(0)


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def computed(session, layer, *values, **options):
    given = [tf.constant(numpy.asarray(value)) for value in values]
    made = layer(given if len(given) > 1 else given[0], **options)
    session.run(tf.global_variables_initializer())
    return session.run(made)


def hard_sigmoid(x):
    return numpy.clip(0.2 * x + 0.5, 0, 1)


def step_of(kind, z, h, c, kernel):
    if kind == "SimpleRNN":
        made = numpy.tanh(z + h @ kernel)
        return made, c
    if kind == "LSTM":
        i, f, g, o = numpy.split(z + h @ kernel, 4, 1)
        c = hard_sigmoid(f) * c + hard_sigmoid(i) * numpy.tanh(g)
        return hard_sigmoid(o) * numpy.tanh(c), c
    units = h.shape[1]
    update = hard_sigmoid(z[:, :units] + h @ kernel[:, :units])
    reset = hard_sigmoid(z[:, units : 2 * units] + h @ kernel[:, units : 2 * units])
    new = numpy.tanh(z[:, 2 * units :] + (reset * h) @ kernel[:, 2 * units :])
    return update * h + (1 - update) * new, c


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM", "GRU"])
def test_recurrent(session, kind, backwards):
    x = R.standard_normal((3, 5, 4)).astype("f")
    layer = getattr(L, kind)(6, return_sequences=True, return_state=True, go_backwards=backwards)
    outputs, last, *_ = computed(session, layer, x)
    kernel, recurrent, bias = layer.get_weights()
    h = c = numpy.zeros((3, 6))
    expected = []
    for t in reversed(range(5)) if backwards else range(5):
        h, c = step_of(kind, x[:, t] @ kernel + bias, h, c, recurrent)
        expected.append(h)
    numpy.testing.assert_allclose(outputs, numpy.stack(expected, 1), rtol=1e-5, atol=1e-6)
    numpy.testing.assert_allclose(last, h, rtol=1e-5, atol=1e-6)
    assert bias.tolist() == ([0] * 6 + [1] * 6 + [0] * 12 if kind == "LSTM" else [0] * len(bias))
    assert [one.op.name.split("/")[1] for one in layer.weights] == ["kernel", "recurrent_kernel", "bias"]


def test_both_directions(session):
    x = R.standard_normal((2, 4, 3)).astype("f")
    both = L.Bidirectional(L.GRU(5, return_sequences=True))
    found = computed(session, both, x)
    ahead, back = [session.run(part(tf.constant(x))) for part in (both.forward_layer, both.backward_layer)]
    numpy.testing.assert_array_equal(found, numpy.concatenate([ahead, back[:, ::-1]], 2))
    assert len(both.weights) == 6


def test_each_step(session):
    x = R.standard_normal((2, 4, 3)).astype("f")
    layer = L.TimeDistributed(L.Dense(2, bias_initializer="ones"))
    found = computed(session, layer, x)
    numpy.testing.assert_allclose(found, x @ session.run(layer.layer.kernel) + 1, rtol=1e-5)


IMAGE = R.standard_normal((2, 4, 4, 3)).astype("f")
ROWS = R.standard_normal((2, 3)).astype("f")
SIMPLE = {
    "max": (lambda: L.MaxPooling2D(), [IMAGE], IMAGE.reshape(2, 2, 2, 2, 2, 3).max((2, 4))),
    "average": (lambda: L.AveragePooling2D((2, 2)), [IMAGE], IMAGE.reshape(2, 2, 2, 2, 2, 3).mean((2, 4))),
    "overall": (lambda: L.GlobalAveragePooling2D(), [IMAGE], IMAGE.mean((1, 2))),
    "largest": (lambda: L.GlobalMaxPooling2D(), [IMAGE], IMAGE.max((1, 2))),
    "zeros": (lambda: L.ZeroPadding2D((1, 2)), [IMAGE], numpy.pad(IMAGE, [(0, 0), (1, 1), (2, 2), (0, 0)])),
    "cropped": (lambda: L.Cropping2D(((1, 0), (0, 2))), [IMAGE], IMAGE[:, 1:, :-2]),
    "larger": (lambda: L.UpSampling2D(2), [IMAGE], IMAGE.repeat(2, 1).repeat(2, 2)),
    "steps": (lambda: L.UpSampling1D(2), [IMAGE[:, 0]], IMAGE[:, 0].repeat(2, 1)),
    "reshape": (lambda: L.Reshape((-1, 3)), [IMAGE], IMAGE.reshape(2, 16, 3)),
    "permute": (lambda: L.Permute((3, 1, 2)), [IMAGE], IMAGE.transpose(0, 3, 1, 2)),
    "repeat": (lambda: L.RepeatVector(2), [ROWS], ROWS[:, None].repeat(2, 1)),
    "flat": (lambda: L.Flatten(), [IMAGE], IMAGE.reshape(2, -1)),
    "relu": (lambda: L.ReLU(0.5), [ROWS], numpy.clip(ROWS, 0, 0.5)),
    "leaky": (lambda: L.LeakyReLU(), [ROWS], numpy.where(ROWS > 0, ROWS, 0.3 * ROWS)),
    "elu": (lambda: L.ELU(0.5), [ROWS], numpy.where(ROWS > 0, ROWS, 0.5 * numpy.expm1(ROWS))),
    "activation": (lambda: L.Activation("hard_sigmoid"), [ROWS], hard_sigmoid(ROWS)),
    "noise": (lambda: L.GaussianNoise(1.0), [ROWS], ROWS),
    "add": (lambda: L.Add(), [ROWS, 2 * ROWS], 3 * ROWS),
    "subtract": (lambda: L.Subtract(), [ROWS, 2 * ROWS], -ROWS),
    "multiply": (lambda: L.Multiply(), [ROWS, ROWS], ROWS * ROWS),
    "average of": (lambda: L.Average(), [ROWS, 3 * ROWS], 2 * ROWS),
    "maximum": (lambda: L.Maximum(), [ROWS, -ROWS], abs(ROWS)),
    "concatenate": (lambda: L.Concatenate(), [ROWS, ROWS], numpy.concatenate([ROWS, ROWS], 1)),
    "dot": (lambda: L.Dot(1), [ROWS, ROWS], (ROWS * ROWS).sum(1, keepdims=True)),
}


@pytest.mark.parametrize("name", list(SIMPLE))
def test_without_variables(session, name):
    make, values, expected = SIMPLE[name]
    found = computed(session, make(), *values)
    numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_variables_and_collections(session):
    x = tf.placeholder(tf.float32, [None, 4, 4, 3])
    norm = L.BatchNormalization()
    made = L.Dense(2, kernel_constraint="non_neg")(L.Flatten()(norm(L.Conv2D(4, 3, activation="relu")(x))))
    assert made.shape.as_list() == [None, 2]
    names = (
        "conv2d/kernel conv2d/bias batch_normalization/gamma batch_normalization/beta dense/kernel dense/bias"
    )
    assert [one.op.name for one in tf.trainable_variables()] == names.split()
    assert len(norm.updates) == 2 and tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    assert len(norm.weights) == 4 and norm.count_params() == 16
    layer = L.Dense(3, name="own")
    first, second = layer(tf.ones([2, 4])), layer(tf.ones([2, 4]))
    session.run(tf.global_variables_initializer())
    numpy.testing.assert_array_equal(*session.run([first, second]))
    assert (
        layer.weights[0].name == "own/kernel:0" and layer.output_shape == (2, 3) and layer.input is not None
    )
    layer.trainable = False
    assert layer.trainable_weights == [] and len(layer.weights) == 2


def test_recurrent_layers_take_no_option_that_says_nothing_about_them():
    for made, option in (
        (L.SimpleRNN, "recurrent_activation"),
        (L.SimpleRNN, "unit_forget_bias"),
        (L.GRU, "unit_forget_bias"),
    ):
        with pytest.raises(TypeError, match=option):
            made(3, **{option: None})
    assert L.LSTM(3, unit_forget_bias=False).unit_forget_bias is False


def test_embeddings(session):
    layer = L.Embedding(10, 4)
    found = computed(session, layer, [[1, 9], [0, 1]])
    numpy.testing.assert_array_equal(found, layer.get_weights()[0][[[1, 9], [0, 1]]])


def test_named_values():
    value = tf.keras.regularizers.l1_l2(0.5, 0.25)(tf.constant([1.0, -2.0]))
    kept = tf.keras.constraints.max_norm(1.0)(tf.constant([[3.0], [4.0]]))
    assert value.eval() == 2.75
    numpy.testing.assert_allclose(kept.eval(), [[0.6], [0.8]], rtol=1e-5)
    assert tf.keras.initializers.he_normal()([4, 4]).shape.as_list() == [4, 4]
    assert tf.keras.activations.relu is tf.nn.relu and "relu" in dir(tf.keras.activations)
    with pytest.raises(AttributeError, match="no attribute 'none'"):
        tf.keras.activations.none  # noqa: B018


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize(("stride", "padding"), [(1, "valid"), (2, "same"), (1, "same")])
def test_depthwise_convolution(session, last, stride, padding):
    x = R.standard_normal((2, 6, 7, 3)).astype("f")
    layer = L.DepthwiseConv2D(
        3,
        stride,
        padding,
        depth_multiplier=2,
        data_format="channels_last" if last else "channels_first",
        activation="relu",
        bias_initializer=tf.constant_initializer(0.25),
    )
    found = computed(session, layer, x if last else x.transpose(0, 3, 1, 2))
    kernel, bias = layer.get_weights()
    assert kernel.shape == (3, 3, 3, 2) and bias.shape == (6,)
    sizes = [-(-n // stride) if padding == "same" else n - 2 for n in (6, 7)]
    added = [max((m - 1) * stride + 3 - n, 0) if padding == "same" else 0 for m, n in zip(sizes, (6, 7))]
    padded = numpy.pad(x, [(0, 0), *[(a // 2, a - a // 2) for a in added], (0, 0)])
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::stride, ::stride]
    wanted = numpy.einsum("bhwcij,ijcm->bhwcm", windows, kernel).reshape(2, *sizes, 6) + bias
    wanted = numpy.maximum(wanted, 0)
    wanted = wanted if last else wanted.transpose(0, 3, 1, 2)
    numpy.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis", [-1, 1, [1, 2]])
def test_layer_normalization(session, axis):
    x = R.standard_normal((2, 4, 5)).astype("f")
    layer = L.LayerNormalization(
        axis,
        1e-2,
        gamma_initializer=tf.constant_initializer(2.0),
        beta_initializer=tf.constant_initializer(0.5),
    )
    axes = tuple(axis) if isinstance(axis, list) else (axis,)
    mean, variance = (part(x, axes, keepdims=True) for part in (numpy.mean, numpy.var))
    wanted = 2 * (x - mean) / numpy.sqrt(variance + 1e-2) + 0.5
    numpy.testing.assert_allclose(computed(session, layer, x), wanted, rtol=1e-4, atol=1e-5)
    assert [w.shape for w in layer.get_weights()] == [tuple(x.shape[k] for k in axes)] * 2
    plain = L.LayerNormalization(axis, center=False, scale=False)
    plain(tf.constant(x))
    assert plain.weights == []


def test_edges_of_images_of_each_rank():
    rng = numpy.random.default_rng(0)
    layers = tf.keras.layers
    x, y, z = (rng.normal(size=(2, *[4] * count, 3)).astype("f") for count in (1, 2, 3))
    cases = [
        (layers.ZeroPadding1D((1, 2)), x, numpy.pad(x, [(0, 0), (1, 2), (0, 0)])),
        (layers.ZeroPadding2D(((1, 0), (0, 2))), y, numpy.pad(y, [(0, 0), (1, 0), (0, 2), (0, 0)])),
        (layers.ZeroPadding3D(1), z, numpy.pad(z, [(0, 0), *[(1, 1)] * 3, (0, 0)])),
        (layers.Cropping1D((0, 2)), x, x[:, :2]),
        (layers.Cropping1D(), x, x[:, 1:3]),
        (layers.Cropping2D(), y, y),
        (layers.Cropping3D(1), z, z[:, 1:3, 1:3, 1:3]),
        (layers.UpSampling1D(3), x, x.repeat(3, 1)),
        (layers.UpSampling3D((1, 2, 3)), z, z.repeat(2, 2).repeat(3, 3)),
        (layers.GlobalMaxPooling3D(), z, z.max((1, 2, 3))),
        (layers.GlobalAveragePooling3D(), z, z.mean((1, 2, 3))),
    ]
    with tf.Graph().as_default(), tf.Session() as session:
        for layer, given, wanted in cases:
            made = layer(tf.constant(given))
            assert made.shape == wanted.shape
            numpy.testing.assert_allclose(session.run(made), wanted, rtol=1e-5, atol=1e-6)


def test_rectifiers_with_limits_and_variables():
    x = numpy.array([[-2.0, 0.25, 1.0], [3.0, -0.5, 0.5]], "f")
    layers = tf.keras.layers
    with tf.Graph().as_default(), tf.Session() as session:
        beyond = layers.ReLU(max_value=2.0, negative_slope=0.5, threshold=0.5)(tf.constant(x))
        numpy.testing.assert_allclose(session.run(beyond), [[-1.25, -0.125, 1.0], [2.0, -0.5, 0.0]])
        assert session.run(layers.ThresholdedReLU(0.4)(tf.constant(x))).tolist() == [[0, 0, 1], [3, 0, 0.5]]
        layer = layers.PReLU(tf.keras.initializers.Constant(0.25))
        made = layer(tf.constant(x))
        session.run(tf.global_variables_initializer())
        numpy.testing.assert_allclose(session.run(made), numpy.where(x > 0, x, x / 4))
        assert [(one.name, one.shape) for one in layer.weights] == [("p_re_lu/alpha:0", (3,))]


def test_channels_are_dropped_whole_while_training():
    with tf.Graph().as_default(), tf.Session() as session:
        ones = tf.ones([20, 3, 3, 10])
        made = session.run(tf.keras.layers.SpatialDropout2D(0.5)(ones, training=True))
        assert set(made.ravel().tolist()) == {0.0, 2.0} and (made.std((1, 2)) == 0).all()
        noisy = tf.keras.layers.GaussianDropout(0.5)
        made = session.run(noisy(ones, training=True))
        assert abs(made.mean() - 1) < 0.1 and abs(made.std() - 1) < 0.1
        assert (session.run(noisy(ones, training=False)) == 1).all()


def test_both_directions_have_names_of_their_own() -> None:
    with tf.Graph().as_default():
        layer = tf.keras.layers.Bidirectional(tf.keras.layers.GRU(2, name="g"), name="both")
        layer(tf.zeros([2, 3, 4]))
        names = [variable.op.name for variable in layer.trainable_weights]
        parts = ("kernel", "recurrent_kernel", "bias")
        assert names == [f"both/{way}_g/{part}" for way in ("forward", "backward") for part in parts]
        again = tf.keras.layers.Bidirectional.from_config(layer.get_config())
        assert again.layer.name == "g" and again.forward_layer.name == "forward_g"


@pytest.mark.parametrize("layout", ["channels_last", "channels_first"])
def test_causal_convolutions(layout: str) -> None:
    x = numpy.random.default_rng(0).standard_normal((2, 7, 3)).astype("f")
    with tf.Graph().as_default(), tf.Session() as session:
        given = x if layout == "channels_last" else x.transpose(0, 2, 1)
        options = {"padding": "causal", "dilation_rate": 2, "data_format": layout}
        made = tf.keras.layers.Conv1D(4, 3, **options)(tf.constant(given))
        session.run(tf.global_variables_initializer())
        found, kernel = session.run([made, tf.trainable_variables()[0]])
    padded = numpy.pad(x, ((0, 0), (4, 0), (0, 0)))
    expected = sum(padded[:, 2 * k : 2 * k + 7] @ kernel[k] for k in range(3))
    shown = found if layout == "channels_last" else found.transpose(0, 2, 1)
    numpy.testing.assert_allclose(shown, expected, rtol=1e-5, atol=1e-5)


def test_a_wrapper_of_the_program():
    class Doubled(tf.keras.layers.Wrapper):
        def call(self, inputs):
            return self.layer(inputs) * 2.0

    with tf.Graph().as_default(), tf.Session() as session:
        wrapped = Doubled(tf.keras.layers.Dense(2, kernel_initializer="ones"))
        y = wrapped(tf.constant([[1.0, 2.0]]))
        session.run(tf.global_variables_initializer())
        assert session.run(y).tolist() == [[6.0, 6.0]]
        assert isinstance(tf.keras.layers.TimeDistributed(wrapped.layer), tf.keras.layers.Wrapper)
