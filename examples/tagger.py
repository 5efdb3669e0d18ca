"""A tagger of parts of speech: LSTMs over the characters of each word and over the words, one sentence at a time.

    python examples/tagger.py --data train.tsv.gz
    python examples/tagger.py --data train.tsv.gz --declared

The program is written as one writes it for DyNet: plain Python for each sentence, words of any length. With
``--declared`` it is declared once, over sequence axes, and fed lists of sentences and of words: nothing is padded.
"""

from __future__ import annotations

from collections import Counter

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
        words, tags = (tf.sequence.placeholder(tf.int32) for _ in range(2))
        characters = tf.sequence.placeholder(tf.int32, sequence_axis="characters")
        letters = tf.gather(tf.Variable(self.character_table.as_array().astype("float32")), characters)
        half = [cell(size // 2) for _ in range(2)]
        with tf.variable_scope("word"):
            ends = tf.nn.bidirectional_dynamic_rnn(*half, letters, dtype=tf.float32)[1]
        spelled = tf.concat([state.h for state in ends], 1)  # a row for each word
        seen = tf.gather(tf.Variable(self.word_table.as_array().astype("float32")), tf.maximum(words, 0))
        x = tf.where(words >= 0, seen, spelled)
        both = [cell(size) for _ in range(2)]
        with tf.variable_scope("sentence"):
            outputs = tf.nn.bidirectional_dynamic_rnn(*both, x, dtype=tf.float32)[0]
        hidden = tf.layers.dense(tf.concat(outputs, 1), size, tf.tanh)
        scores = tf.layers.dense(hidden, len(self.tags), use_bias=False)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.maximum(tags, 0), logits=scores)
        loss, best = tf.reduce_sum(losses), tf.argmax(scores, 1)
        update = tf.train.AdamOptimizer(RATE).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())

        def feed(batch: list[Sentence]) -> dict:
            forms = [word.form for sentence in batch for word in sentence]
            return {
                words: [[self.words.get(word.form, -1) for word in sentence] for sentence in batch],
                tags: [[self.tags.get(word.tag, -1) for word in sentence] for sentence in batch],
                characters: [[self.characters.get(c, 0) for c in form] for form in forms],
            }

        def right(sentence: Sentence) -> int:
            found = session.run(best, feed([sentence]))[0]
            return sum(self.tags.get(word.tag) == tag for word, tag in zip(sentence, found))

        return lambda batch: float(session.run([loss, update], feed(batch))[0]), right


if __name__ == "__main__":
    run((__doc__ or "").split("\n")[0], Tagger)
