"""A long run in batches goes on while the next step is recorded: nobody notices but by the clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy
import pytest

import twofold as torch
from tests.core.in_child import run
from twofold import _core, nn

WIDTH, SAMPLES = 160, 60


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class Net(nn.Module):
    """A cell that every sample calls another number of times, and the losses of all samples."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, WIDTH)
        self.cell, self.out = nn.Linear(2 * WIDTH, WIDTH), nn.Linear(WIDTH, 5)

    def forward(self, step: int, wrong: bool = False) -> torch.Tensor:
        total = 0.0
        lengths = numpy.random.default_rng(step).integers(1, 6, SAMPLES).tolist()
        for k, length in enumerate(lengths):
            h = self.table.weight[k % 20]
            for j in range(length):
                h = torch.tanh(self.cell(torch.cat((h, self.table.weight[j]))))
            target = torch.tensor(9 if wrong and k == 7 else k % 5)
            total = total + nn.functional.cross_entropy(self.out(h), target)
        return total / SAMPLES


class Training:
    """A net, its optimiser, and a step."""

    def __init__(self, optimizer: str = "Adam") -> None:
        torch.manual_seed(0)
        self.net = Net()
        self.optimizer = getattr(torch.optim, optimizer)(self.net.parameters(), lr=0.01)

    def step(self, k: int, wrong: bool = False) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = self.net(k, wrong)
        loss.backward()
        self.optimizer.step()
        return loss

    def bits(self) -> list[bytes]:
        return [parameter.detach().numpy().tobytes() for parameter in self.net.parameters()]


def trained(steps: list[int], reads: bool) -> tuple[list[float], list[bytes]]:
    training = Training()
    losses = []
    for k in steps:
        loss = training.step(k)
        losses.append(loss.item() if reads else loss)
    return [float(loss) for loss in losses], training.bits()


@pytest.mark.parametrize("steps", [list(range(100, 112)), [200, 201] * 4])
@pytest.mark.parametrize("reads", [False, True])
def test_results_have_the_same_bits(reads: bool, steps: list[int]) -> None:
    steps = [2 * k + reads for k in steps]
    before = torch.stats().background_runs
    found = trained(steps, reads)
    assert torch.stats().background_runs > before
    torch.set_num_threads(1)
    before = torch.stats().background_runs
    assert trained(steps, reads) == found
    assert torch.stats().background_runs == before


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW"])
def test_a_step_that_fails_leaves_parameters_as_they_were(optimizer: str) -> None:
    training, other = Training(optimizer), Training(optimizer)
    for k in range(9):
        training.step(k)
        other.step(k)
    before = torch.stats().background_runs
    with pytest.raises(IndexError, match="in forward, called at"):
        training.step(len(optimizer) + 1000, wrong=True)
        assert torch.stats().background_runs == before + 1
        _core.flush()
    assert training.bits() == other.bits()
    assert numpy.isfinite(training.step(1).item())


def test_an_error_does_not_end_what_was_recorded_after_it() -> None:
    training = Training("SGD")
    for k in range(9):
        training.step(k)
    _core.flush()
    before = training.bits()
    training.step(1, wrong=True)  # goes on
    later = training.net(2)
    with pytest.raises(IndexError, match="class 9 does not exist"):
        later.item()
    assert numpy.isfinite(later.item())
    assert training.bits() == before


def test_another_thread_reads_a_value_that_is_on_the_way() -> None:
    training = Training()
    for k in range(9):
        training.step(k)
    expected = Training()
    for k in [*range(9), 0]:
        expected.step(k)
    training.step(0)
    found: list[list[bytes]] = []
    thread = threading.Thread(target=lambda: found.append(training.bits()))
    thread.start()
    thread.join()
    assert found == [expected.bits()]


def test_another_thread_drops_a_value_of_a_trace_that_waits() -> None:
    training, a = Training(), torch.ones(3)

    def drop(held: list[torch.Tensor], go: threading.Event) -> None:
        go.wait()
        held.clear()

    for k in range(20):
        training.step(500 + k % 2)
        held, go = [a + 1], threading.Event()
        thread = threading.Thread(target=drop, args=(held, go))
        thread.start()
        other = a * 2
        if k > 7:  # the trace is known, and computed once the step is over
            go.set()
        assert other.tolist() == [2.0] * 3
        go.set()
        thread.join()


def test_threads_train_at_the_same_time_and_read_from_each_other() -> None:
    expected = []
    for start in (0, 50):
        training = Training()
        for k in range(start, start + 12):
            training.step(k)
        expected.append(training.bits())
    trainings = [Training(), Training()]

    def work(number: int) -> None:
        other = trainings[1 - number].net.out.weight
        for k in range(50 * number, 50 * number + 12):
            trainings[number].step(k)
            assert numpy.isfinite(other.detach().sum().item())

    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert [training.bits() for training in trainings] == expected


def test_memory_is_written_only_after_the_run_that_reads_it() -> None:
    training = Training("SGD")
    for k in range(9):
        training.step(k)
    _core.flush()
    weight = training.net.cell.weight
    array = weight.detach().numpy()  # shares the memory
    before = array.copy()
    loss = training.step(1)
    array[:] = 0.0
    torch.testing.assert_close(weight.detach().numpy(), array)
    other = Training("SGD")
    for k in range(9):
        other.step(k)
    numpy.testing.assert_array_equal(other.net.cell.weight.detach().numpy(), before)
    assert loss.item() == other.step(1).item()


def test_a_child_of_a_fork_has_the_values() -> None:
    text = run("""
import os
from tests.core.test_background_runs import *
torch.set_num_threads(2)
training = Training()
for k in range(9):
    training.step(k)
loss = training.step(0)
assert torch.stats().background_runs > 4
child = os.fork()
if child == 0:
    value = training.bits(), loss.item(), training.step(1).item()
    os._exit(0 if value[0] and value[2] > 0 else 1)
_, status = os.waitpid(child, 0)
print("status", status, loss.item() > 0, training.step(1).item() > 0)
""")
    assert "status 0 True True" in text


def test_an_interrupt_ends_the_wait_and_loses_nothing() -> None:
    text = run("""
import signal
from tests.core.test_background_runs import *
torch.set_num_threads(2)
training, other = Training(), Training()
for k in range(10):
    other.step(k)
for k in range(10):
    training.step(k)
def stop(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
try:
    signal.setitimer(signal.ITIMER_REAL, 1e-4)
    training.bits()
    while True:
        pass  # where the run was over before the signal came
except KeyboardInterrupt:
    print("same", training.bits() == other.bits())
""")
    assert "same True" in text


def test_the_program_may_end_while_a_run_goes_on() -> None:
    text = run("""
from tests.core.test_background_runs import *
torch.set_num_threads(2)
training = Training()
for k in range(9):
    training.step(k)
print("done", torch.stats().background_runs > 4)
""")
    assert "done True" in text
