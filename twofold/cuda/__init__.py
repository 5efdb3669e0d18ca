"""What programs ask about graphics cards, of which there are none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from twofold.cuda import amp as amp
from twofold.frontend.legacy import CONSTRUCTORS as _CONSTRUCTORS
from twofold.frontend.options import check_device
from twofold.lazy import other_files as _other_files


def is_available() -> bool:
    """Whether there is a graphics card: no.

    >>> import twofold as torch
    >>> torch.cuda.is_available()
    False
    """
    return False


_initialized = False


def is_initialized() -> bool:
    """Whether a graphics card is in use: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether a graphics card computes in bfloat16: there is none."""
    return False


def device_count() -> int:
    """How many graphics cards there are: 0."""
    return 0


def memory_allocated(device: Any = None) -> int:
    """How many bytes tensors take on a graphics card: 0."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated
memory_cached = max_memory_cached = memory_allocated


class device:
    """A ``with`` block that computes on the graphics card of an index; one below 0 is none.

    Raises RuntimeError where there is a card to compute on: there is none.

    >>> import twofold as torch
    >>> with torch.cuda.device(-1):
    ...     torch.ones(1)
    tensor([1.])
    """

    def __init__(self, device: Any) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if not isinstance(self.idx, int) or self.idx >= 0:
            _missing(self.idx)

    def __exit__(self, *args: Any) -> None:
        """The block ends."""


class device_of(device):
    """A ``with`` block that computes where a tensor is.

    >>> import twofold as torch
    >>> with torch.cuda.device_of(torch.ones(1)):
    ...     torch.ones(1)
    tensor([1.])
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(-1)


def manual_seed_all(seed: int) -> None:
    """Nothing to seed."""


manual_seed = manual_seed_all


def empty_cache() -> None:
    """Nothing to empty."""


def get_rng_state_all() -> list[Any]:
    """The states of the random number generators of all graphics cards: none."""
    return []


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the states of generators on graphics cards; RuntimeError if there are any to set."""
    for state in new_states:
        _missing(state)


def synchronize(device: Any = None) -> None:
    """Raise RuntimeError: there is no graphics card, ``device`` or another, to wait for."""
    _missing(device)


def _missing(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise RuntimeError: there is no graphics card. Ask ``is_available()`` first."""
    check_device("cuda")
    raise AssertionError("the device is there")


class OutOfMemoryError(RuntimeError):
    """A graphics card has no memory left: never raised."""


def get_arch_list() -> list[str]:
    """Kinds of graphics cards that kernels are compiled for: none."""
    return []


set_rng_state = get_rng_state = get_device_capability = memory_summary = mem_get_info = _missing
get_sync_debug_mode = set_sync_debug_mode = reset_max_memory_cached = reset_max_memory_allocated = _missing
Event = Stream = stream = default_stream = CUDAGraph = reset_peak_memory_stats = _missing
set_device = current_device = get_device_name = get_device_properties = current_stream = _missing


class _TensorType(type):
    """Classes such as ``cuda.FloatTensor``: no tensor is an instance, and a call raises RuntimeError."""

    device = "cuda"

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        _missing()

    def __instancecheck__(cls, instance: Any) -> bool:
        return False


FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, LongTensor, IntTensor, ShortTensor, CharTensor, ByteTensor = (
    _TensorType(name, (), {"dtype": _CONSTRUCTORS[name].dtype, "__doc__": "The class of tensors on a graphics card."})
    for name in (
        "FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "LongTensor", "IntTensor", "ShortTensor",
        "CharTensor", "ByteTensor",
    )
)  # fmt: skip
BoolTensor = _TensorType(
    "BoolTensor", (), {"dtype": _CONSTRUCTORS["BoolTensor"].dtype, "__doc__": FloatTensor.__doc__}
)

_NONE = f"={__name__}:_missing"
_other_files(
    __name__,
    {
        "memory": (
            "empty_cache max_memory_allocated max_memory_reserved mem_get_info memory_allocated memory_reserved "
            "memory_summary reset_peak_memory_stats"
        ),
        "nvtx": " ".join(name + _NONE for name in ("mark", "range", "range_pop", "range_push")),
        "random": (
            "get_rng_state get_rng_state_all manual_seed manual_seed_all set_rng_state set_rng_state_all"
        ),
        "streams": "Event Stream",
    },
)
