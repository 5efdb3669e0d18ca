"""A graph network over dependency trees: words send messages along their edges, then tell their parts of speech.

    python examples/graph_network.py --data train.tsv.gz
    python examples/graph_network.py --data train.tsv.gz --declared

Each sentence is another graph. With ``--declared`` the same function is called once, on placeholders, and a session
runs what it declared with the words and edges of each sentence.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from training import progress
from trees import Sentence, numbered, sentences

import twofold as torch
import twofold.static as tf

ROUNDS = 2


def loss_and_right(p: dict[str, Any], words: Any, sources: Any, targets: Any, tags: Any) -> tuple[Any, Any]:
    """The loss, and how many tags are right: edges lead from ``sources`` to ``targets`` and back."""
    h = torch.nn.functional.embedding(words, p["table"])
    for step in range(ROUNDS):
        down = torch.index_select(torch.matmul(h, p[f"down{step}"]), 0, sources)
        up = torch.index_select(torch.matmul(h, p[f"up{step}"]), 0, targets)
        received = torch.index_add(torch.index_add(h * 0, 0, targets, down), 0, sources, up)
        h = torch.tanh(torch.matmul(h, p[f"own{step}"]) + received)
    scores = torch.matmul(h, p["output"])
    loss = torch.nn.functional.cross_entropy(scores, tags, reduction="sum")
    return loss, torch.sum(torch.eq(torch.argmax(scores, 1), tags))


def parameters(words: int, tags: int, size: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    shapes = {"table": (words, size), "output": (size, tags)}
    shapes |= {f"{kind}{step}": (size, size) for step in range(ROUNDS) for kind in ("own", "down", "up")}
    return {name: generator.normal(0, size**-0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def by_run(values: dict[str, np.ndarray]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A step of training and a test, recorded for each sentence."""
    p = {name: torch.tensor(value, requires_grad=True) for name, value in values.items()}
    optimizer = torch.optim.Adam(list(p.values()), lr=0.003)

    def step(*arrays: np.ndarray) -> float:
        optimizer.zero_grad()
        loss, _ = loss_and_right(p, *map(torch.from_numpy, arrays))
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, lambda *arrays: loss_and_right(p, *map(torch.from_numpy, arrays))[1].item()


def declared(values: dict[str, np.ndarray]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The same, declared once for sentences of any size."""
    inputs = [tf.placeholder(tf.int64, [None]) for _ in range(4)]
    p = {name: tf.identity(tf.Variable(value)) for name, value in values.items()}
    loss, right = loss_and_right(p, *inputs)
    train = tf.train.AdamOptimizer(0.003).minimize(loss)
    session = tf.Session()
    session.run(tf.global_variables_initializer())

    def step(*arrays: np.ndarray) -> float:
        return float(session.run([loss, train], dict(zip(inputs, arrays)))[0])

    return step, lambda *arrays: int(session.run(right, dict(zip(inputs, arrays))))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--data", help="a file of five columns, .gz or not; without it sentences are generated"
    )
    parser.add_argument("--declared", action="store_true", help="declare the graph before it runs")
    parser.add_argument("--train", type=int, default=1000, help="sentences to train with")
    parser.add_argument("--test", type=int, default=200, help="sentences to test with")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--size", type=int, default=64, help="the size of vectors")
    options = parser.parse_args()
    random.seed(1)
    train, test = sentences(options.data, options.train, options.test)
    counts = Counter(word.form for sentence in train for word in sentence)
    words = numbered(["?", *(form for form, count in counts.items() if count > 1)])
    tags = numbered(word.tag for sentence in train + test for word in sentence)

    def arrays(sentence: Sentence) -> list[np.ndarray]:
        edges = [(word.head - 1, position) for position, word in enumerate(sentence) if word.head]
        known = [words.get(word.form, 0) for word in sentence]
        columns = known, [a for a, _ in edges], [b for _, b in edges], [tags[word.tag] for word in sentence]
        return [np.array(column, np.int64) for column in columns]

    step, right = (declared if options.declared else by_run)(parameters(len(words), len(tags), options.size))
    for epoch in range(1, options.epochs + 1):
        random.shuffle(train)
        total = sum(step(*arrays(sentence)) for sentence in progress(train, f"epoch {epoch}"))
        found = sum(right(*arrays(sentence)) for sentence in progress(test, "test"))
        count = sum(map(len, train)), sum(map(len, test))
        print(
            f"epoch {epoch}: loss a word {total / count[0]:.4f}, accuracy {found / count[1]:.4f}", flush=True
        )


if __name__ == "__main__":
    main()
