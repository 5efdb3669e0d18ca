"""Texts as rows of word numbers: ``tf.contrib.learn.preprocessing``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy

from twofold.plain_objects import described, read

_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|['\w\-]+")


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text: letters, digits, ``'``, ``-`` and ``_``, divided before capitals inside.

    >>> list(tokenizer(["It's well-known, NASA BigWord"]))
    [["It's", 'well-known', 'NASA', 'Big', 'Word']]
    """
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """Numbers of words in the order in which they are met; 0 is ``unknown_token``.

    >>> words = CategoricalVocabulary()
    >>> words.get("a"), words.get("b"), words.get("a"), len(words)
    (1, 2, 1, 3)
    """

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token, self._support_reverse = unknown_token, support_reverse
        self._mapping: dict[str, int] = {unknown_token: 0}
        self._reverse_mapping = [unknown_token]
        self._freq: dict[str, int] = {}
        self._freeze = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Give no numbers to further words: they are unknown."""
        self._freeze = freeze

    def get(self, category: str) -> int:
        """The number of a word, which is a new one for a new word."""
        if category not in self._mapping:
            if self._freeze:
                return 0
            self._number(category)
        return self._mapping[category]

    def _number(self, category: str) -> None:
        self._mapping[category] = len(self._mapping)
        self._reverse_mapping.append(category)

    def add(self, category: str, count: int = 1) -> None:
        """Count a word."""
        if self.get(category) > 0:
            self._freq[category] = self._freq.get(category, 0) + count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keep words counted more than ``min_frequency`` times, and fewer than ``max_frequency`` unless that is -1.

        They are numbered anew, the most frequent first, those of one frequency by the alphabet.
        """
        kept = sorted(self._freq.items(), key=lambda item: (-item[1], item[0]))
        self._freq = {
            word: count for word, count in kept if count > min_frequency and not 0 < max_frequency <= count
        }
        self._mapping, self._reverse_mapping = {self._unknown_token: 0}, [self._unknown_token]
        for word in self._freq:
            self._number(word)

    def reverse(self, class_id: int) -> str:
        """The word of a number; raises ValueError without ``support_reverse``."""
        if not self._support_reverse:
            raise ValueError("reverse: the vocabulary was made without support_reverse. Set it.")
        return self._reverse_mapping[class_id]


class VocabularyProcessor:
    """Texts as rows of ``max_document_length`` word numbers, filled up with 0, which also stands for unknown words.

    Args:
        max_document_length: the length of a row; longer texts are cut.
        min_frequency: words counted so often or less by ``fit`` are unknown; 0 keeps all.
        vocabulary: the numbers of words; a new ``CategoricalVocabulary`` unless given.
        tokenizer_fn: a function that takes texts and gives a list of words for each; ``tokenizer`` unless given.

    >>> import twofold.static as tf
    >>> rows = tf.contrib.learn.preprocessing.VocabularyProcessor(4)
    >>> print(numpy.array(list(rows.fit_transform(["the cat", "the dog sees the cat"]))))
    [[1 2 0 0]
     [1 3 4 1]]
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[str]], Iterable[Any]] | None = None,
    ) -> None:
        self.max_document_length, self.min_frequency = max_document_length, min_frequency
        self.vocabulary_ = vocabulary if vocabulary is not None else CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Number the words of texts; those met later are unknown."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Iterable[str], unused_y: Any = None) -> Iterator[numpy.ndarray]:
        """``fit``, then the rows of the same texts."""
        texts = list(raw_documents)
        return self.fit(texts).transform(texts)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[numpy.ndarray]:
        """The row of each text, of int64."""
        for words in self._tokenizer(raw_documents):
            row = numpy.zeros(self.max_document_length, numpy.int64)
            for position, word in zip(range(self.max_document_length), words):
                row[position] = self.vocabulary_.get(word)
            yield row

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """The words of each row, the unknown ones included."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(number) for number in row)

    def save(self, filename: Any) -> None:
        """Write everything to a file, as JSON; functions and classes by the names that their modules have for them.

        Raises ValueError where one has none there, such as a lambda expression.
        """
        try:
            words = json.dumps(described(self))
        except TypeError as error:
            raise ValueError(f"VocabularyProcessor.save: an attribute cannot be written. {error}") from None
        with open(os.fspath(filename), "w", encoding="utf-8") as file:
            file.write(words)

    @classmethod
    def restore(cls, filename: Any) -> VocabularyProcessor:
        """What ``save`` wrote, of the class that was saved, which the program has imported or defined."""
        with open(os.fspath(filename), encoding="utf-8") as file:
            found: VocabularyProcessor = read(json.load(file))
        return found
