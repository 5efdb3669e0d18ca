"""The loop that the examples share: options, training with a progress bar, accuracy on other sentences."""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from trees import Sentence, sentences

import twofold.dynet as dy
import twofold.static as tf

RATE = 0.002  # of learning


class Network(Protocol):
    """What an example defines; with a method ``declare`` it can be run define-then-run, too."""

    model: dy.ParameterCollection

    def loss(self, sentence: Sentence) -> dy.Expression: ...

    def right(self, sentence: Sentence) -> int: ...


def progress(items: list[Any], what: str) -> Iterable[Any]:
    """The items with a progress bar, where tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(items, desc=what, leave=False)


Steps = tuple[Callable[[list[Sentence]], float], Callable[[Sentence], int]]
"""A step of training, which returns the loss of its sentences, and the number of words of one that are told right."""


def by_run(network: Network) -> Steps:
    """Steps of a graph that is recorded anew for each batch."""
    trainer = dy.AdamTrainer(network.model, RATE)

    def step(batch: list[Sentence]) -> float:
        dy.renew_cg()
        loss = dy.esum([network.loss(sentence) for sentence in batch])
        total = loss.value()
        loss.backward()
        trainer.update()
        return total

    def right(sentence: Sentence) -> int:
        dy.renew_cg()
        return network.right(sentence)

    return step, right


def run(about: str, make: Callable[[list[Sentence], int], Any]) -> None:
    """Train and test the network that ``make`` gives for the sentences to train with and a size."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(
        "--data", help="a file of five columns, .gz or not; without it sentences are generated"
    )
    parser.add_argument("--train", type=int, default=1000, help="sentences to train with")
    parser.add_argument("--test", type=int, default=200, help="sentences to test with")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--size", type=int, default=64, help="the size of vectors")
    parser.add_argument("--batch", type=int, default=1, help="sentences for each update")
    parser.add_argument("--declared", action="store_true", help="declare the graph before it runs")
    options = parser.parse_args()
    dy.reset_random_seed(1)
    tf.set_random_seed(1)
    random.seed(1)
    train, test = sentences(options.data, options.train, options.test)
    network = make(train, options.size)
    if options.declared and not hasattr(network, "declare"):
        parser.error("the structure of this network depends on its own values: it cannot be declared")
    step, right = network.declare() if options.declared else by_run(network)
    for epoch in range(1, options.epochs + 1):
        random.shuffle(train)
        batches = [train[start : start + options.batch] for start in range(0, len(train), options.batch)]
        total = sum(step(batch) for batch in progress(batches, f"epoch {epoch}"))
        found = sum(right(sentence) for sentence in progress(test, "test"))
        words = sum(map(len, train)), sum(map(len, test))
        print(
            f"epoch {epoch}: loss a word {total / words[0]:.3f}, accuracy {found / words[1]:.3f}", flush=True
        )
