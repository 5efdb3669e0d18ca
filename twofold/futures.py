"""Values that are there later: PyTorch's ``torch.futures`` over ``concurrent.futures``."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from twofold.tracebacks import guard_namespace as _guard_namespace

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that some thread sets.

    Args:
        devices: Devices that values lie on; there is none but the CPU, so it must be None or empty.

    >>> import twofold as torch
    >>> made = torch.futures.Future()
    >>> longer = made.then(lambda done: done.value() + 1)
    >>> made.set_result(2)
    >>> longer.wait()
    3
    """

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        if devices:
            raise ValueError(f"Future: devices is {list(devices)!r}, and there is none but the CPU")
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether the value or an exception is set."""
        return self._future.done()

    def wait(self) -> T:
        """The value, once it is set; raises the exception that is set."""
        return self._future.result()

    def value(self) -> T:
        """The value; raises RuntimeError where none is set yet, and the exception that is set."""
        if not self.done():
            raise RuntimeError("Future: the value is not set yet. Call wait().")
        return self._future.result()

    def set_result(self, result: T) -> None:
        """Set the value; raises RuntimeError where it is set already."""
        self._need_unset()
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set an exception, which ``wait`` and ``value`` raise."""
        self._need_unset()
        self._future.set_exception(result)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """What a function makes of this one, once it is done; what the function raises is the exception there."""
        following: Future[S] = Future()

        def follow(_: object) -> None:
            try:
                following.set_result(callback(self))
            except Exception as error:  # whoever waits for it sees it
                following.set_exception(error)

        self._future.add_done_callback(follow)
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call a function with this one, once it is done; what it raises is logged and goes no further."""
        self._future.add_done_callback(lambda _: callback(self))

    def _need_unset(self) -> None:
        if self.done():
            raise RuntimeError("Future: a value or an exception is set already")


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list of ``futures``, done when all are.

    >>> import twofold as torch
    >>> torch.futures.collect_all([]).wait()
    []
    """
    waiting, found = list(futures), Future[list[Future[Any]]]()
    left = iter(waiting)

    def wait_for_next(_: object = None) -> None:
        for one in left:
            if not one.done():
                one.add_done_callback(wait_for_next)
                return
        found.set_result(waiting)

    wait_for_next()
    return found


def wait_all(futures: Sequence[Future[T]]) -> list[T]:
    """The values of all, once they are set; raises the first exception.

    >>> import twofold as torch
    >>> one = torch.futures.Future()
    >>> one.set_result(5)
    >>> torch.futures.wait_all([one])
    [5]
    """
    return [one.wait() for one in collect_all(futures).wait()]


_guard_namespace(globals())
