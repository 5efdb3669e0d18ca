"""A tagger of parts of speech: LSTMs over the characters of each word and over the words, one sentence at a time.

    python examples/tagger.py --data train.tsv.gz

The program is written as one writes it for DyNet: plain Python for each sentence, words of any length.
"""

from __future__ import annotations

from collections import Counter

from training import run
from trees import Sentence, numbered

import twofold.dynet as dy


class Tagger:
    """Scores of tags from words that were seen twice, and from the characters of the others."""

    def __init__(self, train: list[Sentence], size: int) -> None:
        counts = Counter(word.form for sentence in train for word in sentence)
        self.words = numbered(form for form, count in counts.items() if count > 1)
        self.characters = numbered(["?", *(c for form in counts for c in form)])
        self.tags = numbered(word.tag for sentence in train for word in sentence)
        self.model = m = dy.ParameterCollection()
        self.word_table = m.add_lookup_parameters((max(len(self.words), 1), size))
        self.character_table = m.add_lookup_parameters((len(self.characters), size // 2))
        self.spelling = [dy.LSTMBuilder(1, size // 2, size // 2, m) for _ in range(2)]
        self.sequence = dy.BiRNNBuilder(1, size, 2 * size, m, dy.LSTMBuilder)
        self.hidden, self.bias = m.add_parameters((size, 2 * size)), m.add_parameters(size, init=0)
        self.output = m.add_parameters((len(self.tags), size))

    def word(self, form: str) -> dy.Expression:
        number = self.words.get(form)
        if number is not None:
            return self.word_table[number]
        letters = [self.character_table[self.characters.get(c, 0)] for c in form]
        forward, backward = self.spelling
        ahead = forward.initial_state().transduce(letters)[-1]
        return dy.concatenate([ahead, backward.initial_state().transduce(reversed(letters))[-1]])

    def scores(self, sentence: Sentence) -> list[dy.Expression]:
        outputs = self.sequence.transduce([self.word(word.form) for word in sentence])
        return [self.output * dy.tanh(self.hidden * x + self.bias) for x in outputs]

    def loss(self, sentence: Sentence) -> dy.Expression:
        pairs = zip(self.scores(sentence), sentence)
        return dy.esum([dy.pickneglogsoftmax(scores, self.tags[word.tag]) for scores, word in pairs])

    def right(self, sentence: Sentence) -> int:
        scores = dy.concatenate_cols(self.scores(sentence)).npvalue()
        return sum(self.tags.get(word.tag) == tag for word, tag in zip(sentence, scores.argmax(0)))


if __name__ == "__main__":
    run((__doc__ or "").split("\n")[0], Tagger)
