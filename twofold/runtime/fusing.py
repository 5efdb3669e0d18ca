"""Fusing of traces: at once, or in a thread of its own while operations run one by one."""

from __future__ import annotations

import time
from typing import Any

from twofold import _core
from twofold.config import config
from twofold.ir.graph import Graph
from twofold.runtime.background import Background
from twofold.runtime.compile import SPENT, CompiledProgram, compile_graph
from twofold.runtime.compile_process import CompileProcess
from twofold.runtime.portable import PortableProgram, inlined
from twofold.runtime.templates import template_trace
from twofold.runtime.tracing import graph_of_entry

_LONG = 200
"""Operations in a trace from which on a process to compile it pays: fewer take less time than starting that."""

_process = CompileProcess()


def inline_trace(executable: Any) -> Graph:
    """All calls of a trace as one closed primitive graph."""
    leaves, entries, outputs = _core.describe_executable(executable)
    return inlined(leaves, [(entry[1], graph_of_entry(entry)) for entry in entries], outputs)


def _fuse(executable: Any, place: tuple[int, int], waited: bool) -> None:
    if not waited and (_process.runs or _core.entry_count(executable) >= _LONG):
        elsewhere = _process.compile(executable)
        if elsewhere is not None:
            _core.set_fused(executable, elsewhere.program, elsewhere.nanoseconds)
            _note(executable, place, elsewhere.portable, waited)
            return
    start = time.thread_time_ns()
    program = compile_graph(inline_trace(executable))
    made = program.program()
    _core.set_fused(executable, made, time.thread_time_ns() - start)
    _note(executable, place, program, waited)


def _plan(executable: Any, varies: tuple[bool, ...], place: tuple[int, int], waited: bool) -> bool:
    """Plan a trace for symbols in place of the numbers that vary, for the core; False if it cannot be planned so."""
    found = None
    try:
        found = template_trace(_core.describe_executable(executable), varies)
    finally:
        _core.add_trace_plan(executable, None if found is None else found[0])
    if found is not None:
        _note(executable, place, found[1], waited)
    return found is not None


def _note(
    executable: Any, place: tuple[int, int], program: CompiledProgram | PortableProgram, waited: bool
) -> None:
    SPENT.fused += 1
    if "compile" in config.log:
        from twofold.runtime.compile_log import log_compile

        log_compile(executable, place, program, waited)


def _work(item: tuple[Any, tuple[bool, ...] | None, tuple[int, int]]) -> None:
    executable, varies, place = item
    try:
        if varies is None:
            _fuse(executable, place, False)
        else:
            _plan(executable, varies, place, False)
    except MemoryError:
        _core.ask_again(executable)  # there may be memory later; until then operations run one by one
    except BaseException as error:
        if "compile" in config.log:
            from twofold.runtime.compile_log import log, place_of

            log("compile", f"{place_of(*place)}: failed, operations run one by one: {error!r}")
        raise


_background = Background(_work, "twofold-compile")


def compile_trace(executable: Any, wait: bool, first: int, last: int) -> bool:
    """Fuse a trace and hand the program to the core; in the background unless ``wait``.

    ``first`` and ``last`` are the locations of its first and last entry in this run. False if that is not possible
    now.
    """
    if wait or not config.background_compile:
        _fuse(executable, (first, last), True)
        return True
    return _background.submit((executable, None, (first, last)))


def plan_trace(executable: Any, varies: tuple[bool, ...], wait: bool, first: int, last: int) -> bool:
    """Plan a trace for symbols in place of the numbers that vary, in the background unless ``wait``.

    False if no plan comes.
    """
    if wait or not config.background_compile:
        return _plan(executable, varies, (first, last), True)
    return _background.submit((executable, varies, (first, last)))


def wait_for_compiler() -> None:
    """Block until every trace that was handed to the background compiler is fused; raise what failed.

    >>> import twofold as torch
    >>> x = torch.ones(3) + 1
    >>> torch.wait_for_compiler()
    """
    _background.wait()
