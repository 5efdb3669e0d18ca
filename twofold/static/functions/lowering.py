"""What computes choices and loops: closed functions, or the host where their bodies have effects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import int64
from twofold.errors import ArgumentError, AxisError, IndexRangeError, InvalidArgumentError, ShapeError
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ir.types import TensorType
from twofold.ops.base import apply, ops
from twofold.runtime.calls import LoopCall, call_branch, predicate_of
from twofold.runtime.closure_conversion import closure_convert
from twofold.runtime.failures import end_at
from twofold.static.functions.bodies import Body, array_writes, tensor_of
from twofold.static.functions.written_elements import first_marks, longer_marks, mark, marks_of
from twofold.static.graph.graph import Graph, Operation, describe
from twofold.static.graph.inference import Numbers, Source, read_of
from twofold.static.graph.string_table import stack
from twofold.static.graph.tensor_shape import fits, shape_text


class Record:
    """What a loop on the host leaves for its gradient: arrays of its inputs, and its iterations."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self.arrays = tuple(arrays)
        self.parts: list[Any] = []


class Flow:
    """How an operation is declared, or computed on the host, from its bodies."""

    def __init__(self, bodies: Sequence[Body], varying: bool = False) -> None:
        self.bodies = list(bodies)
        self.is_random = any(body.is_random for body in bodies)
        self.varying = (
            varying  # whether types of results may differ between the bodies, or between iterations
        )
        self.owner: Operation | None = None
        self.rules: list[Operation] = []  # operations that are given gradients of the program's
        self.recorded = False  # whether a gradient needs what the iterations on the host computed

    def compute(self, lowerer: Any, operation: Operation) -> list[Any]:
        """The outputs of ``operation``, declared by ``lowerer``."""
        raise NotImplementedError

    def sources(self, given: Sequence[Any]) -> list[Any]:
        """The sources of the operation: what it is given, then what its bodies capture."""
        captured = dict.fromkeys(source for body in self.bodies for source in body.captured)
        return [*given, *[source for source in captured if source not in given]]

    def declare(
        self, graph: Graph, type: str, name: str | None, types: Sequence[TensorType], given: Sequence[Source]
    ) -> Operation:
        """The operation of ``given`` that this computes; it waits for all that the bodies wait for outside."""
        effects = self.is_hosted()
        self.captured = [source for source in self.sources(()) if not _is_current(source)]
        self.current = [source for source in self.sources(()) if _is_current(source)]
        sources = [*given, *self.captured] if effects else self.sources(given)
        parts: dict[str, Any] = {"python": self.iterate, "hosted": self} if effects else {"flow": self}
        made = graph.add(type, name, types, sources, **parts)
        self.owner = made
        outside = [control for body in self.bodies for control in body.controls]
        made.control_inputs = tuple(dict.fromkeys((*made.control_inputs, *outside)))
        return made

    def is_hosted(self) -> bool:
        """Whether the host runs the bodies one by one."""
        return any(body.with_effects() for body in self.bodies)

    def iterate(self, run: Any, *arrays: Any) -> list[Any]:
        """The outputs for arrays of the inputs, computed on the host: one part of ``run`` for each iteration."""
        raise NotImplementedError

    def begin_record(self, run: Any, arrays: Sequence[Any]) -> None:
        """Make room for what iterations leave for a gradient."""
        if self.recorded:
            run.records[self.owner] = Record(arrays)

    def once(
        self,
        run: Any,
        body: Body,
        values: Sequence[Any],
        captured: Sequence[Any],
        inside: Sequence[Source] = (),
    ) -> list[Any]:
        """The results of a body for the values of its arguments and of what it captures, then what is ``inside``."""
        fetches = [*body.results, *inside]
        arguments = [(argument, 0) for argument in body.arguments]
        part = run.inner([*self.captured, *arguments], [*captured, *values], body.begin)
        if self.recorded and body is self.bodies[-1]:
            run.records[self.owner].parts.append(part)
            part.record(fetches)
            return list(part.results)
        found: list[Any] = part.result(fetches, ())
        return found


def _is_current(source: Source) -> bool:
    """Whether each iteration on the host looks at a captured value anew."""
    return read_of(source) is not None or source[0].number_of is not None


_UNFIT = (ShapeError, AxisError, ArgumentError, IndexRangeError)
"""What declaring a body raises where its operations do not fit the sizes of a run."""


class Choice(Flow):
    """Input 0 selects a body; only that one is computed.

    Bodies whose results turn out to be of different types, or of which one cannot be declared for the sizes of a run,
    are chosen between when the choice is known.
    """

    def __init__(self, bodies: Sequence[Body], names: Sequence[str], varying: bool) -> None:
        super().__init__(bodies, varying)
        self.names = names
        self.arrays: dict[int, list[Collection[int] | None]] = {}
        """Positions of arrays, with the elements that are known to be written at the end of each body; None: all."""

    def compute(self, lowerer: Any, operation: Operation) -> list[Any]:
        if lowerer.is_told(operation.sources[0]):
            return self._chosen(lowerer, operation)
        try:
            return self._either(lowerer, operation)
        except _UNFIT:
            if lowerer.depth:
                raise
            return self._chosen(lowerer, operation)  # the body that is not computed may not fit the sizes

    def _chosen(self, lowerer: Any, operation: Operation) -> list[Any]:
        chosen = _integer(lowerer.number(operation, operation.sources[0]))
        last = len(self.bodies) - 1
        number = chosen if 0 <= chosen <= last else last
        found = self.bodies[number].declare_here(lowerer, ())
        for (position, _), marks in zip(self._written(found), self._marks(number, found)):
            mark(found[position], lowerer.symbolic(marks))
        return found

    def _written(self, values: Sequence[Any]) -> list[tuple[int, list[Collection[int] | None]]]:
        """The arrays among results, without those of which only the size is computed."""
        return [(position, known) for position, known in self.arrays.items() if values[position].shape]

    def _marks(self, number: int, values: Sequence[Any]) -> list[Any]:
        """What tells of the arrays among the results of a body which elements are written."""
        found = [marks_of(values[position]) for position, _ in self._written(values)]
        return [
            first_marks(values[position].shape[0], known[number]) if marks is None else marks
            for marks, (position, known) in zip(found, self._written(values))
        ]

    def _either(self, lowerer: Any, operation: Operation) -> list[Any]:
        choice = lowerer.symbolic(lowerer.read(operation, operation.sources[0]))
        choice = apply("reshape", choice, attrs=((),))

        def run(body: Body, k: int) -> Callable[[], list[Any]]:
            def values() -> list[tuple[Any, str]]:
                found = body.declare(lowerer, ())
                named = [(value, f"result {position}") for position, value in enumerate(found)]
                return [*named, *[(marks, "the written elements") for marks in self._marks(k, found)]]

            return values

        functions = [run(body, k) for k, body in enumerate(self.bodies)]
        results = call_branch(operation.type.lower(), choice, functions, self.names, ())
        count = len(self.bodies[0].results)
        for (position, _), marks in zip(self._written(results), results[count:]):
            mark(results[position], marks)
        return results[:count]


class While(Flow):
    """Bodies ``condition`` and ``body`` over ``count`` carried values; input ``count`` may limit the iterations.

    ``growing`` are the positions of arrays that may grow: the inputs before the captured ones are their last sizes.
    """

    def __init__(
        self,
        condition: Body,
        body: Body,
        names: Sequence[str],
        limited: bool,
        growing: Sequence[int] = (),
        varying: bool = False,
    ) -> None:
        super().__init__([condition, body], varying)
        self.condition, self.body, self.names, self.limited = condition, body, names, limited
        self.growing = list(growing)
        self.checked: dict[int, Collection[int] | None] = {}
        """Positions of arrays of which runs check that elements are written once, and what is written before."""

    def compute(self, lowerer: Any, operation: Operation) -> list[Any]:
        first = len(self.names) + int(self.limited)
        carried = self._carried(lowerer, operation)
        marks = {k: marks_of(value) for k, value in enumerate(carried)}
        if not lowerer.depth:
            for position, source in zip(self.growing, operation.sources[first : first + len(self.growing)]):
                size = _integer(lowerer.number(operation, source))
                carried[position] = lowerer.symbolic(_longer(carried[position], size))
        for k, value in enumerate(carried):
            if not value.shape:  # no array, or one of which only the size is computed
                continue
            if marks[k] is not None:
                mark(value, lowerer.symbolic(longer_marks(marks[k], value.shape[0])))
            elif k in self.checked:
                mark(value, lowerer.symbolic(first_marks(value.shape[0], self.checked[k])))
        return self._looped(lowerer, operation, carried)

    def _carried(self, lowerer: Any, operation: Operation) -> list[Any]:
        return [
            _declared(lowerer, lowerer.read(operation, source))
            for source in operation.sources[: len(self.names)]
        ]

    def _looped(self, lowerer: Any, operation: Operation, carried: list[Any]) -> list[Any]:
        count = len(self.names)
        marked = [k for k, value in enumerate(carried) if marks_of(value) is not None]
        marks = [marks_of(carried[k]) for k in marked]
        names = [*self.names, *[f"the written elements of {self.names[k]}" for k in marked]]
        call = LoopCall("while_loop", carried, names)
        if self.limited:
            most = lowerer.symbolic(lowerer.read(operation, operation.sources[count]))
            call.max_iterations = apply("reshape", apply("cast", most, attrs=(int64,)), attrs=((),))
        carried = self._with_rows(lowerer, carried)
        call.carried = [*carried, *marks]
        (start,) = self.condition.declare(lowerer, carried)

        def step(*values: Any) -> list[Any]:
            for k, known in zip(marked, values[count:]):
                mark(values[k], known)
            found = self.body.declare(lowerer, values[:count])
            found += [_marks_or_none(found[k], known) for k, known in zip(marked, values[count:])]
            new = call.check_carried(found)
            (go_on,) = self.condition.declare(lowerer, new[:count])
            return [*new, predicate_of("while_loop", go_on, "the condition")]

        results = call.run(step, predicate_of("while_loop", start, "the condition"))[:-1]
        for k, known in zip(marked, results[count:]):
            mark(results[k], known)
        return results[:count]

    def is_hosted(self) -> bool:
        return self.varying or super().is_hosted()

    def iterate(self, run: Any, *arrays: Any) -> list[Any]:
        count, limited = len(self.names), int(self.limited)
        carried, captured = list(arrays[:count]), arrays[count + limited :]
        most = int(arrays[count]) if limited else None
        self.begin_record(run, arrays)
        made = 0
        writes = [(write, k) for k in self.checked for write in array_writes(self.body, k)]
        indices = [write.sources[2] for write, _ in writes]
        written = {
            k: set(range(len(arrays[k])) if known is None else known) for k, known in self.checked.items()
        }
        while (most is None or made < most) and self.once(run, self.condition, carried, captured)[0]:
            results = self.once(run, self.body, carried, captured, indices)
            carried = results[:count]
            for (write, k), index in zip(writes, results[count:]):
                _note_written(write, numpy.ravel(index).tolist(), written[k])
            self._check_sizes(carried, made)
            made += 1
        return carried

    def _check_sizes(self, carried: Sequence[Any], number: int) -> None:
        """Raise ShapeError, which ends at the line of the body, where a value does not fit what is carried."""
        for name, argument, source, value in zip(self.names, self.body.arguments, self.body.results, carried):
            given = argument.outputs[0]
            if fits(numpy.shape(value), given.type_.shape):
                continue
            assert self.owner is not None
            error = ShapeError(
                f"{self.owner.name}, declared at {self.owner.where}: {name} is {describe(given)}, but iteration "
                f"{number} leaves the body with {shape_text(numpy.shape(value))}",
                "Make the body return the shape that it was given, or leave unknown sizes open in shape_invariants.",
            )
            raise end_at(error, _core.location_of(tensor_of(source)))

    def _with_rows(self, lowerer: Any, carried: list[Any]) -> list[Any]:
        """Arrays that nothing was written to get rows of zeros of the type that the body writes."""
        positions = [k for k, value in enumerate(carried) if is_unwritten(value.type_)]
        if not positions:
            return carried
        found = closure_convert(
            lambda *values: self.body.declare(lowerer, values), [value.type_ for value in carried]
        )
        types = [node.type for node in found.graph.outputs]
        return [
            lowerer.symbolic(ops.zeros(types[k].shape, dtype=types[k].dtype)) if k in positions else value
            for k, value in enumerate(carried)
        ]


class Sizes(While):
    """The sizes that a loop leaves its growing arrays with: the loop for the indices of its writes alone."""

    def compute(self, lowerer: Any, operation: Operation) -> list[Any]:
        if lowerer.depth:  # an inner loop; the outer one's arrays have their sizes
            return [ops.full((), 0, dtype=int64) for _ in self.growing]
        carried = self._carried(lowerer, operation)
        for position in self.growing:
            rows = carried[position].type_.shape[0]
            carried[position] = lowerer.symbolic(ops.full((), rows, dtype=int64))
        found = self._looped(lowerer, operation, carried)
        return [found[position] for position in self.growing]

    def is_hosted(self) -> bool:
        return super().is_hosted() or any(body.looks_at_elements() for body in self.bodies)

    def iterate(self, run: Any, *arrays: Any) -> list[Any]:
        found = super().iterate(run, *arrays)
        return [numpy.int64(len(found[position])) for position in self.growing]


def _declared(lowerer: Any, value: Any) -> Any:
    """A value as a declared one, of which the same elements are known to be written."""
    made, marks = lowerer.symbolic(value), marks_of(value)
    return made if marks is None else mark(made, marks)


def _note_written(write: Operation, indices: Sequence[int], written: set[int]) -> None:
    """Note what an iteration on the host wrote; raises InvalidArgumentError for what is written already."""
    for index in indices:
        if index in written:
            what = f"TensorArray.write: index {index} has already been written to, at {write.where}"
            raise end_at(
                InvalidArgumentError(what, "Write each element once."), _core.location_of(write.outputs[0])
            )
        written.add(index)


def _integer(number: Any) -> Any:
    """One number as an integer, or as a symbol."""
    return number.array.item() if isinstance(number, Numbers) else int(numpy.asarray(number))


def _longer(flow: Any, size: Any) -> Any:
    rows, *rest = flow.type_.shape
    if size <= rows:
        return flow
    more = ops.zeros((size - rows, *rest), dtype=flow.dtype)
    return ops.zeros((size, *rest), dtype=flow.dtype) if 0 in rest else ops.concatenate([flow, more], 0)


def _marks_or_none(elements: Any, before: Any) -> Any:
    """The marks of what a body returns; of elements that it has from elsewhere none are known to be written."""
    marks = marks_of(elements)
    return ops.full(tuple(before.shape), False, dtype=before.dtype) if marks is None else marks


def is_unwritten(type: TensorType) -> bool:
    """Whether a value is a tensor array without elements, see ``static.tensor_array``."""
    return len(type.shape) == 2 and type.shape[1] == 0


def _common_length(lengths: Sequence[Any]) -> Any:
    """The length of all arrays; raises ShapeError where they differ."""
    first, *rest = lengths
    if any(length != first for length in rest):
        raise ShapeError(f"the first axes are of sizes {sorted(set(lengths))}", "Give arrays of one length.")
    return first


class Repeat(Flow):
    """A body over the rows of arrays: inputs are carried values, then the arrays."""

    def __init__(self, operation: str, body: Body, names: Sequence[str], arrays: int, reverse: bool) -> None:
        super().__init__([body])
        self.operation, self.body, self.names, self.arrays, self.reverse = (
            operation,
            body,
            names,
            arrays,
            reverse,
        )

    def compute(self, lowerer: Any, operation: Operation) -> list[Any]:
        count = len(self.names)
        values = [
            lowerer.symbolic(lowerer.read(operation, source))
            for source in operation.sources[: count + self.arrays]
        ]
        call = LoopCall(self.operation, values[:count], self.names)
        call.xs = values[count:]
        call.descending = self.reverse
        call.limit = _common_length([row.type_.shape[0] for row in call.xs])

        def step(*given: Any) -> list[Any]:
            found = self.body.declare(lowerer, given)
            return [*call.check_carried(found[:count]), *found[count:]]

        return call.run(step)[:-1]

    def iterate(self, run: Any, *arrays: Any) -> list[Any]:
        count = len(self.names)
        carried, rows = list(arrays[:count]), arrays[count : count + self.arrays]
        captured = arrays[count + self.arrays :]
        order = range(_common_length([len(array) for array in rows]))
        self.begin_record(run, arrays)
        stacked: list[list[Any]] = []
        for k in reversed(order) if self.reverse else order:
            found = self.once(run, self.body, [*carried, *[array[k] for array in rows]], captured)
            carried = found[:count]
            stacked.append(found[count:])
        if self.reverse:
            stacked.reverse()
        return [*carried, *self._stacked(stacked)]

    def _stacked(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        if rows:
            return [stack(parts) for parts in zip(*rows)]
        types = [owner.outputs[k].type_ for owner, k in self.body.results[len(self.names) :]]
        return [
            numpy.zeros((0, *[max(n, 0) for n in type.shape if type.shape != UNKNOWN_RANK]), type.dtype.numpy)
            for type in types
        ]
