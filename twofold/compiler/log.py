"""``TWOFOLD_LOG``: what the compiler does and why, a line for each event, through ``logging`` to standard error."""

from __future__ import annotations

import logging
import sys
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from twofold import _core
from twofold.compiler.spans import Spans
from twofold.config import config
from twofold.dtypes import DType
from twofold.ir.types import TensorType, type_from_code

_MOST_EARLIER = 256


class _ToStandardError(logging.StreamHandler[Any]):
    """Writes to what standard error is at the time, until ``logging`` shuts down.

    A thread that still wrote then could be stopped with the lock of the stream, on which Python aborts.
    """

    _is_closed = False

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if not self._is_closed:
            super().emit(record)

    def close(self) -> None:
        self._is_closed = True
        super().close()

    @property
    def stream(self) -> Any:
        return sys.stderr


def log(topic: str, message: str) -> None:
    """One line of the logger ``twofold.<topic>``; to standard error unless the program handles it.

    >>> import logging
    >>> logging.getLogger("twofold").addHandler(logging.NullHandler())
    >>> log("compile", "nothing happened")
    """
    logger = logging.getLogger(f"twofold.{topic}")
    if not logger.hasHandlers():
        logging.getLogger("twofold").addHandler(_ToStandardError())
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    logger.info(message)


class Described(NamedTuple):
    """A trace in the parts that the next one is compared with."""

    operations: tuple[str, ...]
    refs: tuple[tuple[int, ...], ...]
    attributes: tuple[Any, ...]
    inputs: tuple[TensorType, ...]
    outputs: tuple[int, ...]


def described(executable: Any) -> Described:
    """What the core keeps of a trace."""
    leaves, entries, outputs, _ = _core.describe_executable(executable)
    return Described(
        tuple([op.name for _, _, op, _, _, _ in entries]),
        tuple([tuple(refs) for _, refs, _, _, _, _ in entries]),
        tuple([attrs for _, _, _, attrs, _, _ in entries]),
        tuple([type_from_code(*type) for type in leaves]),
        tuple(outputs),
    )


_earlier: OrderedDict[Described, None] = OrderedDict()


def reason(new: Described) -> str:
    """Why a trace is compiled: how it differs from the nearest one that was compiled before."""
    same = [old for old in _earlier if old.operations == new.operations and old.refs == new.refs]
    others = [old for old in _earlier if set(old.operations) & set(new.operations)]
    found = "new"
    if same:
        found = _difference(max(same, key=lambda old: _agreement(old, new)), new)
    elif others:
        found = _structure(max(others, key=lambda old: _common(old.operations, new.operations)), new)
    _earlier[new] = None
    _earlier.move_to_end(new)
    if len(_earlier) > _MOST_EARLIER:
        _earlier.popitem(last=False)
    return found


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _agreement(old: Described, new: Described) -> tuple[int, int]:
    """How many dtypes are the same, and how many shapes and attributes."""
    dtypes = sum(a.dtype is b.dtype for a, b in zip(old.inputs, new.inputs))
    shapes = sum(a.shape == b.shape for a, b in zip(old.inputs, new.inputs))
    pairs = list(zip(_flat(old.attributes), _flat(new.attributes)))
    dtypes += sum(isinstance(a, DType) and a == b for a, b in pairs)
    return dtypes, shapes + sum(a == b for a, b in pairs)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many operations are the same from the start."""
    count = 0
    for a, b in zip(old, new):
        if a != b:
            break
        count += 1
    return count


def _difference(old: Described, new: Described) -> str:
    """Between traces of the same operations on the same operands."""
    pairs = list(enumerate(zip(old.inputs, new.inputs)))
    for what, changed in (
        ("dtype", [k for k, (a, b) in pairs if (a.dtype, a.weak) != (b.dtype, b.weak)]),
        ("size", [k for k, (a, b) in pairs if a.shape != b.shape]),
    ):
        if changed:
            first = changed[0]
            more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
            return f"{what}: input {first} was {old.inputs[first]}, now {new.inputs[first]}{more}"
    for name, refs, a, b in zip(new.operations, new.refs, old.attributes, new.attributes):
        if a != b:
            differing = [pair for pair in zip(_flat(a), _flat(b)) if pair[0] != pair[1]]
            what = "attributes"
            if any(isinstance(part, DType) for pair in differing for part in pair):
                what = "dtype"
            elif not refs and all(type(part) is int for pair in differing for part in pair):
                what = "size"  # of what is made from nothing
            return f"{what}: {name} had {_short(a)}, now {_short(b)}"
    if old.outputs != new.outputs:
        return f"structure: {len(old.outputs)} results were kept, now {len(new.outputs)}, or others"
    return "again: it was dropped from the cache"


def _structure(old: Described, new: Described) -> str:
    location = _common(old.operations, new.operations)
    before, now = (
        f"{part[location]}" if location < len(part) else "the end"
        for part in (old.operations, new.operations)
    )
    if before == now:
        return "structure: the same operations on other operands"
    return f"structure: operation {location} was {before}, now {now}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def location_of(first: int, last: int) -> str:
    """The lines of a trace from its first to its last entry."""
    begin, end = _core.line_text(first), _core.line_text(last)
    where = _core.location_text(last) or "an unknown line"
    return where if begin in ("", end) else f"{begin} to {where}"


def log_compile(executable: Any, location: tuple[int, int], program: Any, waited: bool) -> None:
    """The line of a trace that was compiled, for the log and for a profile."""
    trace = described(executable)
    count, kernels = len(trace.operations), len(program.instructions)
    calls = ""
    if program.calls > 1:
        calls = f", {program.calls} calls of {program.bodies} bodies ({program.new_bodies} new)"
    sizes = " for all sizes" if program.for_all_sizes else ""
    line = (
        f"{location_of(*location)}: {count} operation{'s' * (count != 1)} in {kernels} kernel{'s' * (kernels != 1)}"
        f"{sizes}{calls} ({program.new_kernels} new); {reason(trace)}; plan {1000 * program.plan_seconds:.1f} ms,"
        f" LLVM {1000 * program.kernel_seconds:.1f} ms{'' if waited else ', in the background'}"
    )
    if Spans.compiled is not None:
        Spans.compiled.append(line)
    if "compile" in config.log:
        log("compile", line)


def log_batches(
    first: int, last: int, calls: int, launches: int, large: int, host: int, only: int, waiting: int
) -> None:
    """The line of ``TWOFOLD_LOG=batches`` for a trace that runs in batches.

    ``first`` and ``last`` are the locations of its first and last call; the last four numbers count the calls that
    stand alone, by why.
    """
    reasons = {
        "with large operands": large,
        "of the host": host,
        "like no other": only,
        "that wait for others like them": waiting,
    }
    alone = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count)
    log(
        "batches",
        f"{location_of(first, last)}: {calls} calls in {launches} launches; alone {alone or 'none'}",
    )
