"""Law 4 on real digits: 200 training steps end with the same weights whatever ran them."""

import itertools

import numpy
import pytest

from twofold import _core
from twofold.demo import dynamic, static
from twofold.demo.task import load_task

STEPS = 200


class Digits:
    """The demonstration's task, cut to a number of steps."""

    def __init__(self, steps):
        self._task = load_task(None, 1 + steps // 20)
        self.steps = steps

    def __getattr__(self, name):
        return getattr(self._task, name)

    def batches(self):
        return itertools.islice(self._task.batches(), self.steps)


def train(program, tier="auto", threads=2):
    before = _core.threads()
    _core.set_tier(tier)
    _core.set_threads(threads)
    _core.clear_caches()
    try:
        result = program.train(Digits(STEPS))
    finally:
        _core.set_tier("auto")
        _core.set_threads(before)
    assert len(result.losses) == STEPS
    return [numpy.asarray(array).tobytes() for array in result.weights]


@pytest.fixture(scope="module")
def expected():
    return train(dynamic)


@pytest.mark.parametrize("program", [dynamic, static], ids=["define-by-run", "define-then-run"])
@pytest.mark.parametrize("tier", ["auto", "unfused", "fused"])
@pytest.mark.parametrize("threads", [1, 2])
def test_weights_are_equal_bit_for_bit(expected, program, tier, threads):
    assert train(program, tier, threads) == expected
