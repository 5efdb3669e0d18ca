"""Softmax builders: over all classes at once, over clusters and then their words, along paths of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dynet.elementwise import log, logistic
from twofold.dynet.expression import Expression, matrix_product
from twofold.dynet.inputs import scalarInput
from twofold.dynet.losses import log_softmax, pickneglogsoftmax, pickneglogsoftmax_batch, softmax
from twofold.dynet.matrices import affine_transform
from twofold.dynet.reductions import esum
from twofold.dynet.shapes import concatenate, concatenate_to_batch, pick, pick_batch_elem
from twofold.frontend.sampling import RANDOM_FUNCTIONS


class _Scores:
    """A linear layer of scores."""

    def __init__(self, collection: Any, count: int, input_dim: int, bias: bool) -> None:
        self.weights = collection.add_parameters((count, input_dim))
        self.bias = collection.add_parameters(count, init=0) if bias else None

    def __call__(self, x: Expression, update: bool = True) -> Expression:
        weights = self.weights.expr(update)
        if self.bias is None:
            return matrix_product(weights, x)
        return affine_transform([self.bias.expr(update), weights, x])


def _sampled(probabilities: Expression) -> int:
    sums = numpy.cumsum(probabilities.npvalue().astype(numpy.float64))
    position = RANDOM_FUNCTIONS["rand"](1).item() * sums[-1]
    return min(int(numpy.searchsorted(sums, position, side="right")), len(sums) - 1)


class SoftmaxBuilder:
    """Base of the softmax builders."""

    _collection: Any = None

    def param_collection(self) -> Any:
        """The collection of the parameters."""
        return self._collection

    def neg_log_softmax(self, x: Expression, c: int, update: bool = True) -> Expression:
        """``-log(P(c | x))``; without ``update`` no gradient flows into the parameters."""
        raise NotImplementedError(f"{type(self).__name__} must define neg_log_softmax")

    def neg_log_softmax_batch(self, x: Expression, c: Sequence[int], update: bool = True) -> Expression:
        """``neg_log_softmax`` with one class for each element of the batch."""
        items = [self.neg_log_softmax(pick_batch_elem(x, i), one, update) for i, one in enumerate(c)]
        return concatenate_to_batch(items)

    def sample(self, x: Expression) -> int:
        """A class, sampled by its probability."""
        raise NotImplementedError(f"{type(self).__name__} must define sample")

    def full_log_distribution(self, x: Expression, update: bool = True) -> Expression:
        """The logarithms of all probabilities."""
        return log_softmax(self.full_logits(x, update))

    def full_logits(self, x: Expression, update: bool = True) -> Expression:
        """Scores of all classes, whose softmax is their probability."""
        raise NotImplementedError(f"{type(self).__name__} has no scores of all classes at once")


class StandardSoftmaxBuilder(SoftmaxBuilder):
    """A linear layer and a softmax over all classes.

    >>> import twofold.dynet as dy
    >>> builder = dy.StandardSoftmaxBuilder(2, 4, dy.Model())
    >>> builder.full_log_distribution(dy.inputVector([1, 2])).dim()
    ((4,), 1)
    """

    def __init__(self, input_dim: int, num_classes: int, pc: Any, bias: bool = True) -> None:
        self._collection = pc.add_subcollection("standard-softmax-builder")
        self._scores = _Scores(self._collection, num_classes, input_dim, bias)

    def neg_log_softmax(self, x: Expression, c: int, update: bool = True) -> Expression:
        """``-log(P(c | x))``."""
        return pickneglogsoftmax(self.full_logits(x, update), c)

    def neg_log_softmax_batch(self, x: Expression, c: Sequence[int], update: bool = True) -> Expression:
        """``neg_log_softmax`` with one class for each element of the batch."""
        return pickneglogsoftmax_batch(self.full_logits(x, update), c)

    def sample(self, x: Expression) -> int:
        """A class, sampled by its probability."""
        return _sampled(softmax(self.full_logits(x)))

    def full_logits(self, x: Expression, update: bool = True) -> Expression:
        """The scores of all classes."""
        return self._scores(x, update)


def _lines(cluster_file: str) -> list[list[str]]:
    with open(cluster_file, encoding="utf-8") as file:
        found = [line.split() for line in file]
    for number, parts in enumerate(found, 1):
        if len(parts) < 2:
            raise ValueError(f"{cluster_file}, line {number}: clusters and a word expected")
    return found


def _check_classes(dic: dict[str, int]) -> None:
    if sorted(dic.values()) != list(range(len(dic))):
        raise ValueError("the dictionary must number its words from 0, each once")


class ClassFactoredSoftmaxBuilder(SoftmaxBuilder):
    """A softmax over clusters, and one over the words of the cluster.

    Args:
        input_dim: The size of an input.
        cluster_file: A file with a cluster and a word on each line; what follows is left alone.
        dic: The class of each word.
        pc: The collection that gets the parameters.
        bias: Whether scores have a bias.
    """

    def __init__(
        self, input_dim: int, cluster_file: str, dic: dict[str, int], pc: Any, bias: bool = True
    ) -> None:
        _check_classes(dic)
        clusters: dict[str, list[int]] = {}
        for cluster, word, *_ in _lines(cluster_file):
            if word not in dic:
                raise ValueError(f"{cluster_file}: the word {word!r} is not in the dictionary")
            clusters.setdefault(cluster, []).append(dic[word])
        self._words = list(clusters.values())
        self._position = {w: (c, i) for c, words in enumerate(self._words) for i, w in enumerate(words)}
        self._count = len(dic)
        self._collection = pc.add_subcollection("class-factored-softmax-builder")
        self._classes = _Scores(self._collection, len(self._words), input_dim, bias)
        self._inner = [
            _Scores(self._collection, len(words), input_dim, bias) if len(words) > 1 else None
            for words in self._words
        ]

    def neg_log_softmax(self, x: Expression, c: int, update: bool = True) -> Expression:
        """``-log(P(c | x))``, of the cluster and of the word in it."""
        if c not in self._position:
            raise ValueError(f"class {c} is in no cluster")
        cluster, word = self._position[c]
        found = pickneglogsoftmax(self._classes(x, update), cluster)
        if self._inner[cluster] is None:
            return found
        return found + pickneglogsoftmax(self.subclass_logits(x, cluster, update), word)

    def sample(self, x: Expression) -> int:
        """A class, sampled by its probability."""
        cluster = _sampled(softmax(self._classes(x)))
        word = 0 if self._inner[cluster] is None else _sampled(softmax(self.subclass_logits(x, cluster)))
        return self._words[cluster][word]

    def class_logits(self, x: Expression, update: bool = True) -> Expression:
        """The scores of the clusters."""
        return self._classes(x, update)

    def class_log_distribution(self, x: Expression, update: bool = True) -> Expression:
        """The logarithms of the probabilities of the clusters."""
        return log_softmax(self.class_logits(x, update))

    def subclass_logits(self, x: Expression, classid: int, update: bool = True) -> Expression:
        """The scores of the words of a cluster."""
        scores = self._inner[classid]
        if scores is None:
            raise ValueError(f"cluster {classid} has one word, and no scores")
        return scores(x, update)

    def subclass_log_distribution(self, x: Expression, classid: int, update: bool = True) -> Expression:
        """The logarithms of the probabilities of the words of a cluster, given the cluster."""
        return log_softmax(self.subclass_logits(x, classid, update))

    def full_logits(self, x: Expression, update: bool = True) -> Expression:
        """The logarithms of the probabilities of all classes; those in no cluster have -10000."""
        parts: list[Expression] = [scalarInput(-10000.0)] * self._count
        clusters = self.class_log_distribution(x, update)
        for cluster, words in enumerate(self._words):
            score = pick(clusters, cluster)
            inner = (
                None if self._inner[cluster] is None else self.subclass_log_distribution(x, cluster, update)
            )
            for position, word in enumerate(words):
                parts[word] = score if inner is None else pick(inner, position) + score
        return concatenate(parts)


class _Cluster:
    """A node of the tree of clusters: inner ones have children, leaves have words."""

    def __init__(self) -> None:
        self.children: dict[str, _Cluster] = {}
        self.words: list[int] = []
        self.scores: _Scores | None = None

    def size(self) -> int:
        return len(self.children) or len(self.words)

    def add_scores(self, collection: Any, input_dim: int) -> None:
        if self.size() > 1:
            self.scores = _Scores(collection, 1 if self.size() == 2 else self.size(), input_dim, True)
        for child in self.children.values():
            child.add_scores(collection, input_dim)

    def neg_log(self, x: Expression, choice: int, update: bool) -> Expression | None:
        if self.scores is None:
            return None
        scores = self.scores(x, update)
        if self.size() > 2:
            return pickneglogsoftmax(scores, choice)
        first = logistic(scores)
        return -log(first if choice == 0 else 1 - first)

    def sample(self, x: Expression) -> int:
        if self.scores is None:
            return 0
        if self.size() > 2:
            return _sampled(softmax(self.scores(x)))
        return int(RANDOM_FUNCTIONS["rand"](1).item() >= logistic(self.scores(x)).scalar_value())


class HierarchicalSoftmaxBuilder(SoftmaxBuilder):
    """A choice at each node of a tree of clusters, of two by a logistic function, of more by a softmax.

    Args:
        input_dim: The size of an input.
        cluster_file: A file with the path of clusters, then a word, on each line.
        dic: The class of each word.
        pc: The collection that gets the parameters.
    """

    def __init__(self, input_dim: int, cluster_file: str, dic: dict[str, int], pc: Any) -> None:
        _check_classes(dic)
        self._collection = pc.add_subcollection("hsm-builder")
        self._root = _Cluster()
        self._paths: dict[int, list[tuple[_Cluster, int]]] = {}
        for *path, word in _lines(cluster_file):
            self._add(path, dic[word])
        self._root.add_scores(self._collection, input_dim)

    def _add(self, path: Sequence[str], word: int) -> None:
        node, choices = self._root, []
        for symbol in path:
            child = node.children.setdefault(symbol, _Cluster())
            choices.append((node, list(node.children).index(symbol)))
            node = child
        choices.append((node, len(node.words)))
        node.words.append(word)
        self._paths[word] = choices

    def neg_log_softmax(self, x: Expression, c: int, update: bool = True) -> Expression:
        """``-log(P(c | x))``, the sum over the choices on the path to the word."""
        if c not in self._paths:
            raise ValueError(f"class {c} is in no cluster")
        parts = [node.neg_log(x, choice, update) for node, choice in self._paths[c]]
        found = [part for part in parts if part is not None]
        return esum(found) if found else scalarInput(0.0)

    def sample(self, x: Expression) -> int:
        """A class, sampled by its probability."""
        node = self._root
        while node.children:
            node = list(node.children.values())[node.sample(x)]
        return node.words[node.sample(x)]
