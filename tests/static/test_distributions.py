"""Distributions against SciPy."""

import numpy
import pytest
from scipy import stats

import twofold as torch
import twofold.static as tf

distributions = tf.distributions
LOC, SCALE = numpy.array([0.5, -1.0, 2.0], "f"), numpy.array([1.5, 0.25, 3.0], "f")
P = numpy.array([0.2, 0.5, 0.9], "f")
VALUES = numpy.array([[0.7], [1.25]], "f")
BITS = numpy.array([[1], [0]], "i4")

CASES = {
    "Normal": (lambda: distributions.Normal(LOC, SCALE), stats.norm(LOC, SCALE), VALUES),
    "Laplace": (lambda: distributions.Laplace(LOC, SCALE), stats.laplace(LOC, SCALE), VALUES),
    "Uniform": (lambda: distributions.Uniform(LOC, LOC + SCALE), stats.uniform(LOC, SCALE), VALUES),
    "Exponential": (lambda: distributions.Exponential(SCALE), stats.expon(scale=1 / SCALE), VALUES),
    "Gamma": (lambda: distributions.Gamma(SCALE, P), stats.gamma(SCALE, scale=1 / P), VALUES),
    "Beta": (lambda: distributions.Beta(SCALE, 2 * P), stats.beta(SCALE, 2 * P), VALUES / 2),
    "StudentT": (
        lambda: distributions.StudentT(LOC + 6, LOC, SCALE),
        stats.t(*(x.astype("d") for x in (LOC + 6, LOC, SCALE))),
        VALUES,
    ),
    "Bernoulli": (lambda: distributions.Bernoulli(probs=P), stats.bernoulli(P), BITS),
    "logits": (lambda: distributions.Bernoulli(numpy.log(P / (1 - P))), stats.bernoulli(P), BITS),
}


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_scipy(session, name):
    make, reference, values = CASES[name]
    found = make()
    probability = reference.pdf if hasattr(reference.dist, "pdf") else reference.pmf
    with numpy.errstate(divide="ignore"):
        expected = [probability(values), numpy.log(probability(values)), reference.mean(), reference.std()]
    expected.append(reference.entropy())
    declared = [found.prob(values), found.log_prob(values), found.mean(), found.stddev(), found.entropy()]
    for mine, theirs in zip(session.run(declared), expected, strict=True):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
    if name in ("Normal", "Uniform", "Exponential", "Gamma"):
        numpy.testing.assert_allclose(session.run(found.cdf(values)), reference.cdf(values), rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_samples(session, name):
    tf.set_random_seed(3)
    make, reference, _ = CASES[name]
    sample = make().sample(4000)
    found = session.run(sample)
    assert found.shape == (4000, 3) and session.run(make().sample()).shape == (3,)
    numpy.testing.assert_allclose(found.mean(0), reference.mean(), atol=4 * float(max(reference.std())) / 60)
    numpy.testing.assert_allclose(found.std(0), reference.std(), rtol=0.1)
    assert (session.run(sample) != found).any()


def test_classes(session):
    tf.set_random_seed(1)
    logits = numpy.array([[0.0, 1.0, -1.0], [2.0, 2.0, -9.0]], "f")
    p = numpy.exp(logits) / numpy.exp(logits).sum(1, keepdims=True)
    found = distributions.Categorical(logits)
    assert found.event_size == 3
    one, two, mode, entropy, drawn = session.run(
        [found.log_prob([1, 2]), found.prob(1), found.mode(), found.entropy(), found.sample([500, 4])]
    )
    numpy.testing.assert_allclose(one, numpy.log(p[[0, 1], [1, 2]]), rtol=1e-5)
    numpy.testing.assert_allclose(two, p[:, 1], rtol=1e-5)
    numpy.testing.assert_allclose(entropy, [stats.entropy(row) for row in p], rtol=1e-4)
    assert mode.tolist()[0] == 1
    assert drawn.shape == (500, 4, 2)
    shares = numpy.stack([numpy.bincount(drawn[..., k].ravel(), minlength=3) / 2000 for k in range(2)])
    numpy.testing.assert_allclose(shares, p, atol=0.05)


def test_divergences(session):
    for make, reference in (
        (lambda s: distributions.Normal(0.5 * s, 1.5 * s), lambda s: stats.norm(0.5 * s, 1.5 * s)),
        (lambda s: distributions.Uniform(0.0, 2.0 * s), lambda s: stats.uniform(0, 2 * s)),
    ):
        x = numpy.linspace(-20, 20, 400001)
        p, q = reference(1).pdf(x), reference(2).pdf(x)
        inside = p > 0
        expected = (p[inside] * numpy.log(p[inside] / q[inside])).sum() * (x[1] - x[0])
        found = session.run(distributions.kl_divergence(make(1.0), make(2.0)))
        assert found == pytest.approx(expected, rel=1e-3)
    coins = [distributions.Bernoulli(probs=p) for p in (0.2, 0.7)]
    sides = [distributions.Categorical(probs=[1 - p, p]) for p in (0.2, 0.7)]
    one, two = session.run([coins[0].kl_divergence(coins[1]), sides[0].kl_divergence(sides[1])])
    assert one == pytest.approx(stats.entropy([0.8, 0.2], [0.3, 0.7]), rel=1e-5)
    assert two == pytest.approx(one, rel=1e-5)
    with pytest.raises(NotImplementedError, match="no rule for Normal and Bernoulli"):
        distributions.kl_divergence(distributions.Normal(0.0, 1.0), coins[0])
    with pytest.raises(ValueError, match="exactly one of logits and probs"):
        distributions.Categorical()


def test_vectors_and_counts(session):
    alpha, weights = numpy.array([0.5, 2.0, 4.0], "f"), numpy.array([[0.2, 0.5, 0.3]], "f")
    shares, counts = distributions.Dirichlet(alpha), distributions.Multinomial(6.0, probs=weights)
    point = numpy.array([0.2, 0.3, 0.5], "f")
    found = session.run([shares.prob(point), shares.mean(), counts.prob([[1.0, 3.0, 2.0]]), counts.mean()])
    numpy.testing.assert_allclose(
        found[0], stats.dirichlet(alpha).pdf(point.astype("d") / point.sum(dtype="d")), rtol=1e-4
    )
    numpy.testing.assert_allclose(found[1], alpha / alpha.sum(), rtol=1e-6)
    numpy.testing.assert_allclose(
        found[2], stats.multinomial(6, weights[0] / weights.sum()).pmf([1, 3, 2]), rtol=1e-4
    )
    assert shares.batch_shape.as_list() == [] and shares.event_shape.as_list() == [3]
    assert counts.batch_shape.as_list() == [1] and counts.event_shape.as_list() == [3]
    drawn = session.run(counts.sample(9))
    assert drawn.shape == (9, 1, 3) and (drawn.sum(-1) == 6).all()


def test_gradients_of_samples(session):
    tf.set_random_seed(2)
    alpha = tf.Variable([0.5, 3.0])
    drawn = distributions.Gamma(alpha, [1.0, 2.0]).sample(3000)
    slope = tf.gradients(tf.reduce_mean(drawn, 0), alpha)[0]
    session.run(tf.global_variables_initializer())
    numpy.testing.assert_allclose(session.run(slope), [1, 0.5], rtol=0.1)
    coin = distributions.Bernoulli(probs=0.5)
    assert "NOT" in repr(coin.reparameterization_type)


def test_both_ways_give_the_same_bits(session):
    fed = tf.placeholder(tf.float32, [None, 1])
    made = distributions.StudentT(numpy.array([3.5, 9.0], "f"), 0.5, 2.0)
    values = numpy.linspace(-3, 3, 41, dtype="f")[:, None]
    declared = session.run(made.log_prob(fed), {fed: values})
    twin = torch.distributions.StudentT(torch.tensor([3.5, 9.0]), 0.5, 2.0)
    assert declared.tobytes() == twin.log_prob(torch.tensor(values)).numpy().tobytes()
    normal = distributions.Normal(1.0, 2.0)
    below, beyond, back = session.run([normal.cdf(2.0), normal.survival_function(2.0), normal.quantile(0.3)])
    assert below + beyond == pytest.approx(1) and back == pytest.approx(stats.norm(1, 2).ppf(0.3), rel=1e-5)
    assert session.run(normal.cross_entropy(normal)) == pytest.approx(stats.norm(1, 2).entropy())


def test_rules_of_the_user(session):
    class Mine(distributions.Normal):
        pass

    @distributions.RegisterKL(Mine, Mine)
    def rule(a, b):
        return a.loc - b.loc

    assert session.run(distributions.kl_divergence(Mine(3.0, 1.0), Mine(1.0, 1.0))) == 2
    with pytest.raises(ValueError, match="have a rule"):
        distributions.RegisterKL(Mine, Mine)(rule)


def test_a_policy_is_trained_by_its_log_probability(session):
    mean = tf.Variable(0.0)
    policy = distributions.Normal(tf.squeeze(mean), 1.0)
    action = tf.placeholder(tf.float32, None)
    slope = tf.gradients(policy.log_prob(action), mean)[0]
    session.run(tf.global_variables_initializer())
    assert session.run(slope, {action: 2.0}) == 2.0


def test_values_and_parameters_of_unknown_sizes(session):
    inputs, actions = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1])
    weights = tf.Variable(numpy.ones((3, 1), "f"))
    mean = tf.matmul(inputs, weights)
    policy = tf.distributions.Normal(mean, tf.nn.softplus(mean))
    slope = tf.gradients(tf.reduce_mean(policy.log_prob(actions)), weights)[0]
    session.run(tf.global_variables_initializer())
    for rows in (4, 5):
        found = session.run(slope, {inputs: numpy.ones((rows, 3)), actions: numpy.ones((rows, 1))})
        numpy.testing.assert_allclose(found, numpy.full((3, 1), -0.39317778), rtol=1e-6)
    categories = tf.distributions.Categorical(logits=tf.placeholder(tf.float32, [None, None], "logits"))
    chosen = categories.log_prob(tf.placeholder(tf.int32, [None], "chosen"))
    found = session.run(chosen, {"logits:0": [[0.0, 1.0, 2.0]] * 2, "chosen:0": [0, 2]})
    numpy.testing.assert_allclose(found, [-2.407606, -0.407606], rtol=1e-6)
