"""Connectionist temporal classification.

Source: Graves, Fernandez, Gomez, Schmidhuber, Connectionist Temporal Classification, 2006. A target of labels
is read with blanks around each label, ``S = 2 * labels + 1`` symbols. ``alpha[t, s]`` is the logarithm of the
probability of all paths that have passed symbol ``s`` after ``t`` frames (there: equations 6 to 8).
"""

from __future__ import annotations

import math
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
from twofold.ops import kernels
from twofold.ops.base import Custom, apply, broadcast, composite, convert, custom, filled, iota, ops, strong
from twofold.ops.examples import example
from twofold.ops.indexing.gather import need_index
from twofold.ops.loss.class_losses import need_reduction, reduced
from twofold.ops.reduction.softmax import floating
from twofold.ops.sequence.recurrent_formulas import Lane, LaneFunctions
from twofold.ops.shape.movement import slice_axis

_LANES = kernels.LANES
_BEFORE = 2
"""Cells before the first symbol, of probability 0, so that every symbol has two before it."""


@custom
class ctc_paths(Custom):
    """``alpha [batch, frames + 1, 2 + symbols]``; what lies behind a sequence's last frame repeats it.

    Inputs ``(log-probabilities [frames, batch, classes], symbols [batch, symbols], log of whether the symbol
    before the last may be skipped [batch, symbols], int64 lengths [batch])``; symbols are class numbers. A fifth input
    is the log of whether a symbol may last for several frames [batch, symbols]; without it all may.
    """

    functions = ()
    kinds = "f"
    half_types = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        scores, symbols = inputs[:2]
        shape = (symbols.shape[0], scores.shape[0] + 1, symbols.shape[1] + _BEFORE)
        return make_node(self, attrs, tuple(inputs), tensor_type(scores.dtype, shape))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return (*inputs[0].shape, inputs[1].shape[1])

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return inputs[1].shape[0], kernels.grain(4096, output.shape[1] * output.shape[2])

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype, target = builder, output.dtype, builder.buffer(len(inputs))
        frames, symbols = b.param(0), b.param(3)
        width = b.add(symbols, _BEFORE)
        nothing = b.const(-math.inf, dtype)
        with b.loop(b.begin, b.end) as sample:
            first = b.mul(b.mul(sample, b.add(frames, 1)), width)
            kernels.fill(b, dtype, target, first, nothing, width)
            b.store(target, b.add(first, _BEFORE), b.const(0.0, dtype))
            length = b.load(b.input(3), sample, int64)
            with b.loop(0, frames) as t:
                row = b.add(first, b.mul(t, width))
                after = b.add(row, width)
                branch = b.if_(b.cmp("lt", t, length))
                with branch:
                    kernels.fill(b, dtype, target, after, nothing, b.index(_BEFORE))
                    with b.loop(0, symbols, _LANES) as s:
                        self._symbols(b, dtype, (t, sample, s), row, after, len(inputs))
                with branch.else_():
                    kernels.copy(b, dtype, target, after, target, row, width)

    def _symbols(
        self, b: Any, dtype: Any, position: tuple[Any, Any, Any], row: Any, after: Any, count: int
    ) -> None:
        """Sixteen symbols after one more frame; ``count`` is the number of inputs."""
        (t, sample, s), target = position, b.buffer(count)
        batch, classes, symbols = b.param(1), b.param(2), b.param(3)
        mask = b.lane_mask(b.sub(symbols, s))
        at = b.add(b.mul(sample, symbols), s)
        labels = b.load(b.input(1), at, int64, _LANES, mask=mask)
        frame = b.mul(b.add(b.mul(t, batch), sample), classes)
        score = b.load_indices(b.input(0), b.add(labels, frame), dtype, mask=mask)
        start = b.add(row, s)
        ways = [
            Lane(b, b.load(target, b.add(start, _BEFORE - k), dtype, _LANES, mask=mask)) for k in range(3)
        ]
        ways[2] = ways[2] + Lane(b, b.load(b.input(2), at, dtype, _LANES, mask=mask))
        if count > 4:
            ways[0] = ways[0] + Lane(b, b.load(b.input(4), at, dtype, _LANES, mask=mask))
        found = _joined(LaneFunctions(b), ways) + Lane(b, score)
        b.store(target, b.add(b.add(after, s), _BEFORE), found.value, mask=mask)

    def definition(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The same value by other operations."""
        scores, symbols, skips, lengths, *stays = inputs
        frames, batch, count = scores.shape[0], symbols.shape[0], symbols.shape[1]

        def cut(x: Any, first: int) -> Any:
            return slice_axis(x, 1, constant(first, int64), count)

        nothing = filled(-math.inf, scores.dtype, (batch, _BEFORE))
        start = broadcast(ops.where(ops.equal(iota((count,)), 0), 0.0, -math.inf), (batch, count))
        now = ops.cat([nothing, convert(start, scores.dtype)], 1)
        rows = [now]
        for t in range(frames):
            last = cut(now, 2)
            ways = [last + stays[0] if stays else last, cut(now, 1), cut(now, 0) + skips]
            score = ops.gather(ops.select(scores, 0, t), 1, symbols)
            following = ops.cat([nothing, _joined(ops, ways) + score], 1)
            now = ops.where(ops.unsqueeze(ops.greater(lengths, t), 1), following, now)
            rows.append(now)
        return ops.stack(rows, 1)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        types = [tensor_type(float64 if a.dtype.kind == "f" else int64, a.shape) for a in arrays]
        graph = Graph(types, [self.definition(attrs, [input_node(k, t) for k, t in enumerate(types)])])
        return evaluate(graph, arrays)[0]

    def samples(self) -> Sequence[Any]:
        symbols = numpy.array([[0, 2, 0, 1, 0], [0, 3, 0, 3, 0]])
        skips = numpy.array([[0, 0, 0, 1, 0], [0, 0, 0, 0, 0]])
        allowed = numpy.where(skips, 0, -numpy.inf).astype(numpy.float32)
        many = numpy.arange(42).reshape(2, 21) % 5
        free = numpy.zeros((2, 21), numpy.float32)
        once = numpy.where(symbols > 0, -numpy.inf, 0).astype(numpy.float32)
        made = [
            example((), (4, 2, 5), symbols, allowed, numpy.array([4, 3]), smooth=False),
            example((), (6, 2, 5), many, free, numpy.array([0, 6]), smooth=False),
            example((), (0, 2, 5), symbols, allowed, numpy.array([0, 0]), smooth=False),
            example((), (5, 2, 5), symbols, allowed, numpy.array([5, 4]), once, smooth=False),
        ]
        return made


def _joined(m: Any, ways: Sequence[Any]) -> Any:
    """The logarithm of the sum of exponentials; minus infinity, with a gradient of 0, where all are."""
    top = m.maximum(m.maximum(ways[0], ways[1]), ways[2])
    dead = top <= -math.inf
    level = m.where(dead, 0.0, m.stop_gradient(top))
    added = m.exp(ways[0] - level) + m.exp(ways[1] - level) + m.exp(ways[2] - level)
    return m.where(dead, -math.inf, level + m.log(m.where(dead, 1.0, added)))


class _Problem:
    """One call: scores ``[frames, batch, classes]``, targets ``[batch, labels]`` and both lengths.

    With ``merges`` a label may last for several frames, and equal labels have a blank between them.
    """

    def __init__(
        self, scores: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, merges: bool
    ) -> None:
        self.merges = merges
        self.given, self.scores = scores, floating(scores)
        self.frames, self.batch, self.classes = self.scores.shape
        self.lengths, self.counts = convert(input_lengths, int64), convert(target_lengths, int64)
        labels = targets.shape[1]
        self.symbols_count = 2 * labels + 1
        used = ops.less(iota((labels,)), ops.unsqueeze(self.counts, 1))
        known = ops.where(used, need_index(targets), blank)
        known = apply("class_number", known, constant(blank, int64), attrs=(self.classes,))
        between = filled(blank, int64, (self.batch, labels))
        pairs = ops.reshape(ops.stack([between, known], 2), (self.batch, 2 * labels))
        self.symbols = ops.cat([pairs, filled(blank, int64, (self.batch, 1))], 1)
        self.blank = blank
        self.last = self.counts * 2

    def skips(self, symbols: Any) -> Any:
        """The logarithm of whether the blank before a symbol may be left out: not between equal labels."""
        before = ops.pad(slice_axis(symbols, 1, constant(0, int64), self.symbols_count - 1), (1, 0))
        before = ops.pad(slice_axis(before, 1, constant(0, int64), self.symbols_count - 1), (1, 0))
        different = ops.not_equal(symbols, self.blank)
        if self.merges:
            different = ops.logical_and(different, ops.not_equal(symbols, before))
        numbers = broadcast(iota((self.symbols_count,)), symbols.shape)
        allowed = ops.logical_and(different, ops.greater_equal(numbers, _BEFORE))
        return convert(ops.where(allowed, 0.0, -math.inf), self.scores.dtype)

    def _alpha(self, scores: Any, symbols: Any) -> Any:
        operands = [scores, symbols, self.skips(symbols), self.lengths]
        if not self.merges:
            stays = ops.where(ops.equal(symbols, self.blank), 0.0, -math.inf)
            operands.append(convert(stays, self.scores.dtype))
        return apply("ctc_paths", *operands)

    def paths(self) -> Any:
        """Alpha."""
        return self._alpha(self.scores, self.symbols)

    def losses(self, paths: Any) -> Any:
        """Minus the logarithm of the probability of each target."""
        final = ops.select(paths, 1, self.frames)
        ends = ops.stack([self.last + _BEFORE, self.last + (_BEFORE - 1)], 1)
        chances = ops.gather(final, 1, ends)
        first, second = (ops.select(chances, 1, k) for k in range(2))
        nothing = filled(-math.inf, chances.dtype, (self.batch,))
        return ops.negative(_joined(ops, [first, second, nothing]))

    def _backwards(self) -> Any:
        """Alpha of the reversed problem, reversed again: beta ``[batch, frames, symbols]``."""
        frames = iota((self.frames,))
        reversed_frames = ops.maximum(ops.unsqueeze(self.lengths, 0) - 1 - ops.unsqueeze(frames, 1), 0)
        cube = broadcast(ops.unsqueeze(reversed_frames, 2), self.scores.shape)
        scores = ops.gather(self.scores, 0, cube)
        numbers = broadcast(iota((self.symbols_count,)), self.symbols.shape)
        positions = ops.maximum(ops.unsqueeze(self.last, 1) - numbers, 0)
        symbols = ops.gather(self.symbols, 1, positions)
        paths = self._alpha(scores, symbols)
        shape = (self.batch, self.frames, paths.shape[2])
        rows = ops.maximum(ops.unsqueeze(self.lengths, 1) - ops.unsqueeze(frames, 0), 0)
        paths = ops.gather(paths, 1, broadcast(ops.unsqueeze(rows, 2), shape))
        shape = (self.batch, self.frames, self.symbols_count)
        return ops.gather(paths, 2, broadcast(ops.unsqueeze(positions + _BEFORE, 1), shape))

    def gradient(self) -> Any:
        """For each frame the probabilities of the classes less those given the target: the derivative of the
        losses with regard to what the log-softmax before was taken of (there: equation 16)."""
        paths = self.paths()
        losses = self.losses(paths)
        shape = (self.batch, self.frames, self.symbols_count)
        after = slice_axis(paths, 1, constant(1, int64), self.frames)
        alpha = slice_axis(after, 2, constant(_BEFORE, int64), self.symbols_count)
        symbols = broadcast(ops.unsqueeze(self.symbols, 1), shape)
        scores = ops.permute(self.scores, (1, 0, 2))
        within = ops.greater_equal(ops.unsqueeze(self.last, 1), iota((self.symbols_count,)))
        weight = alpha + self._backwards() - ops.gather(scores, 2, symbols)
        weight = ops.exp(weight + ops.reshape(losses, (self.batch, 1, 1)))
        weight = ops.where(ops.unsqueeze(within, 1), weight, 0)
        given = ops.scatter_add(filled(0, scores.dtype, scores.shape), 2, symbols, weight)
        found = ops.permute(ops.exp(scores) - given, (1, 0, 2))
        alive = ops.less(ops.unsqueeze(iota((self.frames,)), 1), ops.unsqueeze(self.lengths, 0))
        return ops.where(ops.unsqueeze(alive, 2), found, 0), losses


@composite
class ctc_losses:
    """Minus the logarithm of the probability of each target; attributes ``(blank, zero_infinity, merges)``.

    Inputs ``(log_probs [frames, batch, classes], targets [batch, labels], input_lengths, target_lengths)``.
    The gradient takes the scores for what a log-softmax gave, as PyTorch's does: it holds for that alone.
    """

    autocast = "float32"
    memory = (4.5, "the table of all alignments is kept")

    functions = ()
    title = "ctc_loss"

    def compute(
        scores: Any, targets: Any, lengths: Any, counts: Any, blank: int, zero_infinity: bool, merges: bool
    ) -> Any:
        batch = scores.shape[1]
        if (
            targets.ndim != 2
            or targets.shape[0] != batch
            or lengths.shape != (batch,)
            or counts.shape != (batch,)
        ):
            raise ShapeError(
                f"targets {targets.shape} and lengths {lengths.shape}, {counts.shape} for a batch of {batch}",
                "Give a row of targets and two lengths for each sequence.",
            )
        problem = _Problem(scores, targets, lengths, counts, blank, merges)
        losses = problem.losses(problem.paths())
        losses = ops.where(ops.equal(losses, math.inf), 0, losses) if zero_infinity else losses
        return convert(losses, strong(scores).dtype)

    def vjp(ct: Any, y: Any, scores: Any, *rest: Any) -> Any:
        *operands, blank, zero_infinity, merges = rest
        targets, lengths, counts = operands
        problem = _Problem(scores, targets, lengths, counts, blank, merges)
        slope, losses = problem.gradient()
        share = convert(ct, slope.dtype)
        if zero_infinity:
            lost = ops.equal(losses, math.inf)
            slope = ops.where(ops.reshape(lost, (1, problem.batch, 1)), 0, slope)
        found = slope * ops.reshape(share, (1, problem.batch, 1))
        return (convert(found, strong(scores).dtype), None, None, None)

    samples = lambda: [
        example(
            (0, False, True),
            numpy.log(numpy.full((5, 2, 4), 0.25, numpy.float32)),
            numpy.array([[1, 1], [3, -7]]),
            numpy.array([5, 4]),
            numpy.array([2, 1]),
            smooth=False,
        ),
        example(
            (1, True, True),
            (3, 1, 4),
            numpy.array([[2, 2, 2]]),
            numpy.array([3]),
            numpy.array([3]),
            smooth=False,
        ),
        example(
            (1, False, False),
            (4, 1, 4),
            numpy.array([[2, 2, 0]]),
            numpy.array([4]),
            numpy.array([3]),
            smooth=False,
        ),
    ]


@composite
class ctc_mean:
    """The mean of losses, each over the number of its labels; attributes ``(reduction,)``."""

    functions = ()

    def compute(losses: Any, counts: Any, reduction: str) -> Any:
        need_reduction(reduction)
        if reduction == "mean":
            losses = losses / convert(ops.maximum(counts, 1), losses.dtype)
        return reduced(losses, reduction)

    samples = lambda: [example((how,), (3,), numpy.array([2, 0, 5])) for how in ("mean", "sum", "none")]
    reference = lambda losses, counts, reduction: (
        (losses / numpy.maximum(counts, 1)).mean()
        if reduction == "mean"
        else losses.sum()
        if reduction == "sum"
        else losses
    )
