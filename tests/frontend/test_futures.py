"""Futures: values that another thread sets."""

from __future__ import annotations

import threading

import pytest

import twofold as torch
from twofold.futures import Future, collect_all, wait_all


def test_a_thread_sets_what_another_waits_for() -> None:
    made: Future[int] = Future()
    thread = threading.Timer(0.05, made.set_result, [7])
    thread.start()
    assert made.wait() == 7 and made.done() and made.value() == 7
    thread.join()


def test_what_follows_runs_once_it_is_done_whether_before_or_after() -> None:
    made: Future[int] = Future()
    seen: list[int] = []
    before = made.then(lambda one: one.value() * 2)
    made.add_done_callback(lambda one: seen.append(one.value()))
    assert not before.done()
    made.set_result(4)
    assert before.wait() == 8 and made.then(Future.value).wait() == 4 and seen == [4]


def test_an_exception_goes_to_whoever_waits() -> None:
    made: Future[int] = Future()
    following = made.then(lambda one: one.value() + 1)
    made.set_exception(KeyError("lost"))
    for waiting in (made, following):
        with pytest.raises(KeyError, match="lost"):
            waiting.wait()


def test_a_value_is_set_once_and_read_when_it_is_set() -> None:
    made: Future[int] = Future()
    with pytest.raises(RuntimeError, match="not set yet"):
        made.value()
    made.set_result(1)
    with pytest.raises(RuntimeError, match="already"):
        made.set_result(2)
    with pytest.raises(ValueError, match="none but the CPU"):
        Future(devices=["cuda:0"])


def test_all_of_several_in_any_order() -> None:
    several: list[Future[int]] = [Future() for _ in range(4)]
    together = collect_all(several)
    for k in (2, 0, 3):
        several[k].set_result(k)
        assert not together.done()
    several[1].set_result(1)
    assert together.wait() == several and wait_all(several) == [0, 1, 2, 3]


def test_programs_may_annotate_with_pytorchs_names() -> None:
    assert str in torch.serialization.MAP_LOCATION.__args__ and str in torch.serialization.FILE_LIKE.__args__
