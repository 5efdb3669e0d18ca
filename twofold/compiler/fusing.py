"""Requests of the core: fused programs and symbolic plans of traces and batches, in the foreground or background."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from twofold import _core
from twofold.compiler.background import Background
from twofold.compiler.batches import Batch, add_plan
from twofold.compiler.compile import TOTALS, FlatProgram
from twofold.compiler.linking import Trace, compile_outlined
from twofold.compiler.lower.memory import finite_checks
from twofold.compiler.portable_program import PortableProgram
from twofold.compiler.portable_template import ProgramTemplate
from twofold.compiler.portable_trace import PortableTrace, compiled
from twofold.compiler.process import CompileProcess
from twofold.compiler.saved_plans import saved_plans
from twofold.compiler.spans import Spans, spanned
from twofold.compiler.trace_templates import Caller, template_batch, template_trace
from twofold.config import config
from twofold.ir.text import format_graph

_LONG = 200
"""Least number of instructions of a trace that is worth starting the compile worker for."""

_START_NANOSECONDS = 400_000_000
"""CPU time of starting the worker, which pays once compiling has taken as long (the rule of ski rental)."""

_process = CompileProcess()


def _process_pays(operations: int = 0) -> bool:
    """Whether to compile a graph of so many instructions in the worker."""
    return _process.runs or operations >= _LONG or _background.nanoseconds >= _START_NANOSECONDS


def _elsewhere(operations: int = 0) -> Caller | None:
    """``CompileProcess.call`` where the worker pays, else None."""
    return _process.call if config.background_compile and _process_pays(operations) else None


@spanned("compile trace")
def _fuse(executable: Any, location: tuple[int, int], waited: bool) -> None:
    start = time.thread_time_ns()
    with finite_checks(_core.tells_finite()):
        _compile(executable, location, waited, start)


def _compile(executable: Any, location: tuple[int, int], waited: bool, start: int) -> None:
    trace = PortableTrace.of(executable)
    request = trace.request()
    key = trace.key(request)
    saved = saved_plans().read(key)
    if saved is not None:
        with contextlib.suppress(LookupError):  # a kernel was deleted from the disk cache
            _core.set_fused(executable, saved.program(), time.thread_time_ns() - start)
            _report(executable, location, saved.restored(), waited)
            return
    if request is not None and not waited and _process_pays(len(trace.entries)):
        elsewhere = _process.call(compiled, request, otherwise=lambda: None)
        if elsewhere is not None:
            portable, nanoseconds = elsewhere
            with contextlib.suppress(
                LookupError
            ):  # kernels are handed over through the disk cache, and there is none
                _core.set_fused(executable, portable.program(), nanoseconds)
                saved_plans().keep(key, portable)
                _report(executable, location, portable, waited)
                return
    program = compile_outlined(Trace.of(_core.describe_executable(executable)))
    with contextlib.suppress(NotImplementedError):
        saved_plans().keep(key, PortableProgram.of(program))
    _core.set_fused(executable, program.program(), time.thread_time_ns() - start)
    _report(executable, location, program, waited)


@spanned("plan trace for all sizes")
def _plan(executable: Any, varies: tuple[bool, ...], location: tuple[int, int], waited: bool) -> bool:
    """Plan a trace for symbols in place of the integers that vary, see ``plan_trace``."""
    found = None
    try:
        with finite_checks(_core.tells_finite()):
            trace = PortableTrace.of(executable)
            found = template_trace(trace, varies, None if waited else _elsewhere(len(trace.entries)))
    finally:
        _core.add_trace_plan(executable, None if found is None else found.encoded)
    if found is not None:
        _report(executable, location, found, waited)
    return found is not None


def _report(
    executable: Any,
    location: tuple[int, int],
    program: FlatProgram | PortableProgram | ProgramTemplate,
    waited: bool,
) -> None:
    TOTALS.fused += 1
    TOTALS.bodies += program.new_bodies
    TOTALS.calls += program.calls
    if "compile" in config.log or Spans.compiled is not None:
        from twofold.compiler.log import log_compile

        log_compile(executable, location, program, waited)
    if "bodies" in config.log and program.calls > 1:
        from twofold.compiler.log import location_of, log

        outlined = Trace.of(_core.describe_executable(executable)).outlined()
        log("bodies", f"{location_of(*location)}: {program.calls} calls\n{format_graph(outlined.graph)}")


def _in_background(
    work: Callable[[], object], retry: Callable[[], None], location: Callable[[], str]
) -> None:
    try:
        work()
    except MemoryError:
        retry()  # there may be memory later; until then operations run one by one
    except BaseException as error:
        if "compile" in config.log:
            from twofold.compiler.log import log

            log("compile", f"{location()}: failed, operations run one by one: {error!r}")
        raise


def _location_of(location: tuple[int, int]) -> str:
    from twofold.compiler.log import location_of

    return location_of(*location)


_background = Background(lambda item: _in_background(*item), "twofold-compile")


def _submit(executable: Any, location: tuple[int, int], work: Callable[[], object]) -> bool:
    return _background.submit((work, partial(_core.ask_again, executable), partial(_location_of, location)))


def compile_trace(executable: Any, wait: bool, first: int, last: int) -> bool:
    """Fuse a trace and pass the program to the core.

    Args:
        executable: The executable of the trace.
        wait: Whether to compile in the foreground.
        first: The location of its first instruction.
        last: The location of its last instruction.

    Returns:
        False if that is not possible now.
    """
    location = first, last
    if wait or not config.background_compile:
        _fuse(executable, location, True)
        return True
    return _submit(executable, location, partial(_fuse, executable, location, False))


def plan_trace(executable: Any, varies: tuple[bool, ...], wait: bool, first: int, last: int) -> bool:
    """Plan a trace for all values of some of its integers, and pass the plan to the core.

    Args:
        executable: The executable of the trace.
        varies: For each of its integers, whether it is a symbol, see ``trace_templates.template_trace``.
        wait: Whether to plan in the foreground.
        first: The location of its first instruction.
        last: The location of its last instruction.

    Returns:
        False if there will be no plan.
    """
    location = first, last
    if wait or not config.background_compile:
        return _plan(executable, varies, location, True)
    return _submit(executable, location, partial(_plan, executable, varies, location, False))


@spanned("plan batch")
def _plan_batch(family: Any, batch: Batch, count: int) -> None:
    add_plan(family, batch, template_batch(batch, count, _elsewhere()))


def plan_batch(family: Any, batch: Batch, count: int) -> bool:
    """See ``twofold.compiler.batches``, which looks for a saved plan first."""
    work = partial(_plan_batch, family, batch, count)
    if config.background_compile:
        name = batch.members[0][0].name
        return _background.submit((work, partial(_core.ask_again_for_batch, family), lambda: name))
    work()
    return True


def wait_for_compiler() -> None:
    """Block until the background compiler is idle; raises the first exception of its work.

    >>> import twofold as torch
    >>> x = torch.ones(3) + 1
    >>> torch.wait_for_compiler()
    """
    _background.wait()
