"""Texts as sequences of word numbers: ``tf.keras.preprocessing.text``."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy

from twofold.runtime.tracing import here

_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def text_to_word_sequence(
    text: str, filters: str = _FILTERS, lower: bool = True, split: str = " "
) -> list[str]:
    """The words of a text: what stands between ``split``, by which the characters of ``filters`` are replaced.

    >>> import twofold.static as tf
    >>> tf.keras.preprocessing.text.text_to_word_sequence("One, two: ONE!")
    ['one', 'two', 'one']
    """
    found = (text.lower() if lower else text).translate({ord(one): split for one in filters})
    return [word for word in found.split(split) if word]


def _md5(word: str) -> int:
    return int(hashlib.md5(word.encode(), usedforsecurity=False).hexdigest(), 16)


def hashing_trick(
    text: str,
    n: int,
    hash_function: Callable[[str], int] | str | None = None,
    filters: str = _FILTERS,
    lower: bool = True,
    split: str = " ",
) -> list[int]:
    """The words of a text as numbers from 1 to ``n - 1``, by Python's ``hash`` unless "md5" or a function is given.

    >>> import twofold.static as tf
    >>> tf.keras.preprocessing.text.hashing_trick("one two one", 10, "md5")
    [3, 6, 3]
    """
    compute: Any = hash if hash_function is None else _md5 if hash_function == "md5" else hash_function
    return [compute(word) % (n - 1) + 1 for word in text_to_word_sequence(text, filters, lower, split)]


def one_hot(text: str, n: int, filters: str = _FILTERS, lower: bool = True, split: str = " ") -> list[int]:
    """The words of a text as numbers from 1 to ``n - 1``, by Python's ``hash``."""
    return hashing_trick(text, n, hash, filters, lower, split)


class Tokenizer:
    """Numbers words by how often they occur in texts, the most frequent one 1; 0 is left for padding.

    Args:
        num_words: Only numbers below this one are used.
        filters: Characters that are left out.
        lower: Whether words are made lower-case.
        split: What separates words.
        char_level: Whether each character is a word.
        oov_token: What stands, as number 1, for words that have no number.
        document_count: How many texts there were before.

    >>> import twofold.static as tf
    >>> tokenizer = tf.keras.preprocessing.text.Tokenizer(oov_token="?")
    >>> tokenizer.fit_on_texts(["the cat and the dog"])
    >>> tokenizer.texts_to_sequences(["the dog barks"])
    [[2, 5, 1]]
    """

    def __init__(
        self,
        num_words: int | None = None,
        filters: str = _FILTERS,
        lower: bool = True,
        split: str = " ",
        char_level: bool = False,
        oov_token: str | None = None,
        document_count: int = 0,
    ) -> None:
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token, self.document_count = char_level, oov_token, document_count
        self.word_counts: OrderedDict[str, int] = OrderedDict()
        self.word_docs: defaultdict[str, int] = defaultdict(int)
        self.index_docs: defaultdict[int, int] = defaultdict(int)
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def _words(self, text: Any) -> Sequence[str]:
        if not self.char_level and not isinstance(text, list):
            return text_to_word_sequence(text, self.filters, self.lower, self.split)
        if not self.lower:
            return text
        return [one.lower() for one in text]

    def fit_on_texts(self, texts: Iterable[Any]) -> None:
        """Count the words of texts, or of lists of words, and number all that were counted."""
        for text in texts:
            words = self._words(text)
            self.document_count += 1
            for word in words:
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
            for word in set(words):
                self.word_docs[word] += 1
        ordered = sorted(self.word_counts, key=lambda word: -self.word_counts[word])
        first = [] if self.oov_token is None else [self.oov_token]
        self.word_index = {word: number for number, word in enumerate([*first, *ordered], 1)}
        self.index_word = {number: word for word, number in self.word_index.items()}
        for word, count in self.word_docs.items():
            self.index_docs[self.word_index[word]] = count

    def fit_on_sequences(self, sequences: Sequence[Any]) -> None:
        """Count in how many sequences of numbers each number is, for "tfidf"."""
        self.document_count += len(sequences)
        for sequence in sequences:
            for number in set(sequence):
                self.index_docs[number] += 1

    def _is_used(self, number: int) -> bool:
        return not self.num_words or number < self.num_words

    def texts_to_sequences_generator(self, texts: Iterable[Any]) -> Iterator[list[int]]:
        """The numbers of each text's words, one text after the other; those without one are left out."""
        other = None if self.oov_token is None else self.word_index.get(self.oov_token)
        for text in texts:
            numbers = (self.word_index.get(word) for word in self._words(text))
            found = [one if one is not None and self._is_used(one) else other for one in numbers]
            yield [one for one in found if one is not None]

    def texts_to_sequences(self, texts: Iterable[Any]) -> list[list[int]]:
        """The numbers of each text's words; words without one are left out, or ``oov_token``."""
        return list(self.texts_to_sequences_generator(texts))

    def sequences_to_texts_generator(self, sequences: Iterable[Any]) -> Iterator[str]:
        """The words of each sequence of numbers, one sequence after the other."""
        other = None if self.oov_token is None else self.index_word[self.word_index[self.oov_token]]
        for sequence in sequences:
            words = (self.index_word.get(one) if self._is_used(one) else None for one in sequence)
            yield " ".join(
                word for word in (other if one is None else one for one in words) if word is not None
            )

    def sequences_to_texts(self, sequences: Iterable[Any]) -> list[str]:
        """The words of each sequence of numbers, as a text."""
        return list(self.sequences_to_texts_generator(sequences))

    def texts_to_matrix(self, texts: Iterable[Any], mode: str = "binary") -> numpy.ndarray:
        """``sequences_to_matrix`` of the numbers of texts."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences: Sequence[Any], mode: str = "binary") -> numpy.ndarray:
        """A row for each sequence, in which column ``k`` says of number ``k``, by ``mode``:

        "binary" whether it is there, "count" how often, "freq" how often by the length, "tfidf" that by its rarity.
        """
        width = self.num_words or (len(self.word_index) + 1 if self.word_index else 0)
        if not width:
            raise ValueError(
                f"Specify a dimension (`num_words` argument), or fit on some text data first, at {here()}."
            )
        if mode not in ("binary", "count", "freq", "tfidf"):
            raise ValueError(
                f"Unknown vectorization mode: {mode}, at {here()}. Use 'binary', 'count', 'freq' or 'tfidf'."
            )
        if mode == "tfidf" and not self.document_count:
            raise ValueError(f"Fit the Tokenizer on some data before using tfidf mode, at {here()}.")
        found = numpy.zeros((len(sequences), width))
        for row, sequence in zip(found, sequences):
            for number, count in Counter(one for one in sequence if one < width).items():
                row[number] = self._weight(mode, number, count, len(sequence))
        return found

    def _weight(self, mode: str, number: int, count: int, length: int) -> float:
        if mode == "tfidf":
            rarity = math.log(1 + self.document_count / (1 + self.index_docs.get(number, 0)))
            return (1 + math.log(count)) * rarity
        return {"binary": 1.0, "count": float(count), "freq": count / length}[mode]

    def get_config(self) -> dict[str, Any]:
        """The arguments, and as JSON what was counted."""
        names = ("num_words", "filters", "lower", "split", "char_level", "oov_token", "document_count")
        counted = ("word_counts", "word_docs", "index_docs", "index_word", "word_index")
        own = {name: getattr(self, name) for name in names}
        return {**own, **{name: json.dumps(getattr(self, name)) for name in counted}}

    def to_json(self, **kwargs: Any) -> str:
        """The configuration as JSON, from which ``tokenizer_from_json`` makes an equal tokenizer."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)


def tokenizer_from_json(json_string: str) -> Tokenizer:
    """The tokenizer that ``to_json`` describes.

    >>> import twofold.static as tf
    >>> tokenizer = tf.keras.preprocessing.text.Tokenizer()
    >>> tokenizer.fit_on_texts(["one two one"])
    >>> tf.keras.preprocessing.text.tokenizer_from_json(tokenizer.to_json()).word_index
    {'one': 1, 'two': 2}
    """
    config = json.loads(json_string)["config"]
    counted = {key: json.loads(config.pop(key)) for key in ("word_counts", "word_docs", "word_index")}
    numbered = {key: json.loads(config.pop(key)) for key in ("index_docs", "index_word")}
    made = Tokenizer(**config)
    made.word_counts.update(counted["word_counts"])
    made.word_docs.update(counted["word_docs"])
    made.word_index.update(counted["word_index"])
    made.index_docs.update({int(key): value for key, value in numbered["index_docs"].items()})
    made.index_word.update({int(key): value for key, value in numbered["index_word"].items()})
    return made
