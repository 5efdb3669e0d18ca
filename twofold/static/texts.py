"""Texts by number, as graphs hold them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import GraphError
from twofold.static.define import as_tensor, constant
from twofold.static.graph import Tensor, owner_of

_MOST = 1 << 20  # texts that are remembered without being a constant of a graph


class Texts:
    """Numbers for texts: equal texts have one number, which the latest million of them keep.

    >>> texts = Texts()
    >>> int(texts.number_of("a")), int(texts.number_of(b"a")), texts.text_of(texts.number_of("b"))
    (0, 0, 'b')
    """

    def __init__(self) -> None:
        self._numbers: OrderedDict[str, int] = OrderedDict()
        self._texts: dict[int, str] = {}
        self._kept: set[str] = set()
        self._next = 0
        self._lock = threading.Lock()

    def number_of(self, text: str | bytes, keep: bool = False) -> numpy.int64:
        """The number of a text; with ``keep`` for ever."""
        word = text.decode() if isinstance(text, bytes) else text
        with self._lock:
            number = self._numbers.pop(word, None)
            if number is None:
                number, self._next = self._next, self._next + 1
            self._numbers[word], self._texts[number] = number, word
            if keep:
                self._kept.add(word)
            while len(self._numbers) > _MOST + len(self._kept):
                old, gone = self._numbers.popitem(last=False)
                if old in self._kept:
                    self._numbers[old] = gone
                else:
                    del self._texts[gone]
        return numpy.int64(number)

    def text_of(self, number: Any) -> str:
        """The text of a number; raises GraphError for one that is not known any more."""
        try:
            return self._texts[int(number)]
        except KeyError:
            what = f"text {int(number)} is not known any more"
            raise GraphError(what, "Use a text in the run that read it.") from None


TEXTS = Texts()


def as_number(value: Any) -> Any:
    """The number of a text or of a constant text; anything else as it is."""
    tensor = as_tensor(value)
    if isinstance(tensor, Tensor):
        owner = owner_of(tensor)
        value = owner[0].string if owner is not None and owner[0].string is not None else value
    return constant(TEXTS.number_of(value, True), int64) if isinstance(value, (str, bytes)) else value
