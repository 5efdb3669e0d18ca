"""``tf.data.Options``: how datasets are computed."""

from __future__ import annotations

from typing import Any

_PARTS = {
    "autotune": "enabled cpu_budget ram_budget",
    "experimental_distribute": "auto_shard_policy num_devices",
    "experimental_optimization": "apply_default_optimizations autotune autotune_buffers autotune_cpu_budget "
    "autotune_ram_budget filter_fusion filter_with_random_uniform_fusion hoist_random_uniform map_and_batch_fusion "
    "map_and_filter_fusion map_fusion map_parallelization map_vectorization noop_elimination parallel_batch "
    "shuffle_and_repeat_fusion",
    "experimental_stats": "aggregator counter_prefix latency_all_edges prefix",
    "experimental_threading": "max_intra_op_parallelism private_threadpool_size",
    "threading": "max_intra_op_parallelism private_threadpool_size",
}
_ALONE = (
    "deterministic experimental_deterministic experimental_external_state_policy experimental_numa_aware "
    "experimental_slack experimental_symbolic_checkpoint experimental_warm_start"
)


class _Settings:
    """Settings of known names; None where they are not set."""

    def __init__(self, names: str) -> None:
        self.__dict__.update(dict.fromkeys(names.split()))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        self.__dict__[name] = value

    def _merge(self, other: Any) -> None:
        for name, value in vars(other).items():
            if isinstance(value, _Settings):
                getattr(self, name)._merge(value)
            elif value is not None:
                setattr(self, name, value)


class Options(_Settings):
    """Settings of ``Dataset.with_options``. All are about speed: elements and their order are the same with any.

    >>> import twofold.static as tf
    >>> options = tf.data.Options()
    >>> options.experimental_deterministic = False
    >>> tf.data.Dataset.range(3).with_options(options).batch(3).options().experimental_deterministic
    False
    """

    def __init__(self) -> None:
        super().__init__(_ALONE)
        self.__dict__.update({name: _Settings(names) for name, names in _PARTS.items()})

    def merge(self, options: Options) -> Options:
        """Both together; those of ``options`` where both have one."""
        made = Options()
        made._merge(self)
        made._merge(options)
        return made
