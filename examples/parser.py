"""A dependency parser that decides step by step: what it computes next depends on what it has decided.

    python examples/parser.py --data train.tsv.gz

LSTMs over the sentence give a vector for each word. Each decision shifts a word to a stack, or attaches the top of the
stack to the next word or to the one below it, and is scored from the vectors of these words. In training it goes
on from its own decisions, right or wrong: those that lose no head it could still find count as right. Source: Goldberg,
Nivre, Training Deterministic Parsers with Non-Deterministic Oracles, 2013, with their arc-hybrid transitions.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from training import run
from trees import Sentence, numbered

import twofold.dynet as dy

SHIFT, LEFT, RIGHT = range(3)


class State:
    """A stack of words, the words not read yet, and the heads found; the root is behind the last word."""

    def __init__(self, sentence: Sentence) -> None:
        size = len(sentence)
        self.gold = [(word.head or size + 1) - 1 for word in sentence] + [-1]
        self.stack: list[int] = []
        self.buffer = list(range(size + 1))
        self.heads = [-1] * size

    def done(self) -> bool:
        return len(self.buffer) == 1 and not self.stack

    def legal(self) -> list[int]:
        allowed = [len(self.buffer) > 1, len(self.stack) > 0, len(self.stack) > 1]
        return [move for move in (SHIFT, LEFT, RIGHT) if allowed[move]]

    def lost(self, move: int) -> int:
        """How many heads cannot be found any more after a move."""
        gold, stack, buffer = self.gold, self.stack, self.buffer
        if move == SHIFT:
            return (gold[buffer[0]] in stack[:-1]) + sum(gold[word] == buffer[0] for word in stack)
        top = stack[-1]
        others = buffer if move == RIGHT else buffer[1:] + stack[-2:-1]
        return (gold[top] in others) + sum(gold[word] == top for word in buffer)

    def apply(self, move: int) -> None:
        if move == SHIFT:
            self.stack.append(self.buffer.pop(0))
        else:
            word = self.stack.pop()
            self.heads[word] = self.buffer[0] if move == LEFT else self.stack[-1]


class Parser:
    """Scores of moves."""

    def __init__(self, train: list[Sentence], size: int) -> None:
        counts = Counter(word.form for sentence in train for word in sentence)
        self.words = numbered(["?", *(form for form, count in counts.items() if count > 1)])
        self.tags = numbered(["?", *(word.tag for sentence in train for word in sentence)])
        self.model = m = dy.ParameterCollection()
        self.word_table = m.add_lookup_parameters((len(self.words), size))
        self.tag_table = m.add_lookup_parameters((len(self.tags), size))
        self.sequence = dy.BiRNNBuilder(1, 2 * size, 2 * size, m, dy.LSTMBuilder)
        self.positions = [m.add_parameters((size, 2 * size)) for _ in range(3)]
        self.root, self.bias = m.add_parameters(2 * size), m.add_parameters(size, init=0)
        self.output, self.preference = m.add_parameters((3, size)), m.add_parameters(3, init=0)

    def vectors(self, sentence: Sentence) -> list[dy.Expression]:
        numbers = [(self.words.get(word.form, 0), self.tags.get(word.tag, 0)) for word in sentence]
        inputs = [dy.concatenate([self.word_table[word], self.tag_table[tag]]) for word, tag in numbers]
        return [*self.sequence.transduce(inputs), self.root]

    def scores(self, state: State, vectors: list[dy.Expression]) -> dy.Expression:
        """The scores of the moves, from the next word and the top two of the stack."""
        hidden = dy.affine_transform([self.bias, self.positions[0], vectors[state.buffer[0]]])
        for weights, word in zip(self.positions[1:], reversed(state.stack[-2:])):
            hidden = hidden + weights * vectors[word]
        return dy.affine_transform([self.preference, self.output, dy.tanh(hidden)])

    def loss(self, sentence: Sentence) -> dy.Expression:
        state, vectors, losses = State(sentence), self.vectors(sentence), [dy.zeros(1)]
        while not state.done():
            scores, legal = self.scores(state, vectors), state.legal()
            values = scores.npvalue()
            costs = {move: state.lost(move) for move in legal}
            right = [move for move in legal if costs[move] == min(costs.values())]
            best = max(right, key=lambda move: values[move])
            wrong = [move for move in legal if move not in right]
            if wrong:
                worst = max(wrong, key=lambda move: values[move])
                losses.append(dy.rectify(scores[worst] - scores[best] + 1))
            state.apply(max(legal, key=lambda move: values[move]))
        return dy.esum(losses)

    def right(self, sentence: Sentence) -> int:
        state, vectors = State(sentence), self.vectors(sentence)
        while not state.done():
            values = self.scores(state, vectors).npvalue()
            state.apply(max(state.legal(), key=lambda move: values[move]))
        return int(np.sum(np.array(state.heads) == state.gold[:-1]))


if __name__ == "__main__":
    run((__doc__ or "").split("\n")[0], Parser)
