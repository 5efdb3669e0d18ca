"""The compiler thread gives way to the program that it works for."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time

import pytest

from twofold.compiler.background import Background
from twofold.compiler.requests import background as compiler


@pytest.fixture(autouse=True)
def nothing_is_compiled_for_earlier_files() -> None:
    """The compiler's own thread shortens the switch interval, too, while it works."""
    with contextlib.suppress(Exception):  # what failed there
        compiler.wait()


def test_other_threads_get_the_interpreter_lock_soon_while_it_works() -> None:
    before, seen = sys.getswitchinterval(), []
    background = Background(lambda _: seen.append(sys.getswitchinterval()), "example")
    background.submit(None)
    background.wait()
    assert seen[0] < before / 10
    assert sys.getswitchinterval() == before


def test_what_a_program_sets_meanwhile_stays() -> None:
    before = sys.getswitchinterval()
    background = Background(lambda _: sys.setswitchinterval(0.25), "example")
    background.submit(None)
    background.wait()
    try:
        assert sys.getswitchinterval() == pytest.approx(0.25)
    finally:
        sys.setswitchinterval(before)


def test_a_forked_child_switches_as_the_program_does() -> None:
    before = sys.getswitchinterval()
    begun, go_on = threading.Event(), threading.Event()

    def work(_: object) -> None:
        begun.set()
        go_on.wait()

    background = Background(work, "example")
    background.submit(None)
    begun.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if sys.getswitchinterval() == before else 1)
    go_on.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    background.wait()


def test_requests_that_come_faster_than_they_are_done_are_refused() -> None:
    begun, go_on, done = threading.Event(), threading.Event(), []

    def work(item: object) -> None:
        begun.set()
        go_on.wait()
        done.append(item)

    background = Background(work, "example")
    background.submit(0)
    begun.wait()
    accepted = [item for item in range(1, 10_000) if background.submit(item)]
    assert 0 < len(accepted) < 1000
    go_on.set()
    background.wait()
    assert done == [0, *accepted]
    assert background.submit("later")


class _SlowToStart(threading.Thread):
    def start(self) -> None:
        time.sleep(0.02)
        super().start()


def test_threads_that_ask_at_the_same_time_share_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    background = Background(lambda _: workers.add(threading.get_ident()), "example")
    workers: set[int] = set()
    askers = [threading.Thread(target=background.submit, args=(k,)) for k in range(4)]
    monkeypatch.setattr(threading, "Thread", _SlowToStart)
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    background.wait()
    assert len(workers) == 1
    assert sum(thread.name == "example" and thread.ident in workers for thread in threading.enumerate()) == 1


def test_what_is_dropped_is_not_waited_for() -> None:
    begun, go_on, done = threading.Event(), threading.Event(), []

    def work(item: object) -> None:
        begun.set()
        go_on.wait()
        done.append(item)

    background = Background(work, "example")
    background.submit(0)
    begun.wait()
    background.submit(1), background.submit(2)
    assert background.drop() == [1, 2]
    go_on.set()
    background.wait()
    assert done == [0]
