"""The older profiler of PyTorch, by its names: ``twofold.profiler`` without a schedule of steps."""

from __future__ import annotations

from typing import Any, NoReturn

from twofold.errors import ArgumentError
from twofold.profiler.averages import EventList, FunctionEvent, FunctionEventAvg
from twofold.profiler.profiler import ProfilerActivity, record_function
from twofold.profiler.profiler import profile as _profile
from twofold.runtime.tracing import here

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerActivity",
    "emit_itt",
    "emit_nvtx",
    "profile",
    "record_function",
]


class profile(_profile):
    """Measures the block; results do not change.

    Args:
        enabled: Whether to measure; else the block runs as it is, and nothing can be read of it.
        use_cuda: Whether to watch a GPU, which is not there.
        use_device: The same by name.
        record_shapes: Whether to keep the shapes of inputs.
        with_flops: Whether to count floating-point operations.
        profile_memory: Whether to keep the bytes of results.
        with_stack: Whether to keep lines.
        with_modules: Whether to keep the module that called.
        use_kineto: Without effect: one way of measuring serves all.
        use_cpu: Must be True.
        experimental_config: None: there is nothing experimental.
        acc_events: Without effect: there is one cycle.
        custom_trace_id_callback: None, as traces have no numbers.

    Raises ArgumentError for an argument that would have no effect on what is measured.

    >>> import twofold as torch
    >>> from twofold.autograd import profiler
    >>> with profiler.profile() as p:
    ...     y = torch.exp(torch.ones(3)).sum().item()
    >>> "exp" in p.key_averages().table(), "exp" in str(p), p.self_cpu_time_total > 0
    (True, True, True)
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
    ) -> None:
        if use_cuda or use_device not in (None, "cpu") or not use_cpu:
            raise ArgumentError(
                f"profile: the processor alone can be watched, at {here()}",
                "Leave out use_cuda, use_device and use_cpu.",
            )
        super().__init__(
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
            experimental_config=experimental_config,
            custom_trace_id_callback=custom_trace_id_callback,
        )
        self.enabled = enabled

    def start(self) -> None:
        """Begin, if it is enabled."""
        if self.enabled:
            super().start()

    @property
    def function_events(self) -> EventList:
        """What ``events`` gives."""
        return self.events()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all operations."""
        return self.events().self_cpu_time_total

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        return self.events().total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The events as a table, with the arguments of ``EventList.table``."""
        return self.events().table(*args, **kwargs)

    def __str__(self) -> str:
        return self.table() if self._recordings else repr(self)


def _no_ranges(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name}: ranges are shown to no other profiler. Use profile, whose export_chrome_trace other programs read."
    )


def emit_nvtx(enabled: bool = True, record_shapes: bool = False) -> NoReturn:
    """Raises NotImplementedError: operations are not shown to NVIDIA's profiler."""
    _no_ranges("emit_nvtx")


def emit_itt(enabled: bool = True, record_shapes: bool = False) -> NoReturn:
    """Raises NotImplementedError: operations are not shown to Intel's profiler."""
    _no_ranges("emit_itt")
