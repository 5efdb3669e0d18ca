"""The loop that the examples share: options, training with a progress bar, accuracy on other sentences."""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from trees import Sentence, sentences

import twofold.dynet as dy


class Network(Protocol):
    """What an example defines."""

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


def run(about: str, make: Callable[[list[Sentence], int], Network]) -> None:
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
    options = parser.parse_args()
    dy.reset_random_seed(1)
    random.seed(1)
    train, test = sentences(options.data, options.train, options.test)
    network = make(train, options.size)
    trainer = dy.AdamTrainer(network.model, 0.002)
    for epoch in range(1, options.epochs + 1):
        random.shuffle(train)
        total = 0.0
        batches = [train[start : start + options.batch] for start in range(0, len(train), options.batch)]
        for batch in progress(batches, f"epoch {epoch}"):
            dy.renew_cg()
            loss = dy.esum([network.loss(sentence) for sentence in batch])
            total += loss.value()
            loss.backward()
            trainer.update()
        right = 0
        for sentence in progress(test, "test"):
            dy.renew_cg()
            right += network.right(sentence)
        words = sum(map(len, train)), sum(map(len, test))
        print(
            f"epoch {epoch}: loss a word {total / words[0]:.3f}, accuracy {right / words[1]:.3f}", flush=True
        )
