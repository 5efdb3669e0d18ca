"""Helpers around programs: data sets and their loading, computing again instead of keeping, sharing memory."""

from twofold.lazy import other_files as _other_files
from twofold.tracebacks import guard_namespace as _guard_namespace
from twofold.utils import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]

_other_files(
    __name__,
    {
        "hooks": "RemovableHandle=twofold.nn.hooks:RemovableHandle",
        "model_zoo": (
            "download_url_to_file=twofold.hub:download_url_to_file load_url=twofold.hub:load_state_dict_from_url "
            "tqdm=twofold.hub:tqdm"
        ),
    },
)
_guard_namespace(globals())
