"""Caches stay within their budget, drop what was used least recently, and never change a result."""

from __future__ import annotations

import functools
import gc
import random
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from tests.core.in_child import run
from twofold import _core
from twofold.config import config
from twofold.ir.types import tensor_type
from twofold.runtime.statistics import all_caches

SMALL = 1 << 20


def caches() -> dict[str, dict[str, int]]:
    """The caches that share a budget."""
    fields = ("count", "bytes", "budget", "hits", "misses", "evictions")
    found = {name: dict(zip(fields, numbers, strict=True)) for name, *numbers in _core.caches()}
    del found["kept results"], found["copies of shared memory"]
    return found


@pytest.fixture
def small() -> Iterator[None]:
    with config.scoped(cache_bytes=SMALL):
        yield


BODIES: dict[str, Callable[[], None]] = {}


def in_a_process_of_its_own(body: Callable[[], None]) -> Callable[[], None]:
    """A test where nothing that other tests keep alive holds entries of the caches."""
    BODIES[body.__name__] = body

    @functools.wraps(body)
    def test() -> None:
        run(
            "from tests.runtime.test_cache_budget import BODIES, SMALL, config\n"
            f"with config.scoped(cache_bytes=SMALL):\n    BODIES[{body.__name__!r}]()"
        )

    return test


def chain(pattern: list[int], x: Any) -> Any:
    """A program for each pattern; every operation has the same bits in any order of running."""
    for number in pattern:
        x = (x * 0.5, x + 1.0, torch.tanh(x), x - 2.0)[number]
    return x


def computed(pattern: list[int]) -> Any:
    x = torch.tensor([0.1, 0.7, -1.3], requires_grad=True)
    y = chain(pattern, x).sum()
    y.backward()
    return y.detach().numpy(), x.grad.numpy()


def patterns(count: int, seed: int = 0) -> list[list[int]]:
    chosen = random.Random(seed)
    return [[chosen.randrange(4) for _ in range(chosen.randint(20, 60))] for _ in range(count)]


@in_a_process_of_its_own
def test_traces_of_always_new_programs_stay_within_the_budget() -> None:
    before = caches()
    for pattern in patterns(400):
        computed(pattern)
    after = caches()
    for name in ("traces", "executables"):
        found = after[name]
        assert found["budget"] < SMALL
        assert found["bytes"] <= found["budget"], (name, found)
        assert found["evictions"] > before[name]["evictions"] + 100
        assert 0 < found["count"] < 300


@in_a_process_of_its_own
def test_a_cache_too_small_for_what_repeats_takes_budget_from_others() -> None:
    programs = patterns(20, seed=3)
    share = caches()["traces"]["budget"]
    for _ in range(8):
        for pattern in programs:
            computed(pattern)
    before = caches()["traces"]
    assert before["bytes"] > share
    for pattern in programs:
        computed(pattern)
    after = caches()
    assert after["traces"]["misses"] == before["misses"]
    assert sum(cache["budget"] for cache in after.values()) <= SMALL


def test_op_instances_that_a_plan_makes_are_not_kept_for_long() -> None:
    program = """
        import itertools
        import twofold as torch

        torch.config.cache_bytes = 4 << 20  # so that there is no room for the traces that refer to them
        given = [torch.ones(rows) for rows in range(1, 25)]
        parts = itertools.product(given, repeat=3)
        for _ in range(5):
            total = torch.zeros(())
            for one in itertools.islice(parts, 2600):
                total = total + torch.cat(one).sum()
            total.item()
        found = torch.stats().caches["op instances"]
        assert found.misses > 12000, found
        assert found.count < 9000, found
    """
    run(textwrap.dedent(program))


def test_results_keep_their_bits_when_everything_was_dropped(small: None) -> None:
    programs = patterns(150, seed=1)
    first = [computed(pattern) for pattern in programs]
    again = [computed(pattern) for pattern in programs]
    for one, other in zip(first, again, strict=True):
        for a, b in zip(one, other, strict=True):
            numpy.testing.assert_array_equal(a, b)


def test_no_budget_at_all_still_computes() -> None:
    wanted = [computed(pattern) for pattern in patterns(5, seed=2)]
    with config.scoped(cache_bytes=0):
        for _ in range(3):
            found = [computed(pattern) for pattern in patterns(5, seed=2)]
    for one, other in zip(wanted, found, strict=True):
        numpy.testing.assert_array_equal(one[1], other[1])


@in_a_process_of_its_own
def test_what_repeats_stays_while_other_programs_come_and_go() -> None:
    repeated = patterns(1, seed=3)[0]
    for pattern in patterns(100, seed=4):
        computed(pattern)
        computed(repeated)
    torch.wait_for_compiler()
    before = caches()["traces"]["misses"]
    computed(repeated)
    assert caches()["traces"]["misses"] == before


def test_values_outlive_the_trace_that_is_to_differentiate_them(small: None) -> None:
    x = torch.tensor([0.1, 0.7, -1.3], requires_grad=True)
    y = chain(patterns(1, seed=5)[0], x).sum()
    y.item()
    for pattern in patterns(300, seed=6):
        computed(pattern)
    y.backward()
    numpy.testing.assert_array_equal(x.grad.numpy(), computed(patterns(1, seed=5)[0])[1])


def test_threads_share_a_small_budget(small: None) -> None:
    programs = patterns(60, seed=7)
    wanted = [computed(pattern) for pattern in programs]
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for k in random.Random(seed).choices(range(len(programs)), k=150):
                for a, b in zip(wanted[k], computed(programs[k]), strict=True):
                    numpy.testing.assert_array_equal(a, b)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.wait_for_compiler()
    assert not failures
    assert caches()["traces"]["bytes"] <= caches()["traces"]["budget"] * 2


def of_traces() -> tuple[int, int]:
    """The bytes of traces, which they share with their executables, and their budget."""
    both = [caches()[name] for name in ("traces", "executables")]
    return sum(cache["bytes"] for cache in both), sum(cache["budget"] for cache in both)


def what_was_in_use_goes_once_it_is_free() -> None:
    kept = []
    for k in range(20):
        x = torch.ones(3, requires_grad=True)
        y = x
        for j in range(2000):
            y = y * 1.5 if (k >> (j % 5)) & 1 else y + x
        y.tolist()
        kept.append(y)
    config.cache_bytes = SMALL
    (torch.ones(2) * 2).tolist()
    in_use, budget = of_traces()
    assert in_use > 8 * budget
    del kept, y
    for rows in range(40):
        (torch.ones(rows + 2) * 2 + 1).tolist()
    assert of_traces()[0] < in_use / 5


def test_what_was_in_use_goes_once_it_is_free() -> None:
    run("from tests.runtime.test_cache_budget import *; what_was_in_use_goes_once_it_is_free()")


def test_a_budget_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 on"):
        config.cache_bytes = -1


def sized(rows: int) -> Any:
    w = torch.ones(3, 2, requires_grad=True)
    x = torch.arange(3 * rows).reshape(rows, 3) * 0.5
    (torch.tanh(x @ w)[: rows - 1] + 1.0).sum().backward()
    return w.grad.numpy()


@in_a_process_of_its_own
def test_calls_of_always_new_sizes_stay_within_the_budget() -> None:
    before = caches()
    for rows in range(2, 250):
        sized(rows)
    torch.wait_for_compiler()  # what waits to be compiled is in use
    for rows in range(250, 270):
        sized(rows)
        torch.wait_for_compiler()
    after = caches()
    for name in ("op instances", "attributes"):
        found = after[name]
        assert found["bytes"] <= found["budget"] * 5 // 4, (name, found)
        assert found["evictions"] > before[name]["evictions"] + 100
        assert 0 < found["count"] < 4000


def test_sizes_met_again_after_eviction_give_the_same_bits(small: None) -> None:
    first = [sized(rows) for rows in range(2, 120)]
    for rows, wanted in zip(range(2, 120), first, strict=True):
        numpy.testing.assert_array_equal(sized(rows), wanted)


def test_what_a_tensor_was_made_by_is_known_after_eviction(small: None) -> None:
    x = torch.ones(7, 11, requires_grad=True)
    y = torch.tanh(x)
    kept = y.sum()
    kept.backward()
    view = x.detach()[1:5, 2:9]
    for rows in range(2, 120):
        sized(rows)
    assert "Sum" in type(kept.grad_fn).__name__ or kept.grad_fn is not None
    assert view.shape == (4, 7)
    x.detach()[2, 3] = 5.0
    assert view[1, 1].item() == 5.0


def fed(shapes: list[tuple[int, int]]) -> list[Any]:
    """What a declared graph returns for arrays of these shapes."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, None])
        y = tf.reduce_sum(tf.tanh(x * 2.0 + 1.0), 1)
        slope = tf.gradients(y, x)[0]
    with tf.Session(graph=graph) as session:
        return [session.run([y, slope], {x: numpy.ones(shape, "float32") / 3}) for shape in shapes]


@in_a_process_of_its_own
def test_declared_graphs_fed_with_always_new_shapes_stay_within_the_budget() -> None:
    shapes = [(1 + k % 11, 1 + k % 37) for k in range(200)]
    before = caches()["specialisations"]
    first = fed(shapes)
    after = caches()["specialisations"]
    assert after["evictions"] > before["evictions"] + 100
    assert after["bytes"] <= after["budget"] < SMALL
    again = fed(shapes)
    for one, other in zip(first, again, strict=True):
        for a, b in zip(one, other, strict=True):
            numpy.testing.assert_array_equal(a, b)


def test_specialisations_go_with_their_function() -> None:
    gc.collect()
    before = caches()["specialisations"]["count"]
    x = _core.placeholder(tensor_type(torch.float32, (-1,)))
    function = _core.function((x,), (torch.tanh(x) + 1.0,), True, None)
    function(torch.ones(3)), function(torch.ones(4))
    assert caches()["specialisations"]["count"] == before + 2
    del function
    gc.collect()
    assert caches()["specialisations"]["count"] == before


@in_a_process_of_its_own
def test_templates_that_were_dropped_are_made_again() -> None:
    wanted = [sized(rows) for rows in range(2, 30)]
    with config.scoped(cache_bytes=1 << 17):
        before = caches()["templates"]
        for _ in range(2):
            for rows, one in zip(range(2, 30), wanted, strict=True):
                numpy.testing.assert_array_equal(sized(rows), one)
                computed(patterns(1, seed=rows)[0])
        after = caches()["templates"]
    assert after["evictions"] > before["evictions"]
    assert after["bytes"] < 1 << 20


@in_a_process_of_its_own
def test_bodies_of_loops_of_always_new_sizes_stay_within_the_budget() -> None:
    def total(rows: int) -> float:
        x = torch.ones(rows, 3)
        _, found = torch.while_loop(
            lambda i, _: i < 4, lambda i, y: (i + 1, y * 0.5 + x), (torch.tensor(0), x)
        )
        return found.sum().item()

    wanted = [total(rows) for rows in range(1, 80)]
    counted = all_caches()
    for name in ("closed graphs", "pullbacks", "body lines", "kernel keys"):
        assert counted[name].bytes <= max(counted[name].budget, 64 << 10), (name, counted[name])
    assert counted["closed graphs"].evictions > 0
    assert [total(rows) for rows in range(1, 80)] == wanted


def test_threads_share_op_instances_machine_code_and_declared_graphs() -> None:
    shapes = [(1 + k % 5, 1 + k % 7) for k in range(12)]
    wanted = {rows: sized(rows) for rows in range(2, 40)}
    declared = fed(shapes)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        chosen = random.Random(seed)
        try:
            for turn in range(25):
                rows = chosen.randrange(2, 40)
                numpy.testing.assert_array_equal(sized(rows), wanted[rows])
                if turn % 8 == seed:
                    for one, other in zip(fed(shapes), declared, strict=True):
                        for a, b in zip(one, other, strict=True):
                            numpy.testing.assert_array_equal(a, b)
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        with config.scoped(cache_bytes=100_000):
            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            torch.wait_for_compiler()
    finally:
        sys.setswitchinterval(interval)
    assert not failures


def test_the_budget_is_set_by_the_environment() -> None:
    program = "import twofold; print(twofold.stats().caches['op instances'].budget)"
    environment = {"TWOFOLD_CACHE_BYTES": str(32 << 10), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(5 << 10)


def long(seed: int) -> list[float]:
    x = torch.arange(4.0)
    for k in range(2500):
        x = torch.tanh(x) if k % (seed + 2) else x * 2
        x = x + 1
    return x.tolist()


def counts() -> dict[str, int]:
    return {name: cache["count"] for name, cache in caches().items() if name in ("traces", "executables")}


@in_a_process_of_its_own
def test_a_long_trace_is_kept_at_once_only_where_there_is_room() -> None:
    with config.scoped(cache_bytes=3 << 19):
        torch.tanh(torch.arange(4.0) * 2 + 1).tolist()
        before = counts()
        found = [long(seed) for seed in range(4)]
        once = counts()
        assert once == {name: before[name] + 1 for name in before}
        assert long(0) == found[0]
        assert counts() == once
        assert caches()["traces"]["hits"] >= 1
        assert long(1) == found[1]  # it comes back: what it needs is taken from other caches
        twice = counts()
        assert twice == {name: once[name] + 1 for name in once}
        hits = caches()["traces"]["hits"]
        assert long(0) == found[0]
        assert long(1) == found[1]
        assert counts() == twice
        assert caches()["traces"]["hits"] == hits + 2


@in_a_process_of_its_own
def test_long_traces_are_kept_at_once_in_budget_that_others_do_not_use() -> None:
    with config.scoped(cache_bytes=4 << 20):
        torch.tanh(torch.arange(4.0) * 2 + 1).tolist()
        before, shares = counts(), {name: cache["budget"] for name, cache in caches().items()}
        for seed in range(8):
            long(seed)
        kept = {name: counts()[name] - before[name] for name in before}
        assert kept["traces"] == kept["executables"] and 3 < kept["traces"] < 8
        lent = {name: share - caches()[name]["budget"] for name, share in shares.items()}
        assert lent["executables"] < 0 < lent["op instances"]
        assert all(lent[name] <= shares[name] / 2 for name in lent)


def test_graphs_of_bodies_do_not_outlive_their_op_instances(small: None) -> None:
    """The address of an evicted op instance is reused: the body of one choice is not that of another."""
    x = torch.tensor([0.3, 0.6, 0.9])
    functions = [torch.sin, torch.cos, torch.exp, torch.neg, torch.cosh, torch.sqrt, torch.log]
    # of the core alone, as when a program has called many other operations meanwhile
    _core.set_cache_budget(0)
    for function in functions * 5:
        found = torch.cond(torch.tensor(True), lambda x, f=function: f(x), lambda x, f=function: -f(-x), (x,))
        assert torch.equal(found, function(x)), function
