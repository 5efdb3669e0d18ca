"""Sequence axes: values of sequences of different lengths, as the rows of all of them one after another.

The first size of such a value is a name that belongs to the axis (see ``ir.shape_inference``), so the axis goes
wherever that size does: through element-wise functions, dense layers, look-ups in tables, losses and their gradients.
Two axes have names that no rule takes to be equal.

What loops go over is packed as CNTK packs minibatches: sequences stand behind each other in lanes, and a lane begins
anew where the next one starts. So an iteration has one row for each lane, and only the ends of lanes are empty.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakValueDictionary, ref

import numpy

from twofold.dtypes import bool_, int64
from twofold.errors import ArgumentError, GraphError, ShapeError
from twofold.ir.shape_inference import UNKNOWN_RANK, keep_distinct, new_unknown_size
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import ops
from twofold.runtime.calls import failed
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import Alone, counted, operation
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Graph, Tensor, describe, owner_of
from twofold.static.graph.inference import Source
from twofold.static.graph.tensor_shape import fits, shape_text
from twofold.static.session.run_arguments import feed_value

WASTE = 0.05
"""How much padding lanes have at most, as a part of the rows."""


@example(
    "print(tf.sequence.Axis('words'), tf.sequence.Axis('words') == tf.sequence.Axis('words'))", "words True"
)
class Axis(NamedTuple):
    """The name of an axis along which sequences have lengths of their own; values on one axis have the same lengths."""

    name: str

    def __str__(self) -> str:
        return self.name


DEFAULT = Axis("sequence")
"""The axis of placeholders that are declared without one."""


class Lanes(NamedTuple):
    """Where loops find the rows of sequences.

    ``rows`` [iterations, lanes] are numbers of rows, ``begins`` of the same shape says where a sequence begins, and
    ``inverse`` [rows] says of each row where it stands in the flattened ``rows``. Padding repeats the first row of all,
    as the begin of a sequence.
    """

    rows: Any
    begins: Any
    inverse: Any


def lanes_of(lengths: Any) -> Lanes:
    """Lanes for sequences of these lengths: as many as need at most ``WASTE`` padding.

    The longest sequence that is left goes into the lane that is shortest (Graham 1969).

    >>> lanes = lanes_of(numpy.array([2, 1, 3]))
    >>> lanes.rows.tolist(), lanes.inverse.tolist()
    ([[3, 0], [4, 1], [5, 2]], [1, 3, 5, 0, 2, 4])
    """
    order = numpy.argsort(-lengths, kind="stable").tolist()
    sizes = lengths.tolist()
    total, longest = sum(sizes), max(sizes, default=0)
    most = (1 + WASTE) * total
    count = min(len(sizes), int(most // longest)) if longest else 1
    while True:
        loads = [(0, lane) for lane in range(count)]
        lane_of, begin_of = [0] * len(sizes), [0] * len(sizes)
        for k in order:
            load, lane = loads[0]
            lane_of[k], begin_of[k] = lane, load
            heapq.heapreplace(loads, (load + sizes[k], lane))
        steps = max(loads)[0]
        if steps * count <= most or count == 1:
            break
        count -= max(1, count // 32)  # one by one is quadratic in the number of sequences
    firsts = numpy.cumsum(lengths) - lengths
    within = numpy.arange(total) - numpy.repeat(firsts, lengths)
    inverse = (numpy.repeat(begin_of, lengths) + within) * count + numpy.repeat(lane_of, lengths)
    rows = numpy.zeros(steps * count, numpy.int64)
    begins = numpy.ones(steps * count, bool)
    rows[inverse] = numpy.arange(total)
    begins[inverse] = within == 0
    return Lanes(rows.reshape(steps, count), begins.reshape(steps, count), inverse.astype(numpy.int64))


@contextmanager
def shared_scope(graph: Graph, name: str) -> Iterator[None]:
    """A name scope for what others will ask for, too: it waits for nothing that the first one waits for."""
    with graph.control_dependencies(None), graph.name_scope(name):
        yield


class Layout:
    """How the rows of an axis are divided in a graph.

    ``lengths`` [sequences] and ``numbers`` [rows], which says of each row to which sequence it belongs, are fed with
    the values of placeholders (``is_fed``), or computed from those of another axis.
    """

    def __init__(self, name: str, lengths: Any, numbers: Any, is_fed: bool) -> None:
        self.name, self.lengths, self.numbers, self.is_fed = name, lengths, numbers, is_fed
        self.derived: dict[Any, tuple[Any, Layout]] = {}
        self._found: dict[str, Any] = {}
        keep_distinct(self.size, name)
        _LAYOUTS[self.size] = self

    @property
    def size(self) -> int:
        """The name of the number of rows."""
        found: int = self.numbers.type_.shape[0]
        return found

    def _once(self, name: str, make: Any) -> Any:
        if name not in self._found:
            graph = self.lengths.graph
            with shared_scope(graph, f"{self.name}/{name}"):
                self._found[name] = make()
        return self._found[name]

    def positions(self) -> Any:
        """The number of each row within its sequence."""
        return self._once("positions", lambda: _positions(self.lengths, self.numbers))

    def mirrored(self) -> Any:
        """For each row the one that is as far from the other end of its sequence."""
        return self._once("mirrored", lambda: _mirrored(self.lengths, self.numbers))

    def firsts(self) -> Any:
        """The first row of each sequence."""
        return self._once("firsts", lambda: _edges(self.lengths, self.numbers, False))

    def lasts(self) -> Any:
        """The last row of each sequence."""
        return self._once("lasts", lambda: _edges(self.lengths, self.numbers, True))

    def lanes(self) -> Lanes:
        """The lanes that loops go along."""
        made: Lanes = self._once("lanes", self._lanes)
        return made

    def _lanes(self) -> Lanes:
        shape = (new_unknown_size(), new_unknown_size())
        results = [(int64, shape), (bool_, shape), (int64, (self.size,))]
        if not self.is_fed:
            return Lanes(*in_python("SequenceLanes", lanes_of, [self.lengths], results, None))
        types = [tensor_type(*result) for result in results]
        return Lanes(*[_placeholder(self.lengths.graph, t, name) for t, name in zip(types, Lanes._fields)])

    def feeds(self, lengths: Sequence[int]) -> dict[Any, Any]:
        """What is fed for sequences of these lengths, beside their rows."""
        array = numpy.array(lengths, numpy.int64)
        found = {self.lengths: array, self.numbers: numpy.repeat(numpy.arange(len(array)), array)}
        if "lanes" in self._found:
            found.update(zip(self._found["lanes"], lanes_of(array)))
        return found


_LAYOUTS: WeakValueDictionary[int, Layout] = WeakValueDictionary()


@operation("SequencePositions")
def _positions(lengths: Any, numbers: Any) -> Any:
    firsts = ops.cumsum(lengths, 0) - lengths
    return counted(numbers.shape[0], numbers) - ops.index_select(firsts, 0, numbers)


@operation("SequenceMirrored")
def _mirrored(lengths: Any, numbers: Any) -> Any:
    ends = ops.cumsum(lengths, 0)
    return ops.index_select(2 * ends - lengths - 1, 0, numbers) - counted(numbers.shape[0], numbers)


@operation("SequenceEdges")
def _edges(lengths: Any, numbers: Any, last: bool) -> Any:
    ends = ops.cumsum(lengths, 0)
    # an empty sequence has no such row: the index is outside, which is an error where it is read
    return ops.where(ops.greater(lengths, 0), ends - 1 if last else ends - lengths, numbers.shape[0])


@operation("SequenceRows")
def rows_at(x: Alone, rows: Alone) -> Any:
    """The rows of these numbers; unlike that of a table their gradient is dense."""
    flat = ops.index_select(x, 0, ops.reshape(rows, (-1,)))
    return ops.reshape(flat, (*rows.shape, *tuple(x.shape)[1:]))


def _placeholder(graph: Graph, type: TensorType, name: str) -> Tensor:
    made: Tensor = graph.add("Placeholder", name, [type], ()).outputs[0]
    return made


def layout_of(tensor: Any) -> Layout | None:
    """The layout of the axis that a tensor has; None for one that has none."""
    shape = tensor.type_.shape if isinstance(tensor, Tensor) else ()
    return _LAYOUTS.get(shape[0]) if shape and shape != UNKNOWN_RANK else None


def need_layout(function: str, **tensors: Any) -> Layout:
    """The layout of all of ``tensors``; raises ShapeError for one without a sequence axis, and for different ones."""
    found: dict[str, Layout] = {}
    for name, tensor in tensors.items():
        layout = layout_of(tensor)
        if layout is None:
            what = f"{name} is {describe(tensor)}, which has no sequence axis"
            raise failed(function, ShapeError(what, "Declare it with tf.sequence.placeholder."), tensor)
        found[name] = layout
    if len(set(found.values())) > 1:
        what = ", ".join(f"{name} has the sequence axis '{layout.name}'" for name, layout in found.items())
        raise failed(function, ShapeError(what, "Give values on one axis."))
    return next(iter(found.values()))


class Axes(dict[str, Layout]):
    """The axes of a graph by name, and what its sessions ask of them."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self._graph = ref(graph)

    def lengths_of(self, tensor: Any) -> Source | None:
        """What tells the lengths of the sequences that a tensor consists of; None where it has no such axis."""
        layout = layout_of(tensor)
        return None if layout is None else owner_of(layout.lengths)

    @staticmethod
    def apart(rows: Any, lengths: Any) -> list[Any]:
        """The sequences that ``rows`` consist of."""
        return numpy.split(rows, numpy.cumsum(lengths)[:-1]) if len(lengths) else []

    def _tensor(self, key: Any) -> Any:
        graph = self._graph()
        return graph.as_graph_element(key) if isinstance(key, str) and graph is not None else key

    def refuse(self, function: str, feeds: Iterable[Any]) -> None:
        """Raise GraphError for a feed with a sequence axis, of which ``function`` takes none."""
        for tensor in map(self._tensor, feeds):
            if layout_of(tensor) is not None:
                what = f"{function}: {describe(tensor)} has a sequence axis, at {here()}"
                raise GraphError(what, "Feed it in Session.run, which compiles what it needs.")

    def fed(self, feeds: Mapping[Any, Any]) -> dict[Any, Any]:
        """Feeds with lists of sequences as the rows of all, and what is fed for their axes.

        Raises GraphError for sequences that do not fit the placeholder, or those of another on the same axis.
        """
        found: dict[Any, Any] = {}
        axes: dict[Layout, tuple[Any, list[int]]] = {}
        for key, value in feeds.items():
            tensor = self._tensor(key)
            layout = layout_of(tensor)
            if layout is None:
                found[key] = value
                continue
            found[tensor], lengths = _packed(tensor, layout, value)
            other, known = axes.setdefault(layout, (tensor, lengths))
            if known != lengths:
                raise GraphError(
                    f"feed: on axis '{layout.name}', {describe(other)} has sequences of lengths {known} and "
                    f"{describe(tensor)} of lengths {lengths}, at {here()}",
                    "Feed as many steps for each sequence, or declare the two on axes of their own.",
                )
        for layout, (_, lengths) in axes.items():
            found.update(layout.feeds(lengths))
        return found


def _packed(tensor: Any, layout: Layout, value: Any) -> tuple[Any, list[int]]:
    """The rows of all sequences, and the length of each."""
    if not layout.is_fed:
        raise GraphError(
            f"feed: {describe(tensor)} is on the computed axis '{layout.name}', at {here()}",
            "Feed the placeholders that it is computed from.",
        )
    if not hasattr(value, "__len__") or not len(value) or isinstance(value, (str, bytes)):
        raise GraphError(
            f"feed: {describe(tensor)} has the sequence axis '{layout.name}' and is fed {value!r}, at {here()}",
            "Feed a list with one array for each sequence.",
        )
    arrays = [item.detach().numpy() if isinstance(item, Tensor) else numpy.asarray(item) for item in value]
    wanted = tensor.type_.shape
    for k, array in enumerate(arrays):
        if array.dtype.kind == "O" or not fits(array.shape, wanted) or not len(array):
            raise GraphError(
                f"feed: sequence {k} of shape {shape_text(array.shape)} does not fit {describe(tensor)}, "
                f"at {here()}",
                f"Feed arrays of shape {shape_text(wanted)} with at least one step each.",
            )
        if array.shape[1:] != arrays[0].shape[1:]:
            raise GraphError(
                f"feed: sequence {k} of shape {shape_text(array.shape)} is beside one of shape "
                f"{shape_text(arrays[0].shape)} for {describe(tensor)}, at {here()}",
                "Feed steps of one shape.",
            )
    return feed_value(tensor, numpy.concatenate(arrays)), [len(array) for array in arrays]


def checked_axis(axis: Any) -> Axis | str:
    """An axis or its name; raises ArgumentError for anything else."""
    if axis is None:
        return DEFAULT
    if not isinstance(axis, (Axis, str)):
        what = f"sequence_axis is {axis!r}"
        raise failed("placeholder", ArgumentError(what, "Give a tf.sequence.Axis or its name."))
    return axis


def axes_of(graph: Graph) -> Axes:
    """The sequence axes of a graph."""
    if graph.sequence_axes is None:
        graph.sequence_axes = Axes(graph)
    made: Axes = graph.sequence_axes
    return made


def layout_named(graph: Graph, axis: Axis | str) -> Layout:
    """The layout of an axis whose sequences are fed."""
    name = str(axis)
    axes = axes_of(graph)
    found = axes.get(name)
    if found is None:
        with graph.name_scope(f"{name}/"):
            kinds = [tensor_type(int64, (new_unknown_size(),)) for _ in range(2)]
            lengths, numbers = (_placeholder(graph, t, n) for t, n in zip(kinds, ("lengths", "numbers")))
        found = axes[name] = Layout(name, lengths, numbers, True)
    return found
