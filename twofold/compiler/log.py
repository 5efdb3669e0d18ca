"""The log of the compiler, ``TWOFOLD_LOG``: a line for each event, through ``logging``."""

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

_MAX_EARLIER = 256


class _ToStandardError(logging.StreamHandler[Any]):
    """A handler for the current ``sys.stderr``, until ``logging`` shuts down.

    A daemon thread that wrote later could be stopped while it holds the lock of the stream, on which Python aborts.
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
    """Log a line to ``twofold.<topic>``, which goes to standard error unless the program has a handler.

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


class TraceSummary(NamedTuple):
    """The properties of a trace by which recompilation is explained."""

    operations: tuple[str, ...]
    refs: tuple[tuple[int, ...], ...]
    attributes: tuple[Any, ...]
    inputs: tuple[TensorType, ...]
    outputs: tuple[int, ...]


def summary_of(executable: Any) -> TraceSummary:
    """The summary of the trace of an executable."""
    inputs, entries, outputs, _ = _core.describe_executable(executable)
    return TraceSummary(
        tuple([op.name for _, _, op, _, _, _ in entries]),
        tuple([tuple(refs) for _, refs, _, _, _, _ in entries]),
        tuple([attrs for _, _, _, attrs, _, _ in entries]),
        tuple([type_from_code(*type) for type in inputs]),
        tuple(outputs),
    )


_earlier: OrderedDict[TraceSummary, None] = OrderedDict()


def reason(new: TraceSummary) -> str:
    """Why a trace is compiled: its difference to the most similar trace that was compiled before."""
    same = [old for old in _earlier if old.operations == new.operations and old.refs == new.refs]
    others = [old for old in _earlier if set(old.operations) & set(new.operations)]
    found = "new"
    if same:
        found = _difference(max(same, key=lambda old: _agreement(old, new)), new)
    elif others:
        found = _structure(max(others, key=lambda old: _common(old.operations, new.operations)), new)
    _earlier[new] = None
    _earlier.move_to_end(new)
    if len(_earlier) > _MAX_EARLIER:
        _earlier.popitem(last=False)
    return found


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _agreement(old: TraceSummary, new: TraceSummary) -> tuple[int, int]:
    """The number of equal dtypes, and of equal shapes and attributes."""
    dtypes = sum(a.dtype is b.dtype for a, b in zip(old.inputs, new.inputs))
    shapes = sum(a.shape == b.shape for a, b in zip(old.inputs, new.inputs))
    pairs = list(zip(_flat(old.attributes), _flat(new.attributes)))
    dtypes += sum(isinstance(a, DType) and a == b for a, b in pairs)
    return dtypes, shapes + sum(a == b for a, b in pairs)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """The length of the common prefix of operations."""
    count = 0
    for a, b in zip(old, new):
        if a != b:
            break
        count += 1
    return count


def _difference(old: TraceSummary, new: TraceSummary) -> str:
    """The difference between traces of the same operations on the same operands."""
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
                what = "size"  # of an operation without operands
            return f"{what}: {name} had {_short(a)}, now {_short(b)}"
    if old.outputs != new.outputs:
        return f"structure: {len(old.outputs)} results were kept, now {len(new.outputs)}, or others"
    return "again: it was dropped from the cache"


def _structure(old: TraceSummary, new: TraceSummary) -> str:
    """The first difference between traces of different operations or operands."""
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
    """The range of lines of a trace, from the locations of its first and last instruction."""
    begin, end = _core.line_text(first), _core.line_text(last)
    where = _core.location_text(last) or "an unknown line"
    return where if begin in ("", end) else f"{begin} to {where}"


def log_compile(executable: Any, location: tuple[int, int], program: Any, waited: bool) -> None:
    """Log a compiled trace, and add its line to a profile.

    Args:
        executable: The executable of the trace.
        location: The locations of its first and last instruction.
        program: Its program, with counts and times.
        waited: Whether it was compiled in the foreground.
    """
    trace = summary_of(executable)
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
    """Log a trace that runs in batches, for ``TWOFOLD_LOG=batches``.

    Args:
        first: The location of its first call.
        last: The location of its last call.
        calls: The number of calls.
        launches: The number of launches.
        large: The number of calls that run alone because their operands are large.
        host: Those that are host functions.
        only: Those without others of the same op instance.
        waiting: Those that depend on others of their op instance.
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
