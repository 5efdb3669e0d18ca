"""Plans for symbolic sizes: what the core evaluates for each new size of a call that it has met in other sizes.

A template is made by running the rules, the derivatives and the planner as for any call, with the numbers that vary
(integers in attributes and sizes in types) replaced by symbols, see ``twofold.ir.sizes``. Its parts are made when they
are first asked for: the result type, the gradient of each input, the program. Each part has guards of its own. What
cannot be planned so is planned for each size by itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from twofold.compiler.compile import FlatProgram, Inside, compile_graph
from twofold.compiler.linking import Trace, compile_outlined
from twofold.compiler.lower.memory import MODE
from twofold.compiler.portable_template import ProgramTemplate, fitting
from twofold.compiler.saved_plans import saved_plans
from twofold.compiler.spans import spanned
from twofold.config import config
from twofold.dtypes import BY_CODE
from twofold.ir.attribute_numbers import numbers_in, replaced, with_examples
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, graph_of_calls, inline_calls
from twofold.ir.node import Attributes
from twofold.ir.op import Op
from twofold.ir.recording import Facts, Narrowed, Recording
from twofold.ir.size_program import SizeProgram
from twofold.ir.sizes import identity, is_symbolic
from twofold.ir.types import TensorType, check_limits, tensor_type
from twofold.ops.base import broadcast
from twofold.transforms.derived import PULLBACK, Traits, pullbacks_of, stable_graph, traits_of
from twofold.transforms.outline import Entry
from twofold.transforms.vmap import batch_graph, with_samples


class Parts(NamedTuple):
    """A call, or a gradient of one, over the symbols of a recording.

    ``made_for(values, facts)`` makes it for another example, with more facts taken for granted.
    """

    recording: Recording
    op: Op
    attrs: Attributes
    types: tuple[TensorType, ...]
    graph: Graph
    made_for: Callable[[Sequence[int], Facts], Parts]

    @property
    def output(self) -> TensorType:
        """The result type."""
        return self.graph.outputs[0].type


class Template:
    """What the core holds of a call over symbols: its parts, which are made when somebody asks, and its key on disk.

    ``make`` gives the parts and ``known``: how many guards of their recording hold wherever the template is used, as
    the core has checked them.
    """

    def __init__(self, key: bytes | None, make: Callable[[], tuple[Parts, int]]) -> None:
        self.key = key
        self._make = make
        self._parts: Parts | None = None
        self._known = 0

    @property
    def parts(self) -> Parts:
        """The call."""
        if self._parts is None:
            self._parts, self._known = self._make()
        return self._parts

    @property
    def graph(self) -> Graph:
        """What the call computes."""
        return self.parts.graph

    @property
    def known(self) -> int:
        """How many guards of the recording hold."""
        assert self.parts
        return self._known

    def take(self, parts: Parts) -> None:
        """These are the parts, and all guards that their recording has met are checked before the template is used."""
        self._parts, self._known = parts, len(parts.recording.guards)

    def example(self, values: Sequence[int], facts: Facts) -> tuple[Parts, int]:
        """The call for other numbers and with more facts, and how many of its guards hold."""
        same = values == self.parts.recording.values and facts == Facts()
        return (self.parts, self.known) if same else (self.parts.made_for(values, facts), 0)

    def part(self, *names: Any) -> bytes | None:
        """The key of a plan that belongs to this template."""
        return saved_plans().key(self.key, *names) if self.key else None


def attempt(make: Callable[[], Any]) -> Any:
    """What ``make`` gives; None where a rule or a plan needs numbers that are fixed, or refuses these."""
    try:
        return make()
    except MemoryError:
        raise
    except Exception as error:
        if "templates" in config.log:
            from twofold.compiler.log import log

            log("templates", f"no plan for symbolic sizes: {error!r}")
        return None


@spanned("type rule for all sizes")
def template_of(op: Op, attrs: Attributes, types: tuple[TensorType, ...], varies: tuple[bool, ...]) -> Any:
    """The result of a call for symbols in place of the numbers that vary: what the core takes, or None."""
    values = [*numbers_in(attrs), *(size for type in types for size in type.shape)]
    given = Facts(frozenset(k for k, own in enumerate(varies) if not own))

    def declared(facts: Facts) -> tuple[Parts, int, Traits]:
        made = _declared(op, attrs, types, facts, values)
        traits = traits_of(op, made.graph)
        if (
            traits.movement and traits.movement.joins
        ):  # of rows in any numbers, which two operands may share by chance
            made = _declared(op, attrs, types, facts, values, apart=True)
            traits = traits_of(op, made.graph)
        return made, len(made.recording.guards), traits

    fixed = iter([None if own else value for value, own in zip(values, varies)])
    known = (
        replaced(attrs, fixed),
        tuple([(type.dtype, tuple([next(fixed) for _ in type.shape]), type.weak) for type in types]),
    )
    key = saved_plans().key("template", op, *known)

    def template_for(made_for: Sequence[int]) -> Template:
        def make() -> tuple[Parts, int]:
            parts, guards, _ = narrowing(declared, given)
            return parts, guards if made_for == values else 0

        # its own plans count on the guards that were met for these numbers
        return Template(saved_plans().key(key, tuple(made_for)) if key else None, make)

    template = template_for(values)

    def make() -> tuple[Any, ...]:
        made, _, traits = narrowing(declared, given)
        own, numbers = _apart(traits)
        program = SizeProgram(made.recording, [*made.output.shape, *numbers], made.recording.guards).encoded()
        template.take(made)
        return program, values, made.output.dtype.code, getattr(op, "differentiable", True), *own

    found = fitting(key, values, lambda: attempt(make), _same, _same)
    if found is None:
        return None
    program, made_for, *rest = found
    return template if made_for == values else template_for(made_for), program, *rest


def _same(plan: tuple[Any, ...]) -> tuple[Any, ...]:
    """A plan that is kept as it is."""
    return plan


def _apart(traits: Traits) -> tuple[Traits, tuple[int, ...]]:
    """Traits as the core takes them, without the numbers of a movement, and these."""
    moved = traits.movement
    if moved is None:
        return traits, ()
    return traits._replace(movement=moved._replace(offset=0, step=0)), (moved.offset, moved.step)


def narrowing(make: Callable[[Facts], Any], facts: Facts) -> Any:
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
    apart: bool = False,
) -> Parts:
    """A call over symbols in place of those of its numbers that are not fixed, with ``values`` as their example.

    See ``Recording`` for ``apart``.
    """
    given = len(numbers_in(attrs))
    lowest = [None] * given + [0] * (len(values) - given)
    recording = Recording(values, lowest, facts, strict=True, apart=apart)
    symbols = iter(recording.inputs)
    own_attrs = replaced(attrs, symbols)
    own_types = tuple(
        [tensor_type(type.dtype, tuple([next(symbols) for _ in type.shape]), type.weak) for type in types]
    )
    graph = stable_graph(op, own_attrs, own_types)
    check_limits(graph.outputs[0].type)
    again = lambda values, more: _declared(op, attrs, types, facts.also(more), values, apart)
    return Parts(recording, op, own_attrs, own_types, graph, again)


class _Gradient(NamedTuple):
    """A gradient of a call over symbols; ``head`` and ``tail`` are what the core takes around its template."""

    parts: Parts
    head: tuple[Any, ...]
    tail: tuple[Any, ...]
    numbers: list[int]


@spanned("gradient rule for all sizes")
def template_gradients(template: Template, wanted: tuple[int, ...], values: tuple[int, ...]) -> Any:
    """Gradients of the inputs ``wanted`` as calls, for ``values`` and all that meet its guards: what the core takes."""
    key = template.part("gradients", wanted)

    @functools.cache
    def differentiated() -> tuple[Recording, dict[int, _Gradient], int]:
        def make(facts: Facts) -> Any:
            whole, known = template.example(values, facts)
            return whole.recording, _differentiated(whole, wanted), known

        return narrowing(make, Facts())

    templates: dict[int, Template] = {}

    def piece(index: int, made_for: tuple[int, ...]) -> Template:
        def make() -> tuple[Parts, int]:
            _, gradients, known = differentiated()
            return gradients[index].parts, known

        # its own plans count on the guards of the gradients that it is a piece of
        templates[index] = Template(saved_plans().key(key, made_for, index) if key else None, make)
        return templates[index]

    def made() -> tuple[Any, ...]:
        recording, gradients, known = differentiated()
        numbers = [number for one in gradients.values() for number in one.numbers]
        program = SizeProgram(recording, numbers, recording.guards[known:])
        for index, one in gradients.items():
            piece(index, values).take(one.parts)
        heads = [one.head for one in gradients.values()]
        return program.encoded(), heads, [one.tail for one in gradients.values()], values

    found = fitting(key, values, lambda: attempt(made), _same, _same)
    if found is None:
        return None
    program, heads, tails, made_for = found
    return program, [
        (head[0], PULLBACK, *head[1:], templates.get(head[0]) or piece(head[0], made_for), *tail)
        for head, tail in zip(heads, tails)
    ]


def _differentiated(whole: Parts, wanted: tuple[int, ...]) -> dict[int, _Gradient]:
    recording = whole.recording
    recording.strict = True
    pieces = pullbacks_of(whole.op, whole.attrs, whole.types, wanted, whole.graph)
    found = {}
    for index, one in pieces.items():
        if isinstance(one, NotImplementedError):
            raise one

        def again(values: Sequence[int], more: Facts, index: int = index) -> Parts:
            return _differentiated(whole.made_for(values, more), wanted)[index].parts

        made = Parts(recording, PULLBACK, one.attrs, one.graph.input_types, one.graph, again)
        traits, moved = _apart(traits_of(PULLBACK, made.graph))
        numbers = [*numbers_in(made.attrs), *made.output.shape, *moved]
        head = index, with_examples(made.attrs), made.output.dtype.code, len(numbers), one.slots
        found[index] = _Gradient(made, head, (*traits, one.form), numbers)
    return found


@spanned("plan operation for all sizes")
def template_program(template: Template, values: tuple[int, ...]) -> Any:
    """The unfused program, planned for ``values`` and all that meet its guards: what the core takes, or None."""

    def make(facts: Facts) -> ProgramTemplate:
        parts, known = template.example(values, facts)
        return planned(parts.recording, partial(compile_graph, parts.graph), known)

    found = _fitting_program(template.part("program"), values, make)
    return None if found is None else found.encoded


def _fitting_program(
    key: bytes | None, values: Sequence[int], make: Callable[[Facts], ProgramTemplate]
) -> ProgramTemplate | None:
    """A program for ``values`` that was kept, or is made now."""
    made: Callable[[], ProgramTemplate | None] = lambda: attempt(lambda: narrowing(make, Facts()))
    return fitting(key, values, made, ProgramTemplate.portable, ProgramTemplate.found)


Step = tuple[Any, tuple[Any, ...], int, int, "tuple[Any, ...] | None"]
"""Of a program: kernel, buffers, number of parameters, label, and what runs in place of a kernel.

That is (programs, labels, form), or what gives a function of the host for numbers, and how many.
"""


def planned(recording: Recording, compiled: Callable[[], FlatProgram], known: int) -> ProgramTemplate:
    """A program whose numbers are expressions of symbols.

    Guards but the first ``known`` are checked. Those that other parts of the recording have met since are among them,
    as what they computed may have been found again here.
    """
    recording.strict = False  # plans keep the bits, whatever they take for equal
    program = compiled()
    results: list[Any] = []
    steps = _steps(program, results)
    sizes = SizeProgram(recording, results, recording.guards[known:]).encoded()
    return ProgramTemplate.of((sizes, steps), program)


def _steps(program: FlatProgram, results: list[Any]) -> tuple[Any, ...]:
    """What the core takes of a program but for its numbers, which are put behind ``results`` in its order."""
    steps: list[Step] = []
    for address, buffers, params, work, grain, label, host in program.instructions:
        results += [*params, work, grain]
        inside: Any = None
        if isinstance(host, Inside):
            inside = [_steps(part, results) for part in host.programs], host.labels, host.form
            results += host.numbers
        elif host is not None:
            maker, parameters = host.with_parameters()
            inside = maker, len(parameters)
            results += parameters
        steps.append((address, buffers, len(params), label, inside))
    results += [*(type.nbytes for type in program.output_types), *program.buffer_sizes]
    if any(is_symbolic(part) for step in steps for part in step[:4]):
        raise NotImplementedError("a step depends on a size")
    counts = len(program.output_types), len(program.buffer_sizes)
    return steps, *counts, program.donations, program.further_work, program.tells_finite


def template_trace(described: tuple[Any, ...], varies: tuple[bool, ...]) -> ProgramTemplate | None:
    """The program of a trace for symbols in place of the numbers that vary, see ``planned``; None if it has none."""
    written, entries, outputs, steps = described
    numbers = [size for _, shape, _ in written for size in shape]
    lowest: list[int | None] = [0] * len(numbers)
    for entry in entries:
        own = numbers_in(entry[3])
        numbers += own
        lowest += [None] * len(own)
    free_numbers = [value for value, own in zip(numbers, varies, strict=True) if own]
    free_lowest = [low for low, own in zip(lowest, varies, strict=True) if own]

    fixed = iter([None if own else value for value, own in zip(numbers, varies)])
    leaves = tuple([(code, tuple([next(fixed) for _ in shape]), weak) for code, shape, weak in written])
    calls = tuple([(op, replaced(attrs, fixed), tuple(refs)) for _, refs, op, attrs, _, _ in entries])

    def make(facts: Facts) -> ProgramTemplate:
        recording = Recording(free_numbers, free_lowest, facts, strict=True)
        free = iter(recording.inputs)
        given = iter([next(free) if own else value for value, own in zip(numbers, varies)])
        return planned(recording, partial(compile_outlined, _declared_trace(described, given)), 0)

    key = saved_plans().key("trace for all sizes", leaves, calls, tuple(outputs), tuple(steps), MODE.on)
    return _fitting_program(key, free_numbers, make)


def _declared_trace(described: tuple[Any, ...], numbers: Iterator[Any]) -> Trace:
    """A trace over symbols: with ``numbers`` as those of its leaves and attributes."""
    written, described_entries, outputs, steps = described
    types = [
        tensor_type(BY_CODE[code], tuple([next(numbers) for _ in shape]), weak)
        for code, shape, weak in written
    ]
    kinds: dict[Any, int] = {}
    graphs: list[Graph] = []
    entries: list[Entry] = []
    for _, refs, op, attrs, _, _ in described_entries:
        own = replaced(attrs, numbers)
        given = [graphs[entries[ref].kind].outputs[0].type if ref >= 0 else types[~ref] for ref in refs]
        key = op, id(attrs), identity(own), tuple(given)  # 1 and True are equal
        kind = kinds.setdefault(key, len(graphs))
        if kind == len(graphs):
            graphs.append(stable_graph(op, own, given))
        entries.append(Entry(kind, refs))
    return Trace(types, graphs, entries, outputs, symbolic=True, steps=steps)


def template_batch(
    op: Op, attrs: Attributes, types: Sequence[TensorType], flags: Sequence[bool], count: int
) -> ProgramTemplate | None:
    """A call for any number of samples along a leading axis of the operands that ``flags`` name, see ``planned``.

    None if it has no such program.
    """
    key = saved_plans().key("batch", op, attrs, tuple(types), tuple(flags))
    return _batched(key, lambda: stable_graph(op, attrs, types), types, flags, count)


Member = tuple[Op, Attributes, Sequence[TensorType], list[int]]
"""A call in a body: what it computes, and its operands: an earlier member, or ``~k`` for input ``k`` of the body."""


def template_body(
    members: Sequence[Member],
    outputs: list[int],
    types: Sequence[TensorType],
    flags: Sequence[bool],
    count: int,
) -> ProgramTemplate | None:
    """As ``template_batch``, of calls on each other's results, of which ``outputs`` are wanted."""

    def graph() -> Graph:
        calls = [(refs, stable_graph(op, attrs, own)) for op, attrs, own, refs in members]
        return inline_calls(graph_of_calls(types, calls, outputs))

    calls = tuple([(op, attrs, tuple(own), tuple(refs)) for op, attrs, own, refs in members])
    key = saved_plans().key("batch", calls, tuple(outputs), tuple(types), tuple(flags))
    return _batched(key, graph, types, flags, count)


def _batched(
    key: bytes | None,
    graph: Callable[[], Graph],
    types: Sequence[TensorType],
    flags: Sequence[bool],
    count: int,
) -> ProgramTemplate | None:
    def make(facts: Facts) -> ProgramTemplate:
        whole = graph()
        if any(node.op.kind in ("program", "host") for node in whole.nodes()):
            raise NotImplementedError("programs inside and functions of the host are run one by one")
        recording = Recording([count], [2], facts, strict=True)
        (size,) = recording.inputs
        own = [with_samples(type, size) if flag else type for type, flag in zip(types, flags, strict=True)]
        inputs = [input_node(k, type) for k, type in enumerate(own)]
        outputs = [
            # what reads no operand that has the axis is the same for all
            output if batched else broadcast(output, (size, *output.shape))
            for output, batched in batch_graph(whole, inputs, flags)
        ]
        return planned(recording, partial(compile_graph, Graph(own, outputs)), 0)

    return _fitting_program(key, [count], make)
