"""Networks over trees, another tree for every sample: trees a second beside PyTorch, and where the time goes.

    python bench/structures.py [--batch 25] [--steps 40] [--rounds 3] [--peer PYTHON]

Every figure comes from a process of its own; the libraries take turns, medians are shown. No tree comes twice, so
every step is a structure never seen before. ``node`` is what a user writes, one node at a time; ``by_hand`` computes
all nodes of one height at once, what an expert writes for PyTorch. PYTHON is an interpreter that has PyTorch.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import time
from typing import Any

WIDTH, WORDS, CLASSES = 150, 2000, 5
Tree = Any  # (word, label), or (left, right, label)


def tree(leaves: int) -> Tree:
    label = random.randrange(CLASSES)
    if leaves == 1:
        return random.randrange(WORDS), label
    left = random.randint(1, leaves - 1)
    return tree(left), tree(leaves - left), label


def network(torch: Any) -> Any:
    """A binary TreeLSTM with a class at every node."""
    nn = torch.nn

    class TreeLSTM(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(WORDS, WIDTH)
            self.leaf = nn.Linear(WIDTH, 3 * WIDTH)
            self.inner = nn.Linear(2 * WIDTH, 5 * WIDTH)
            self.classes = nn.Linear(WIDTH, CLASSES)

        def at_leaf(self, words: Any) -> tuple[Any, Any]:
            i, o, u = self.leaf(self.words(words)).chunk(3, 1)
            c = torch.sigmoid(i) * torch.tanh(u)
            return torch.sigmoid(o) * torch.tanh(c), c

        def at_node(self, h: Any, left: Any, right: Any) -> tuple[Any, Any]:
            i, a, b, o, u = self.inner(h).chunk(5, 1)
            c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(a) * left + torch.sigmoid(b) * right
            return torch.sigmoid(o) * torch.tanh(c), c

        def node(self, one: Tree, hs: list[Any]) -> tuple[Any, Any]:
            if len(one) == 2:
                h, c = self.at_leaf(torch.tensor([one[0]]))
            else:
                (left, a), (right, b) = self.node(one[0], hs), self.node(one[1], hs)
                h, c = self.at_node(torch.cat([left, right], 1), a, b)
            hs.append(h)
            return h, c

        def loss_of(self, one: Tree) -> Any:
            hs: list[Any] = []
            self.node(one, hs)
            labels = torch.tensor(labels_of(one))
            return nn.functional.cross_entropy(self.classes(torch.cat(hs)), labels, reduction="sum")

        def loss_by_hand(self, trees: list[Tree]) -> Any:
            levels: list[list[Tree]] = []
            place: dict[int, int] = {}
            for one in trees:
                sort_by_height(one, levels)
            for level in levels:
                for one in level:
                    place[id(one)] = len(place)
            h, c = self.at_leaf(torch.tensor([one[0] for one in levels[0]]))
            for level in levels[1:]:
                left = torch.tensor([place[id(one[0])] for one in level])
                right = torch.tensor([place[id(one[1])] for one in level])
                below = torch.cat([h.index_select(0, left), h.index_select(0, right)], 1)
                own, cell = self.at_node(below, c.index_select(0, left), c.index_select(0, right))
                h, c = torch.cat([h, own]), torch.cat([c, cell])
            labels = torch.tensor([one[-1] for level in levels for one in level])
            return nn.functional.cross_entropy(self.classes(h), labels, reduction="sum")

    return TreeLSTM()


def labels_of(one: Tree) -> list[int]:
    return [one[-1]] if len(one) == 2 else [*labels_of(one[0]), *labels_of(one[1]), one[-1]]


def sort_by_height(one: Tree, levels: list[list[Tree]]) -> int:
    height = 0 if len(one) == 2 else 1 + max(sort_by_height(below, levels) for below in one[:2])
    while len(levels) <= height:
        levels.append([])
    levels[height].append(one)
    return height


def run(torch: Any, mode: str, batch: int, steps: int) -> None:
    """Print trees a second, CPU milliseconds a step, and those of them in which the program is recorded."""
    random.seed(0)
    torch.manual_seed(0)
    net = network(torch)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    times, spent, recording = [], [], []
    for _ in range(2 * steps):  # the first half warms up
        trees = [tree(random.randint(10, 25)) for _ in range(batch)]
        start, cpu = time.perf_counter(), time.process_time()
        loss: Any = net.loss_by_hand(trees) if mode == "by_hand" else sum(net.loss_of(one) for one in trees)
        recording.append(time.process_time() - cpu)
        optimizer.zero_grad()
        (loss / batch).backward()
        optimizer.step()
        loss.item()
        times.append(time.perf_counter() - start)
        spent.append(time.process_time() - cpu)
    medians = [statistics.median(part[steps:]) for part in (times, spent, recording)]
    figures = batch / medians[0], 1000 * medians[1], 1000 * medians[2], batch * steps / sum(times[:steps])
    print(*[f"{figure:.3f}" for figure in figures])
    if torch.__name__ == "twofold":
        found = torch.stats()
        print(
            f"launches {found.batch_launches} of {found.batched_calls} calls in {found.batched_traces} traces",
            file=sys.stderr,
        )


def measured(python: str, library: str, mode: str, options: argparse.Namespace) -> list[float]:
    command = [python, __file__, "--run", library, "--mode", mode]
    command += ["--batch", str(options.batch), "--steps", str(options.steps)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return [float(number) for number in output[-4:]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer")
    parser.add_argument("--run", choices=("twofold", "torch"))
    parser.add_argument("--mode", choices=("node", "by_hand"), default="node")
    options = parser.parse_args()
    if options.run:
        return run(__import__(options.run), options.mode, options.batch, options.steps)
    lines = [(sys.executable, "twofold", "node"), (sys.executable, "twofold", "by_hand")]
    if options.peer:
        lines += [(options.peer, "torch", "node"), (options.peer, "torch", "by_hand")]
    rounds = [[measured(*line, options) for line in lines] for _ in range(options.rounds)]
    print(f"{'':18}{'trees/s':>10}{'CPU ms':>10}{'recording':>10}{'first steps, trees/s':>22}")
    for k, (_, library, mode) in enumerate(lines):
        a, b, c, d = (statistics.median(part) for part in zip(*[found[k] for found in rounds]))
        print(f"{library + ' ' + mode:18}{a:10.0f}{b:10.2f}{c:10.2f}{d:22.0f}")
    return None


if __name__ == "__main__":
    main()
