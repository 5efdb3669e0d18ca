"""Settings of DyNet: its parameters object, and those of the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from twofold import dynet_config
from twofold.frontend.sampling import manual_seed

_TAKES = {
    "mem": "mem",
    "seed": "random_seed",
    "autobatch": "autobatch",
    "profiling": "profiling",
    "weight-decay": "weight_decay",
    "l2": "weight_decay",
    "gpus": "requested_gpus",
}
_NUMBERS = {
    "random_seed": int,
    "autobatch": int,
    "profiling": int,
    "weight_decay": float,
    "requested_gpus": int,
}


def weight_decay() -> float:
    """The weight decay of collections that are made now."""
    return float((dynet_config.get() or {}).get("weight_decay", 0))


def from_arguments(arguments: Sequence[str]) -> dict[str, Any]:
    """Settings from the arguments of a command line, as ``--dynet-seed 3``, ``--dynet_seed=3``."""
    found: dict[str, Any] = {}
    for position, argument in enumerate(arguments):
        name, equals, value = argument.replace("_", "-").partition("=")
        if not name.startswith("--dynet-"):
            continue
        option = _TAKES.get(name[len("--dynet-") :])
        if option is None:
            continue
        text = value if equals else (arguments[position + 1] if position + 1 < len(arguments) else "")
        try:
            found[option] = _NUMBERS.get(option, str)(text)
        except ValueError:
            raise ValueError(f"{name} takes a number, not {text!r}") from None
    return found


class DynetParams:
    """Settings that take effect at ``init``.

    >>> import twofold.dynet as dy
    >>> params = dy.DynetParams()
    >>> params.set_random_seed(3)
    >>> params.init()
    """

    def __init__(self) -> None:
        self._given: dict[str, Any] = {}

    def from_config(self, conf: dict[str, Any]) -> None:
        """Take the settings of ``dynet_config``."""
        self._given = {
            {"seed": "random_seed", "shared_params": "shared_parameters"}.get(k, k): v
            for k, v in conf.items()
        }

    def from_args(self, shared_parameters: Any = None) -> None:
        """Take the settings of the command line."""
        self._given.update(from_arguments(sys.argv))
        if shared_parameters is not None:
            self._given["shared_parameters"] = shared_parameters

    def init(self) -> None:
        """Let the settings take effect."""
        dynet_config.set(**self._given)

    def set_mem(self, mem: Any) -> None:
        """Has no effect: memory is taken as it is needed."""
        self._given["mem"] = mem

    def set_random_seed(self, random_seed: int) -> None:
        """Set the seed of all random numbers."""
        self._given["random_seed"] = random_seed

    def set_autobatch(self, autobatch: bool) -> None:
        """Has no effect: results do not depend on what runs as one call."""
        self._given["autobatch"] = int(autobatch)

    def set_profiling(self, profiling: int) -> None:
        """Has no effect: ``twofold.stats`` counts."""
        self._given["profiling"] = profiling

    def set_weight_decay(self, weight_decay: float) -> None:
        """Set what share of every value an update takes away."""
        self._given["weight_decay"] = weight_decay

    def set_shared_parameters(self, shared_parameters: bool) -> None:
        """Must be false: parameters are not shared among processes."""
        self._given["shared_parameters"] = shared_parameters

    def set_requested_gpus(self, requested_gpus: int) -> None:
        """Must be 0."""
        self._given["requested_gpus"] = requested_gpus

    def set_gpu_mask(self, gpu_mask: Any) -> None:
        """Must be all 0."""
        self._given["gpu_mask"] = [one for one in gpu_mask if one]

    def set_cpu_mode(self) -> None:
        """Run on the processor, the one device there is."""
        self._given.update(requested_gpus=0, gpu_mask=None)


def init(shared_parameters: Any = None) -> None:
    """Take the settings of the command line, ``--dynet-seed`` and the like."""
    params = DynetParams()
    params.from_args(shared_parameters)
    params.init()


def init_from_params(params: DynetParams) -> None:
    """Let settings take effect."""
    params.init()


def reset_random_seed(seed: int) -> None:
    """Set the seed of all random numbers."""
    manual_seed(int(seed))
