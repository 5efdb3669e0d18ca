"""Twofold: one computation graph, declared by running it or before running it.

``import twofold as torch`` is define-by-run with PyTorch's names; ``import twofold.static as tf`` is
define-then-run with TensorFlow 1's. Both make the same graph and return the same bits.
"""

import builtins
from typing import Any

import twofold.ops
from twofold import _core, dtypes
from twofold.config import config
from twofold.dtypes import (
    DType,
    bfloat16,
    complex64,
    complex128,
    finfo,
    float16,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    uint8,
    uint16,
    uint32,
    uint64,
)
from twofold.dtypes import bool_ as bool
from twofold.frontend import counting as _counting
from twofold.frontend import install as _install
from twofold.frontend import methods as _methods
from twofold.frontend import questions as _questions
from twofold.frontend import selection as _selection
from twofold.frontend import settings as _settings
from twofold.frontend.control import associative_scan, cond, map, scan, switch, while_loop
from twofold.frontend.creation import (
    CREATION as _CREATION,
)
from twofold.frontend.creation import (
    as_tensor,
    from_dlpack,
    from_numpy,
    get_default_dtype,
    set_default_dtype,
    tensor,
)
from twofold.frontend.display import set_printoptions
from twofold.frontend.drawing import DRAWING as _DRAWING
from twofold.frontend.drawing import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from twofold.frontend.function import compile
from twofold.frontend.gradients import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from twofold.frontend.legacy import CONSTRUCTORS as _CONSTRUCTORS
from twofold.frontend.legacy import WHOLE as _WHOLE
from twofold.frontend.legacy import is_complex, is_floating_point, numel
from twofold.frontend.low_rank import lobpcg, pca_lowrank, svd_lowrank
from twofold.frontend.methods import Device as device
from twofold.frontend.running import TOP_LEVEL as _NORMALIZATION
from twofold.frontend.windows import WINDOWS as _WINDOWS
from twofold.runtime.tracing import wait_for_compiler

__version__ = "0.1.0"

Tensor = _core.Tensor
float = float32
double = float64
half = float16
cfloat = complex64
cdouble = complex128
short = int16
int = int32
long = int64
Size = dtypes.Size

_install.install()
_methods.install()
_questions.install()
_settings.install()
for _name, _function in {**_install.PUBLIC, **_CREATION, **_DRAWING, **_WINDOWS, **_NORMALIZATION}.items():
    if _name.isidentifier() and _name not in globals():
        globals()[_name] = _function
globals().update({**_CONSTRUCTORS, **_questions.TOP_LEVEL, **_settings.TOP_LEVEL})
globals().update(_questions.in_place_functions())
for _name, _function in _WHOLE.items():
    globals()[_name] = _function
    setattr(Tensor, _name, _function)

_install.guard(globals())

# These find the public functions in place, so they come after the installation.
from twofold import (  # noqa: E402
    accelerator,
    amp,
    array_api,
    autograd,
    backends,
    cpu,
    cuda,
    distributed,
    distributions,
    fft,
    func,
    linalg,
    masked,
    nn,
    onnx,
    optim,
    random,
    safetensors,
    serialization,
    signal,
    special,
    testing,
    utils,
)
from twofold.amp import (  # noqa: E402
    autocast,
    get_autocast_dtype,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from twofold.func import vmap  # noqa: E402
from twofold.serialization import load, save  # noqa: E402


def is_tensor(obj: Any) -> builtins.bool:
    """Whether ``obj`` is a tensor.

    >>> import twofold as torch
    >>> torch.is_tensor(torch.tensor([1.0])), torch.is_tensor([1.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


def set_num_threads(count: builtins.int) -> None:
    """Set how many threads kernels may use; results do not depend on it.

    >>> import twofold as torch
    >>> count = torch.get_num_threads()
    >>> torch.set_num_threads(1)
    >>> torch.get_num_threads()
    1
    >>> torch.set_num_threads(count)
    """
    _core.set_threads(count)


def get_num_threads() -> builtins.int:
    """How many threads kernels may use.

    >>> import twofold as torch
    >>> torch.get_num_threads() >= 1
    True
    """
    return _core.threads()
