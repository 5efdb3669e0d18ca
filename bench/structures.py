"""Networks whose structure differs for every sample: samples a second beside PyTorch, and where the time goes.

    python bench/structures.py [--program trees] [--batch 25] [--steps 40] [--rounds 3] [--peer PYTHON]

Every figure comes from a process of its own; the libraries take turns, medians are shown. No tree comes twice, so
every step is a structure never seen before; chains are LSTM cells over sentences of different lengths, graphs pass
messages along edges of their own, mixtures send each sample through experts of its own. ``node`` is what a user
writes, one node at a time; ``by_hand`` computes all nodes of one height at once, what an expert writes for PyTorch.
Beams search for a sequence of words, eight prefixes that grow by a word a step, until the best one ends; a sample is a
step there.
PYTHON is an interpreter that has PyTorch.
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

WIDTH, WORDS, CLASSES = 150, 2000, 5
NARROW, EXPERTS = 64, 4
BEAM, LONGEST, END = 8, 40, 0
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
            position: dict[int, int] = {}
            for one in trees:
                sort_by_height(one, levels)
            for level in levels:
                for one in level:
                    position[id(one)] = len(position)
            h, c = self.at_leaf(torch.tensor([one[0] for one in levels[0]]))
            for level in levels[1:]:
                left = torch.tensor([position[id(one[0])] for one in level])
                right = torch.tensor([position[id(one[1])] for one in level])
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


def small_network(torch: Any) -> Any:
    """Weights of an LSTM cell and of experts, and three ways to use them that differ for every sample."""
    nn = torch.nn

    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(WORDS, NARROW)
            self.own, self.before = nn.Linear(NARROW, 4 * NARROW), nn.Linear(NARROW, 4 * NARROW)
            self.experts = nn.ModuleList([nn.Linear(NARROW, NARROW) for _ in range(EXPERTS)])
            self.next = nn.Linear(NARROW, WORDS)

        def word(self) -> Any:
            return self.words.weight[random.randrange(WORDS)]

        def chains(self) -> Any:
            h = c = torch.zeros(NARROW)
            for _ in range(random.randint(5, 25)):
                i, f, u, o = (self.own(self.word()) + self.before(h)).chunk(4)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
                h = torch.sigmoid(o) * torch.tanh(c)
            return (h * h).sum()

        def graphs(self) -> Any:
            hs = [self.word() for _ in range(random.randint(6, 14))]
            edges = [(random.randrange(len(hs)), random.randrange(len(hs))) for _ in range(2 * len(hs))]
            for _ in range(3):
                messages = [self.experts[0](h) for h in hs]
                sums = list(hs)
                for a, b in edges:
                    sums[b] = sums[b] + messages[a]
                hs = [torch.tanh(h) for h in sums]
            return sum((h * h).sum() for h in hs)

        def mixtures(self) -> Any:
            x = self.word()
            for _ in range(random.randint(1, 4)):
                x = torch.tanh(self.experts[random.randrange(EXPERTS)](x)) + x
            return (x * x).sum()

        def beams(self) -> int:
            """The steps of one search."""
            h, last = torch.zeros(BEAM, NARROW), torch.randint(1, WORDS, (BEAM,))
            scores, prefixes = torch.zeros(BEAM), last[:, None]
            count = 0
            while count < LONGEST:
                count += 1
                h = torch.tanh(self.experts[0](self.words(last)) + self.experts[1](h))
                likely = torch.log_softmax(self.next(h), 1) + scores[:, None]
                scores, best = likely.reshape(-1).topk(BEAM)
                parents, last = best // WORDS, best % WORDS
                h = h[parents]
                prefixes = torch.cat([prefixes[parents], last[:, None]], 1)
                if last[0].item() == END:
                    break
            return count

    return Small()


def search(torch: Any, steps: int) -> None:
    """Print what ``run`` prints, for steps of searches."""
    torch.manual_seed(0)
    net = small_network(torch)
    times, spent, recording = [], [], []
    with torch.no_grad():
        for _ in range(2 * steps):  # the first half warms up
            start, cpu = time.perf_counter(), time.process_time()
            count = net.beams()
            times.append((time.perf_counter() - start) / count)
            spent.append((time.process_time() - cpu) / count)
            recording.append(0.0)  # every step reads a value, so nothing is recorded without running
    medians = [statistics.median(part[steps:]) for part in (times, spent, recording)]
    figures = 1 / medians[0], 1000 * medians[1], 1000 * medians[2], steps / sum(times[:steps])
    print(*[f"{figure:.3f}" for figure in figures])


def losses(torch: Any, program: str, mode: str) -> tuple[Any, Callable[[int], Any], Callable[[Any], Any]]:
    """A network, what makes a batch of so many samples, and what makes its loss."""
    if program != "trees":
        small = small_network(torch)
        return small, range, lambda samples: sum(getattr(small, program)() for _ in samples)
    net = network(torch)

    def loss(trees: list[Tree]) -> Any:
        return net.loss_by_hand(trees) if mode == "by_hand" else sum(net.loss_of(one) for one in trees)

    return net, lambda batch: [tree(random.randint(10, 25)) for _ in range(batch)], loss


def run(torch: Any, program: str, mode: str, batch: int, steps: int) -> None:
    """Print samples a second, CPU milliseconds a step, and those of them in which the program is recorded."""
    if program == "beams":
        return search(torch, steps)
    random.seed(0)
    torch.manual_seed(0)
    net, samples, loss_of = losses(torch, program, mode)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    times, spent, recording = [], [], []
    for _ in range(2 * steps):  # the first half warms up
        given = samples(batch)
        start, cpu = time.perf_counter(), time.process_time()
        loss = loss_of(given)
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
    return None


def measured(python: str, library: str, mode: str, options: argparse.Namespace) -> list[float]:
    command = [python, __file__, "--run", library, "--mode", mode]
    command += ["--batch", str(options.batch), "--steps", str(options.steps), "--program", options.program]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return [float(number) for number in output[-4:]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--program", choices=("trees", "chains", "graphs", "mixtures", "beams"), default="trees"
    )
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer")
    parser.add_argument("--run", choices=("twofold", "torch"))
    parser.add_argument("--mode", choices=("node", "by_hand"), default="node")
    options = parser.parse_args()
    if options.run:
        return run(__import__(options.run), options.program, options.mode, options.batch, options.steps)
    modes = ("node", "by_hand") if options.program == "trees" else ("node",)
    lines = [(sys.executable, "twofold", mode) for mode in modes]
    if options.peer:
        lines += [(options.peer, "torch", mode) for mode in modes]
    rounds = [[measured(*line, options) for line in lines] for _ in range(options.rounds)]
    print(f"{'':18}{'samples/s':>10}{'CPU ms':>10}{'recording':>10}{'first steps, samples/s':>24}")
    for k, (_, library, mode) in enumerate(lines):
        a, b, c, d = (statistics.median(part) for part in zip(*[found[k] for found in rounds]))
        print(f"{library + ' ' + mode:18}{a:10.0f}{b:10.2f}{c:10.2f}{d:24.0f}")
    return None


if __name__ == "__main__":
    main()
