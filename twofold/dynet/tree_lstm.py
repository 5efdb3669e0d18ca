"""Builders over trees, whose nodes are added after their children."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.dynet.elementwise import cmult, logistic, tanh
from twofold.dynet.expression import Expression
from twofold.dynet.lstm import VanillaLSTMBuilder
from twofold.dynet.matrices import affine_transform
from twofold.dynet.reductions import esum
from twofold.dynet.shapes import concatenate


class TreeLSTMBuilder:
    """Base of the builders over trees: nodes are numbered from 0 in the order in which they are added."""

    def __init__(self) -> None:
        self._outputs: list[Expression] = []

    def start_new_sequence(self) -> None:
        """Begin another tree."""
        self._outputs = []

    def set_num_elements(self, length: int) -> None:
        """Keep the first ``length`` nodes."""
        del self._outputs[length:]

    def param_collection(self) -> Any:
        """The collection of the parameters."""
        return self._collection

    _collection: Any = None

    def _check(self, id: int, children: Sequence[int]) -> None:
        if id != len(self._outputs):
            raise ValueError(
                f"node {id} is added after {len(self._outputs)} nodes: number them in this order"
            )
        if not all(0 <= child < id for child in children):
            raise ValueError(
                f"the children {list(children)} of node {id} must be added before it. Add them first."
            )

    def add_input(self, id: int, children: Sequence[int], x: Expression) -> Expression:
        """Add a node with an input and children that were added before; returns its output."""
        raise NotImplementedError(f"{type(self).__name__} must define add_input")


class NaryTreeLSTMBuilder(TreeLSTMBuilder):
    """A tree LSTM whose weights depend on the position among the children, up to ``n`` positions.

    Gates see the outputs and the cells of all children; the forget gate of each child has a bias of 1.
    Source: Tai, Socher, Manning, Improved Semantic Representations from Tree-Structured LSTM Networks, 2015.

    >>> import twofold.dynet as dy
    >>> builder = dy.NaryTreeLSTMBuilder(2, 1, 3, 4, dy.Model())
    >>> leaves = [builder.add_input(i, [], dy.inputVector([1, 2, i])) for i in range(2)]
    >>> builder.add_input(2, [0, 1], dy.inputVector([0, 0, 0])).dim()
    ((4,), 1)
    """

    def __init__(self, n: int, layers: int, input_dim: int, hidden_dim: int, model: Any) -> None:
        super().__init__()
        self._positions = n
        self._collection = model.add_subcollection("nary-tree-lstm-builder")
        self._params: list[dict[str, Any]] = []
        self._cells: list[list[Expression]] = []
        self._hidden: list[list[Expression]] = []
        for layer in range(layers):
            self._params.append(self._layer(hidden_dim if layer else input_dim, hidden_dim))

    def _layer(self, x: int, h: int) -> dict[str, Any]:
        made, n = {}, self._positions
        for gate, count in (("i", n), ("f", n * n), ("o", n), ("c", n)):
            made["x" + gate] = self._collection.add_parameters((h, x))
            made["h" + gate] = self._collection.add_lookup_parameters((count, h, h))
            if gate != "c":
                made["c" + gate] = self._collection.add_lookup_parameters((count, h, h))
            made["b" + gate] = self._collection.add_parameters(h, init=0)
        return made

    def start_new_sequence(self) -> None:
        """Begin another tree."""
        super().start_new_sequence()
        self._cells, self._hidden = [], []

    def set_num_elements(self, length: int) -> None:
        """Keep the first ``length`` nodes."""
        super().set_num_elements(length)
        del self._cells[length:], self._hidden[length:]

    def _gate(
        self, p: Any, gate: str, x: Expression, hs: Any, cs: Any, forget: int | None = None
    ) -> Expression:
        terms = [p["b" + gate], p["x" + gate], x]
        for position, (h, c) in enumerate(zip(hs, cs)):
            index = min(position, self._positions - 1)
            if forget is not None:
                index = index * self._positions + min(forget, self._positions - 1)
            terms += [p["h" + gate][index], h]
            if gate != "c":
                terms += [p["c" + gate][index], c]
        return affine_transform(terms)

    def add_input(self, id: int, children: Sequence[int], x: Expression) -> Expression:
        """Add a node with an input and children that were added before; returns its output."""
        self._check(id, children)
        cells, hidden = [], []
        for layer, p in enumerate(self._params):
            hs = [self._hidden[child][layer] for child in children]
            cs = [self._cells[child][layer] for child in children]
            cell = cmult(logistic(self._gate(p, "i", x, hs, cs)), tanh(self._gate(p, "c", x, hs, cs)))
            if children:
                forgets = [
                    logistic(self._gate(p, "f", x, hs, cs, position) + 1) for position in range(len(children))
                ]
                cell = esum([cmult(f, c) for f, c in zip(forgets, cs)]) + cell
            x = cmult(logistic(self._gate(p, "o", x, hs, cs)), tanh(cell))
            cells.append(cell)
            hidden.append(x)
        self._cells.append(cells)
        self._hidden.append(hidden)
        self._outputs.append(x)
        return x


class UnidirectionalTreeLSTMBuilder(TreeLSTMBuilder):
    """An LSTM that reads the input of a node, then the outputs of its children in order."""

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: Any) -> None:
        super().__init__()
        self._collection = model.add_subcollection("unidirectional-tree-lstm-builder")
        self._builder = VanillaLSTMBuilder(layers, input_dim, hidden_dim, self._collection)

    def add_input(self, id: int, children: Sequence[int], x: Expression) -> Expression:
        """Add a node with an input and children that were added before; returns its output."""
        self._check(id, children)
        made = _read(self._builder, [x, *[self._outputs[child] for child in children]])
        self._outputs.append(made)
        return made


class BidirectionalTreeLSTMBuilder(TreeLSTMBuilder):
    """Two LSTMs that read the input of a node, then its children's outputs, one in order and one in reverse."""

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: Any) -> None:
        super().__init__()
        if hidden_dim % 2:
            raise ValueError(f"BidirectionalTreeLSTMBuilder: the size must be even, not {hidden_dim}")
        self._collection = model.add_subcollection("bidirectional-tree-lstm-builder")
        self._builders = [
            VanillaLSTMBuilder(layers, input_dim, hidden_dim // 2, self._collection) for _ in range(2)
        ]

    def add_input(self, id: int, children: Sequence[int], x: Expression) -> Expression:
        """Add a node with an input and children that were added before; returns its output."""
        self._check(id, children)
        read = [self._outputs[child] for child in children]
        forward, backward = self._builders
        made = concatenate([_read(forward, [x, *read]), _read(backward, [x, *reversed(read)])])
        self._outputs.append(made)
        return made


def _read(builder: VanillaLSTMBuilder, inputs: Sequence[Expression]) -> Expression:
    return builder.initial_state().transduce(inputs)[-1]
