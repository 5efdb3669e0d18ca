"""Data sets, samplers, and batches of samples."""

from twofold.lazy import other_files as _other_files
from twofold.tracebacks import guard_namespace as _guard_namespace
from twofold.utils.data import dataloader, datapipes, dataset, distributed, sampler
from twofold.utils.data.collation import default_collate, default_convert
from twofold.utils.data.dataloader import DataLoader, get_worker_info
from twofold.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe
from twofold.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from twofold.utils.data.distributed import DistributedSampler
from twofold.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

_other_files(__name__, {"_utils": ""})
_COLLATE = " ".join(
    f"{name}=twofold.utils.data.collation:{name}"
    for name in (
        "collate", "collate_float_fn", "collate_int_fn", "collate_numpy_array_fn", "collate_numpy_scalar_fn",
        "collate_str_fn", "collate_tensor_fn", "default_collate", "default_collate_fn_map", "default_convert",
    )
)  # fmt: skip
_other_files(
    f"{__name__}._utils",
    {"collate": _COLLATE},
)

__all__ = [name for name in globals() if not name.startswith("_")]

_guard_namespace(globals())
