"""DyNet's settings, given before ``twofold.dynet`` is imported or at any time after.

>>> from twofold import dynet_config
>>> dynet_config.set(random_seed=7)
>>> dynet_config.get()["seed"]
7
"""

from __future__ import annotations

from typing import Any

from twofold.frontend.sampling import manual_seed

_given: dict[str, Any] | None = None
_gpu: bool | None = None


def set(
    mem: Any = "512",
    random_seed: int = 0,
    autobatch: int = 0,
    profiling: int = 0,
    weight_decay: float = 0,
    shared_parameters: int = 0,
    requested_gpus: int = 0,
    gpu_mask: Any = None,
) -> None:
    """Set how programs run.

    Args:
        mem: Has no effect: memory is taken as it is needed.
        random_seed: The seed of all random numbers; with 0 they are those of the seed that is set.
        autobatch: Has no effect: results do not depend on what runs as one call.
        profiling: Has no effect: ``twofold.stats`` counts, ``TWOFOLD_LOG`` tells.
        weight_decay: What share of every value an update takes away, for collections made from now on.
        shared_parameters: Must be 0: parameters are not shared among processes.
        requested_gpus: Must be 0.
        gpu_mask: Must be empty.

    Raises:
        RuntimeError: A GPU is asked for, or parameters shared among processes.
    """
    global _given
    if requested_gpus or gpu_mask:
        raise RuntimeError("there is no GPU: requested_gpus must be 0 and gpu_mask empty")
    if shared_parameters:
        raise RuntimeError("parameters are not shared among processes: shared_parameters must be 0")
    _given = {
        "mem": mem,
        "seed": random_seed,
        "autobatch": autobatch,
        "profiling": profiling,
        "weight_decay": weight_decay,
        "shared_params": shared_parameters,
        "requested_gpus": requested_gpus,
        "gpu_mask": [],
    }
    if random_seed:
        manual_seed(int(random_seed))


def get() -> dict[str, Any] | None:
    """The settings, or None where none were given."""
    return _given


def set_gpu(flag: bool = True) -> None:
    """Ask for a GPU; raises RuntimeError, as there is none."""
    global _gpu
    if flag:
        raise RuntimeError("there is no GPU: the only device is 'CPU'")
    _gpu = flag


def gpu() -> bool | None:
    """What ``set_gpu`` was told, or None."""
    return _gpu
