"""A tagger of parts of speech: LSTMs over the characters of each word and over the words, one sentence at a time.

    python examples/tagger.py --data train.tsv.gz
    python examples/tagger.py --data train.tsv.gz --declared

The program is written as one writes it for DyNet: plain Python for each sentence, words of any length. With
``--declared`` it is written as one writes it for TensorFlow: sentences and words are padded to the longest one.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from training import RATE, Steps, run
from trees import Sentence, numbered

import twofold.dynet as dy
import twofold.static as tf


class Tagger:
    """Scores of tags from words that were seen twice, and from the characters of the others."""

    def __init__(self, train: list[Sentence], size: int) -> None:
        counts = Counter(word.form for sentence in train for word in sentence)
        self.words = numbered(form for form, count in counts.items() if count > 1)
        self.characters = numbered(["?", *(c for form in counts for c in form)])
        self.tags = numbered(word.tag for sentence in train for word in sentence)
        self.size = size
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

    def declare(self) -> Steps:
        """The same network, declared once for sentences and words of any length."""
        size, cell = self.size, tf.nn.rnn_cell.LSTMCell
        words, tags = (tf.placeholder(tf.int32, [None, None]) for _ in range(2))
        characters, lengths = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None])
        letters = tf.gather(tf.Variable(self.character_table.as_array()), characters)
        half = [cell(size // 2) for _ in range(2)]
        with tf.variable_scope("word"):
            ends = tf.nn.bidirectional_dynamic_rnn(*half, letters, lengths, dtype=tf.float32)[1]
        spelled = tf.reshape(tf.concat([state.h for state in ends], 1), [tf.shape(words)[0], -1, size])
        seen = tf.gather(tf.Variable(self.word_table.as_array()), tf.maximum(words, 0))
        x = tf.where(tf.tile(tf.expand_dims(words >= 0, 2), [1, 1, size]), seen, spelled)
        there = tf.cast(tags >= -1, tf.int32)
        both = [cell(size) for _ in range(2)]
        with tf.variable_scope("sentence"):
            outputs = tf.nn.bidirectional_dynamic_rnn(*both, x, tf.reduce_sum(there, 1), dtype=tf.float32)[0]
        hidden = tf.layers.dense(tf.concat(outputs, 2), size, tf.tanh)
        scores = tf.layers.dense(hidden, len(self.tags), use_bias=False)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.maximum(tags, 0), logits=scores)
        loss, best = tf.reduce_sum(losses * tf.cast(there, tf.float32)), tf.argmax(scores, 2)
        update = tf.train.AdamOptimizer(RATE).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())

        def feed(batch: list[Sentence]) -> dict:
            longest = max(map(len, batch))
            rows = [[*sentence, *[None] * (longest - len(sentence))] for sentence in batch]
            forms = ["?" if word is None else word.form for row in rows for word in row]
            spelling = np.zeros((len(forms), max(map(len, forms))), np.int32)
            for row, form in zip(spelling, forms):
                row[: len(form)] = [self.characters.get(c, 0) for c in form]
            known = [[0 if word is None else self.words.get(word.form, -1) for word in row] for row in rows]
            told = [[-2 if word is None else self.tags.get(word.tag, -1) for word in row] for row in rows]
            return {words: known, tags: told, characters: spelling, lengths: list(map(len, forms))}

        def right(sentence: Sentence) -> int:
            found = session.run(best, feed([sentence]))[0]
            return sum(self.tags.get(word.tag) == tag for word, tag in zip(sentence, found))

        return lambda batch: float(session.run([loss, update], feed(batch))[0]), right


if __name__ == "__main__":
    run((__doc__ or "").split("\n")[0], Tagger)
