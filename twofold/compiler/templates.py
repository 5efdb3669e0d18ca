"""Templates: plans for symbolic sizes, which the core evaluates when a known call comes with new sizes.

A template is made by running type rules, gradient rules and the planner with symbols (see ``twofold.ir.sizes``) in
place of the integers that vary: integers in attributes, and sizes in types. Its plans are made on demand: the result
type, the gradient of each input, the program. Each has its own guards. Calls that cannot be planned symbolically are
planned for each size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from twofold.compiler.portable_template import ProgramTemplate, matching_plan
from twofold.compiler.saved_plans import key_at_once, saved_plans
from twofold.compiler.spans import spanned
from twofold.config import config
from twofold.ir.attribute_numbers import constants, numbers_in, replace_numbers, with_examples
from twofold.ir.graph import Graph
from twofold.ir.node import Attributes
from twofold.ir.op import Op
from twofold.ir.recording import Facts, Recording, Restart
from twofold.ir.size_program import SizeProgram
from twofold.ir.types import TensorType, check_limits, tensor_type
from twofold.transforms.derived import PULLBACK, Traits, pullbacks_of, stable_graph, traits_of


class SymbolicCall(NamedTuple):
    """A call, or a gradient of one, over the symbols of a recording.

    ``made_for(values, facts)`` makes it for other example values and under more assumptions.
    """

    recording: Recording
    op: Op
    attrs: Attributes
    types: tuple[TensorType, ...]
    graph: Graph
    made_for: Callable[[Sequence[int], Facts], SymbolicCall]

    @property
    def output(self) -> TensorType:
        """The result type."""
        return self.graph.outputs[0].type


class Template:
    """A call over symbols, which is made on demand, and the key of its plans in the disk cache.

    Its plans check all guards of their recordings, so templates of one call share them, whatever sizes each was made
    for.

    Attributes:
        key: The key of its result type; None if plans cannot be saved.
        made_for: The example values.
    """

    def __init__(
        self, key: bytes | None, make: Callable[[], SymbolicCall], made_for: tuple[int, ...]
    ) -> None:
        self.key = key
        self.made_for = made_for
        self._make = make
        self._call: SymbolicCall | None = None

    @property
    def call(self) -> SymbolicCall:
        """The call."""
        if self._call is None:
            self._call = self._make()
        return self._call

    @property
    def graph(self) -> Graph:
        """The closed graph of the call."""
        return self.call.graph

    def example(self, values: Sequence[int], facts: Facts) -> SymbolicCall:
        """The call for other example values and under more assumptions."""
        same = values == self.call.recording.values and facts == Facts()
        return self.call if same else self.call.made_for(values, facts)

    def part(self, *names: Any) -> bytes | None:
        """The key of a plan that belongs to this template."""
        return saved_plans().key(self.key, *names) if self.key else None


def unless_unplannable(make: Callable[[], Any]) -> Any:
    """Call ``make``; None if a rule or the planner needs concrete sizes, or rejects these."""
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
    saved_only: bool = False,
) -> Any:
    """The template of a call.

    Args:
        op: The operation.
        attrs: Its attributes.
        types: The types of its operands.
        varies: For each integer of the attributes, then each size of an operand, whether it is a symbol.
        at_once: Whether all sizes are symbols from the first call on, and not because they were seen to vary.
        saved_only: Whether a plan is only looked for, and none is made.

    Returns:
        What the core takes: the template, the size program of the result type, and its example. None if there is none.
    """
    values = [*numbers_in(attrs), *(size for type in types for size in type.shape)]
    given = Facts(frozenset(k for k, own in enumerate(varies) if not own))

    def declared(facts: Facts) -> tuple[SymbolicCall, Traits]:
        made = _declared(op, attrs, types, facts, values)
        traits = traits_of(op, made.graph)
        if (
            traits.movement and traits.movement.joins
        ):  # operands of a concatenation have equal sizes by chance only
            made = _declared(op, attrs, types, facts, values, joined=len(made.output.shape))
            traits = traits_of(op, made.graph)
        return made, traits

    fixed = constants(values, varies)
    known = (
        replace_numbers(attrs, fixed),
        tuple([(type.dtype, tuple([next(fixed) for _ in type.shape]), type.weak) for type in types]),
    )
    key = key_at_once(op, attrs, types, varies) if at_once else saved_plans().key("template", op, *known)

    made: list[SymbolicCall] = []

    def make() -> tuple[Any, ...]:
        parts, traits = with_restarts(declared, given)
        own, numbers = _split_traits(traits)
        program = SizeProgram(
            parts.recording, [*parts.output.shape, *numbers], parts.recording.guards
        ).encoded()
        made.append(parts)
        return program, tuple(values), parts.output.dtype.code, getattr(op, "differentiable", True), *own

    found = matching_plan(key, values, None if saved_only else lambda: unless_unplannable(make), _same, _same)
    if found is None:
        return None
    program, made_for, *rest = found
    template = Template(key, lambda: made[0] if made else with_restarts(declared, given)[0], made_for)
    return template, program, *rest


def _same(plan: tuple[Any, ...]) -> tuple[Any, ...]:
    """A plan that needs no serialisation."""
    return plan


def _split_traits(traits: Traits) -> tuple[Traits, tuple[int, ...]]:
    """Traits without the integers of a movement, which may be symbols, and these."""
    moved = traits.movement
    if moved is None:
        return traits, ()
    return traits._replace(movement=moved._replace(offset=0, step=0)), (moved.offset, moved.step)


def with_restarts(make: Callable[[Facts], Any], facts: Facts) -> Any:
    """Call ``make`` under more and more assumptions, until it raises ``Restart`` no more."""
    while True:
        try:
            return make(facts)
        except Restart as restart:
            facts = facts.also(restart.facts)


def _declared(
    op: Op,
    attrs: Attributes,
    types: Sequence[TensorType],
    facts: Facts,
    values: Sequence[int],
    joined: int = 0,
) -> SymbolicCall:
    """Build a call over symbols.

    Args:
        op: The operation.
        attrs: Its attributes.
        types: The types of its operands.
        facts: Assumptions about its integers, such as which stay constants.
        values: The example of each integer.
        joined: The number of axes of operands whose sizes are equal by chance, but for their last axes.
    """
    given = len(numbers_in(attrs))
    lower_bounds = [None] * given + [0] * (len(values) - given)
    own: list[int] = []
    ends = accumulate((len(type.shape) for type in types), initial=given)
    for begin, end in pairwise(ends):
        if end - begin == joined:
            own += range(begin, end - (joined > 1))
    recording = Recording(values, lower_bounds, facts, strict=True, distinct=frozenset(own))
    symbols = iter(recording.inputs)
    own_attrs = replace_numbers(attrs, symbols)
    own_types = tuple(
        [tensor_type(type.dtype, tuple([next(symbols) for _ in type.shape]), type.weak) for type in types]
    )
    graph = stable_graph(op, own_attrs, own_types)
    check_limits(graph.outputs[0].type)
    made_for = lambda values, more: _declared(op, attrs, types, facts.also(more), values, joined)
    return SymbolicCall(recording, op, own_attrs, own_types, graph, made_for)


class _Gradient(NamedTuple):
    """A gradient of a call over symbols; the core takes ``head``, its template and ``tail``."""

    call: SymbolicCall
    head: tuple[Any, ...]
    tail: tuple[Any, ...]
    numbers: list[int]


@spanned("gradient rule for all sizes")
def template_gradients(
    template: Template, wrt: tuple[int, ...], values: tuple[int, ...], saved_only: bool = False
) -> Any:
    """The gradients of a call, as templates.

    Args:
        template: The template of the call.
        wrt: The inputs whose gradients are returned.
        values: The example of each integer of the call.
        saved_only: Whether a plan is only looked for, and none is made.

    Returns:
        What the core takes: a size program, and the gradients. None if there is no plan.
    """
    key = template.part("gradients", wrt)

    @functools.cache
    def differentiated() -> tuple[Recording, dict[int, _Gradient]]:
        def make(facts: Facts) -> Any:
            whole = template.example(values, facts)
            return whole.recording, _differentiated(whole, wrt)

        return with_restarts(make, Facts())

    def plan() -> tuple[Any, ...]:
        recording, gradients = differentiated()
        numbers = [number for one in gradients.values() for number in one.numbers]
        program = SizeProgram(recording, numbers, recording.guards)
        heads = [one.head for one in gradients.values()]
        return program.encoded(), heads, [one.tail for one in gradients.values()], values

    found = matching_plan(key, values, None if saved_only else lambda: unless_unplannable(plan), _same, _same)
    if found is None:
        return None
    program, heads, tails, made_for = found

    def template_at(index: int) -> Template:
        own = saved_plans().key(key, index) if key else None
        return Template(own, lambda: differentiated()[1][index].call, made_for)

    return program, [
        (head[0], PULLBACK, *head[1:], template_at(head[0]), *tail) for head, tail in zip(heads, tails)
    ]


def _differentiated(whole: SymbolicCall, wrt: tuple[int, ...]) -> dict[int, _Gradient]:
    recording = whole.recording
    recording.strict = True
    gradients = {}
    for index, one in pullbacks_of(whole.op, whole.attrs, whole.types, wrt, whole.graph).items():
        if isinstance(one, NotImplementedError):
            raise one

        def made_for(values: Sequence[int], more: Facts, index: int = index) -> SymbolicCall:
            return _differentiated(whole.made_for(values, more), wrt)[index].call

        call = SymbolicCall(recording, PULLBACK, one.attrs, one.graph.input_types, one.graph, made_for)
        traits, moved = _split_traits(traits_of(PULLBACK, call.graph))
        numbers = [*numbers_in(call.attrs), *call.output.shape, *moved]
        head = index, with_examples(call.attrs), call.output.dtype.code, len(numbers), one.slots
        gradients[index] = _Gradient(call, head, (*traits, one.form), numbers)
    return gradients


@spanned("plan operation for all sizes")
def template_program(template: Template, values: tuple[int, ...], saved_only: bool = False) -> Any:
    """The unfused program of a call.

    Args:
        template: The template of the call.
        values: The example of each integer of the call.
        saved_only: Whether a plan is only looked for, and none is made.

    Returns:
        What the core takes; None if there is no plan.
    """

    def make(facts: Facts) -> ProgramTemplate:
        from twofold.compiler.compile import compile_graph
        from twofold.compiler.planned import planned

        call = template.example(values, facts)
        return planned(call.recording, partial(compile_graph, call.graph))

    found = matching_program(template.part("program"), values, None if saved_only else make)
    return None if found is None else found.encoded


def matching_program(
    key: bytes | None,
    values: Sequence[int],
    make: Callable[[Facts], ProgramTemplate] | None,
    elsewhere: Callable[..., ProgramTemplate | None] | None = None,
) -> ProgramTemplate | None:
    """A saved program whose guards hold for ``values``; else one that ``make`` plans, if it is given.

    ``elsewhere(otherwise=make)`` plans it in another process where it can.
    """
    made = partial(unless_unplannable, partial(with_restarts, make, Facts())) if make else None
    if elsewhere is not None:
        made = partial(elsewhere, otherwise=made)
    return matching_plan(key, values, made, ProgramTemplate.portable, ProgramTemplate.restored)
