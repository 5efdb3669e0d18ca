"""Programs whose structure differs for every sample, whose kernels for batches are compiled when the package is built.

As ``kernel_programs``: they stand for what is common. Cells that a program writes itself, one sample at a time, and the
builders of DyNet's interface.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from kernel_programs import Step, training

import twofold as torch
import twofold.dynet as dy
from twofold import nn
from twofold.nn import functional

_WORDS, _CLASSES, _SAMPLES = 2000, 5, 12  # as most tables, with more rows than the words of a step
_WIDTH = 24
_SIZES = (24, 24), (100, 128), (300, 150)
"""Of embeddings and of what cells compute: equal and small, multiples of registers, those of Tai, Socher and Manning;
between them plans of products differ."""

_RANDOM = random.Random(0)


def _words(least: int, most: int) -> list[int]:
    return [_RANDOM.randrange(_WORDS) for _ in range(_RANDOM.randint(least, most))]


class _TreeLSTM(nn.Module):
    """Tai, Socher, Manning, Improved Semantic Representations From Tree-Structured LSTM Networks, 2015; binary."""

    def __init__(self, embedded: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_WORDS, embedded)
        self.leaf, self.inner = nn.Linear(embedded, 3 * width), nn.Linear(2 * width, 5 * width)
        self.output = nn.Linear(width, _CLASSES)

    def forward(self, words: list[int], hidden: list[Any]) -> tuple[Any, Any]:
        if len(words) == 1:
            i, o, u = self.leaf(self.embedding(torch.tensor(words))).chunk(3, 1)
            c = i.sigmoid() * u.tanh()
        else:
            cut = _RANDOM.randint(1, len(words) - 1)
            (a, left), (b, right) = self(words[:cut], hidden), self(words[cut:], hidden)
            i, f, g, o, u = self.inner(torch.cat((a, b), 1)).chunk(5, 1)
            c = i.sigmoid() * u.tanh() + f.sigmoid() * left + g.sigmoid() * right
        hidden.append(o.sigmoid() * c.tanh())
        return hidden[-1], c


def trees(embedded: int, width: int) -> Iterator[Step]:
    """A class at every node, or at the root."""
    net = _TreeLSTM(embedded, width)

    def loss(every: bool) -> Any:
        total = 0.0
        for _ in range(_SAMPLES):
            hidden: list[Any] = []
            net(_words(3, 9), hidden)
            shown = torch.cat(hidden) if every else hidden[-1]
            y = torch.tensor([_RANDOM.randrange(_CLASSES) for _ in range(len(shown))])
            total = total + functional.cross_entropy(net.output(shown), y)
        return total / _SAMPLES

    yield from training(net, lambda: loss(True))
    yield from training(net, lambda: loss(False))


class _VectorTree(nn.Module):
    """The same over vectors, with weights that the program holds itself, and a product for each child's forget gate."""

    def __init__(self, embedded: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(_WORDS, embedded) * 0.1)
        self.leaf, self.inner = nn.Linear(embedded, 3 * width, bias=False), nn.Linear(2 * width, 3 * width)
        self.forget = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.output = nn.Linear(width, _CLASSES)

    def forward(self, words: list[int], hidden: list[Any]) -> tuple[Any, Any]:
        if len(words) == 1:
            i, o, u = functional.linear(self.embedding[words[0]], self.leaf.weight, self.inner.bias).chunk(3)
            c = torch.sigmoid(i) * torch.tanh(u)
        else:
            cut = _RANDOM.randint(1, len(words) - 1)
            (a, left), (b, right) = self(words[:cut], hidden), self(words[cut:], hidden)
            i, o, u = self.inner(torch.cat((a, b))).chunk(3)
            f, g = (torch.sigmoid(own(h)) for own, h in zip(self.forget, (a, b), strict=True))
            c = torch.sigmoid(i) * torch.tanh(u) + f * left + g * right
        hidden.append(torch.sigmoid(o) * torch.tanh(c))
        return hidden[-1], c


def vectors(embedded: int, width: int) -> Iterator[Step]:
    """Trees over vectors, without an axis for samples: a class at every node, at the root, or a score."""
    net = _VectorTree(embedded, width)

    def loss(kind: str, samples: int) -> Any:
        total: Any = 0.0
        for _ in range(samples):
            hidden: list[Any] = []
            net(_words(3, 9), hidden)
            if kind == "every":
                y = torch.tensor([_RANDOM.randrange(_CLASSES) for _ in hidden])
                scores = functional.linear(torch.stack(hidden), net.output.weight)
                own = functional.cross_entropy(scores, y, reduction="sum")
            elif kind == "root":
                own = -torch.log_softmax(net.output(hidden[-1]), 0)[_RANDOM.randrange(_CLASSES)]
            else:
                weights = torch.softmax(torch.stack(hidden) @ hidden[-1], 0)
                own = ((weights @ torch.stack(hidden) - hidden[0]) ** 2).sum()
            total = total + own
        return total / samples

    for kind, samples in (("every", 120), ("root", 12), ("score", 5)):  # launches of many, some and few calls
        yield from training(net, lambda kind=kind, samples=samples: loss(kind, samples))


def cells() -> Iterator[Step]:
    """Sentences of different lengths, word by word, with a class for the sentence or one for each word."""
    for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        net = nn.ModuleList([nn.Embedding(_WORDS, _WIDTH), kind(_WIDTH, _WIDTH), nn.Linear(_WIDTH, _CLASSES)])

        def loss(net: Any = net, each: bool = False, samples: int = _SAMPLES, most: int = 12) -> Any:
            total = 0.0
            for _ in range(samples):
                state, found = None, []
                for word in _words(most // 3, most):
                    state = net[1](net[0](torch.tensor([word])), state)
                    found.append(state[0] if isinstance(net[1], nn.LSTMCell) else state)
                shown = torch.cat(found) if each else found[-1]
                y = torch.tensor([_RANDOM.randrange(_CLASSES) for _ in range(len(shown))])
                total = total + functional.cross_entropy(net[2](shown), y)
            return total

        yield from training(net, loss)
        yield from training(net, lambda n=net, f=loss: f(n, True))
        yield from training(net, lambda n=net, f=loss: f(n, True, 1, 60))


def _tagger(builder: Any, whole: bool, sparse: bool, *lengths: tuple[int, int]) -> Step:
    """A network of one of DyNet's builders: over the ``whole`` sentence both ways, or word by word.

    A step has a sentence of so many words for each of the ``lengths``, least and most.
    """
    m = dy.ParameterCollection()
    table = m.add_lookup_parameters((_WORDS, _WIDTH))
    ahead, back = (builder(1, _WIDTH, _WIDTH, m) for _ in range(2))
    middle, shift = m.add_parameters((_WIDTH, 2 * _WIDTH)), m.add_parameters(_WIDTH)
    output = m.add_parameters((_CLASSES, _WIDTH))
    trainer = dy.AdamTrainer(m) if whole else dy.SimpleSGDTrainer(m)
    trainer.set_sparse_updates(sparse)

    def hidden(xs: list[Any]) -> Iterator[Any]:
        if whole:
            lefts = ahead.initial_state().transduce(xs)
            rights = back.initial_state().transduce(xs[::-1])[::-1]
            for pair in zip(lefts, rights, strict=True):
                yield dy.tanh(middle * dy.concatenate(list(pair)))
            return
        state = ahead.initial_state()
        for x in xs:
            state = state.add_input(x)
            yield dy.rectify(dy.affine_transform([shift, middle, dy.concatenate([state.output(), x])]))

    def step() -> object:
        dy.renew_cg()
        losses = []
        for least, most in lengths:
            for h in hidden([table[word] for word in _words(least, most)]):
                losses.append(dy.pickneglogsoftmax(output * h, _RANDOM.randrange(_CLASSES)))
        total = dy.esum(losses)
        value = total.value()
        total.backward()
        trainer.update()
        return value

    return step


def taggers() -> Iterator[Step]:
    """A class for each word of sentences."""
    builders = (dy.VanillaLSTMBuilder, dy.GRUBuilder, dy.SimpleRNNBuilder, dy.CoupledLSTMBuilder)
    for builder, whole, sparse in itertools.product(builders, (True, False), (True, False)):
        yield _tagger(builder, whole, sparse, *[(4, 12)] * _SAMPLES)
    for builder, whole in itertools.product(builders, (True, False)):
        yield _tagger(builder, whole, True, (20, 60))  # cells that run one by one


def programs() -> Iterator[Step]:
    """Steps of all of them, each to be taken a few times."""
    return itertools.chain(
        *[kind(*sizes) for kind in (trees, vectors) for sizes in _SIZES], cells(), taggers()
    )
