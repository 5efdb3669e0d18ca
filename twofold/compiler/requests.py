"""Requests of the core for fused programs and symbolic plans, in the foreground or on the compiler thread.

That thread imports the compiler, so that the program does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from twofold import _core
from twofold.compiler.background import Background
from twofold.config import config

if TYPE_CHECKING:
    from twofold.compiler.batches import Batch


def _fuse(*arguments: Any) -> bool:
    from twofold.compiler.fusing import fuse

    fuse(*arguments)
    return True


def _plan(*arguments: Any) -> bool:
    from twofold.compiler.fusing import plan

    return plan(*arguments)


def _plan_batch(*arguments: Any) -> bool:
    from twofold.compiler.fusing import plan_batch as planned

    planned(*arguments)
    return True


def _location_of(location: tuple[int, int]) -> str:
    from twofold.compiler.log import location_of

    return location_of(*location)


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


background = Background(lambda item: _in_background(*item), "twofold-compile")


def _submit(executable: Any, location: tuple[int, int], work: Callable[[], object]) -> bool:
    return background.submit((work, partial(_core.ask_again, executable), partial(_location_of, location)))


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
        return _fuse(executable, location, True)
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


def plan_batch(family: Any, batch: Batch, count: int) -> bool:
    """Plan a batched body, see ``twofold.compiler.batches``, which looks for a saved plan first."""
    work = partial(_plan_batch, family, batch, count)
    if not config.background_compile:
        return work()
    name = batch.members[0][0].name
    return background.submit((work, partial(_core.ask_again_for_batch, family), lambda: name))


def wait_for_compiler() -> None:
    """Block until the background compiler is idle; raises the first exception of its work.

    >>> import twofold as torch
    >>> x = torch.ones(3) + 1
    >>> torch.wait_for_compiler()
    """
    background.wait()
