"""Plans for symbolic sizes: what the core evaluates for each new size of a call that it has met in other sizes.

A template is made by running the rules, the derivatives and the planner as for any call, with the numbers that vary
(integers in attributes and sizes in types) replaced by symbols, see ``twofold.ir.sizes``. Its parts are made when they
are first asked for: the result type, the gradient of each input, the program. Each part has guards of its own. What
cannot be planned so is planned for each size by itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from twofold.compiler.portable_template import ProgramTemplate, fitting
from twofold.compiler.saved_plans import key_at_once, saved_plans
from twofold.compiler.spans import spanned
from twofold.config import config
from twofold.ir.attribute_numbers import numbers_in, replace_numbers, with_examples
from twofold.ir.graph import Graph
from twofold.ir.node import Attributes
from twofold.ir.op import Op
from twofold.ir.recording import Facts, Recording, Restart
from twofold.ir.size_program import SizeProgram
from twofold.ir.types import TensorType, check_limits, tensor_type
from twofold.transforms.derived import PULLBACK, Traits, pullbacks_of, stable_graph, traits_of


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

    The plans that belong to it check all that was decided for them, so that templates of one call share them, whatever
    sizes each was made for.
    """

    def __init__(self, key: bytes | None, make: Callable[[], Parts], made_for: tuple[int, ...]) -> None:
        self.key = key
        self.made_for = made_for  # the numbers with which this template was found to be as it is
        self._make = make
        self._parts: Parts | None = None

    @property
    def parts(self) -> Parts:
        """The call."""
        if self._parts is None:
            self._parts = self._make()
        return self._parts

    @property
    def graph(self) -> Graph:
        """What the call computes."""
        return self.parts.graph

    def example(self, values: Sequence[int], facts: Facts) -> Parts:
        """The call for other numbers and with more facts."""
        same = values == self.parts.recording.values and facts == Facts()
        return self.parts if same else self.parts.made_for(values, facts)

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
def template_of(
    op: Op,
    attrs: Attributes,
    types: tuple[TensorType, ...],
    varies: tuple[bool, ...],
    at_once: bool = False,
    kept: bool = False,
) -> Any:
    """The result of a call for symbols in place of the numbers that vary: what the core takes, or None.

    ``at_once`` where these vary in any call, not because they were seen to. Where it is to be ``kept``, none is made.
    """
    values = [*numbers_in(attrs), *(size for type in types for size in type.shape)]
    given = Facts(frozenset(k for k, own in enumerate(varies) if not own))

    def declared(facts: Facts) -> tuple[Parts, Traits]:
        made = _declared(op, attrs, types, facts, values)
        traits = traits_of(op, made.graph)
        if (
            traits.movement and traits.movement.joins
        ):  # of rows in any numbers, which two operands may share by chance
            made = _declared(op, attrs, types, facts, values, distinct=True)
            traits = traits_of(op, made.graph)
        return made, traits

    fixed = iter([None if own else value for value, own in zip(values, varies)])
    known = (
        replace_numbers(attrs, fixed),
        tuple([(type.dtype, tuple([next(fixed) for _ in type.shape]), type.weak) for type in types]),
    )
    key = key_at_once(op, attrs, types, varies) if at_once else saved_plans().key("template", op, *known)

    made: list[Parts] = []

    def make() -> tuple[Any, ...]:
        parts, traits = narrowing(declared, given)
        own, numbers = _apart(traits)
        program = SizeProgram(
            parts.recording, [*parts.output.shape, *numbers], parts.recording.guards
        ).encoded()
        made.append(parts)
        return program, tuple(values), parts.output.dtype.code, getattr(op, "differentiable", True), *own

    found = fitting(key, values, None if kept else lambda: attempt(make), _same, _same)
    if found is None:
        return None
    program, made_for, *rest = found
    template = Template(key, lambda: made[0] if made else narrowing(declared, given)[0], made_for)
    return template, program, *rest


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
        except Restart as narrowed:
            facts = facts.also(narrowed.facts)


def _declared(
    op: Op,
    attrs: Attributes,
    types: Sequence[TensorType],
    facts: Facts,
    values: Sequence[int],
    distinct: bool = False,
) -> Parts:
    """A call over symbols in place of those of its numbers that are not fixed, with ``values`` as their example.

    See ``Recording`` for ``distinct``.
    """
    given = len(numbers_in(attrs))
    lowest = [None] * given + [0] * (len(values) - given)
    recording = Recording(values, lowest, facts, strict=True, distinct=distinct)
    symbols = iter(recording.inputs)
    own_attrs = replace_numbers(attrs, symbols)
    own_types = tuple(
        [tensor_type(type.dtype, tuple([next(symbols) for _ in type.shape]), type.weak) for type in types]
    )
    graph = stable_graph(op, own_attrs, own_types)
    check_limits(graph.outputs[0].type)
    again = lambda values, more: _declared(op, attrs, types, facts.also(more), values, distinct)
    return Parts(recording, op, own_attrs, own_types, graph, again)


class _Gradient(NamedTuple):
    """A gradient of a call over symbols; ``head`` and ``tail`` are what the core takes around its template."""

    parts: Parts
    head: tuple[Any, ...]
    tail: tuple[Any, ...]
    numbers: list[int]


@spanned("gradient rule for all sizes")
def template_gradients(
    template: Template, wanted: tuple[int, ...], values: tuple[int, ...], kept: bool = False
) -> Any:
    """Gradients of the inputs ``wanted`` as calls, for ``values`` and all that meet its guards: what the core takes.

    Where they are to be ``kept``, none are made, and None is returned.
    """
    key = template.part("gradients", wanted)

    @functools.cache
    def differentiated() -> tuple[Recording, dict[int, _Gradient]]:
        def make(facts: Facts) -> Any:
            whole = template.example(values, facts)
            return whole.recording, _differentiated(whole, wanted)

        return narrowing(make, Facts())

    def made() -> tuple[Any, ...]:
        recording, gradients = differentiated()
        numbers = [number for one in gradients.values() for number in one.numbers]
        program = SizeProgram(recording, numbers, recording.guards)
        heads = [one.head for one in gradients.values()]
        return program.encoded(), heads, [one.tail for one in gradients.values()], values

    found = fitting(key, values, None if kept else lambda: attempt(made), _same, _same)
    if found is None:
        return None
    program, heads, tails, made_for = found

    def piece(index: int) -> Template:
        own = saved_plans().key(key, index) if key else None
        return Template(own, lambda: differentiated()[1][index].parts, made_for)

    return program, [
        (head[0], PULLBACK, *head[1:], piece(head[0]), *tail) for head, tail in zip(heads, tails)
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
def template_program(template: Template, values: tuple[int, ...], kept: bool = False) -> Any:
    """The unfused program, planned for ``values`` and all that meet its guards: what the core takes, or None.

    Where it is to be ``kept``, none is made.
    """

    def make(facts: Facts) -> ProgramTemplate:
        from twofold.compiler.compile import compile_graph
        from twofold.compiler.planned import planned

        parts = template.example(values, facts)
        return planned(parts.recording, partial(compile_graph, parts.graph))

    found = fitting_program(template.part("program"), values, None if kept else make)
    return None if found is None else found.encoded


def fitting_program(
    key: bytes | None,
    values: Sequence[int],
    make: Callable[[Facts], ProgramTemplate] | None,
    elsewhere: Callable[..., ProgramTemplate | None] | None = None,
) -> ProgramTemplate | None:
    """A program for ``values`` that was kept, or is made now if there is ``make``.

    ``elsewhere(otherwise=make)`` has it made in another process where that can be.
    """
    made = partial(attempt, partial(narrowing, make, Facts())) if make else None
    if elsewhere is not None:
        made = partial(elsewhere, otherwise=made)
    return fitting(key, values, made, ProgramTemplate.portable, ProgramTemplate.found)
