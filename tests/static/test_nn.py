"""Moments, normalisation, pools and embeddings of ``tf.nn``, against NumPy and each other."""

import numpy
import pytest

import twofold.static as tf

RANDOM = numpy.random.default_rng(0)
X = RANDOM.standard_normal((2, 5, 6, 3)).astype("f")
nn = tf.nn


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_small_functions(session):
    assert session.run(nn.zero_fraction([0.0, 1.0, 0.0, 3.0])) == 0.5
    assert session.run(nn.quantized_relu_x([-1.0, 2.0, 9.0], 3.0)).tolist() == [0, 2, 3]
    t, x = numpy.array([0.5, 3.0, 2.0]), numpy.array([0.1, 1.0, -1.0])
    stirling = numpy.where(t > 1, t * numpy.log(t) - t + 0.5 * numpy.log(2 * numpy.pi * t), 0)
    numpy.testing.assert_allclose(session.run(nn.log_poisson_loss(t, x)), numpy.exp(x) - t * x)
    full = session.run(nn.log_poisson_loss(t, x, True))
    numpy.testing.assert_allclose(full, numpy.exp(x) - t * x + stirling)


def test_moments(session):
    count, total, squares, shift = nn.sufficient_statistics(X, [0, 1, 2], 0.5)
    mean, variance = nn.normalize_moments(count, total, squares, shift)
    found = session.run([count, mean, variance])
    assert found[0] == 60
    numpy.testing.assert_allclose(found[1], X.mean((0, 1, 2)), rtol=1e-4, atol=1e-6)
    numpy.testing.assert_allclose(found[2], X.var((0, 1, 2)), rtol=1e-4)
    weights = RANDOM.random((2, 5, 6, 1)).astype("f")
    mean, variance = session.run(nn.weighted_moments(X, [0, 1, 2], weights))
    expected = (X * weights).sum((0, 1, 2)) / weights.sum()
    numpy.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-6)
    spread = ((X - expected) ** 2 * weights).sum((0, 1, 2)) / weights.sum()
    numpy.testing.assert_allclose(variance, spread, rtol=1e-4)


def test_batch_norms(session):
    scale, offset = numpy.array([1.0, 2.0, 0.5], "f"), numpy.array([0.0, 1.0, -1.0], "f")
    made, mean, variance = session.run(nn.fused_batch_norm(X, scale, offset))
    expected = (X - X.mean((0, 1, 2))) / numpy.sqrt(X.var((0, 1, 2)) + 0.001) * scale + offset
    numpy.testing.assert_allclose(made, expected, rtol=1e-3, atol=1e-5)
    numpy.testing.assert_allclose(variance, X.var((0, 1, 2), ddof=1), rtol=1e-4)
    again = session.run(nn.fused_batch_norm(X, scale, offset, mean, X.var((0, 1, 2)), is_training=False)[0])
    numpy.testing.assert_allclose(again, expected, rtol=1e-3, atol=1e-5)
    old = nn.batch_norm_with_global_normalization(X, mean, X.var((0, 1, 2)), offset, scale, 0.001, False)
    expected = (X - X.mean((0, 1, 2))) / numpy.sqrt(X.var((0, 1, 2)) + 0.001) + offset
    numpy.testing.assert_allclose(session.run(old), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "normalized",
    [
        lambda x: nn.fused_batch_norm(x, numpy.ones(2), numpy.zeros(2))[0],
        lambda x: tf.layers.batch_normalization(x, training=True),
        lambda x: tf.contrib.layers.batch_norm(x),
        lambda x: tf.contrib.layers.batch_norm(x, updates_collections=None),
        lambda x: tf.keras.layers.LayerNormalization()(x),
    ],
)
def test_second_derivatives_of_normalised_images_are_those_of_differences(session, normalized):
    random = numpy.random.default_rng(1)
    values, weights, outer, step = random.standard_normal((4, 3, 2, 2, 2))
    x = tf.placeholder(tf.float64, [None, 2, 2, 2])
    first = tf.gradients(tf.reduce_sum(tf.sin(normalized(x)) * weights), x)[0]
    value = tf.reduce_sum(tf.square(first) * outer)
    second = tf.gradients(value, x)[0]
    session.run(tf.global_variables_initializer())
    above, below = (session.run(value, {x: values + sign * 1e-5 * step}) for sign in (1, -1))
    found = (session.run(second, {x: values}) * step).sum()
    numpy.testing.assert_allclose(found, (above - below) / 2e-5, rtol=1e-6)


def test_convolutions_and_pools_by_one_name(session):
    w = RANDOM.standard_normal((3, 2, 3, 4)).astype("f")
    one, two = nn.convolution(X, w, "SAME", [2, 1]), nn.conv2d(X, w, [1, 2, 1, 1], "SAME")
    assert (session.run(one) == session.run(two)).all()
    line = nn.convolution(X[:, 0], w[0], "VALID", dilation_rate=[2])
    assert line.get_shape().as_list() == [2, 4, 4]
    pooled = nn.pool(X, [2, 3], "AVG", "SAME", strides=[2, 2])
    assert (session.run(pooled) == session.run(nn.avg_pool(X, [1, 2, 3, 1], [1, 2, 2, 1], "SAME"))).all()
    with pytest.raises(ValueError, match="'MIN' over 2 axes"):
        nn.pool(X, [2, 2], "MIN", "SAME")


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_positions_of_the_largest(session, padding):
    found, positions = session.run(nn.max_pool_with_argmax(X, [1, 2, 2, 1], [1, 2, 2, 1], padding))
    plain = session.run(nn.max_pool(X, [1, 2, 2, 1], [1, 2, 2, 1], padding))
    assert (found == plain).all()
    for k in range(2):
        assert (X[k].ravel()[positions[k]] == plain[k]).all()


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_combined_embeddings(session, combiner):
    table = tf.constant(RANDOM.standard_normal((6, 2)).astype("f"))
    rows = session.run(table)
    ids = tf.SparseTensor([[0, 0], [0, 2], [2, 1]], [1, 3, 5], [3, 3])
    weights = tf.SparseTensor([[0, 0], [0, 2], [2, 1]], [0.5, 2.0, 4.0], [3, 3])
    over = {"sum": lambda w: 1.0, "mean": lambda w: w.sum(), "sqrtn": lambda w: (w * w).sum() ** 0.5}[
        combiner
    ]
    for given, w in ((None, numpy.ones(3)), (weights, numpy.array([0.5, 2.0, 4.0]))):
        found = session.run(nn.embedding_lookup_sparse(table, ids, given, combiner=combiner))
        first = (rows[1] * w[0] + rows[3] * w[1]) / over(w[:2])
        numpy.testing.assert_allclose(found, [first, [0, 0], rows[5] * w[2] / over(w[2:])], rtol=1e-5)


def test_moments_over_axes_that_a_run_tells():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        mean, variance = tf.nn.moments(x, tf.range(tf.rank(x) - 1))
        value = numpy.arange(24, dtype="f").reshape(2, 3, 4)
        found = session.run([mean, variance], {x: value})
    numpy.testing.assert_allclose(found[0], value.mean((0, 1)), rtol=1e-6)
    numpy.testing.assert_allclose(found[1], value.var((0, 1)), rtol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "softmax_cross_entropy_with_logits_v2",
        "softmax_cross_entropy_with_logits",
        "sparse_softmax_cross_entropy_with_logits",
        "sigmoid_cross_entropy_with_logits",
    ],
)
def test_labels_and_logits_are_named_where_the_line_stands(name):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3])
        with pytest.raises(ValueError, match="by name"):
            getattr(tf.nn, name)(x, tf.argmax(x, 1))


def test_transposed_convolutions_are_gradients():
    rng = numpy.random.default_rng(0)
    image, w = rng.normal(size=(1, 3, 4, 4, 2)), rng.normal(size=(2, 2, 2, 2, 3))
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(image)
        y = tf.nn.conv3d(x, w, [1, 2, 2, 2, 1], "SAME")
        given = rng.normal(size=y.shape.as_list())
        wanted = tf.gradients(y, x, given)[0]
        found = tf.nn.conv3d_transpose(tf.constant(given), w, image.shape, [1, 2, 2, 2, 1])
        numpy.testing.assert_allclose(*session.run([found, wanted]))
        flat, kernel = tf.constant(image[0]), w[0]
        y = tf.nn.atrous_conv2d(flat, kernel, 2, "VALID")
        given = rng.normal(size=y.shape.as_list())
        found = tf.nn.atrous_conv2d_transpose(tf.constant(given), kernel, image[0].shape, 2, "VALID")
        numpy.testing.assert_allclose(*session.run([found, tf.gradients(y, flat, given)[0]]))


@pytest.mark.parametrize(("labels", "logits"), [(None, [1, None]), (None, None), ([None, None], [None, 1])])
def test_labels_of_unknown_shape_are_broadcast_against_logits(session, labels, logits):
    t, x = (
        numpy.array([0.0, 1.0, 1.0], "f"),
        numpy.array([[0.5]] if logits == [None, 1] else [[0.5, -1.0, 2.0]]),
    )
    if labels is not None:
        t = t[None]
    given, scores = tf.placeholder(tf.float32, labels), tf.placeholder(tf.float32, logits)
    loss = nn.sigmoid_cross_entropy_with_logits(labels=given, logits=scores)
    found, slope = session.run([loss, tf.gradients(loss, scores)[0]], {given: t, scores: x})
    numpy.testing.assert_allclose(
        found, numpy.maximum(x, 0) - x * t + numpy.log1p(numpy.exp(-abs(x))), rtol=1e-6
    )
    each = 1 / (1 + numpy.exp(-x)) - t
    numpy.testing.assert_allclose(slope, each.sum(1, keepdims=True) if x.size == 1 else each, rtol=1e-5)


def test_labels_whose_declared_shape_differs_are_refused():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="shape"):
        nn.sigmoid_cross_entropy_with_logits(labels=tf.ones([3]), logits=tf.ones([3, 1]))


def test_in_top_k_is_false_for_what_is_no_class_and_where_scores_are_not_finite(session):
    scores = [[0.1, 0.9], [0.1, 0.9], [0.1, 0.9], [0.1, numpy.nan], [0.1, numpy.inf]]
    assert session.run(nn.in_top_k(scores, [1, 2, -1, 0, 1], 2)).tolist() == [
        True,
        False,
        False,
        False,
        False,
    ]


def test_gradient_of_softmax_cross_entropy_for_labels_that_are_no_distribution(session):
    labels = numpy.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [1.0, 1.0, 0.5]], "f")
    x = numpy.array([[0.5, -1.0, 2.0], [0.0, 0.1, 0.2], [1.0, 2.0, 3.0]])
    logits = tf.constant(x, tf.float32)
    soft = numpy.exp(x) / numpy.exp(x).sum(1, keepdims=True)
    for function in (nn.softmax_cross_entropy_with_logits, nn.softmax_cross_entropy_with_logits_v2):
        loss = function(labels=labels, logits=logits)
        found, slope = session.run([loss, tf.gradients(loss, logits)[0]])
        numpy.testing.assert_allclose(found, -(labels * numpy.log(soft)).sum(1), rtol=1e-6)
        numpy.testing.assert_allclose(slope, soft - labels, rtol=1e-5)  # TensorFlow's kernel
    given = tf.placeholder(tf.float32, [3, 3])
    loss = nn.softmax_cross_entropy_with_logits_v2(labels=given, logits=logits)
    numpy.testing.assert_allclose(
        session.run(tf.gradients(loss, given)[0], {given: labels}), -numpy.log(soft), rtol=1e-5
    )


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("mean_squared_error", lambda t, x: (x - t) ** 2),
        ("absolute_difference", lambda t, x: abs(x - t)),
        ("hinge_loss", lambda t, x: numpy.maximum(1 - (2 * t - 1) * x, 0)),
        ("huber_loss", lambda t, x: numpy.where(abs(x - t) < 1, (x - t) ** 2 / 2, abs(x - t) - 0.5)),
        ("log_loss", lambda t, x: -t * numpy.log(x + 1e-7) - (1 - t) * numpy.log(1 - x + 1e-7)),
        ("cosine_distance", lambda t, x: 1 - (t * x).sum(1)),
    ],
)
def test_losses_broadcast_labels_whose_shape_is_not_declared(session, name, rows):
    t, x = numpy.array([0.0, 1.0, 1.0]), RANDOM.uniform(0.1, 0.9, (4, 3))
    labels, predictions = tf.placeholder(tf.float32), tf.placeholder(tf.float32, [None, 3])
    more = {"axis": 1} if name == "cosine_distance" else {}
    loss = getattr(tf.losses, name)(labels, predictions, **more)
    numpy.testing.assert_allclose(
        session.run(loss, {labels: t, predictions: x}), rows(t, x).mean(), rtol=1e-5
    )
    with pytest.raises(ValueError, match=f"{name}: labels of shape"):
        getattr(tf.losses, name)(tf.ones([3]), predictions, **more)


@pytest.mark.parametrize("function", [tf.nn.weighted_cross_entropy_with_logits, tf.nn.log_poisson_loss])
def test_losses_of_unequal_shapes_raise_as_those_of_tensorflow(session, function):
    more = {"pos_weight": 2.0} if function is tf.nn.weighted_cross_entropy_with_logits else {}
    for targets in (tf.ones([2, 1]), tf.ones([3]), 1.0, [[1.0]]):
        with pytest.raises(ValueError, match="shape"):
            function(targets, tf.zeros([2, 3]), **more)
    if more:
        with pytest.raises(ValueError, match="shape"):
            function(labels=tf.ones([2, 1]), logits=tf.zeros([2, 3]), **more)
        found = function(tf.ones([2, 3]), tf.zeros([2, 3]), tf.constant([1.0, 2.0, 3.0]))
        numpy.testing.assert_allclose(session.run(found)[1], numpy.log(2) * numpy.arange(1, 4), rtol=1e-6)
    open_ = tf.placeholder(tf.float32)
    made = function(open_, tf.zeros([2, 3]), **more)
    assert session.run(made, {open_: numpy.zeros((2, 3))}).shape == (2, 3)
