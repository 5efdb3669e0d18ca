"""A tree LSTM over dependency trees: tells from each word and what hangs on it the relation to its head.

    python examples/treelstm.py --data train.tsv.gz
    python examples/treelstm.py --data train.tsv.gz --declared

Every sentence has a graph of its own, made by a recursive function. Children are summed up, as in Tai, Socher,
Manning, Improved Semantic Representations from Tree-Structured LSTM Networks, 2015, section 3.1. With ``--declared``
one graph serves all trees: its loop computes all words at once, as often as the highest tree is high.
"""

from __future__ import annotations

from collections import Counter

from training import RATE, Steps, run
from trees import Sentence, edges, numbered

import twofold.dynet as dy
import twofold.static as tf


class TreeLSTM:
    """Scores of relations."""

    def __init__(self, train: list[Sentence], size: int) -> None:
        counts = Counter(word.form for sentence in train for word in sentence)
        self.words = numbered(["?", *(form for form, count in counts.items() if count > 1)])
        self.tags = numbered(["?", *(word.tag for sentence in train for word in sentence)])
        self.relations = numbered(word.relation for sentence in train for word in sentence)
        self.model = m = dy.ParameterCollection()
        self.word_table = m.add_lookup_parameters((len(self.words), size))
        self.tag_table = m.add_lookup_parameters((len(self.tags), size))
        self.inputs = [m.add_parameters((size, size)) for _ in "iouf"]
        self.hidden = [m.add_parameters((size, size)) for _ in "iouf"]
        self.biases = [m.add_parameters(size, init=0) for _ in "iou"] + [m.add_parameters(size, init=1)]
        self.output = m.add_parameters((len(self.relations), size))

    def cell(self, x: dy.Expression, children: list[tuple[dy.Expression, dy.Expression]]) -> tuple:
        wi, wo, wu, wf = self.inputs
        ui, uo, uu, uf = self.hidden
        bi, bo, bu, bf = self.biases
        if children:
            h = dy.esum([h for h, _ in children])
            i, o, u = (
                dy.affine_transform([b, w, x, v, h]) for b, w, v in ((bi, wi, ui), (bo, wo, uo), (bu, wu, uu))
            )
        else:
            i, o, u = (dy.affine_transform([b, w, x]) for b, w in ((bi, wi), (bo, wo), (bu, wu)))
        c = dy.cmult(dy.logistic(i), dy.tanh(u))
        if children:
            f = dy.affine_transform([bf, wf, x])
            c = dy.esum([c, *(dy.cmult(dy.logistic(f + uf * h), cell) for h, cell in children)])
        return dy.cmult(dy.logistic(o), dy.tanh(c)), c

    def scores(self, sentence: Sentence) -> list[dy.Expression]:
        """The scores of the relations of each word."""
        children: list[list[int]] = [[] for _ in range(len(sentence) + 1)]
        for position, word in enumerate(sentence):
            children[word.head].append(position)
        states: list = [None] * len(sentence)

        def visit(position: int) -> tuple:
            word = sentence[position]
            x = self.word_table[self.words.get(word.form, 0)] + self.tag_table[self.tags.get(word.tag, 0)]
            states[position] = self.cell(x, [visit(child) for child in children[position + 1]])
            return states[position]

        for root in children[0]:
            visit(root)
        return [self.output * h for h, _ in states]

    def loss(self, sentence: Sentence) -> dy.Expression:
        pairs = zip(self.scores(sentence), sentence)
        return dy.esum([dy.pickneglogsoftmax(one, self.relations[word.relation]) for one, word in pairs])

    def right(self, sentence: Sentence) -> int:
        scores = dy.concatenate_cols(self.scores(sentence)).npvalue()
        return sum(self.relations.get(word.relation) == one for word, one in zip(sentence, scores.argmax(0)))

    def declare(self) -> Steps:
        """The same network from the same weights, declared once for any number of trees."""
        words, tags, labels, parents, children = inputs = [tf.placeholder(tf.int32, [None]) for _ in "wtlpc"]
        height, count = tf.placeholder(tf.int32, []), tf.size(words)
        table, tag_table = (tf.Variable(t.as_array()) for t in (self.word_table, self.tag_table))
        w, u = ([tf.Variable(p.as_array().T) for p in part] for part in (self.inputs, self.hidden))
        x = tf.gather(table, words) + tf.gather(tag_table, tags)
        xi, xo, xu, xf = (tf.matmul(x, wk) + tf.Variable(p.as_array()) for wk, p in zip(w, self.biases))

        def cell(step: tf.Tensor, h: tf.Tensor, c: tf.Tensor) -> list[tf.Tensor]:
            below = tf.gather(h, children)
            total = tf.unsorted_segment_sum(below, parents, count)
            f = tf.sigmoid(tf.gather(xf, parents) + tf.matmul(below, u[3]))
            gate = tf.sigmoid(xi + tf.matmul(total, u[0])) * tf.tanh(xu + tf.matmul(total, u[2]))
            c = gate + tf.unsorted_segment_sum(f * tf.gather(c, children), parents, count)
            return [step + 1, tf.sigmoid(xo + tf.matmul(total, u[1])) * tf.tanh(c), c]

        h = tf.while_loop(lambda step, h, c: step < height, cell, [0, tf.zeros_like(x), tf.zeros_like(x)])[1]
        scores = tf.matmul(h, tf.Variable(self.output.as_array().T))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
        loss, best = tf.reduce_sum(losses), tf.argmax(scores, 1)
        update = tf.train.AdamOptimizer(RATE).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())

        tables = (self.words, "form"), (self.tags, "tag"), (self.relations, "relation")

        def feed(batch: list[Sentence]) -> dict:
            words = [word for sentence in batch for word in sentence]
            columns = [[table.get(getattr(word, name), 0) for word in words] for table, name in tables]
            return dict(zip([*inputs, height], [*columns, *edges(batch)]))

        def right(sentence: Sentence) -> int:
            found = session.run(best, feed([sentence]))
            return sum(self.relations.get(word.relation) == one for word, one in zip(sentence, found))

        return lambda batch: float(session.run([loss, update], feed(batch))[0]), right


if __name__ == "__main__":
    run((__doc__ or "").split("\n")[0], TreeLSTM)
