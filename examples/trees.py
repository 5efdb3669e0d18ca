"""Sentences as dependency trees, from a file or generated: what the examples beside this file train on."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class Word(NamedTuple):
    """A word of a sentence: its form, part of speech, head (0: none, else a number from 1) and relation to it."""

    form: str
    tag: str
    head: int
    relation: str


Sentence = list[Word]


def read(path: str) -> Iterator[Sentence]:
    """Sentences of a file of five columns (number, form, tag, head, relation), an empty line after each."""
    sentence: Sentence = []
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        for line in file:
            columns = line.rstrip("\n").split("\t")
            if len(columns) == 5:
                sentence.append(Word(columns[1], columns[2], int(columns[3]), columns[4]))
            elif sentence:
                yield sentence
                sentence = []
    if sentence:
        yield sentence


def generate(count: int, seed: int) -> list[Sentence]:
    """Sentences of a small grammar with made-up words whose endings tell their parts of speech."""
    draw = random.Random(seed)
    endings = {"NOUN": "on", "VERB": "ita", "ADJ": "il", "ADV": "ly", "DET": "e"}
    syllables = ["ba", "ko", "mi", "ru", "te", "za"]

    def phrase(tag: str, relation: str, depth: int) -> list[list[Any]]:
        form = "".join(draw.choices(syllables, k=2)) + endings[tag]
        before = [("DET", "det", 0.7), ("ADJ", "amod", 0.4)] if tag == "NOUN" else []
        before = [("NOUN", "nsubj", 0.9)] if tag == "VERB" else before
        after = [("NOUN", "obj", 0.6), ("ADV", "advmod", 0.4)] if tag == "VERB" else []
        after = [("NOUN", "nmod", 0.3)] if tag == "NOUN" else after
        parts = [
            [phrase(t, r, depth + 1) for t, r, p in side if depth < 4 and draw.random() < p]
            for side in (before, after)
        ]
        position = sum(map(len, parts[0]))
        words, heads = [], []
        for part in [*parts[0], [[form, tag, None, relation]], *parts[1]]:
            start = len(words)
            words += [[f, t, None if h is None else h + start, r] for f, t, h, r in part]
            heads += [start + position for position, word in enumerate(part) if word[2] is None]
        for one in heads:
            words[one][2] = None if one == position else position
        return words

    made = [phrase("VERB", "root", 0) for _ in range(count)]
    return [[Word(f, t, 0 if h is None else h + 1, r) for f, t, h, r in words] for words in made]


def sentences(path: str | None, train: int, test: int) -> tuple[list[Sentence], list[Sentence]]:
    """Sentences to train and to test with: the first ones of a file, or generated ones."""
    found = list(read(path)) if path else generate(train + test, seed=1)
    if len(found) <= test:
        raise ValueError(f"{path} has {len(found)} sentences; use less than that to test")
    return found[test : test + train], found[:test]


def numbered(items: Iterable[str]) -> dict[str, int]:
    """A number from 0 for each different item."""
    return {item: number for number, item in enumerate(dict.fromkeys(items))}


def edges(batch: list[Sentence]) -> tuple[list[int], list[int], int]:
    """Heads and words of all edges, words numbered over the whole batch, and the height of the highest tree."""
    heads: list[int] = []
    words: list[int] = []
    first = height = 0
    for sentence in batch:
        for position, word in enumerate(sentence):
            if word.head:
                heads.append(first + word.head - 1)
                words.append(first + position)
            depth = 1
            while word.head:
                word, depth = sentence[word.head - 1], depth + 1
            height = max(height, depth)
        first += len(sentence)
    return heads, words, height
