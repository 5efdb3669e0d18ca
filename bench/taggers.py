"""A tagger of two LSTMs written word by word with DyNet's interface: words a second beside DyNet.

    python bench/taggers.py [--sentences 192] [--epochs 4] [--rounds 3] [--peer PYTHON]

``dense`` updates all rows of the table of words in each step, ``sparse`` those of the words that occurred; a step is
one sentence, or a plain loop over 16. Every figure comes from a process of its own; the libraries take turns, medians
are shown: of the first epoch, in which every sentence is new, and of the fastest one. PYTHON is an interpreter that has
DyNet, which runs on one thread; run with TWOFOLD_THREADS=1 to compare with it.
"""

from __future__ import annotations

import argparse
import importlib
import random
import statistics
import subprocess
import sys
import time
from typing import Any

WORDS, EMBEDDED, HIDDEN, MIDDLE, TAGS = 10_000, 128, 50, 32, 9
LENGTHS = (5, 50)
SETTINGS = [(update, size) for update in ("dense", "sparse") for size in (1, 16)]
Sentence = tuple[list[int], list[int]]


def sentences(count: int) -> list[Sentence]:
    chosen = random.Random(0)
    lengths = [chosen.randint(*LENGTHS) for _ in range(count)]
    return [
        ([chosen.randrange(WORDS) for _ in range(n)], [chosen.randrange(TAGS) for _ in range(n)])
        for n in lengths
    ]


def tagger(dy: Any, m: Any, update: str) -> Any:
    """A step of training on some sentences, of parameters that ``m`` keeps."""
    words = m.add_lookup_parameters((WORDS, EMBEDDED))
    middle, output = m.add_parameters((MIDDLE, 2 * HIDDEN)), m.add_parameters((TAGS, MIDDLE))
    ahead, back = (dy.VanillaLSTMBuilder(1, EMBEDDED, HIDDEN, m) for _ in range(2))
    trainer = dy.AdamTrainer(m)
    trainer.set_clip_threshold(-1.0)
    trainer.set_sparse_updates(update == "sparse")

    def losses(sentence: Sentence) -> list[Any]:
        xs = [words[word] for word in sentence[0]]
        lefts = ahead.initial_state().transduce(xs)
        rights = back.initial_state().transduce(xs[::-1])[::-1]
        scores = [
            output * dy.tanh(middle * dy.concatenate([left, right])) for left, right in zip(lefts, rights)
        ]
        return [dy.pickneglogsoftmax(score, tag) for score, tag in zip(scores, sentence[1])]

    def step(given: list[Sentence]) -> float:
        dy.renew_cg()
        loss = dy.esum([one for sentence in given for one in losses(sentence)])
        value = float(loss.scalar_value())
        loss.backward()
        trainer.update()
        return value

    return step


def run(library: str, update: str, size: int, count: int, epochs: int) -> None:
    """Print words for each CPU second, in the first epoch and in the fastest one, and the loss at the end."""
    if library == "dynet":
        importlib.import_module("dynet_config").set(mem=1024, autobatch=int(size > 1), random_seed=1)
    dy = importlib.import_module(library)
    m = dy.ParameterCollection()
    step = tagger(dy, m, update)
    given = sentences(count)
    words = sum(len(sentence[0]) for sentence in given)
    found, loss = [], 0.0
    for _ in range(epochs):
        start = time.process_time()
        for first in range(0, count, size):
            loss = step(given[first : first + size])
        found.append(words / (time.process_time() - start))
    print(f"{found[0]:.1f} {max(found):.1f} {loss:.4f}")


def measured(python: str, library: str, update: str, size: int, options: argparse.Namespace) -> list[float]:
    command = [python, __file__, "--run", library, "--update", update, "--size", str(size)]
    command += ["--sentences", str(options.sentences), "--epochs", str(options.epochs)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return [float(number) for number in output[-3:]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=192)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer")
    parser.add_argument("--run", choices=("twofold.dynet", "dynet"))
    parser.add_argument("--update", choices=("dense", "sparse"), default="dense")
    parser.add_argument("--size", type=int, default=1)
    options = parser.parse_args()
    if options.run:
        return run(options.run, options.update, options.size, options.sentences, options.epochs)
    libraries = [(sys.executable, "twofold.dynet")] + ([(options.peer, "dynet")] if options.peer else [])
    print(f"{'':28}{'first epoch':>14}{'fastest':>10}   words for each CPU second")
    for update, size in SETTINGS:
        rounds = [
            [measured(python, library, update, size, options) for python, library in libraries]
            for _ in range(options.rounds)
        ]
        for k, (_, library) in enumerate(libraries):
            first, fastest = (statistics.median(found[k][column] for found in rounds) for column in (0, 1))
            print(f"{library + ' ' + update:22}{size:6}{first:14.0f}{fastest:10.0f}", flush=True)
    return None


if __name__ == "__main__":
    main()
