"""What a run computed, call by call: recorded from a tape, or from a declared graph, with the lines of each call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Any

from twofold import _core
from twofold.debug.evaluation import computed
from twofold.debug.sites import Chain, Site, chain_of
from twofold.debug.source import loops_around
from twofold.frontend.breakpoints import breakpoints_as
from twofold.ir.node import mapped
from twofold.ir.op import REGISTRY, Op
from twofold.ir.types import type_from_code
from twofold.ops.control_flow.programs import Parametric
from twofold.runtime.closure_conversion import BODY_CALLS, BodyCalls
from twofold.transforms.derived import stable_graph

Tensor = _core.Tensor


class _GivenOp(Op):
    name = "given"


class _StopOp(Op):
    name = "stop"


GIVEN = _GivenOp()
"""Stands for the operation of a value that was there before: a feed, at the line of its placeholder."""
STOP = _StopOp()
"""Stands for the operation of a breakpoint of the program."""


class Call:
    """One call of an operation: its operands and its result are numbers of values."""

    __slots__ = (
        *("attrs", "chain", "content", "differentiated", "forward", "location", "loop"),
        *("mask", "op", "operands", "parts", "result", "types"),
    )

    def __init__(
        self, entry: tuple[Any, ...], operands: Sequence[int], result: int, provenance: tuple[int, int]
    ) -> None:
        self.op, self.attrs = entry[2], entry[3]
        self.mask = entry[4]  # of the operands to which a gradient flows
        self.types = tuple(type_from_code(*type) for type in entry[5])
        self.operands, self.result = tuple(operands), result
        self.location, self.differentiated = provenance  # the latter of the call whose gradient it is, or 0
        self.chain = chain_of(provenance[0])
        self.forward = chain_of(provenance[1]) if provenance[1] else None
        self.parts: list[Part] = []
        self.content: Any = self.attrs[1].at(self.attrs[3]) if self.op.returns_program else None
        """The loop or the branches that the call runs, or None."""
        self.loop: Call | None = None
        """What runs the loop or branches that this gives results of: itself, or an earlier call for another dtype."""

    def on(self, operands: Sequence[int], result: int) -> Call:
        """The same call of other operands."""
        made = copy.copy(self)
        made.operands, made.result = tuple(operands), result
        return made

    @property
    def result_type(self) -> Any:
        """The type of the result."""
        return stable_graph(self.op, self.attrs, self.types).outputs[0].type

    @property
    def result_types(self) -> list[Any]:
        """The types of all results of the loop or the branches."""
        op: Any = REGISTRY[self.attrs[0]]
        return list(op.results((self.content,), ()))


class Part:
    """A body of a loop or a branch: the values that it is given, its calls, and the values that it returns."""

    __slots__ = ("calls", "inputs", "results")

    def __init__(self, inputs: Sequence[int], calls: Sequence[Call], results: Sequence[int]) -> None:
        self.inputs, self.calls, self.results = list(inputs), list(calls), list(results)


class Recording:
    """Calls in order, with the values that were there before them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.given: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}  # of values, by the key of a tensor
        self.returned: set[int] = set()  # what the program gets
        self.is_declared = False  # in a graph of ``twofold.static``
        self._held: list[Any] = []
        self._results: dict[int, list[int]] = {}
        self._count = 0

    def new_number(self) -> int:
        """A number for one more value."""
        self._count += 1
        return self._count

    def give(self, value: Any) -> int:
        """The number of a tensor or Python number from outside."""
        if not isinstance(value, Tensor):
            number = self.new_number()
            self.given[number] = value
            return number
        found = self.number_of(value)
        if found is None:
            found = self._name(value, self.new_number())
            self.given[found] = value
        return found

    def is_tensor(self, number: int) -> bool:
        """Whether a number stands for a tensor, not for a Python number."""
        return isinstance(self.given.get(number), Tensor) or number not in self.given

    def number_of(self, tensor: Any) -> int | None:
        """The number of the value that a tensor holds, or None."""
        return self.numbers.get(_core.value_key(tensor))

    def _name(self, tensor: Any, number: int) -> int:
        self._held.append(tensor)  # alive, so that its key means no other value
        self.numbers[_core.value_key(tensor)] = number
        return number

    def begin_below(self, site: Site) -> None:
        """Have chains begin with what was called at ``site``."""

        def below(chain: Chain) -> Chain:
            return chain[chain.index(site) + 1 :] if site in chain else chain

        _rewrite(self.calls, below)

    def begin_in(self, code: CodeType, stops: Sequence[Call] = ()) -> None:
        """Have chains, those of ``stops`` too, begin in the function of ``code``, where they pass through it."""

        def inner(chain: Chain) -> Chain:
            return chain[next((k for k, site in enumerate(chain) if site.code is code), 0) :]

        _rewrite([*self.calls, *stops], inner)

    def begin_together(self, stops: Sequence[Call]) -> None:
        """Have chains begin in one function, where some do not reach up to a module: they are cut off far above.

        The same is done to ``stops``, which are not among the calls yet.
        """
        chains = [call.chain for call in calls_inside(self.calls) if call.chain]
        if not chains or all(chain[0].code.co_name == "<module>" for chain in chains):
            return
        common = set.intersection(*[{site.code for site in chain} for chain in chains])

        def inner(chain: Chain) -> Chain:
            shared = [k for k, site in enumerate(chain) if site.code in common]
            return chain[shared[-1] :] if shared else chain

        _rewrite(self.calls, inner)
        _rewrite(stops, inner)

    def stop(self, location: int) -> Call:
        """A call that stands for a breakpoint."""
        return Call((None, None, STOP, (), 0, ()), (), self.new_number(), (location, 0))

    def add_tape(self, tape: Iterable[Any]) -> None:
        """Add what a thread ran; a location stands for a breakpoint there."""
        for ran in tape:
            if isinstance(ran, int):
                self.calls.append(self.stop(ran))
                continue
            leaves, entries, lines, results = ran
            numbers = [self.give(leaf) for leaf in leaves]
            made = self._calls(entries, lines, numbers)
            self.calls += made
            for position, tensor in results:
                self._name(tensor, made[position].result)

    def position(self, number: int, location: int, declared: bool = False) -> None:
        """Show a value that was given where it was made: before what the program made after it.

        What is ``declared`` is shown only where the function that made it reads it, and not where others did.
        """
        call = Call((None, None, GIVEN, (), 0, ()), (), number, (location, 0))
        if not call.chain:
            return
        *above, last = call.chain

        def is_behind(other: Call) -> bool:
            """Whether the same activation made a call later; chains of deep stacks are cut off far above."""
            if other.forward is not None:
                return False
            for k, site in enumerate(other.chain):
                common = min(k, len(above))
                if (
                    site.code is last.code
                    and list(other.chain[k - common : k]) == above[len(above) - common :]
                ):
                    return site.offset > last.offset
            return False

        if not declared:
            later = (k for k, other in enumerate(self.calls) if number in other.operands or is_behind(other))
            self.calls.insert(next(later, len(self.calls)), call)
            return
        reader = next((k for k, other in enumerate(self.calls) if number in other.operands), None)
        if reader is not None and is_behind(self.calls[reader]):
            self.calls.insert(self._begin_of_pass(reader, last, is_behind), call)

    def _begin_of_pass(self, reader: int, made: Site, is_behind: Callable[[Call], bool]) -> int:
        """The first call before a reader that the pass of the function came to after it had made something."""

        def way_to(call: Call) -> Chain:
            depth = max(k for k, site in enumerate(call.chain) if site.code is made.code)
            return call.chain[depth:]

        around, first = loops_around(made), reader
        while first and is_behind(self.calls[first - 1]):
            before, way = way_to(self.calls[first - 1]), way_to(self.calls[first])
            offsets, later = [one.offset for one in before], [one.offset for one in way]
            is_round = any(loop in around for loop in loops_around(way[0]))
            if is_round and (offsets > later or before == way):
                break  # of the iteration before
            first -= 1
        return first

    def results_of(self, loop: Call) -> list[int]:
        """The numbers of all results of a loop or branch, those included that nothing reads."""
        if loop.result not in self._results:
            self._results[loop.result] = [self.new_number() for _ in loop.result_types]
        return self._results[loop.result]

    def add_closed(self, closed: Any, inputs: Sequence[Any]) -> list[int]:
        """Add a closed trace with values for its inputs; returns the numbers of its results."""
        described = closed.describe()
        leaves = closed.leaves
        numbers = [self.give(inputs[leaf] if isinstance(leaf, int) else leaf[0]) for leaf in leaves]
        made = self._calls(described[1], closed.provenance, numbers)
        self.calls += made
        for leaf, number in zip(leaves, numbers):
            if not isinstance(leaf, int) and isinstance(leaf[0], Tensor):
                self.position(number, _core.location_of(leaf[0]), declared=True)
        results = [made[ref].result if ref >= 0 else numbers[~ref] for ref in described[2]]
        self.returned.update(results)
        return results

    def add_call(self, op: Any, attrs: tuple[Any, ...], operands: Sequence[int], location: int) -> Call:
        """Add one call of an operation on values."""
        entry = (None, [~k for k in range(len(operands))], op, attrs, 0, ())
        (call,) = self._calls([entry], [(location, 0)], operands)
        self.calls.append(call)
        return call

    def _calls(
        self, entries: Sequence[Any], lines: Sequence[tuple[int, int]], leaves: Sequence[int]
    ) -> list[Call]:
        made: list[Call] = []
        for entry, provenance in zip(entries, lines):
            operands = [made[ref].result if ref >= 0 else leaves[~ref] for ref in entry[1]]
            call = Call(entry, operands, self.new_number(), provenance)
            if call.content is not None and call.forward is None:
                call.loop = self._first_of(call, [*self.calls, *made])
                if call.loop is None:
                    known = BODY_CALLS.get(call.location) or {}
                    call.parts = [self._part(call, part) for part in known.get(call.attrs[1].content_key, ())]
                    call.loop = call if call.parts else None
            made.append(call)
        return made

    def _first_of(self, call: Call, before: Sequence[Call]) -> Call | None:
        """The call before it that gives the results of another dtype of the same run of a loop or branch."""
        for first in (one for one in before if one.loop is one and one.location == call.location):
            taken = [one.attrs[2] for one in before if one.loop is first]
            same = len(first.operands) == len(call.operands) and all(
                map(self._same, first.operands, call.operands)
            )
            if same and first.content is call.content and call.attrs[2] not in taken:
                return first
        return None

    def _same(self, a: int, b: int) -> bool:
        """Whether two numbers stand for one value, as those of equal Python numbers do."""
        numbers = [self.given.get(one) for one in (a, b)]
        return a == b or (isinstance(numbers[0], (bool, int, float)) and numbers[0] == numbers[1])

    def _part(self, call: Call, part: BodyCalls) -> Part:
        inputs = [self.new_number() for _ in range(part.inputs)]
        leaves = [inputs[position] for position in part.positions]
        entries = part.entries
        if isinstance(content := call.attrs[1], Parametric):
            sizes = content.sizes_at(call.attrs[3])
            entries = [(*entry[:3], mapped(entry[3], sizes), *entry[4:]) for entry in entries]
        calls = self._calls(entries, part.provenance, leaves)
        return Part(inputs, calls, [calls[ref].result if ref >= 0 else leaves[~ref] for ref in part.outputs])


def compute_the_same(
    first: Recording, results: Sequence[int], second: Recording, others: Sequence[int]
) -> bool:
    """Whether results of one recording are the same operations on the same values as those of another."""
    known: dict[Any, int] = {}
    both = first.numbers.keys() & second.numbers.keys()

    def expressions(recording: Recording, numbers: Sequence[int]) -> list[int]:
        leaves = {number: _leaf(value, both) for number, value in recording.given.items()}
        found = {number: known.setdefault(leaf, len(known)) for number, leaf in leaves.items()}
        constants = {number: one for number, one in recording.given.items() if not _is_among(one, both)}
        for call in [one for one in recording.calls if one.op not in (GIVEN, STOP)]:
            key: Any = (call.op, call.attrs, tuple(found[one] for one in call.operands))
            if all(one in constants for one in call.operands) and not call.op.returns_program:
                operands = [constants[one] for one in call.operands]
                constants[call.result] = value = computed(call.op, call.attrs, operands)
                key = _leaf(value, ())
            found[call.result] = known.setdefault(key, len(known))
        return [found[number] for number in numbers]

    try:
        return expressions(first, results) == expressions(second, others)
    except (TypeError, KeyError):  # attributes that nobody can compare
        return False


def _is_among(value: Any, both: Collection[int]) -> bool:
    """Whether a value is one of those with the keys ``both``."""
    return isinstance(value, Tensor) and _core.value_key(value) in both


def _leaf(value: Any, both: Collection[int]) -> Any:
    """What is equal for equal values from outside; ``both``: keys of those that two recordings were given."""
    if not isinstance(value, Tensor):
        return type(value), repr(value)
    if _is_among(value, both):
        return _core.value_key(value)
    array = value.detach().numpy()
    return value.dtype, array.shape, array.tobytes()


def calls_inside(calls: Iterable[Call]) -> Iterator[Call]:
    """Calls, and those in the bodies of loops and branches."""
    for call in calls:
        yield call
        for part in call.parts:
            yield from calls_inside(part.calls)


def _rewrite(calls: Iterable[Call], change: Callable[[Chain], Chain]) -> None:
    for call in calls_inside(calls):
        call.chain = change(call.chain)
        call.forward = None if call.forward is None else change(call.forward)


@contextmanager
def kept_runs(tape: list[Any]) -> Iterator[None]:
    """Inside the block, what this thread runs is added to a list."""
    before = _core.set_tape(tape)
    try:
        yield
    finally:
        _core.set_tape(before)


@contextmanager
def recorded() -> Iterator[list[Any]]:
    """The list that what this thread runs is kept in, inside the block, for a debugger.

    Backward passes run each call that has a cotangent, and breakpoints are in the list.
    """
    _core.flush()
    tape: list[Any] = []

    def stop() -> None:
        location = _core.capture_location()
        _core.flush()
        tape.append(location)

    before = _core.set_stepped(True)
    try:
        with kept_runs(tape), breakpoints_as(stop):
            yield tape
            _core.flush()
    finally:
        _core.set_stepped(before)
