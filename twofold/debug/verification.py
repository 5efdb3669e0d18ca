"""``verify()``: whether compiled programs have the bits of their operations one by one, and which call has not."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy

from twofold import _core
from twofold.config import config
from twofold.debug.evaluation import computed
from twofold.debug.reproduction import write_script
from twofold.errors import VerificationError, at_operation
from twofold.ir.graph import Graph
from twofold.ir.op import REGISTRY, HostOp
from twofold.runtime.failures import position
from twofold.runtime.tracing import described, parameter_names, public_name
from twofold.transforms.derived import graph_of_entry

Tensor = _core.Tensor
_TIERS = {"fused": "as one program", "auto": "as it ran, in batches"}


class Run(NamedTuple):
    """A trace that has run: its inputs, its calls with their locations, and the results that somebody holds."""

    inputs: Sequence[Any]
    entries: Sequence[tuple[Any, ...]]
    lines: Sequence[tuple[int, int]]
    results: Sequence[tuple[int, Any]]


class Culprit(NamedTuple):
    """The first call with other bits, what a program of some tier gives for it, and which results that has."""

    call: int
    value: Any
    tier: str
    kept: list[int]


class verify:
    """A ``with`` block whose runs are compared, bit by bit, with the same operations computed one by one.

    Runs inside are what they are outside: fused, in batches, forward and backward. When the block ends, each is
    computed once more operation by operation, and once more as one fused program; all results must have the same bits,
    save for the payloads of NaNs. Until then the block holds what its runs have read and returned, so it is best put
    around one step of a training loop.

    Random numbers are the same in all of them. Functions of the program that are called while a graph runs are called
    once; what depends on their results is compared only where the run has returned these.

    Args:
        directory: Where to write the script that shows a difference; a new directory by default.

    Raises VerificationError, at the line of the first call whose bits differ, when the block ends.

    >>> import twofold as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> with torch.debug.verify():
    ...     (x.exp() * x).sum().backward()
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._directory = directory
        self._open: list[tuple[list[Any], Any]] = []

    def __enter__(self) -> None:
        _core.flush()
        tape: list[Any] = []
        self._open.append((tape, _core.set_tape(tape)))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        tape, before = self._open.pop()
        try:
            if kind is None:
                _core.flush()
        finally:
            _core.set_tape(before)
            if before is not None:
                before.extend(tape)
        if kind is None:
            for run in tape:
                check(Run(*run), self._directory)


@contextmanager
def on_tier(name: str) -> Iterator[None]:
    """What runs inside runs on one tier."""
    _core.flush()
    _core.set_tier(name)
    try:
        yield
        _core.flush()
    finally:
        _core.set_tier(config.tier)


@contextmanager
def _apart(tier: str) -> Iterator[None]:
    """Inside, nobody looks on: no tape, no search for bad values, no gradients."""
    _core.flush()
    tape, anomaly, eager = _core.set_tape(None), _core.set_anomaly("off"), _core.set_eager(False)
    try:
        with on_tier(tier), _core.GradientMode(False):
            yield
    finally:
        _core.set_eager(eager)
        _core.set_anomaly(anomaly)
        _core.set_tape(tape)


def verified(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, each call of which is a block of ``verify``."""

    def call(*arguments: Any, **named: Any) -> Any:
        with verify():
            return function(*arguments, **named)

    return call


def verified_function(
    function: Callable[..., Any], inputs: tuple[Any, ...], outputs: tuple[Any, ...], mark: int
) -> Callable[..., Any]:
    """A declared function whose calls are compared with its operations one by one."""

    def call(*arguments: Any) -> Any:
        with on_tier("fused"):
            result = function(*arguments)
            found = (result,) if isinstance(result, Tensor) else tuple(result)
            for value in found:
                value._realise()
        check_closed(_core.close(inputs, outputs, mark), arguments, found)
        return result

    return call


def check_closed(closed: Any, arguments: Sequence[Any], found: Sequence[Any]) -> None:
    """Raise VerificationError where ``found`` is not what the calls of a closed trace give for ``arguments``."""
    _, entries, outputs = closed.describe()
    inputs = [arguments[leaf] if isinstance(leaf, int) else leaf[0] for leaf in closed.leaves]
    results = [(ref, value) for ref, value in zip(outputs, found) if ref >= 0]
    check(Run(inputs, entries, closed.provenance, results))


def check(run: Run, directory: str | os.PathLike[str] | None = None) -> None:
    """Raise VerificationError if a run has, or would have as one fused program, other bits than its calls alone."""
    check = _Check(run)
    known = {number: value for number, value in run.results if check.values[number] is not None}
    if not known:
        return
    differ = check.differ(known)
    culprit = check.culprit("fused", list(known)) or (check.culprit("auto", list(known)) if differ else None)
    if culprit is None and differ:
        culprit = Culprit(differ[0], known[differ[0]], "", list(known))
    if culprit is not None:
        raise check.error(culprit, directory)


class _Check:
    """The calls of a run, one by one, and programs of some of them."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.given: set[int] = set()  # calls that must not be made again
        self.values = self._one_by_one()

    def _one_by_one(self) -> list[Any]:
        """What each call gives; None where that takes what must not be called again."""
        returned = dict(self.run.results)
        values: list[Any] = []
        with _apart("unfused"):
            for number, entry in enumerate(self.run.entries):
                operands = [values[ref] if ref >= 0 else self.run.inputs[~ref] for ref in entry[1]]
                if any(ref >= 0 and values[ref] is None for ref in entry[1]):
                    values.append(None)
                elif _is_pure(entry):
                    values.append(self._computed(number, entry, operands))
                else:
                    self.given.add(number)
                    values.append(returned.get(number))
        return values

    def _computed(self, number: int, entry: tuple[Any, ...], operands: Sequence[Any]) -> Any:
        """What a call gives, made at its line."""
        before = _core.declare_at(self.run.lines[number][0])
        try:
            return computed(entry[2], entry[3], operands)
        finally:
            _core.declare_at(before)

    def differ(self, found: dict[int, Any]) -> list[int]:
        """The calls for which ``found`` has other bits, in order."""
        return [
            number for number in sorted(found) if difference(found[number], self.values[number]) is not None
        ]

    def again(self, tier: str, kept: Iterable[int]) -> dict[int, Any]:
        """The results of some calls, by a program of nothing but what they need."""
        with _apart(tier):
            made: dict[int, Any] = {}
            for number in self.needed(kept):
                entry = self.run.entries[number]
                if number in self.given:
                    made[number] = self.values[number]
                else:
                    made[number] = _core.record(entry[2], entry[3], self._operands(made, entry[1]))
            found = {number: made[number] for number in kept}
            made.clear()  # what nobody holds is not returned
            _core.flush()
        return found

    def _operands(self, made: Any, refs: Sequence[int]) -> list[Any]:
        return [made[ref] if ref >= 0 else self.run.inputs[~ref] for ref in refs]

    def needed(self, kept: Iterable[int]) -> list[int]:
        """The calls that some need, those included, in order."""
        found: set[int] = set()
        waiting = list(kept)
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                if number not in self.given:
                    waiting += [ref for ref in self.run.entries[number][1] if ref >= 0]
        return sorted(found)

    def culprit(self, tier: str, results: Sequence[int]) -> Culprit | None:
        """The first call that a program of a tier computes wrong; None where the whole program has the right bits."""
        if not self.differ(self.again(tier, results)):
            return None
        every = [number for number, value in enumerate(self.values) if value is not None]
        found = self.again(tier, every)
        kept = every
        if not self.differ(found):  # returning every value has changed the program
            kept = self._shortest(tier, results)
            found = self.again(tier, kept)
        number = (self.differ(found) or [kept[-1]])[0]
        alone = self.again(tier, [number])
        if self.differ(alone):
            found, kept = alone, [number]
        return Culprit(number, found[number], tier, kept)

    def _shortest(self, tier: str, results: Collection[int]) -> list[int]:
        """What is returned by the shortest beginning of the trace that goes wrong, found by halving."""
        right, wrong = 0, len(self.run.entries)
        while wrong - right > 1:
            middle = (right + wrong) // 2
            if self.differ(self.again(tier, self._beginning(middle, results))):
                wrong = middle
            else:
                right = middle
        return self._beginning(wrong, results)

    def _beginning(self, count: int, results: Collection[int]) -> list[int]:
        """The results of the first calls that later ones read, or that the run returns."""
        read = {ref for entry in self.run.entries[count:] for ref in entry[1]}
        return [k for k in range(count) if self.values[k] is not None and (k in read or k in results)]

    def error(self, culprit: Culprit, directory: str | os.PathLike[str] | None) -> BaseException:
        """The error for a call with other bits, at its line."""
        refs, op = self.run.entries[culprit.call][1:3]
        right = self.values[culprit.call]
        index = difference(culprit.value, right)
        assert index is not None
        operands = self._operands(self.values, refs)
        location = self.run.lines[culprit.call]
        script = self._script(culprit, directory)
        compiled, alone = (_array(value)[index].item() for value in (culprit.value, right))
        at = f" at index {list(index)}" if index else ""
        tier = _TIERS.get(culprit.tier, "compiled, with all that ran with it")
        fix = f"Run {script}, which shows it." if script else "Nothing can show it but the program itself."
        error = VerificationError(f"{tier} it gives {compiled!r}{at}, alone {alone!r}", fix)
        tensors = [value for value in operands if isinstance(value, Tensor)]
        words = described(parameter_names(op), [value.type_ for value in tensors], tensors)
        worded = at_operation(error, public_name(op), words, _core.location_text(location[0]))
        assert isinstance(worded, VerificationError)
        worded.compiled, worded.alone, worded.index, worded.script = culprit.value, right, index, script
        return position(worded, location, operands, parameter_names(op))

    def _script(self, culprit: Culprit, directory: str | os.PathLike[str] | None) -> str | None:
        if not culprit.tier:
            return None
        calls = self.needed(culprit.kept)
        made = {number: self.values[number] for number in calls if number in self.given}
        folder = tempfile.mkdtemp(prefix="twofold-verify-") if directory is None else directory
        return write_script(self.run, calls, made, culprit, folder)


def _is_pure(entry: tuple[Any, ...]) -> bool:
    """Whether a call may be made twice: no function of the program runs in it."""
    return _pure_graph(graph_of_entry(entry))


def _pure_graph(graph: Graph) -> bool:
    return all(
        (not isinstance(node.op, HostOp) or node.op.pure)
        and all(_pure_graph(inner) for item in node.attrs for inner in _graphs(item))
        for node in graph.nodes()
    )


def _graphs(item: Any) -> Iterator[Graph]:
    """The graphs among attributes: the bodies of loops and branches."""
    if isinstance(item, Graph):
        yield item
    elif isinstance(item, (tuple, list)):
        for one in item:
            yield from _graphs(one)
    elif hasattr(item, "content_key") and hasattr(item, "key"):
        yield from _graphs(item.key())


def _array(value: Any) -> Any:
    return numpy.asarray(value.detach().numpy())


def difference(found: Any, wanted: Any) -> tuple[int, ...] | None:
    """The index of the first element of two tensors that differs in more than the payload of a NaN, or None."""
    one, other = _array(found), _array(wanted)
    if one.shape != other.shape or one.dtype != other.dtype:
        raise AssertionError(f"a program returns {found.type_} where its call returns {wanted.type_}")
    if one.dtype.kind not in "biufc" or one.tobytes() == other.tobytes():
        return None
    parts = [(one.real, other.real), (one.imag, other.imag)] if one.dtype.kind == "c" else [(one, other)]
    differ = numpy.zeros(one.shape, bool)
    for left, right in parts:
        bits = f"u{left.itemsize}"
        changed = left.copy().view(bits) != right.copy().view(bits)
        if left.dtype.kind == "f":
            changed &= ~(numpy.isnan(left) & numpy.isnan(right))
        differ |= changed
    return tuple(int(k) for k in numpy.argwhere(differ)[0]) if differ.any() else None


def call(name: str, attributes: tuple[Any, ...], *operands: Any) -> Any:
    """An operation by the name of its entry, in a script that shows a difference."""
    return _core.record(REGISTRY[name], attributes, operands)


def show(program: Callable[[], Sequence[Any]], tier: str) -> None:
    """Print where a program has other bits on a tier than operation by operation; ends a script with status 1 if so."""
    with _apart("unfused"):
        _core.set_eager(True)
        alone = program()
        for value in alone:
            value._realise()
        _core.set_eager(False)
    with _apart(tier):
        compiled = program()
        _core.flush()
    for number, (found, wanted) in enumerate(zip(compiled, alone)):
        index = difference(found, wanted)
        if index is not None:
            values = [_array(value)[index].item() for value in (found, wanted)]
            print(
                f"result {number} differs at index {list(index)}: {_TIERS[tier]} {values[0]!r}, alone {values[1]!r}"
            )
            raise SystemExit(1)
    print("no difference")
