"""Declaring what a set of fetches needs: bodies run where a declared graph has no result for the values that they read.

What an operation is to the core depends on nothing but what it reads: values of its inputs, which may be fed, and
variables as the updates that it waits for left them. With these its result is kept in the declared graph. So a set of
fetches that needs an operation again finds it, in the order in which a program that declares nothing else has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

import numpy

from twofold import _core
from twofold.errors import GraphError, InvalidArgumentError, TwofoldError, describe_operand, invalid
from twofold.ir.op import REGISTRY
from twofold.ir.sizes import current_sizes
from twofold.ops.base import apply, ops
from twofold.runtime.closure_conversion import varied
from twofold.runtime.failures import describe_call
from twofold.runtime.tracing import here
from twofold.static.functions.bodies import all_inside
from twofold.static.graph.context import local
from twofold.static.graph.graph import DERIVATIVES, Operation
from twofold.static.graph.inference import (
    Numbers,
    Source,
    Unforeseen,
    call_body,
    evaluated,
    read_of,
    whole_numbers,
)
from twofold.static.graph.tensor_shape import fits, shape_text
from twofold.static.session.subgraph import Needed, Subgraph

if TYPE_CHECKING:
    from twofold.static.session.lowered_graphs import DeclaredGraph

Tensor = _core.Tensor
Look = tuple[Any, ...]
Result = tuple[dict[Look, Any], list[Any]]
"""What an operation looked at, with what it saw, and its outputs."""
_COPY = REGISTRY["copied"]
_MOST_RESULTS = 4  # of an operation in a declared graph
_LAST = 1 << 62  # number of what belongs to no operation and comes after all


def _of_operation(error: TwofoldError, operation: Operation, values: Sequence[Any] = ()) -> TwofoldError:
    """An error of a declared operation, as one of the run, with its name; it ends at the line where it ended.

    ``values`` are those of its inputs, where the error may know none of them, or what the operation made of them.
    """
    given = [value for value in values if isinstance(value, Tensor)]
    is_inner = error.call is not None and not _is_among(error.call[1], given)
    if is_inner and given and error.call is not None:
        what = f"{error.call[0]}: {', '.join(_inputs_of(operation, values))}, at {operation.where}"
    else:
        what = error.what if error.located else f"{error.what}, at {here()}"
    worded = invalid(type(error))(f"{operation.name}, declared at {operation.where}: {what}", error.fix)
    worded.located = True
    if error.located and not (is_inner and given):
        worded.__traceback__, worded.__notes__ = error.__traceback__, getattr(error, "__notes__", [])
    elif values:
        describe_call(worded, given, ())
    return worded


def _is_among(operands: Sequence[Any], values: Sequence[Any]) -> bool:
    return all(any(one is value for value in values) for one in operands if isinstance(one, Tensor))


def _inputs_of(operation: Operation, values: Sequence[Any]) -> list[str]:
    """The inputs of an operation as a run has them."""
    given = [pair for pair in zip(operation.sources, values) if isinstance(pair[1], Tensor)]
    return [
        describe_operand(repr(owner.outputs[number].name), str(value.type_), owner.where)
        for (owner, number), value in given
    ]


class Lowerer:
    """Declares a subgraph in a declared graph, on inputs by what they are values of, see ``Executable``.

    What depends on the set of fetches is looked up through ``_look``, which notes it for the operation that is declared
    now. Inside of one (in bodies of loops and choices, and where derivatives do not pass) values stand in ``inner``.
    """

    def __init__(
        self, graph: DeclaredGraph, subgraph: Subgraph, kept: Sequence[Source], inputs: Mapping[Any, Any]
    ) -> None:
        self.graph, self.subgraph, self.kept, self.inputs = graph, subgraph, kept, inputs
        position = subgraph.position
        self.fed = {source: inputs[source] for source in position.feeds}
        self.sizes = {source: self._number(source, shape) for source, shape in position.sizes.items()}
        self.before = {variable: inputs[variable] for variable in subgraph.reads}
        self.started = self.before | {variable: inputs["state", variable] for variable in subgraph.states}
        self.state: dict[Any, Any] = dict(self.started)
        self.values: dict[Operation, Sequence[Any]] = {}
        self.inner: dict[Any, Any] = {}
        self.depth = 0  # of bodies of compiled loops and choices
        self._looks: dict[Look, Any] | None = None
        every = all_inside(subgraph.operations)
        self._targets = {source for op in every if op.type in DERIVATIVES for source in op.sources}
        self._rules = {rule for op in every if op.flow is not None for rule in op.flow.rules}

    def _number(self, source: Source, shape: tuple[int, ...]) -> Any:
        """Numbers that the inputs have as sizes."""
        found = [self.inputs[source, shape, k].type_.shape[0] for k in range(prod(shape))]
        dtype = source[0].outputs[source[1]].dtype
        numbers = whole_numbers(numpy.array(found, object).reshape(shape), dtype)
        return self.graph.numbers.setdefault((source, shape), numbers)

    def run(self, differentiated: bool = False) -> tuple[Any, ...]:
        """Fetches, what observers see, new values of the variables written, and what derivatives are taken of."""
        local.in_body += 1
        try:
            with _core.GradientMode(True):  # what is declared does not depend on who runs it
                before = _core.declare_as(_LAST)
                try:
                    return tuple(self._run(differentiated))
                finally:
                    _core.declare_as(before)
        finally:
            local.in_body -= 1

    def _run(self, differentiated: bool) -> list[Any]:
        subgraph = self.subgraph
        for operation in subgraph.operations:
            self.values[operation] = self.outputs_of(operation)
        outputs = [self._fetch(source) for source in subgraph.request.fetches]
        outputs += [self._copied(source[0], self.value_of(source)) for source in self.kept]
        for operation in subgraph.observers:
            outputs += [self._copied(operation, self.read(operation, s)) for s in operation.sources]
        outputs += [self.symbolic(self.state[variable]) for variable in subgraph.written]
        for operation in subgraph.operations if differentiated else ():
            roots = operation.sources[: getattr(operation.flow, "roots", 0)]
            outputs += [self.symbolic(self.read(operation, source)) for source in roots]
        return outputs

    # Results

    def outputs_of(self, operation: Operation) -> list[Any]:
        """The values of an operation's outputs, those that are fed as they are fed."""
        fed = self._look("fed", operation)
        carried = self._look("carried", operation)
        if all(value is not None for value in fed) and not any(carried):
            return list(fed)
        made = self._declared(operation) if self._looks is not None else self._result(operation)
        for variable, value in zip(operation.updates, made):
            self.state[variable] = value
        return [own if given is None or one else given for given, own, one in zip(fed, made, carried)]

    def _result(self, operation: Operation) -> list[Any]:
        """The outputs of an operation, declared where that has not been done for what it sees."""
        results = self.graph.results.setdefault(operation, [])
        for looks, made in results:
            if all(_is_same(self._seen(*look), seen) for look, seen in looks.items()):
                return made
        self._looks = looks = {}
        before = _core.declare_as(operation.number)
        try:
            made = self._declared(operation)
        finally:
            _core.declare_as(before)
            self._looks, self.inner = None, {}
        results.append((looks, made))
        del results[:-_MOST_RESULTS]
        return made

    def _declared(self, operation: Operation) -> list[Any]:
        around = _core.declare_at(operation.location)
        try:
            made = self._compute(operation)
            if operation.gradient is not None and self._look("rule", operation):
                made = operation.pullback.attach(self, made)
            made = [self._as_fed((operation, k), value) for k, value in enumerate(made)]
            return [self._as_target((operation, k), value) for k, value in enumerate(made)]
        finally:
            _core.declare_at(around)

    def _as_fed(self, source: Source, value: Any) -> Any:
        """What is fed, with the derivatives of the computed value, where these are asked for."""
        given = self._look("given", source) if self._look("carried", source[0])[source[1]] else None
        if given is None:
            return value
        try:
            return apply("straight_through", self.symbolic(value), given)
        except TwofoldError as error:
            raise _of_operation(error, source[0]) from None

    def _as_target(self, source: Source, value: Any) -> Any:
        """A value, as one that derivatives can be taken by where some are."""
        if value is None or (isinstance(value, Tensor) and value._is_symbolic):
            return value
        return self.symbolic(value) if self._look("target", source) else value

    def _compute(self, operation: Operation) -> list[Any]:
        if operation.constant is not None:
            return [operation.constant]
        if operation.variable is not None and not operation.updates:
            return [self._look("before", operation.variable)]
        if operation.number_of is not None:
            return [self._look("given", operation)]
        if operation.branches:
            return [self.read(operation, source) for source in self._look("chosen", operation)]
        if operation.flow is not None:
            return self._flow(operation)
        values = [self._input(operation, k, source) for k, source in enumerate(operation.sources)]
        states = [self._look("state", v) for v in operation.updates] if operation.reads_state else []
        if any(isinstance(v, Numbers) and not self._is_known(operation, k) for k, v in enumerate(values)):
            try:
                return evaluated(operation, values)
            except Unforeseen:
                values = [self._as_input(operation, k, value) for k, value in enumerate(values)]
        made = self._called(operation, values, states)
        try:
            for value in made:
                if isinstance(value, Tensor) and not value._is_symbolic:
                    value._realise()  # so that nothing stays behind in the trace of the program around
        except TwofoldError:
            # constants that do not fit each other, perhaps in a branch that no run takes: it raises if it runs
            given = [
                self.symbolic(value)
                if isinstance(value, Tensor) and not self._is_known(operation, k)
                else value
                for k, value in enumerate(values)
            ]
            made = self._called(operation, given, states)
        if operation.updates:
            self._check_written(operation, made)
            if self._look("differentiates"):
                made = [apply("stop_gradient", self.symbolic(value)) for value in made]
        return made

    def _called(self, operation: Operation, values: Sequence[Any], states: Sequence[Any]) -> list[Any]:
        """What the body of an operation returns, as tensors."""
        counter = varied(self.inputs["run"]) if "run" in self.inputs else None
        _core.count_body()
        try:
            made = call_body(operation, values, counter, states)
        except TwofoldError as error:
            raise _of_operation(error, operation, values) from None
        kinds = (Tensor, Numbers)
        return [value if isinstance(value, kinds) else _core.from_array(value, False) for value in made]

    @staticmethod
    def _is_known(operation: Operation, position: int) -> bool:
        """Whether a body is given the numbers of an input."""
        return position in operation.host or position in operation.wished

    def _as_input(self, operation: Operation, position: int, value: Any) -> Any:
        """An input for a body: numbers that it need not know are a tensor."""
        known = self._is_known(operation, position)
        return value if known or not isinstance(value, Numbers) else self.symbolic(value)

    @staticmethod
    def _check_written(operation: Operation, made: Sequence[Any]) -> None:
        for variable, value, output in zip(operation.updates, made, operation.outputs):
            if not fits(value.type_.shape, output.type_.shape):
                raise InvalidArgumentError(
                    f"{operation.name} ({operation.where}): a value {value.type_.dtype.name}"
                    f"{shape_text(value.type_.shape)} does not fit variable {variable.describe()}, at {here()}",
                    "Assign a value of its shape, or use tf.assign(..., validate_shape=False).",
                )

    def _flow(self, operation: Operation) -> list[Any]:
        try:
            made: list[Any] = operation.flow.compute(self, operation)
        except TwofoldError as error:
            of_the_run = isinstance(error, GraphError) and error.located  # one of an operation inside
            raise (error if of_the_run else _of_operation(error, operation)) from None
        return made

    # What an operation sees

    def _look(self, *look: Any) -> Any:
        """What depends on the set of fetches, noted for the operation that is declared now."""
        seen = self._seen(*look)
        if self._looks is not None:
            self._looks[look] = seen
        return seen

    def _seen(self, kind: str, about: Any = None, source: Any = None) -> Any:
        match kind:
            case "fed":
                return [self.fed.get((about, k)) for k in range(len(about.outputs))]
            case "value":
                given = about in self.fed and about not in self.subgraph.carried
                return self.fed[about] if given else self.values[about[0]][about[1]]
            case "carried":
                return [(about, k) in self.subgraph.carried for k in range(len(about.outputs))]
            case "computed":
                fed = [(about, k) in self.fed for k in range(len(about.outputs))]
                return about in self.values or all(fed)
            case "before":
                return self.before.get(about)
            case "state":
                return self.state[about]
            case "given":
                return self.inputs[about]
            case "chosen":
                return self.subgraph.chosen[about]
            case "number":
                known = self.subgraph.known
                return known[about] if about in known else self.sizes.get(about)
            case "target":
                return about in self._targets
            case "rule":
                return about in self._rules
            case "differentiates":
                return bool(self._targets)
            case "update":
                return self._update(about, source)
        return self._updates(about)

    def _update(self, operation: Operation, source: Source) -> Any:
        """A variable as the updates that an operation waits for left it; None where there are none."""
        variable = read_of(source)
        if source in self.fed:
            return None
        update, past = self.subgraph.seen_after(operation, variable)
        if update is None:
            return self.started[variable] if past else None
        return self.values[update][update.updates.index(variable)]

    def _updates(self, source: Source) -> list[Any]:
        """All values of a variable that an operation may have read by now, beside the one from before the run."""
        variable = read_of(source)
        if source in self.fed:
            return []
        found = [self.started[variable]] if variable in self.started else []
        for operation, made in self.values.items():
            if variable in operation.updates:
                found.append(made[operation.updates.index(variable)])
        return found

    def _input(self, operation: Operation, position: int, source: Source) -> Any:
        if self._is_known(operation, position) and (position in operation.host or not self.depth):
            return self.number(operation, source)
        return self.read(operation, source)

    def read(self, operation: Operation, source: Source) -> Any:
        """An input of an operation; of a variable what the updates that it waits for left."""
        if read_of(source) is not None and operation.control_inputs:
            update = self._look("update", operation, source)
            if update is not None:
                return update
        return self.value_of(source)

    def reads_of(self, source: Source) -> list[Any]:
        """The value of a tensor; of a variable all that may have been read by now."""
        others = self._look("updates", source) if read_of(source) is not None else []
        found = [self.value_of(source), *others]
        return list({id(value): value for value in found if value is not None}.values())

    def value_of(self, source: Source) -> Any:
        """The value of a tensor that was computed before."""
        if source in self.inner:
            return self.inner[source]
        owner, index = source
        return self.inner[owner][index] if owner in self.inner else self._look("value", source)

    def is_computed(self, operation: Operation) -> bool:
        """Whether an operation was computed before."""
        return operation in self.inner or self._look("computed", operation)

    def is_told(self, source: Source) -> bool:
        """Whether a part of the run before this one told the numbers of a tensor."""
        return self._look("number", source) is not None

    def number(self, operation: Operation, source: Source) -> Any:
        """The numbers of an input, which a part of the run before this one may have to compute."""
        value = self._look("number", source)
        if value is None:
            value = self.value_of(source)
        if isinstance(value, Tensor) and value._is_symbolic:
            if current_sizes() is not None:
                raise Unforeseen  # it may follow from sizes, in a way that symbols do not offer
            raise Needed(operation, source)
        return value

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Inside, values may be others."""
        before, self.inner = self.inner, dict(self.inner)
        try:
            yield
        finally:
            self.inner = before

    # Values

    def symbolic(self, value: Any) -> Any:
        """``value`` as a declared one, so that it is computed when the graph runs."""
        if isinstance(value, Numbers):
            items = [self.symbolic(ops.full((), item, dtype=value.dtype)) for item in value.array.flat]
            return ops.reshape(ops.stack(items), value.shape) if value.ndim else items[0]
        return value if value._is_symbolic else _core.declare(_COPY, (), (value,))

    def _fetch(self, source: Source) -> Any:
        """A value to hand out."""
        consumer = self.subgraph.request.consumer
        if consumer is not None:
            return self._copied(source[0], self.read(consumer, source))
        variable = self.subgraph.held(source)
        return self._copied(source[0], self.value_of(source) if variable is None else self.state[variable])

    def _copied(self, owner: Operation, value: Any) -> Any:
        """``value``, as a copy where it is the memory of a variable, which is never handed out itself."""
        if isinstance(value, Numbers):
            return self.symbolic(value)
        if owner.variable is not None or owner.updates or not value._is_symbolic:
            return _core.declare(_COPY, (), (value,))
        return value


def _is_same(a: Any, b: Any) -> bool:
    """Whether what an operation looks at is what it saw."""
    if a is b:
        return True
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, numpy.ndarray) and isinstance(b, numpy.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return isinstance(a, (bool, int)) and isinstance(b, (bool, int)) and a == b
