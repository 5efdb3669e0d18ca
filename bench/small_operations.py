"""Calls on tensors of few elements: microseconds a call, beside torch.

    python bench/small_operations.py [--only index] [--rounds 7] [--peer PYTHON]

What a call costs beside its kernel. Every library has a process of its own; both take turns, and the least time of some
rounds is shown. Results are dropped but for the last one, which is read: so ``lazy`` calls are recorded, not computed.
PYTHON is an interpreter that has PyTorch.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from turns import Contestant

SETTING = """
array = numpy.random.default_rng(0).normal(size=(1000, 20)).astype(numpy.float32)
x, shared, v = torch.tensor(array), torch.from_numpy(array), torch.randn(20)
rows, taken, mask = list(shared), torch.tensor([3, 5, 7]), torch.tensor([True, False] * 500)
buffer, total, count = torch.zeros(1000, 20), torch.zeros(20), itertools.cycle(range(1000))
i = lambda: next(count)
"""
"""What the calls find; ``i()`` is another position in each call."""

CALLS = {
    "index x[i]": "x[i()]",
    "index x[i, 3].item()": "x[i(), 3].item()",
    "index x[i : i + 1]": "(lambda k: x[k : k + 1])(i())",
    "index x[mask]": "x[mask]",
    "index x[[1, 2, 3]]": "x[[1, 2, 3]]",
    "index x[tensor]": "x[taken]",
    "index array[i]": "shared[i()]",
    "index array[5:15]": "shared[5:15]",
    "index array[i] * v": "shared[i()] * v",
    "index row of array * v": "rows[i()] * v",
    "write x[i] = v": "buffer.__setitem__(i(), v)",
    "write x[i, 3] = 1": "buffer.__setitem__((i(), 3), 1.0)",
    "write copy_": "total.copy_(v)",
    "write add_": "total.add_(v)",
    "write fill_": "total.fill_(0.5)",
    "make zeros": "torch.zeros(20)",
    "make full": "torch.full((20,), 0.5)",
    "make arange": "torch.arange(20)",
    "make eye": "torch.eye(5)",
    "make randn": "torch.randn(20)",
    "make randint": "torch.randint(0, 10, (20,))",
    "make bernoulli": "torch.bernoulli(torch.full((20,), 0.5))",
    "make tensor of numbers": "torch.tensor([0.5, 1.5, 2.5])",
    "make tensor of a dtype": "torch.tensor([0, 1, 2], dtype=torch.int64)",
    "read x.sum().item()": "v.sum().item()",
    "read argmax": "x[i()].argmax().item()",
    "read numpy()": "(v * 2).numpy()",
    "lazy x * v": "x[:50] * v",
    "lazy tanh": "torch.tanh(v)",
    "lazy softmax": "torch.softmax(x[:50], -1)",
}
_FEW = 300


def serve(name: str) -> None:
    """The process of one library: answers the name of a call by the microseconds of one."""
    import itertools

    torch: Any = __import__(name)
    space = {"torch": torch, "numpy": numpy, "itertools": itertools}
    torch.set_num_threads(1)
    exec(SETTING, space)
    calls: dict[str, Any] = {}
    for line in sys.stdin:
        call = line.rstrip("\n")
        prepared = call in calls
        function = calls.setdefault(call, eval(f"lambda: {CALLS[call]}", space))
        for _ in range(1 if prepared else 10):
            seconds = _timed(function)
        if not prepared and name == "twofold":
            torch.wait_for_compiler()
        print(1e6 * seconds / _FEW, flush=True)


def _timed(function: Any) -> float:
    begin = time.perf_counter()
    for _ in range(_FEW):
        found = function()
    if hasattr(found, "numpy"):
        found.numpy()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peer")
    parser.add_argument("--serve")
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    pythons = {"twofold": sys.executable} | ({"torch": options.peer} if options.peer else {})
    contestants = [Contestant(python, __file__, name, 1) for name, python in pythons.items()]
    heads = [*pythons, "ratio"] if options.peer else [*pythons]
    print(f"{'microseconds a call':26}" + "".join(f"{head:>10}" for head in heads))
    for call in (call for call in CALLS if options.only in call):
        rounds = [[one.ask(call) for one in contestants] for _ in range(options.rounds)]
        times = [min(part) for part in zip(*rounds)]
        ratio = [times[1] / times[0]] if options.peer else []
        print(f"{call:26}" + "".join(f"{number:10.2f}" for number in (*times, *ratio)), flush=True)
    return None


if __name__ == "__main__":
    main()
