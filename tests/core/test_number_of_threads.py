"""Changing the number of threads while programs run."""

import subprocess
import sys

PROGRAM = """
import threading
import twofold as torch

weight = torch.randn(1500, 1500)

def work():
    for _ in range(4):
        x = weight
        for _ in range(3):
            x = torch.tanh(x @ weight)
        x.sum().item()

thread = threading.Thread(target=work)
thread.start()
count = 0
while thread.is_alive():
    torch.set_num_threads(2 + count % 2)
    count += 1
    thread.join(0.01)
print("done")
"""


def test_it_may_change_while_another_thread_computes() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True
    )
    assert run.stdout == "done\n"
