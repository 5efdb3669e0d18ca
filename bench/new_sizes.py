"""Programs whose sizes change from step to step: CPU seconds of the first steps, beside PyTorch.

    python bench/new_sizes.py [--only NAME] [--steps 100] [--peer PYTHON]

Every program runs in a process of its own, as what was planned is kept. PYTHON is an interpreter that has PyTorch;
both run one after the other, three times in turn, and medians are shown.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy

RNG = numpy.random.default_rng(0)


def normal(torch: Any, *shape: int) -> Any:
    return torch.from_numpy(RNG.normal(size=shape).astype(numpy.float32))


def classes(torch: Any, count: int) -> Any:
    return torch.from_numpy(RNG.integers(0, 10, count))


def trained(torch: Any, net: Any, loss_of: Callable[[Any], Any]) -> Callable[[], None]:
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)

    def step() -> None:
        loss = loss_of(net)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def mlp(torch: Any) -> Callable[[], None]:
    """A perceptron of three layers, batches of 1 to 128."""
    nn = torch.nn
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))

    def loss(net: Any) -> Any:
        n = random.randint(1, 128)
        return nn.functional.cross_entropy(net(normal(torch, n, 64)), classes(torch, n))

    return trained(torch, net, loss)


def lstm(torch: Any) -> Callable[[], None]:
    """nn.LSTM on sequences of 5 to 60 steps."""
    nn = torch.nn
    net = nn.ModuleList([nn.LSTM(32, 64), nn.Linear(64, 10)])

    def loss(net: Any) -> Any:
        states, _ = net[0](normal(torch, random.randint(5, 60), 16, 32))
        return nn.functional.cross_entropy(net[1](states[-1]), classes(torch, 16))

    return trained(torch, net, loss)


def unrolled(torch: Any) -> Callable[[], None]:
    """A cell called 5 to 60 times."""
    nn = torch.nn
    net = nn.ModuleList([nn.RNNCell(32, 64), nn.Linear(64, 10)])

    def loss(net: Any) -> Any:
        x = normal(torch, random.randint(5, 60), 16, 32)
        h = torch.zeros(16, 64)
        for t in range(x.shape[0]):
            h = net[0](x[t], h)
        return nn.functional.cross_entropy(net[1](h), classes(torch, 16))

    return trained(torch, net, loss)


def convolutions(torch: Any) -> Callable[[], None]:
    """A small convolution net, batches of 1 to 128."""
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 49, 10),
    )  # fmt: skip

    def loss(net: Any) -> Any:
        n = random.randint(1, 128)
        return nn.functional.cross_entropy(net(normal(torch, n, 1, 28, 28)), classes(torch, n))

    return trained(torch, net, loss)


def graph_network(torch: Any) -> Callable[[], None]:
    """Two rounds of messages on graphs of 50 to 300 nodes, no two alike."""
    nn = torch.nn
    net = nn.ModuleList([nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 10)])

    def loss(net: Any) -> Any:
        n = random.randint(50, 300)
        edges = random.randint(2 * n, 4 * n)
        source, target = (torch.from_numpy(RNG.integers(0, n, edges)) for _ in range(2))
        h = torch.relu(net[0](normal(torch, n, 16)))
        for _ in range(2):
            messages = net[1](h)[source]
            h = torch.relu(h + torch.zeros(n, 32).index_add(0, target, messages))
        return nn.functional.cross_entropy(net[2](h).mean(0, keepdim=True), classes(torch, 1))

    return trained(torch, net, loss)


def growing(torch: Any) -> Callable[[], None]:
    """Attention over a sequence that grows by one."""
    nn = torch.nn
    width = 64
    q, k, v = (nn.Linear(width, width) for _ in range(3))
    tokens = [normal(torch, 1, width)]

    def step() -> None:
        with torch.no_grad():
            x = torch.cat(tokens, 0)
            scores = q(x) @ k(x).t() / 8
            weights = torch.softmax(scores, -1)
            tokens.append((weights @ v(x))[-1:])
            tokens[-1].sum().item()

    return step


def rows(torch: Any) -> Callable[[], None]:
    """stack([tanh(S[i] @ w)[0] for i in range(n)]), forward and backward, n growing by one from 30."""
    w = normal(torch, 8, 8).requires_grad_(True)
    sizes = iter(range(30, 10_000))

    def step() -> None:
        n = next(sizes)
        s = normal(torch, n, 8)
        torch.stack([torch.tanh(s[i] @ w)[0] for i in range(n)]).sum().backward()
        w.grad.sum().item()

    return step


def reinforce(torch: Any) -> Callable[[], None]:
    """Episodes of 10 to 200 steps of a policy that is asked step by step."""
    nn = torch.nn
    net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))

    def loss(net: Any) -> Any:
        chosen = []
        state = normal(torch, 4)
        for _ in range(random.randint(10, 200)):
            scores = torch.log_softmax(net(state), 0)
            action = int(torch.argmax(scores.detach()))
            chosen.append(scores[action])
            state = normal(torch, 4)
        return -torch.stack(chosen).sum()

    return trained(torch, net, loss)


PROGRAMS = {
    f.__name__: f for f in (mlp, lstm, unrolled, convolutions, graph_network, growing, rows, reinforce)
}


def run(name: str, steps: int) -> None:
    """Print the CPU seconds of the first steps, and of the last tenth of them for each step in milliseconds."""
    library = sys.modules[__name__].__dict__["LIBRARY"]
    random.seed(0)
    library.manual_seed(0)
    step = PROGRAMS[name](library)
    start = tail = time.process_time()
    for number in range(steps):
        if number == steps - steps // 10:
            tail = time.process_time()
        step()
    end = time.process_time()
    print(f"{end - start:.6f} {1000 * (end - tail) / max(steps // 10, 1):.6f}")


def measured(python: str, library: str, name: str, steps: int) -> tuple[float, float]:
    command = [python, __file__, "--run", library, "--only", name, "--steps", str(steps)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(output[-2]), float(output[-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", choices=sorted(PROGRAMS))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer")
    parser.add_argument("--run", choices=("twofold", "torch"))
    options = parser.parse_args()
    if options.run:
        LIBRARY = __import__(options.run)
        if options.run == "torch":
            LIBRARY.set_num_threads(1)
        globals()["LIBRARY"] = LIBRARY
        return run(options.only[0], options.steps)
    print(
        f"{'program':16}{'twofold':>10}{'torch':>10}   CPU seconds of {options.steps} steps; ms a step at their end"
    )
    for name in options.only or PROGRAMS:
        own, other = [], []
        for _ in range(options.rounds):
            own.append(measured(sys.executable, "twofold", name, options.steps))
            if options.peer:
                other.append(measured(options.peer, "torch", name, options.steps))
        medians = [[statistics.median(part) for part in zip(*found)] for found in (own, other) if found]
        first = "".join(f"{median[0]:10.3f}" for median in medians)
        last = "".join(f"{median[1]:10.3f}" for median in medians)
        print(f"{name:16}{first}   {last}")
    return None


if __name__ == "__main__":
    main()
