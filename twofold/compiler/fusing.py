"""Fused programs and symbolic plans of traces and batches, which are passed to the core.

The planner is imported only where no plan is saved.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from twofold import _core
from twofold.compiler import requests
from twofold.compiler.batches import Batch, add_plan
from twofold.compiler.lower.mode import finite_checks
from twofold.compiler.portable_program import PortableProgram
from twofold.compiler.portable_template import ProgramTemplate
from twofold.compiler.portable_trace import PortableTrace, compiled
from twofold.compiler.process import CompileProcess
from twofold.compiler.saved_plans import saved_plans
from twofold.compiler.spans import Spans, spanned
from twofold.compiler.totals import TOTALS
from twofold.compiler.trace_templates import Caller, template_batch, template_trace
from twofold.config import config

if TYPE_CHECKING:
    from twofold.compiler.compile import FlatProgram

_LONG = 200
"""Least number of instructions of a trace that is worth starting the compile worker for."""

_START_NANOSECONDS = 400_000_000
"""CPU time of starting the worker, which pays once compiling has taken as long (the rule of ski rental)."""

_process = CompileProcess()


def _process_pays(operations: int = 0) -> bool:
    """Whether to compile a graph of so many instructions in the worker."""
    return _process.runs or operations >= _LONG or requests.background.nanoseconds >= _START_NANOSECONDS


def _elsewhere(operations: int = 0) -> Caller | None:
    """``CompileProcess.call`` where the worker pays, else None."""
    return _process.call if config.background_compile and _process_pays(operations) else None


@spanned("compile trace")
def fuse(executable: Any, location: tuple[int, int], waited: bool) -> None:
    """Fuse a trace, see ``requests.compile_trace``; ``waited``: whether the program waits for it."""
    start = time.thread_time_ns()
    with finite_checks(_core.tells_finite()):
        _compile(executable, location, waited, start)


def _compile(executable: Any, location: tuple[int, int], waited: bool, start: int) -> None:
    trace = PortableTrace.of(executable)
    key = trace.key()
    saved = saved_plans().read(key)
    if saved is not None:
        with contextlib.suppress(LookupError):  # a kernel was deleted from the disk cache
            _core.set_fused(executable, saved.program(), time.thread_time_ns() - start)
            _report(executable, location, saved.restored(), waited)
            return
    pays = not waited and _process_pays(len(trace.entries))
    if pays and (request := trace.request()) is not None:
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
    from twofold.compiler.linking import Trace, compile_outlined

    program = compile_outlined(Trace.of(_core.describe_executable(executable)))
    with contextlib.suppress(NotImplementedError):
        saved_plans().keep(key, PortableProgram.of(program))
    _core.set_fused(executable, program.program(), time.thread_time_ns() - start)
    _report(executable, location, program, waited)


@spanned("plan trace for all sizes")
def plan(executable: Any, varies: tuple[bool, ...], location: tuple[int, int], waited: bool) -> bool:
    """Plan a trace for symbols in place of the integers that vary, see ``plan_trace``."""
    found = None
    try:
        with finite_checks(_core.tells_finite()):
            trace = PortableTrace.of(executable)
            found = template_trace(trace, varies, None if waited else _elsewhere(len(trace.entries)))
    finally:
        _core.add_trace_plan(executable, varies, None if found is None else found.encoded)
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
        from twofold.compiler.linking import Trace
        from twofold.compiler.log import location_of, log
        from twofold.ir.text import format_graph

        outlined = Trace.of(_core.describe_executable(executable)).outlined()
        log("bodies", f"{location_of(*location)}: {program.calls} calls\n{format_graph(outlined.graph)}")


@spanned("plan batch")
def plan_batch(family: Any, batch: Batch, count: int) -> None:
    """Plan a batched body for every batch size, see ``batches``."""
    add_plan(family, batch, template_batch(batch, count, _elsewhere()))
