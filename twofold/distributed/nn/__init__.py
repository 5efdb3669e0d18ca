"""Operations of all processes of a group that gradients pass through; see ``functional``."""

from twofold.distributed.nn.functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = [name for name in globals() if not name.startswith("_") and name != "functional"]
