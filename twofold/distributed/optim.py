"""Optimisers whose states are spread over processes: one process has all of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from twofold.distributed.process_group import is_initialized
from twofold.optim.optimizer import Optimizer


class ZeroRedundancyOptimizer(Optimizer):
    """An optimiser of another class, each part of whose state one process of a group has: here one has all.

    Args:
        params: The parameters, or groups of them.
        optimizer_class: The class, made with these and ``defaults``.
        process_group: The group; RuntimeError where none was made.
        parameters_as_bucket_view: Without effect: how processes exchange parameters.
        overlap_with_ddp: Without effect: when they do.
        **defaults: Settings of the optimiser.

    >>> import twofold as torch
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> from twofold.distributed.optim import ZeroRedundancyOptimizer
    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer = ZeroRedundancyOptimizer([w], optimizer_class=torch.optim.SGD, lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5, 0.5]
    >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if process_group is None and not is_initialized():
            raise RuntimeError(
                "Default process group has not been initialized, please make sure to call init_process_group."
            )
        self.optim = optimizer_class(params, **defaults)
        super().__init__(self.optim.param_groups, self.optim.defaults)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state
        self._gathered: dict[str, Any] | None = None

    def step(self, closure: Any = None, **kwargs: Any) -> Any:
        """One step of the optimiser, with its arguments; TypeError for one that it does not have."""
        return self.optim.step(closure, **kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, which are updated from the next step on."""
        if "_gathered" in vars(self):  # not while it is made
            self.optim.add_param_group(param_group)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the state of all processes in the one of rank ``to``, for ``state_dict``."""
        self._gathered = self.optim.state_dict()

    def state_dict(self) -> dict[str, Any]:
        """The state that was gathered last; RuntimeError where ``consolidate_state_dict`` was not called."""
        if self._gathered is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to=0)` on "
                "all ranks beforehand if you meant to save the global state."
            )
        return self._gathered

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and settings."""
        self.optim.load_state_dict(state_dict)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state
