"""Plans for symbolic sizes: what the core evaluates for each new size of a call that it has met in other sizes.

A template is made by running the rules, the derivatives and the planner as for any call, with the numbers that vary
(integers in attributes and sizes in types) replaced by symbols, see ``twofold.ir.sizes``. Its parts are made when they
are first asked for: the result type, the gradient of each input, the program. Each part has guards of its own. What
cannot be planned so is planned for each size by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from twofold.autodiff.batch import batch_graph, with_samples
from twofold.autodiff.factors import Form
from twofold.config import config
from twofold.dtypes import BY_CODE
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.node import Attributes, Node
from twofold.ir.op import Op
from twofold.ir.recording import Facts, Narrowed, Recording
from twofold.ir.size_program import SizeProgram
from twofold.ir.sizes import Symbol, identity, is_symbolic
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import broadcast
from twofold.runtime.compile import CompiledProgram, compile_graph
from twofold.runtime.derived import PULLBACK, pullbacks_of, stable_graph
from twofold.runtime.linking import inlined
from twofold.runtime.spans import spanned
from twofold.runtime.tracing import check_limits, checks_values, worth_delaying

_WIDEST = 63


class Template:
    """A call, or a gradient of one, over the symbols of a recording.

    ``made_for(values, facts)`` makes it for another example, with more facts taken for granted.
    """

    def __init__(
        self,
        recording: Recording,
        op: Op,
        attrs: Attributes,
        types: Sequence[TensorType],
        graph: Graph,
        made_for: Callable[[Sequence[int], Facts], Template],
    ) -> None:
        self.recording = recording
        self.op = op
        self.attrs = attrs
        self.types = tuple(types)
        self.graph = graph
        self.made_for = made_for
        self.known = len(recording.guards)  # where the template is used, the core has checked that these hold

    @property
    def output(self) -> TensorType:
        """The result type."""
        return self.graph.outputs[0].type

    def flags(self) -> tuple[bool, bool]:
        """Whether the result's calls are kept in its place, and whether it is computed unread."""
        return worth_delaying(self.graph), checks_values(self.op, self.graph)


def _is_number(value: Any) -> bool:
    """Whether the core counts a value among the numbers of attributes."""
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= _WIDEST


def _rebuilt(value: tuple[Any, ...], items: list[Any]) -> tuple[Any, ...]:
    """A tuple, or a named tuple, of the kind of ``value``."""
    return tuple(items) if type(value) is tuple else type(value)(*items)


def replaced(value: Any, numbers: Iterator[Any]) -> Any:
    """Attributes with their integers replaced in order."""
    if isinstance(value, tuple):
        return _rebuilt(value, [replaced(item, numbers) for item in value])
    return next(numbers) if _is_number(value) else value


def numbers_in(value: Any) -> list[Any]:
    """The integers and symbols of attributes in order."""
    if isinstance(value, tuple):
        return [number for item in value for number in numbers_in(item)]
    return [value] if _is_number(value) or isinstance(value, Symbol) else []


def with_examples(value: Any) -> Any:
    """Attributes with the example of each symbol in its place."""
    if isinstance(value, tuple):
        return _rebuilt(value, [with_examples(item) for item in value])
    return value.example if isinstance(value, Symbol) else value


def _attempt(make: Callable[[], Any]) -> Any:
    """What ``make`` gives; None where a rule or a plan needs numbers that are fixed, or refuses these."""
    try:
        return make()
    except MemoryError:
        raise
    except Exception as error:
        if "templates" in config.log:
            from twofold.runtime.compile_log import log

            log("templates", f"no plan for symbolic sizes: {error!r}")
        return None


@spanned("type rule for all sizes")
def template_of(op: Op, attrs: Attributes, types: tuple[TensorType, ...], varies: tuple[bool, ...]) -> Any:
    """The result of a call for symbols in place of the numbers that vary: what the core takes, or None."""

    def make() -> Any:
        values = [*numbers_in(attrs), *(size for type in types for size in type.shape)]
        given = Facts(frozenset(k for k, own in enumerate(varies) if not own))
        made = _narrowing(lambda facts: _declared(op, attrs, types, facts, values), given)
        flags = made.flags()
        program = SizeProgram(made.recording, made.output.shape, made.recording.guards).encoded()
        made.known = len(made.recording.guards)
        return made, program, made.output.dtype.code, getattr(op, "differentiable", True), *flags

    return _attempt(make)


def _narrowing(make: Callable[[Facts], Any], facts: Facts) -> Any:
    """What ``make`` gives, with as many more inputs fixed as it takes."""
    while True:
        try:
            return make(facts)
        except Narrowed as narrowed:
            facts = facts.also(narrowed.facts)


def _declared(
    op: Op,
    attrs: Attributes,
    types: Sequence[TensorType],
    facts: Facts,
    values: Sequence[int],
) -> Template:
    """A call over symbols in place of those of its numbers that are not fixed, with ``values`` as their example."""
    given = len(numbers_in(attrs))
    lowest = [None] * given + [0] * (len(values) - given)
    recording = Recording(values, lowest, facts, strict=True)
    symbols = iter(recording.inputs)
    own_attrs = replaced(attrs, symbols)
    own_types = [
        tensor_type(type.dtype, tuple([next(symbols) for _ in type.shape]), type.weak) for type in types
    ]
    graph = stable_graph(op, own_attrs, own_types)
    check_limits(graph.outputs[0].type)
    again = lambda values, more: _declared(op, attrs, types, facts.also(more), values)
    return Template(recording, op, own_attrs, own_types, graph, again)


@spanned("gradient rule for all sizes")
def template_gradients(template: Template, wanted: tuple[int, ...], values: tuple[int, ...]) -> Any:
    """Gradients of the inputs ``wanted`` as calls, for ``values`` and all that meet its guards: what the core takes."""

    def make(facts: Facts) -> Any:
        same = values == template.recording.values and facts == Facts()
        whole = template if same else template.made_for(values, facts)
        recording, known = whole.recording, template.known if same else 0
        pieces, results = [], []
        for index, (made, slots, form) in _differentiated(whole, wanted).items():
            numbers = [*numbers_in(made.attrs), *made.output.shape]
            attrs = with_examples(made.attrs)
            head = index, PULLBACK, attrs, made.output.dtype.code, len(numbers)
            pieces.append((*head, slots, made, *made.flags(), form))
            results += numbers
        program = SizeProgram(recording, results, recording.guards[known:]).encoded()
        for piece in pieces:
            piece[6].known = len(recording.guards)
        return program, pieces

    return _attempt(lambda: _narrowing(make, Facts()))


def _differentiated(
    template: Template, wanted: tuple[int, ...]
) -> dict[int, tuple[Template, tuple[int, ...], Form]]:
    recording = template.recording
    recording.strict = True
    pieces = pullbacks_of(template.op, template.attrs, template.types, wanted, template.graph)
    found = {}
    for index, one in pieces.items():
        if isinstance(one, NotImplementedError):
            raise one

        def again(values: Sequence[int], more: Facts, index: int = index) -> Template:
            return _differentiated(template.made_for(values, more), wanted)[index][0]

        types = one.graph.input_types
        made = Template(recording, PULLBACK, one.attrs, types, one.graph, again)
        found[index] = made, one.slots, one.form
    return found


@spanned("plan operation for all sizes")
def template_program(template: Template, values: tuple[int, ...]) -> Any:
    """The first-sight program, planned for ``values`` and all that meet its guards: what the core takes, or None."""

    def make(facts: Facts) -> Any:
        same = values == template.recording.values and facts == Facts()
        made = template if same else template.made_for(values, facts)
        return planned(made.recording, made.graph, made.known if same else 0)[0]

    return _attempt(lambda: _narrowing(make, Facts()))


def planned(recording: Recording, graph: Graph, known: int) -> tuple[Any, CompiledProgram]:
    """A graph over symbols as a program whose numbers are expressions: what the core takes, and what it was made from.

    Guards but the first ``known`` are checked. Those that other parts of the recording have met since are among them,
    as what they computed may have been found again here.
    """
    recording.strict = False  # plans keep the bits, whatever they take for equal
    program: CompiledProgram = compile_graph(graph)
    if any(instruction[-1] is not None for instruction in program.instructions):
        raise NotImplementedError("host functions and programs inside are planned for each size")
    steps, results = [], []
    for address, buffers, params, work, grain, label, _ in program.instructions:
        steps.append((address, buffers, len(params), label))
        results += [*params, work, grain]
    results += [*(type.nbytes for type in program.output_types), *program.buffer_sizes]
    if any(is_symbolic(part) for step in steps for part in step):
        raise NotImplementedError("a step depends on a size")
    sizes = SizeProgram(recording, results, recording.guards[known:]).encoded()
    return (sizes, steps, len(program.output_types), len(program.buffer_sizes), program.donations), program


def template_trace(described: tuple[Any, ...], varies: tuple[bool, ...]) -> Any:
    """The program of a trace for symbols in place of the numbers that vary, see ``planned``; None if it has none."""
    written, entries, _ = described
    numbers = [size for _, shape, _ in written for size in shape]
    lowest: list[int | None] = [0] * len(numbers)
    for entry in entries:
        own = numbers_in(entry[3])
        numbers += own
        lowest += [None] * len(own)
    free_numbers = [value for value, own in zip(numbers, varies, strict=True) if own]
    free_lowest = [low for low, own in zip(lowest, varies, strict=True) if own]

    def make(facts: Facts) -> Any:
        recording = Recording(free_numbers, free_lowest, facts, strict=True)
        free = iter(recording.inputs)
        given = iter([next(free) if own else value for value, own in zip(numbers, varies)])
        return planned(recording, _declared_trace(described, given), 0)

    return _attempt(lambda: _narrowing(make, Facts()))


def _declared_trace(described: tuple[Any, ...], numbers: Iterator[Any]) -> Graph:
    """All calls of a trace as one closed primitive graph, with ``numbers`` as those of its leaves and attributes."""
    written, entries, outputs = described
    types = [
        tensor_type(BY_CODE[code], tuple([next(numbers) for _ in shape]), weak)
        for code, shape, weak in written
    ]
    graphs: dict[Any, Graph] = {}

    def call(op: Op, attrs: Attributes, own: Attributes, arguments: list[Node]) -> Sequence[Node]:
        given = [node.type for node in arguments]
        key = op, id(attrs), identity(own), tuple(given)  # 1 and True are equal
        if key not in graphs:
            graphs[key] = stable_graph(op, own, given)
        return graphs[key].inline(arguments)

    calls = [
        (refs, partial(call, op, attrs, replaced(attrs, numbers))) for _, refs, op, attrs, _, _ in entries
    ]
    return inlined(types, calls, outputs)


def template_batch(
    op: Op, attrs: Attributes, types: Sequence[TensorType], flags: Sequence[bool], count: int
) -> tuple[Any, CompiledProgram] | None:
    """A call for any number of samples along a leading axis of the operands that ``flags`` name, see ``planned``.

    None if it has no such program.
    """
    graph = stable_graph(op, attrs, types)

    def make(facts: Facts) -> Any:
        recording = Recording([count], [2], facts, strict=True)
        (size,) = recording.inputs
        own = [with_samples(type, size) if flag else type for type, flag in zip(types, flags, strict=True)]
        inputs = [input_node(k, type) for k, type in enumerate(own)]
        ((output, batched),) = batch_graph(graph, inputs, flags)
        if not batched:  # it reads no operand that has the axis, only its type
            output = broadcast(output, (size, *output.shape))
        return planned(recording, Graph(own, [output]), 0)

    found: tuple[Any, CompiledProgram] | None = _attempt(lambda: _narrowing(make, Facts()))
    return found
