"""Recurrent layers: a cell over all steps of a sequence as one operation.

See ``recurrent_kernels`` for how rows, steps and initial states lie in memory. ``*_states`` keeps everything
of every row, ``*_cotangents`` is the way back, and ``recurrent_output`` shows the new states of all rows and
has the gradient. Each kernel has a ``definition`` by other operations, which further gradients go through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import float64, int64
from twofold.errors import ShapeError
from twofold.ir.bind import constant, input_node
from twofold.ir.graph import Graph
from twofold.ir.interpret import evaluate
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import Custom, apply, composite, convert, custom, filled, iota, ops, strong
from twofold.ops.contraction.matrix_products import transposed
from twofold.ops.examples import example
from twofold.ops.promotion import need_one_dtype
from twofold.ops.reduction.softmax import floating
from twofold.ops.sequence.recurrent_formulas import CELLS, Cell
from twofold.ops.sequence.recurrent_kernels import COLUMNS, LANES, TILE, Backward, Forward
from twofold.ops.shape.movement import slice_axis


def _columns(x: Any, parts: int, first: int, count: int = 1) -> Any:
    """Some of the equal ``parts`` that the columns of a matrix consist of."""
    width = x.shape[1] // parts
    return slice_axis(x, 1, constant(first * width, int64), count * width)


def _rows(x: Any, first: int, count: int) -> Any:
    return slice_axis(x, 0, constant(first, int64), count)


def _split(x: Any, parts: int) -> list[Any]:
    return [_columns(x, parts, k) for k in range(parts)]


def _padded(x: Any, axis: int, multiple: int) -> Any:
    """``x`` with zeros behind an axis, up to a multiple of a size."""
    missing = -x.shape[axis] % multiple
    return ops.pad(x, (0, 0) * (x.ndim - axis - 1) + (0, missing)) if missing else x


def _packed_forward(weight: Any, gates: int) -> Any:
    """``[gates * hidden, hidden]`` as ``[block of units, hidden, gate, 16 units]``."""
    hidden = weight.shape[1]
    blocks = _padded(ops.reshape(weight, (gates, hidden, hidden)), 1, LANES)
    apart = ops.reshape(blocks, (gates, blocks.shape[1] // LANES, LANES, hidden))
    return ops.permute(apart, (1, 3, 0, 2))


def _unpacked_forward(packed: Any) -> Any:
    blocks, hidden, gates, _ = packed.shape
    apart = ops.reshape(ops.permute(packed, (2, 0, 3, 1)), (gates, blocks * LANES, hidden))
    return ops.reshape(slice_axis(apart, 1, constant(0, int64), hidden), (gates * hidden, hidden))


def _packed_backward(weight: Any) -> Any:
    """``[gates * hidden, hidden]`` as ``[block of units, gates * hidden, 32 units]``."""
    wide = _padded(weight, 1, COLUMNS * LANES)
    apart = ops.reshape(wide, (wide.shape[0], wide.shape[1] // (COLUMNS * LANES), COLUMNS * LANES))
    return ops.permute(apart, (1, 0, 2))


def _unpacked_backward(packed: Any, hidden: int) -> Any:
    wide = ops.reshape(ops.permute(packed, (1, 0, 2)), (packed.shape[1], packed.shape[0] * COLUMNS * LANES))
    return slice_axis(wide, 1, constant(0, int64), hidden)


class Sequential(Custom):
    """What both directions share; attributes ``(reverse, packed)``: rows of unequal sequences are packed."""

    functions = ()
    kinds = "f"
    half_types = False
    cell: Cell
    frame: type[Forward] | type[Backward]

    def batch(self, inputs: Sequence[Any], output: TensorType) -> int:
        """How many sequences there are."""
        raise NotImplementedError

    def hidden(self, inputs: Sequence[Any]) -> int:
        """How many hidden units a cell has."""
        raise NotImplementedError

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        batch = self.batch(inputs, output)
        return inputs[3].shape[0], batch, self.hidden(inputs), output.shape[0] - batch

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        batch = self.batch(inputs, output)
        return (batch if batch == 1 else -(-batch // TILE)), 1

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        rows = output.shape[0] - self.batch(inputs, output)
        return 2 * rows * self.cell.gates * self.hidden(inputs) ** 2 + output.size

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return attrs[0], self.batch(inputs, output) == 1

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        self.frame(builder, self.cell, attrs[0], output.dtype, self.batch(inputs, output) == 1).emit()

    def definition(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The same value by other operations."""
        raise NotImplementedError

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        types = [tensor_type(float64 if a.dtype.kind == "f" else int64, a.shape) for a in arrays]
        graph = Graph(types, [self.definition(attrs, [input_node(k, t) for k, t in enumerate(types)])])
        return evaluate(graph, arrays)[0]

    def positions(self, attrs: Attributes, steps: int) -> list[int]:
        """The numbers of the steps in the order of time."""
        return list(range(steps))[::-1] if attrs[0] else list(range(steps))


def _in_order(steps: dict[int, Any], first: Any, reverse: bool) -> Any:
    """All rows: the initial ones stand where time begins."""
    rows = [steps[t] for t in sorted(steps)]
    return ops.cat([*rows, first] if reverse else [first, *rows], 0)


class States(Sequential):
    """All that is kept of all rows ``[rows + batch, kept * hidden]``.

    Inputs ``(x, bias, packed weight, sizes, previous, initial states...)``.
    """

    frame = Forward

    def batch(self, inputs: Sequence[Any], output: TensorType) -> int:
        return inputs[5].shape[0]

    def hidden(self, inputs: Sequence[Any]) -> int:
        return inputs[2].shape[1]

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x, bias, weight, _, _, *states = inputs
        kept = {f"initial state {k}": state.type for k, state in enumerate(states)}
        need_one_dtype(input=x.type, weight=weight.type, bias=bias.type, **kept)
        initial = states[0]
        shape = (x.shape[0] + initial.shape[0], self.cell.kept * initial.shape[1])
        return make_node(self, attrs, tuple(inputs), tensor_type(x.dtype, shape))

    def definition(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x, bias, weight, sizes, previous, *initial = inputs
        cell, batch, hidden = self.cell, initial[0].shape[0], initial[0].shape[1]
        matrix = transposed(_unpacked_forward(weight))
        empty = [filled(0, x.dtype, (batch, hidden))] * (cell.kept - cell.states)
        first = ops.cat([*empty, *initial], 1)

        def step(given: Any, states: Sequence[Any]) -> Any:
            s = ops.matmul(states[0], matrix) + bias
            return ops.cat(cell.step(ops, _split(given, cell.gates), _split(s, cell.gates), states), 1)

        kept = cell.kept
        if not attrs[1]:
            now, rows = first, {}
            for t in self.positions(attrs, sizes.shape[0]):
                now = rows[t] = step(_rows(x, t * batch, batch), _split(now, kept)[kept - cell.states :])
            return _in_order(rows, first, attrs[0])
        # all rows at once, so often that what comes from the initial states has reached the last ones
        rows = filled(0, x.dtype, (x.shape[0], kept * hidden))
        for _ in range(sizes.shape[0]):
            before = ops.index_select(_in_order({0: rows}, first, attrs[0]), 0, previous)
            rows = step(x, _split(before, kept)[kept - cell.states :])
        return _in_order({0: rows}, first, attrs[0])

    def samples(self) -> Sequence[Any]:
        cell = self.cell
        found = []
        for steps, batch, hidden, reverse in ((3, 2, 2, False), (2, 1, 3, True), (2, 5, 17, False)):
            weight: Any = numpy.zeros((-(-hidden // LANES) * LANES, cell.gates, hidden))
            weight[:hidden] = _draw(hidden, cell.gates, hidden)
            packed = weight.reshape(-1, LANES, cell.gates, hidden).transpose(0, 3, 2, 1)
            given: Any = (_draw(steps * batch, cell.gates * hidden), _draw(cell.gates * hidden), packed)
            rows = numpy.arange(steps * batch) + (batch if reverse else 0)
            initial = [_draw(batch, hidden) for _ in range(cell.states)]
            sizes = numpy.full(steps, batch)
            found.append(_sample((reverse, False), *given, sizes, rows, *initial))
        weight = numpy.zeros((1, 2, cell.gates, LANES))
        weight[..., :2] = _draw(2, cell.gates, 2)
        for reverse in (False, True):
            given = _draw(6, cell.gates * 2), _draw(cell.gates * 2), weight
            initial = [_draw(3, 2) for _ in range(cell.states)]
            found.append(_sample((reverse, True), *given, _SIZES, _PREVIOUS[reverse], *initial))
        return found


class Cotangents(Sequential):
    """Cotangents of the products, of the inputs where those differ, and of the states, for all rows.

    Inputs ``(cotangent of the states, kept, packed weight, sizes, previous)``; a row's states get what later
    rows pass on to them, so those of the initial rows are the cotangents of the initial states.
    """

    frame = Backward

    def batch(self, inputs: Sequence[Any], output: TensorType) -> int:
        return inputs[1].shape[0] - inputs[0].shape[0]

    def hidden(self, inputs: Sequence[Any]) -> int:
        return inputs[1].shape[1] // self.cell.kept

    @property
    def parts(self) -> int:
        """Equal parts of a row."""
        return self.cell.gates + len(self.cell.own) + self.cell.states

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        shape = (inputs[1].shape[0], self.parts * self.hidden(inputs))
        return make_node(self, attrs, tuple(inputs), tensor_type(inputs[0].dtype, shape))

    def definition(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        given, kept, weight, sizes, previous = inputs
        cell, rows, batch, hidden = (
            self.cell,
            given.shape[0],
            self.batch(inputs, kept.type),
            self.hidden(inputs),
        )
        matrix = _unpacked_backward(weight, hidden)
        own = _rows(kept, 0 if attrs[0] else batch, rows)
        before = ops.index_select(
            _columns(kept, cell.kept, cell.kept - cell.states, cell.states), 0, previous
        )

        def step(arriving: Any, first: int, count: int) -> tuple[Any, Any]:
            """What a row's gates get, and what its states before get."""
            total = _split(_rows(given, first, count) + arriving, cell.states)
            states = _split(_rows(before, first, count), cell.states)
            gates, extra, direct = cell.gradient(
                ops, total, _split(_rows(own, first, count), cell.kept), states
            )
            nothing = filled(0, given.dtype, (count, hidden))
            shares = [nothing if share is None else share for share in direct]
            shares[0] = shares[0] + ops.matmul(ops.cat(gates, 1), matrix)
            return ops.cat([*gates, *extra], 1), ops.cat(shares, 1)

        inner = filled(0, given.dtype, (batch, (self.parts - cell.states) * hidden))
        if not attrs[1]:
            arriving, found = filled(0, given.dtype, (batch, cell.states * hidden)), {}
            for t in reversed(self.positions(attrs, sizes.shape[0])):
                gates, passed = step(arriving, t * batch, batch)
                found[t], arriving = ops.cat([gates, arriving], 1), passed
            return _in_order(found, ops.cat([inner, arriving], 1), attrs[0])
        nothing = filled(0, given.dtype, (rows + batch, cell.states * hidden))
        arriving, start = nothing, 0 if attrs[0] else batch
        for _ in range(sizes.shape[0]):
            _, passed = step(_rows(arriving, start, rows), 0, rows)
            arriving = ops.index_add(nothing, 0, previous, passed)
        gates, _ = step(_rows(arriving, start, rows), 0, rows)
        return ops.cat([_in_order({0: gates}, inner, attrs[0]), arriving], 1)

    def samples(self) -> Sequence[Any]:
        cell = self.cell
        found = []
        for steps, batch, hidden, reverse in ((3, 2, 2, False), (2, 1, 3, True), (2, 5, 33, False)):
            weight = numpy.zeros((cell.gates * hidden, -(-hidden // 32) * 32))
            weight[:, :hidden] = _draw(cell.gates * hidden, hidden)
            packed = weight.reshape(cell.gates * hidden, -1, 32).transpose(1, 0, 2)
            kept = 0.5 + 0.3 * numpy.tanh(_draw((steps + 1) * batch, cell.kept * hidden))
            rows = numpy.arange(steps * batch) + (batch if reverse else 0)
            given = _draw(steps * batch, cell.states * hidden)
            found.append(_sample((reverse, False), given, kept, packed, numpy.full(steps, batch), rows))
        weight = numpy.zeros((1, cell.gates * 2, 2 * LANES))
        weight[..., :2] = _draw(1, cell.gates * 2, 2)
        for reverse in (False, True):
            kept = 0.5 + 0.3 * numpy.tanh(_draw(9, cell.kept * 2))
            given = _draw(6, cell.states * 2)
            found.append(_sample((reverse, True), given, kept, weight, _SIZES, _PREVIOUS[reverse]))
        return found


_SIZES = numpy.array([3, 2, 1])
"""Sequences of lengths 3, 2 and 1, and where their rows find the state before, by direction."""
_PREVIOUS = {False: numpy.array([0, 1, 2, 3, 4, 6]), True: numpy.array([3, 4, 8, 5, 7, 6])}


def _draw(*shape: int) -> Any:
    return numpy.random.default_rng(len(shape) + shape[0]).standard_normal(shape) * 0.7


def _sample(attrs: Attributes, *arrays: Any) -> Any:
    return example(attrs, *[a.astype(numpy.float32) if a.dtype.kind == "f" else a for a in arrays])


def _operations() -> None:
    """The two operations of every cell."""
    for cell in CELLS.values():
        for base, suffix in ((States, "states"), (Cotangents, "cotangents")):
            made = type(f"{cell.name}_{suffix}", (base,), {"cell": cell, "__doc__": base.__doc__})
            custom(made)


_operations()


# Layers


class _Layer:
    """The operands of one direction of a layer, checked.

    ``x [rows, gates * hidden]`` holds what the inputs contribute; ``bias`` and ``weight`` belong to the state.
    """

    def __init__(self, values: Sequence[Any], name: str, reverse: bool, packed: bool) -> None:
        self.cell = CELLS[name]
        self.name, self.attrs = name, (reverse, packed)
        self.dtype = strong(values[0]).dtype
        self.x, self.bias, self.weight, *rest = [
            floating(value) if value.dtype.kind == "f" else value for value in values
        ]
        self.initial = rest[: self.cell.states]
        batch, hidden = self.initial[0].shape
        rows, width = self.x.shape[0], self.cell.gates * hidden
        if self.weight.shape != (width, hidden) or self.bias.shape != (width,) or self.x.shape[1] != width:
            raise ShapeError(
                f"{hidden} hidden units with weights {self.weight.shape}, bias {self.bias.shape} and "
                f"inputs {self.x.shape}",
                f"Give weights of shape ({width}, {hidden}) and inputs of {width} columns.",
            )
        self.batch, self.rows = batch, rows
        self.first = rows if reverse else 0
        self.begin = 0 if reverse else batch
        if packed:
            self.sizes, self.previous = rest[self.cell.states :]
        else:
            self.sizes = filled(batch, int64, (rows // max(batch, 1),))
            self.previous = iota((rows,)) + (batch if reverse else 0)

    def states(self) -> Any:
        """Everything of every row."""
        packed = _packed_forward(self.weight, self.cell.gates)
        return apply(
            f"{self.name}_states",
            self.x,
            self.bias,
            packed,
            self.sizes,
            self.previous,
            *self.initial,
            attrs=self.attrs,
        )

    def shown(self, kept: Any) -> Any:
        """The new states of all rows."""
        cell = self.cell
        rows = _rows(kept, self.begin, self.rows)
        return convert(_columns(rows, cell.kept, cell.kept - cell.states, cell.states), self.dtype)

    def cotangents(self, ct: Any, kept: Any) -> list[Any]:
        """Cotangents of ``x``, bias, weight and the initial states."""
        cell, attrs = self.cell, self.attrs
        packed = _packed_backward(self.weight)
        given = (convert(ct, self.x.dtype), kept, packed, self.sizes, self.previous)
        found = apply(f"{self.name}_cotangents", *given, attrs=attrs)
        parts = cell.gates + len(cell.own) + cell.states
        inner = _rows(found, self.begin, self.rows)
        gates = _columns(inner, parts, 0, cell.gates)
        x = gates
        if cell.own:
            columns = list(range(cell.gates))
            for k, gate in enumerate(cell.own):
                columns[gate] = cell.gates + k
            x = ops.cat([_columns(inner, parts, k) for k in columns], 1)
        hidden = _columns(kept, cell.kept, cell.kept - cell.states)
        if attrs[1]:
            before = ops.index_select(hidden, 0, self.previous)
        else:
            before = _rows(hidden, self.batch if attrs[0] else 0, self.rows)
        weight = ops.matmul(transposed(gates), before)
        bias = apply("sum", gates, attrs=((0,), False))
        last = _rows(found, self.first, self.batch)
        initial = [_columns(last, parts, parts - cell.states + k) for k in range(cell.states)]
        return [x, bias, weight, *initial]


@composite
class recurrent_states:
    """Everything of every row; inputs ``(x, bias, weight, initial..., [sizes, previous])``."""

    functions = ()
    compute = lambda *rest: _Layer(rest[:-3], *rest[-3:]).states()


@composite
class recurrent_output:
    """The new states of all rows; inputs ``(kept, x, bias, weight, initial..., [sizes, previous])``.

    ``kept`` is what ``recurrent_states`` made of the others; the gradient flows to the others alone.
    """

    functions = ()
    compute = lambda kept, *rest: _Layer(rest[:-3], *rest[-3:]).shown(kept)

    def vjp(ct: Any, y: Any, kept: Any, *rest: Any) -> Any:
        layer = _Layer(rest[:-3], *rest[-3:])
        found = layer.cotangents(ct, kept)
        return (None, *found, *[None] * (len(rest) - 3 - len(found)))


def sequence(
    name: str, x: Any, bias: Any, weight: Any, initial: Sequence[Any], reverse: bool, packing: Sequence[Any]
) -> Any:
    """The new states ``[rows, states * hidden]`` of all rows; ``packing`` is ``(sizes, previous)`` or empty."""
    attrs = (name, reverse, bool(packing))
    values = (x, bias, weight, *initial, *packing)
    kept = apply("recurrent_states", *values, attrs=attrs)
    return apply("recurrent_output", kept, *values, attrs=attrs)
