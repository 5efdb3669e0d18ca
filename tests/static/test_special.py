"""Functions of analysis, conversions, checks, and rows of variables, against NumPy and SciPy."""

import numpy
import pytest
from scipy import special

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


X = numpy.array([0.3, 1.5, 4.25])
FUNCTIONS = {
    "acosh": (lambda: tf.acosh(X + 1), numpy.arccosh(X + 1)),
    "asinh": (lambda: tf.asinh(X), numpy.arcsinh(X)),
    "atanh": (lambda: tf.atanh(X / 5), numpy.arctanh(X / 5)),
    "lgamma": (lambda: tf.lgamma(X), special.gammaln(X)),
    "digamma": (lambda: tf.digamma(X), special.digamma(X)),
    "polygamma": (lambda: tf.polygamma(2, X), special.polygamma(2, X)),
    "zeta": (lambda: tf.zeta(X + 2, X), special.zeta(X + 2, X)),
    "igamma": (lambda: tf.igamma(X, X[::-1].copy()), special.gammainc(X, X[::-1])),
    "igammac": (lambda: tf.igammac(X, X[::-1].copy()), special.gammaincc(X, X[::-1])),
    "lbeta": (lambda: tf.lbeta(X), special.gammaln(X).sum() - special.gammaln(X.sum())),
    "cumulative_logsumexp": (lambda: tf.cumulative_logsumexp(X), numpy.log(numpy.cumsum(numpy.exp(X)))),
    "reverse": (
        lambda: tf.cumulative_logsumexp(X, exclusive=True, reverse=True)[:2],
        numpy.log([numpy.exp(X[1:]).sum(), numpy.exp(X[2])]),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(session, name):
    make, expected = FUNCTIONS[name]
    numpy.testing.assert_allclose(session.run(make()), expected, rtol=1e-10)


def test_complex_numbers(session):
    z = tf.complex(tf.constant([3.0, 0.0]), tf.constant([4.0, -1.0]))
    found = session.run([z, tf.real(z), tf.imag(z), tf.conj(z), tf.angle(z), tf.abs(z)])
    value = numpy.array([3 + 4j, -1j])
    for mine, theirs in zip(
        found, (value, value.real, value.imag, value.conj(), numpy.angle(value), abs(value))
    ):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-6)
    assert session.run(tf.imag([1.0])).tolist() == [0.0]
    assert session.run(tf.to_complex64([1.0])).dtype == numpy.complex64


def test_conversions(session):
    found = tf.saturate_cast([-3.0, 5.5, 300.0], tf.uint8)
    assert session.run(found).tolist() == [0, 5, 255]
    assert session.run(tf.saturate_cast(tf.constant([-5, 10**6]), tf.int8)).tolist() == [-5, 127]
    assert session.run(tf.saturate_cast(tf.constant([1e30]), tf.int64))[0] > 2**62
    assert session.run(tf.bitcast(tf.constant([1.0]), tf.int32)).tolist() == [0x3F800000]
    assert session.run(tf.scalar_mul(2.0, [1.0])).tolist() == [2.0]


def test_shapes(session):
    x = tf.placeholder(tf.float32, [None, 3])
    shapes = tf.shape_n([x, tf.zeros([2])])
    whole = tf.broadcast_dynamic_shape(tf.shape(x), [4, 1, 3])
    found = session.run([*shapes, whole, *tf.identity_n([x])], {x: numpy.ones((2, 3))})
    assert [a.tolist() for a in found[:3]] == [[2, 3], [2], [4, 2, 3]]
    assert tf.broadcast_static_shape(tf.TensorShape([None, 3]), [4, 1, 1]).as_list() == [4, None, 3]
    with pytest.raises(ValueError, match="do not broadcast"):
        tf.broadcast_static_shape([2], [3])


def test_checks(session):
    x = tf.placeholder(tf.float32, [None])
    checked = tf.check_numerics(x, "x went wrong") * 2.0
    assert session.run(checked, {x: [1.0]}).tolist() == [2.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="x went wrong"):
        session.run(checked, {x: [1.0, numpy.inf]})


def test_templates_share_their_variables(session):
    layer = tf.make_template("layer", lambda x: x * tf.get_variable("scale", [2]))
    one, two = layer(tf.ones([2])), layer(tf.ones([2]) * 3.0)
    assert [v.name for v in tf.global_variables()] == ["layer/scale:0"]
    session.run(tf.global_variables_initializer())
    a, b = session.run([one, two])
    numpy.testing.assert_allclose(3 * a, b)


ROWS = {
    "scatter_update": [[0, 0], [5, 6], [2, 2]],
    "scatter_add": [[0, 0], [6, 7], [2, 2]],
    "scatter_sub": [[0, 0], [-4, -5], [2, 2]],
    "scatter_mul": [[0, 0], [5, 6], [2, 2]],
    "scatter_div": [[0, 0], [0.2, 1 / 6], [2, 2]],
    "scatter_min": [[0, 0], [1, 1], [2, 2]],
    "scatter_max": [[0, 0], [5, 6], [2, 2]],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_variables(session, name):
    v = tf.Variable([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    changed = getattr(tf, name)(v, [1], [[5.0, 6.0]])
    session.run(tf.global_variables_initializer())
    numpy.testing.assert_allclose(session.run(changed), ROWS[name], rtol=1e-6)
    numpy.testing.assert_allclose(session.run(v), ROWS[name], rtol=1e-6)


def test_positions_in_variables(session):
    v = tf.Variable([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    session.run(tf.global_variables_initializer())
    assert session.run(tf.scatter_nd_update(v, [[0, 1], [2, 0]], [7.0, 8.0])).tolist() == [
        [0, 7],
        [1, 1],
        [8, 2],
    ]
    assert session.run(tf.scatter_nd_add(v, [[0, 1], [0, 1]], [1.0, 1.0])).tolist() == [
        [0, 9],
        [1, 1],
        [8, 2],
    ]
    assert session.run(tf.scatter_nd_sub(v, [[1]], [[1.0, 2.0]])).tolist() == [[0, 9], [0, -1], [8, 2]]
    whole = tf.scatter_add(v, [[0], [0]], 1.0)
    assert session.run(whole)[0].tolist() == [2.0, 11.0]
