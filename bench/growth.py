"""Memory of programs whose structure or sizes are always new: resident memory and what every cache holds.

    python bench/growth.py [--only NAME] [--steps 300] [--budget MIB]

Every program runs in a process of its own. A line is printed each tenth of the steps; the last column says by how much
the resident memory grew for each step since the line before.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy

RNG = numpy.random.default_rng(0)


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def normal(torch: Any, *shape: int) -> Any:
    return torch.from_numpy(RNG.normal(size=shape).astype(numpy.float32))


def trees(torch: Any) -> Callable[[], None]:
    """A cell of TreeLSTM form on random binary trees of 20 to 60 leaves, no two alike."""
    width = 16
    cell = torch.nn.Linear(2 * width, 5 * width)
    optimizer = torch.optim.SGD(cell.parameters(), 1e-3)
    words = list(normal(torch, 64, 1, width))

    def node(leaves: int) -> tuple[Any, Any]:
        if leaves == 1:
            word = random.choice(words)
            return word, word
        left = random.randint(1, leaves - 1)
        (h1, c1), (h2, c2) = node(left), node(leaves - left)
        i, f1, f2, o, u = torch.chunk(cell(torch.cat([h1, h2], 1)), 5, 1)
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2
        return torch.sigmoid(o) * torch.tanh(c), c

    def step() -> None:
        optimizer.zero_grad()
        loss = (node(random.randint(20, 60))[0] ** 2).sum()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def forests(torch: Any) -> Callable[[], None]:
    """Batches of 25 binary trees of 10 to 25 leaves, no two alike, with a class at every node."""
    width, words, classes = 16, 64, 5
    nn = torch.nn
    table, cell, output = nn.Embedding(words, width), nn.Linear(2 * width, width), nn.Linear(width, classes)
    parameters = [*table.parameters(), *cell.parameters(), *output.parameters()]
    optimizer = torch.optim.Adam(parameters, 1e-3)

    def node(leaves: int, nodes: list[Any]) -> Any:
        if leaves == 1:
            nodes.append(table(torch.tensor([random.randrange(words)])))
        else:
            left = random.randint(1, leaves - 1)
            below = torch.cat([node(left, nodes), node(leaves - left, nodes)], 1)
            nodes.append(torch.tanh(cell(below)))
        return nodes[-1]

    def loss_of(leaves: int) -> Any:
        nodes: list[Any] = []
        node(leaves, nodes)
        labels = torch.tensor([random.randrange(classes) for _ in nodes])
        return nn.functional.cross_entropy(output(torch.cat(nodes)), labels, reduction="sum")

    def step() -> None:
        optimizer.zero_grad()
        loss = sum(loss_of(random.randint(10, 25)) for _ in range(25))
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def sequences(torch: Any) -> Callable[[], None]:
    """A cell called once for each element of a sequence that is longer in each step."""
    cell = torch.nn.RNNCell(8, 16)
    optimizer = torch.optim.SGD(cell.parameters(), 1e-3)
    lengths = iter(range(5, 1_000_000))

    def step() -> None:
        x = normal(torch, next(lengths), 4, 8)
        h = torch.zeros(4, 16)
        for row in x:
            h = cell(row, h)
        optimizer.zero_grad()
        loss = (h**2).sum()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def batches(torch: Any) -> Callable[[], None]:
    """A perceptron whose batches have random sizes up to 100,000."""
    nn = torch.nn
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)

    def step() -> None:
        optimizer.zero_grad()
        loss = (net(normal(torch, random.randint(1, 100_000), 4)) ** 2).mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def sessions(torch: Any) -> Callable[[], None]:
    """A declared graph fed with arrays whose shape is always new."""
    import twofold.static as tf

    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, None])
        y = tf.reduce_sum(tf.tanh(x * 2.0 + 1.0))
        slope = tf.gradients(y, x)[0]
    session = tf.Session(graph=graph)
    rows, columns = itertools.cycle(range(1, 38)), itertools.cycle(range(1, 1010))  # no common divisor

    def step() -> None:
        session.run([y, slope], {x: RNG.normal(size=(next(rows), next(columns))).astype(numpy.float32)})

    return step


PROGRAMS = {f.__name__: f for f in (trees, forests, sequences, batches, sessions)}


def held(torch: Any) -> str:
    """Count and KiB of each cache, and how many kernels are in memory."""
    found = torch.stats()
    parts = [f"{name} {cache.count}: {cache.bytes >> 10}" for name, cache in found.caches.items()]
    return ", ".join([*parts, f"kernels {found.kernels}"])


def run(name: str, steps: int, budget: float | None) -> None:
    """Print memory and counts while the program runs."""
    import twofold as torch

    if budget is not None:
        torch.config.cache_bytes = int(budget * 2**20)
    random.seed(0)
    torch.manual_seed(0)
    step = PROGRAMS[name](torch)
    before, last = resident(), time.process_time()
    every = max(steps // 10, 1)
    for number in range(1, steps + 1):
        step()
        if number % every == 0:
            now, clock = resident(), time.process_time()
            print(
                f"{number:6} {now / 2**20:8.1f} MiB {(now - before) / every / 1024:9.1f} KiB/step"
                f" {(clock - last) / every * 1000:8.2f} ms/step  {held(torch)}",
                flush=True,
            )
            before, last = now, clock


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", choices=sorted(PROGRAMS))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--budget", type=float, help="of all caches, in MiB")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        return run(options.only[0], options.steps, options.budget)
    for name in options.only or PROGRAMS:
        print(f"{name}: {PROGRAMS[name].__doc__}")
        command = [sys.executable, __file__, "--run", "--only", name, "--steps", str(options.steps)]
        if options.budget is not None:
            command += ["--budget", str(options.budget)]
        subprocess.run(command, check=True)
    return None


if __name__ == "__main__":
    main()
