"""The report page and the parts of the task that need no training."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy
import pytest

from tests.demo.sample_graph import classifier
from twofold.demo.progress import Progress
from twofold.demo.report import duration, page
from twofold.demo.task import Result, Stopwatch, Task, first_difference, load_task


@pytest.fixture
def task() -> Task:
    return load_task(None, 2)


def result(task: Task, title: str) -> Result:
    losses = [2.3 / (step + 1) for step in range(task.steps)]
    return Result(title, losses, [1e-4] * task.steps, 0.5, 0.91, task.initial_weights(), classifier())


class Balance(HTMLParser):
    """Fails on a tag that is closed without being open."""

    void = frozenset({"meta", "br", "path", "rect"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag or tag in self.void


def test_page_is_whole_and_fetches_nothing(task: Task) -> None:
    text = page(task, result(task, "define-by-run"), result(task, "define-then-run"))
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    assert "Equal bit for bit" in text and "91.00%" in text and "prefers-color-scheme: dark" in text
    assert "<script" not in text and not re.search(r"(src|href)=|@import|url\((?!#)", text)


def test_page_says_when_weights_differ(task: Task) -> None:
    other = result(task, "define-then-run")
    other.weights[2][0, 0] += 1e-6
    text = page(task, result(task, "define-by-run"), other)
    assert "Weights differ" in text and "array 2 differs in 1 of 32768 elements" in text


def test_first_difference_sees_bits_not_values() -> None:
    nan = [numpy.array([numpy.nan], numpy.float32)]
    assert first_difference(nan, nan) is None
    assert first_difference([numpy.zeros(2, numpy.float32)], [numpy.zeros(2)]) is not None


def test_batches_are_the_same_each_time(task: Task) -> None:
    first, second = list(task.batches()), list(task.batches())
    assert len(first) == task.steps == 44
    for (images, labels), (images_again, labels_again) in zip(first, second, strict=True):
        assert (images == images_again).all() and (labels == labels_again).all()
        assert images.shape == (64, 64) and labels.shape == (64,)
    assert (first[0][1] != first[22][1]).any()


def test_stopwatch_without_tqdm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("twofold.demo.progress.tqdm", None)
    watch = Stopwatch("title", 20)
    for step in range(20):
        watch.step(1.0 / (step + 1))
    watch.stop()
    assert len(watch.losses) == len(watch.step_seconds) == 20
    assert watch.first_step_seconds >= watch.step_seconds[0] > 0
    assert "title: step 20 of 20, loss 0.0500" in capsys.readouterr().err


def test_progress_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twofold.demo.progress.tqdm", None)
    Progress("nothing", 0).close()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0 µs"), (9.999e-4, "1 ms"), (0.25, "250 ms"), (3.0, "3 s"), (250.0, "250 s")]
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text
