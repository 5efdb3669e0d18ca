"""Threads read a tensor that others write in place: each reads what it was at some time, never freed memory."""

from tests.core.in_child import run

THREADS = """
import random, sys, threading
import twofold as torch

sys.setswitchinterval(1e-5)
w, over, errors = torch.zeros(64, 64), threading.Event(), []

def guarded(work, *arguments):
    try:
        work(*arguments)
    except Exception as error:
        errors.append(error)

def write():
    with torch.no_grad():
        while not over.is_set():
            w.add_(1).mul_(0.5)

READS = [
    lambda: float(w.sum()),
    lambda: (w[1] + w).sum().item(),
    lambda: w[0, 0].item(),
    lambda: sum(w.tolist()[0]),
    lambda: (w @ w).sum().item(),
]

def read(seed):
    random_reads = random.Random(seed)
    for _ in range(400):
        assert random_reads.choice(READS)() >= 0

writers = [threading.Thread(target=guarded, args=(write,)) for _ in range(2)]
readers = [threading.Thread(target=guarded, args=(read, k)) for k in range(3)]
for thread in (*writers, *readers):
    thread.start()
for thread in readers:
    thread.join()
over.set()
for thread in writers:
    thread.join()
assert not errors, errors
print("done")
"""


def test_a_tensor_is_read_while_other_threads_write_it() -> None:
    assert "done" in run(THREADS)
