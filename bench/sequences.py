"""A bidirectional LSTM tagger over sentences of 5 to 60 words: CPU milliseconds a training step, four ways.

    python bench/sequences.py [--batch 16] [--steps 60] [--rounds 3] [--peer PYTHON]

``sequences`` declares it over a sequence axis, ``padded`` over ``dynamic_rnn`` with lengths, ``packed`` is nn.LSTM over
packed sequences. Every figure comes from a process of its own with one thread; ways take turns, medians are shown.
PYTHON is an interpreter that has PyTorch, for ``packed`` there.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy

WORDS, TAGS, SIZE = 2000, 17, 64
Batch = tuple[list[Any], list[Any]]


def batches(count: int, steps: int) -> list[Batch]:
    """Words and tags of sentences."""
    random = numpy.random.default_rng(1)
    lengths = [random.integers(5, 60, count) for _ in range(steps)]
    return [
        ([random.integers(0, WORDS, n) for n in own], [random.integers(0, TAGS, n) for n in own])
        for own in lengths
    ]


def declared(way: str) -> Callable[[Batch], float]:
    """A training step of the declared tagger."""
    tf = import_module("twofold.static")
    if way == "sequences":
        words, tags = (tf.sequence.placeholder(tf.int32) for _ in range(2))
    else:
        words, tags = (tf.placeholder(tf.int32, [None, None]) for _ in range(2))
    lengths = tf.placeholder(tf.int32, [None])
    x = tf.nn.embedding_lookup(tf.get_variable("table", [WORDS, SIZE]), words)
    cells = [tf.nn.rnn_cell.LSTMCell(SIZE) for _ in range(2)]
    of_each = None if way == "sequences" else lengths
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(*cells, x, of_each, dtype=tf.float32)
    scores = tf.layers.dense(tf.concat(outputs, -1), TAGS)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tags, logits=scores)
    mask = None if way == "sequences" else tf.sequence_mask(lengths, tf.shape(words)[1], tf.float32)
    loss = tf.reduce_mean(losses) if mask is None else tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
    update = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session = tf.Session()
    session.run(tf.global_variables_initializer())

    def step(batch: Batch) -> float:
        if way == "sequences":
            return float(session.run([loss, update], dict(zip((words, tags), batch)))[0])
        sizes = [len(sentence) for sentence in batch[0]]
        wide = numpy.zeros((2, len(sizes), max(sizes)), numpy.int32)
        for k, size in enumerate(sizes):
            wide[:, k, :size] = batch[0][k], batch[1][k]
        return float(session.run([loss, update], {words: wide[0], tags: wide[1], lengths: sizes})[0])

    return step


def packed(library: str) -> Callable[[Batch], float]:
    """A training step of the tagger over packed sequences."""
    torch = import_module(library)
    torch.set_num_threads(1)
    nn, pack = torch.nn, torch.nn.utils.rnn.pack_sequence
    table, layer = nn.Embedding(WORDS, SIZE), nn.LSTM(SIZE, SIZE, bidirectional=True)
    dense = nn.Linear(2 * SIZE, TAGS)
    optimizer = torch.optim.SGD(nn.ModuleList([table, layer, dense]).parameters(), 0.1)

    def step(batch: Batch) -> float:
        words, tags = (pack([torch.tensor(one) for one in part], enforce_sorted=False) for part in batch)
        outputs, _ = layer(words._replace(data=table(words.data)))
        loss = nn.functional.cross_entropy(dense(outputs.data), tags.data)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", help="a Python that has PyTorch")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        way, library = options.run.split(",")
        step = packed(library) if way == "packed" else declared(way)
        spent = []
        for batch in batches(options.batch, options.steps):
            start = time.process_time()
            step(batch)
            spent.append(time.process_time() - start)
        print(1000 * statistics.median(spent[options.steps // 2 :]), sum(spent[: options.steps // 2]))
        return
    runs = [(way, "twofold", sys.executable) for way in ("sequences", "padded", "packed")]
    runs += [("packed", "torch", options.peer)] if options.peer else []
    found: dict[tuple[str, str], list[list[float]]] = {}
    for _ in range(options.rounds):
        for way, library, python in runs:
            arguments = [python, __file__, "--run", f"{way},{library}"]
            arguments += ["--batch", str(options.batch), "--steps", str(options.steps)]
            environment = {**os.environ, "TWOFOLD_THREADS": "1", "OMP_NUM_THREADS": "1"}
            made = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
            found.setdefault((way, library), []).append([float(word) for word in made.stdout.split()])
    print(f"{'':20}{'CPU ms a step':>15}{'s of the first half':>22}")
    for (way, library), rows in found.items():
        late, first = (statistics.median(column) for column in zip(*rows))
        print(f"{library + ' ' + way:20}{late:>15.2f}{first:>22.2f}")


if __name__ == "__main__":
    main()
