"""Drawn numbers against the distributions they say they have; streams; errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from scipy import stats

import twofold as torch
import twofold.static as tf
from twofold.ops.base import apply
from twofold.ops.random import distributions, sampling

COUNT = 4000


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(2024)


def full(*values: float) -> tuple[Any, ...]:
    return tuple(torch.full((COUNT,), value, dtype=torch.float64) for value in values)


CONTINUOUS: list[tuple[str, Callable[[], Any], Any]] = [
    ("rand", lambda: torch.rand(COUNT), stats.uniform()),
    ("randn", lambda: torch.randn(COUNT), stats.norm()),
    ("normal", lambda: torch.normal(*full(3.0, 2.0)), stats.norm(3, 2)),
    ("uniform_", lambda: torch.empty(COUNT).uniform_(-2, 5), stats.uniform(-2, 7)),
    ("exponential_", lambda: torch.empty(COUNT).exponential_(2.5), stats.expon(scale=0.4)),
    ("cauchy_", lambda: torch.empty(COUNT).cauchy_(1, 3), stats.cauchy(1, 3)),
    ("log_normal_", lambda: torch.empty(COUNT).log_normal_(0.5, 0.7), stats.lognorm(0.7, scale=numpy.exp(0.5))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "draw", "law"), CONTINUOUS, ids=[case[0] for case in CONTINUOUS])
def test_continuous(name: str, draw: Callable[[], Any], law: Any) -> None:
    assert stats.kstest(draw().numpy(), law.cdf).pvalue > 0.01


DISCRETE: list[tuple[str, Callable[[], Any], Any]] = [
    ("geometric_", lambda: torch.empty(COUNT, dtype=torch.int64).geometric_(0.3), stats.geom(0.3)),
    ("random_", lambda: torch.empty(COUNT).random_(3, 9), stats.randint(3, 9)),
    ("randint", lambda: torch.randint(-4, 4, (COUNT,)), stats.randint(-4, 4)),
    ("bernoulli", lambda: torch.bernoulli(full(0.3)[0]), stats.bernoulli(0.3)),
    ("bernoulli_", lambda: torch.empty(COUNT).bernoulli_(0.8), stats.bernoulli(0.8)),
    ("few", lambda: torch.poisson(full(2.5)[0]), stats.poisson(2.5)),
    ("many", lambda: torch.poisson(full(10.0)[0]), stats.poisson(10)),
    ("very many", lambda: torch.poisson(full(80.5)[0]), stats.poisson(80.5)),
    ("trials", lambda: torch.binomial(*full(9.0, 0.4)), stats.binom(9, 0.4)),
    ("many trials", lambda: torch.binomial(*full(120.0, 0.4)), stats.binom(120, 0.4)),
    ("flipped", lambda: torch.binomial(*full(60.0, 0.93)), stats.binom(60, 0.93)),
    ("choice", lambda: torch.multinomial(torch.tensor([0.1, 0.0, 0.6, 0.3]), COUNT, True),
     stats.rv_discrete(values=([0, 2, 3], [0.1, 0.6, 0.3]))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "draw", "law"), DISCRETE, ids=[case[0] for case in DISCRETE])
def test_discrete(name: str, draw: Callable[[], Any], law: Any) -> None:
    drawn = draw().numpy()
    values = numpy.arange(drawn.min(), drawn.max() + 1)
    seen = numpy.array([(drawn == value).sum() for value in values])
    expected = COUNT * law.pmf(values)
    kept = expected > 5
    seen = numpy.append(seen[kept], COUNT - seen[kept].sum())
    expected = numpy.append(expected[kept], COUNT - expected[kept].sum())
    usual = expected > 0.5
    assert seen[~usual].sum() <= 6
    distance = ((seen - expected)[usual] ** 2 / expected[usual]).sum()
    assert stats.chi2.sf(distance, max(usual.sum() - 1, 1)) > 0.003


@pytest.mark.parametrize("kappa", [0.0, 0.5, 4.0, 300.0])
def test_angles(kappa: float) -> None:
    key, counter = torch.default_generator.advance()
    drawn = apply("random_von_mises", full(kappa)[0], key, counter).numpy()
    law = stats.vonmises(kappa) if kappa else stats.uniform(-numpy.pi, 2 * numpy.pi)
    assert stats.kstest(drawn, law.cdf).pvalue > 0.01


@pytest.mark.parametrize("alpha", [0.05, 0.7, 1.0, 3.5, 900.0])
def test_logarithms_of_gamma_variates(alpha: float) -> None:
    key, counter = torch.default_generator.advance()
    drawn = apply("random_log_gamma", full(alpha)[0], key, counter).numpy()
    assert stats.kstest(drawn, stats.loggamma(alpha).cdf).pvalue > 0.01


def test_without_replacement_in_proportion_to_the_weights() -> None:
    weights = torch.tensor([5.0, 0.0, 3.0, 2.0]).expand(COUNT, 4)
    drawn = torch.multinomial(weights, 3).numpy()
    assert (numpy.sort(drawn, 1) == [0, 2, 3]).all()
    first = numpy.bincount(drawn[:, 0], minlength=4) / COUNT
    numpy.testing.assert_allclose(first, [0.5, 0, 0.3, 0.2], atol=0.03)
    after_zero = drawn[drawn[:, 0] == 0][:, 1]
    assert abs((after_zero == 2).mean() - 0.6) < 0.05


def test_permutations() -> None:
    drawn = numpy.array([torch.randperm(3).tolist() for _ in range(300)])
    assert (numpy.sort(drawn, 1) == [0, 1, 2]).all()
    assert stats.chisquare(numpy.bincount(drawn @ [9, 3, 1])[[5, 7, 11, 15, 19, 21]]).pvalue > 0.01
    assert torch.randperm(0).shape == (0,) and torch.randperm(4, dtype=torch.int32).dtype is torch.int32


def test_integers_of_all_64_bits() -> None:
    drawn = torch.randint(-(2**63), 2**63 - 1, (COUNT,)).numpy()
    assert stats.kstest(drawn / 2.0**64 + 0.5, "uniform").pvalue > 0.01
    whole = torch.empty(COUNT, dtype=torch.int64).random_(-(2**63), 2**63).numpy()
    assert stats.kstest(whole / 2.0**64 + 0.5, "uniform").pvalue > 0.01
    wide = torch.randint(0, 2**40, (COUNT,)).numpy()
    assert wide.max() < 2**40 and stats.kstest(wide / 2.0**40, "uniform").pvalue > 0.01


DRAWS: dict[str, Callable[[Any], Any]] = {
    "rand": lambda g: torch.rand(33, generator=g),
    "normal": lambda g: torch.normal(torch.zeros(33), torch.ones(33), generator=g),
    "multinomial": lambda g: torch.multinomial(torch.ones(40), 33, generator=g),
    "poisson": lambda g: torch.poisson(torch.linspace(0, 40, 33), g),
    "binomial": lambda g: torch.binomial(torch.full((33,), 50.0), torch.linspace(0, 1, 33), g),
    "randperm": lambda g: torch.randperm(33, generator=g),
    "exponential_": lambda g: torch.empty(33).exponential_(generator=g),
    "geometric_": lambda g: torch.empty(33).geometric_(0.2, generator=g),
    "random_": lambda g: torch.empty(33).random_(generator=g),
    "bernoulli_": lambda g: torch.empty(33).bernoulli_(0.5, generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_stream_repeats_and_moves_on(name: str) -> None:
    draw, generator = DRAWS[name], torch.Generator().manual_seed(7)
    state = generator.get_state()
    first, second = draw(generator), draw(generator)
    assert not torch.equal(first, second)
    generator.set_state(state)
    assert torch.equal(draw(generator), first)
    assert torch.equal(draw(generator.clone_state()), second)
    assert torch.equal(draw(torch.Generator().manual_seed(7)), first)
    assert generator.initial_seed() == 7


@pytest.mark.parametrize("name", DRAWS)
def test_threads_and_tiers_draw_the_same(name: str) -> None:
    first = DRAWS[name](torch.Generator().manual_seed(3)).numpy()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        # a repeated trace that something follows is fused
        for _ in range(4):
            again = DRAWS[name](torch.Generator().manual_seed(3))
            assert (again + 0).numpy().tobytes() == first.tobytes()
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("name", ["poisson", "binomial", "gamma", "von Mises", "multinomial"])
def test_many_elements_on_several_threads(name: str) -> None:
    """Enough for kernels to be split; the first elements of a draw are the draw of fewer."""
    count, threads = 30_000, torch.get_num_threads()
    many = torch.linspace(0.5, 40.0, count, dtype=torch.float64)

    def drawn(size: int) -> Any:
        key, part = 99, many[:size]
        if name == "gamma":
            return apply("random_log_gamma", part, key, 3).numpy()
        if name == "von Mises":
            return apply("random_von_mises", part, key, 3).numpy()
        generator = torch.Generator().manual_seed(key)
        if name == "multinomial":
            return torch.multinomial(torch.ones(9), size, True, generator=generator).numpy()
        if name == "poisson":
            return torch.poisson(part, generator).numpy()
        return torch.binomial(torch.full((size,), 50.0, dtype=torch.float64), part / 41, generator).numpy()

    try:
        torch.set_num_threads(1)
        first = drawn(count)
        torch.set_num_threads(3)
        assert drawn(count).tobytes() == first.tobytes()
        assert drawn(7001).tobytes() == first[:7001].tobytes()
    finally:
        torch.set_num_threads(threads)


def test_both_declarations_draw_the_same() -> None:
    rates = numpy.array([0.5, 3.0, 70.0])
    with tf.Graph().as_default(), tf.Session() as session:
        declared = (tf.random_normal([5]), tf.random_poisson(rates, [4], "float64"), tf.random_shuffle(rates))
        keys = [made.op.keywords["key"] for made in declared]
        for run in (1, 2):
            numbers, counts, order = session.run(declared)
            assert (numbers == sampling.sample_normal(keys[0], run, (5,)).numpy()).all()
            spread = torch.tensor(rates).expand(4, 3)
            assert (counts == distributions.sample_poisson(spread, keys[1], run).numpy()).all()
            assert (order == rates[distributions.sample_permutation(keys[2], run, 3).numpy()]).all()


def test_declared_gamma_and_truncated_numbers() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        alpha = tf.constant([0.5, 3.0], "float64")
        drawn = tf.random_gamma([2000], alpha, 2.0, "float64", seed=5)
        slope = tf.gradients(tf.reduce_mean(drawn, 0), alpha)[0]
        cut = tf.truncated_normal([3000], 1.0, 2.0, seed=7)
        values, slopes, inside = session.run((drawn, slope, cut))
    for column, shape in enumerate((0.5, 3.0)):
        assert stats.kstest(values[:, column], stats.gamma(shape, scale=0.5).cdf).pvalue > 0.01
    numpy.testing.assert_allclose(slopes, 0.5, rtol=0.1)
    assert stats.kstest(inside, stats.truncnorm(-2, 2, 1, 2).cdf).pvalue > 0.01


def test_a_fork_leaves_the_stream_alone() -> None:
    torch.manual_seed(1)
    with torch.random.fork_rng():
        inside = torch.rand(3)
    assert torch.equal(torch.rand(3), inside)


ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: torch.multinomial(torch.tensor([1.0, -1.0]), 1).numpy(),
     "multinomial: a weight is negative, infinite or NaN"),
    (lambda: torch.multinomial(torch.tensor([1.0, 0.0]), 2).numpy(), "2 draws from 1 weights above 0"),
    (lambda: torch.multinomial(torch.ones(2), 3),
     "multinomial: 3 draws without replacement from 2 classes"),
    (lambda: torch.multinomial(torch.ones(2, 2, 2), 3), "weights of shape (2, 2, 2)"),
    (lambda: torch.multinomial(torch.tensor([1, 2]), 1), "weights of int64"),
    (lambda: torch.bernoulli(torch.tensor([0.5, 1.5])).numpy(), "element 1 of input is outside its range"),
    (lambda: torch.empty(2).bernoulli_(1.5), "p is 1.5"),
    (lambda: torch.normal(0.0, -1.0, (2,)), "std is -1.0"),
    (lambda: torch.normal(torch.zeros(1), torch.tensor([-1.0])).numpy(), "element 0 of std is outside"),
    (lambda: torch.normal(0.0, 1.0), "numbers without a size"),
    (lambda: torch.poisson(torch.tensor([-1.0])).numpy(), "element 0 of input is outside its range"),
    (lambda: torch.binomial(torch.ones(1), torch.tensor([2.0])).numpy(), "element 0 of prob is outside"),
    (lambda: torch.randint(3, 3, (2,)), "random integers from 3 to 2"),
    (lambda: torch.randint(3, 9), "randint: no size"),
    (lambda: torch.poisson(torch.ones(2, dtype=torch.int64)), "poisson: input of int64"),
    (lambda: torch.rand(-1), "rand: a size is negative in (-1,)"),
    (lambda: torch.randperm(-1), "a permutation of -1 numbers"),
    (lambda: torch.empty(2, dtype=torch.int32).normal_(), "normal numbers in int32"),
    (lambda: torch.empty(2).exponential_(0), "lambd is 0"),
    (lambda: torch.empty(2).geometric_(1.0), "p is 1.0"),
    (lambda: torch.empty(2).uniform_(2, 1), "the range from 2 to 1"),
    (lambda: torch.empty(2, dtype=torch.uint8).random_(0, 300), "the range from 0 to 300 for uint8"),
    (lambda: torch.Generator().set_state(torch.zeros(3)), "a state of float32 (3,)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), ERRORS, ids=[text for _, text in ERRORS])
def test_errors(call: Callable[[], Any], text: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=re.escape(text)):
        call()
