"""Twofold: one computation graph, declared by running it or before running it.

``import twofold as torch`` is define-by-run with PyTorch's names; ``import twofold.static as tf`` is
define-then-run with TensorFlow 1's. Both make the same graph and return the same bits.
"""

import builtins
import copyreg as _copyreg
from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

import numpy as _numpy  # first, as it refuses to be loaded in a second interpreter before the core is

from twofold import _core, dtypes, lazy
from twofold import tracebacks as _boundaries
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
from twofold.frontend import install as _install
from twofold.frontend import methods as _methods
from twofold.frontend import predicates as _questions
from twofold.frontend import settings as _settings
from twofold.frontend.creation import (
    CREATION as _CREATION,
)
from twofold.frontend.creation import (
    as_tensor,
    from_dlpack,
    from_numpy,
    tensor,
)
from twofold.frontend.device import Device as device
from twofold.frontend.gradients import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from twofold.frontend.legacy import CONSTRUCTORS as _CONSTRUCTORS
from twofold.frontend.legacy import STORAGES as _STORAGES
from twofold.frontend.legacy import WHOLE as _WHOLE
from twofold.frontend.legacy import is_complex, is_floating_point, numel
from twofold.frontend.options import get_default_dtype, set_default_dtype
from twofold.frontend.sampling import RANDOM_FUNCTIONS as _RANDOM_FUNCTIONS
from twofold.frontend.sampling import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

if TYPE_CHECKING:
    from twofold import (
        _C,
        _VF,
        __config__,
        _dynamo,
        _inductor,
        _subclasses,
        _utils,
        accelerator,
        amp,
        array_api,
        autograd,
        backends,
        compiler,
        cpu,
        cuda,
        debug,
        distributed,
        distributions,
        dynet,
        dynet_config,
        fft,
        files,
        func,
        functional,
        futures,
        fx,
        hub,
        jit,
        library,
        linalg,
        masked,
        multiprocessing,
        nn,
        onnx,
        optim,
        overrides,
        profiler,
        quasirandom,
        random,
        return_types,
        safetensors,
        serialization,
        signal,
        sparse,
        special,
        storage,
        testing,
        torch_version,
        types,
        utils,
        version,
        xpu,
    )
    from twofold.amp import (
        GradScaler,
        autocast,
        get_autocast_dtype,
        is_autocast_enabled,
        set_autocast_dtype,
        set_autocast_enabled,
    )
    from twofold.amp.autocast_mode import (
        get_autocast_cpu_dtype,
        get_autocast_gpu_dtype,
        is_autocast_cpu_enabled,
    )
    from twofold.compiler.requests import wait_for_compiler
    from twofold.debug.anomaly import detect_anomaly
    from twofold.debug.draw import draw
    from twofold.debug.explain import explain
    from twofold.debug.profile import profile
    from twofold.debug.summary import summary
    from twofold.frontend.batch_norm_statistics import _batch_norm_of_torch as batch_norm
    from twofold.frontend.batch_norm_statistics import (
        _batch_norm_with_update,
        _native_batch_norm_legit,
        native_batch_norm,
        native_group_norm,
        native_layer_norm,
    )
    from twofold.frontend.batch_norm_statistics import _instance_norm_of_torch as instance_norm
    from twofold.frontend.checks import (
        SymBool,
        SymFloat,
        SymInt,
        _assert_async,
        _check,
        _check_index,
        _check_is_size,
        _check_not_implemented,
        _check_tensor_all,
        _check_tensor_all_with,
        _check_type,
        _check_value,
        _check_with,
        sym_float,
        sym_int,
        sym_ite,
        sym_max,
        sym_min,
        sym_not,
        sym_sum,
    )
    from twofold.frontend.control import associative_scan, cond, map, scan, switch, while_loop
    from twofold.frontend.display import set_printoptions
    from twofold.frontend.foreach import *  # noqa: F403
    from twofold.frontend.function import compile
    from twofold.frontend.low_rank import lobpcg, pca_lowrank, svd_lowrank
    from twofold.frontend.storage import TypedStorage, UntypedStorage
    from twofold.frontend.windows import (
        bartlett_window,
        blackman_window,
        hamming_window,
        hann_window,
        kaiser_window,
    )
    from twofold.func import vmap
    from twofold.futures import Future
    from twofold.jit import TensorType
    from twofold.nn.functional import (
        bilinear,
        celu_,
        rrelu,
        rrelu_,
        selu_,
        threshold_,
    )
    from twofold.nn.functional_embedding import embedding_of_torch as embedding
    from twofold.nn.functional_pooling import adaptive_max_pool1d_of_torch as adaptive_max_pool1d
    from twofold.nn.losses_of_torch import (
        binary_cross_entropy_with_logits_of_torch as binary_cross_entropy_with_logits,
    )
    from twofold.nn.losses_of_torch import (
        kl_div_of_torch as kl_div,
    )
    from twofold.nn.recurrent_of_torch import gru, lstm, rnn_relu, rnn_tanh
    from twofold.runtime.batching import no_batching
    from twofold.runtime.statistics import stats
    from twofold.serialization import load, save
    from twofold.sparse.coordinates import sparse_coo_tensor, spmm
    from twofold.version import __version__

del TYPE_CHECKING

Tensor = _core.Tensor
dtype = DType
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


def _maker(name: str) -> Any:
    return _install.guarded(name, _CREATION[name], by_types=True)


_late = lazy.late_names(__name__)
_makers = {name: _core.deferred_callable(_maker, name) for name in _CREATION}
for _name, _function in {**_install.PUBLIC, **_makers, **_RANDOM_FUNCTIONS}.items():
    if _name.isidentifier() and _name not in globals() and _name not in _late:
        globals()[_name] = _function
globals().update({**_CONSTRUCTORS, **_STORAGES, **_questions.TOP_LEVEL, **_settings.TOP_LEVEL})
globals().update(_questions.in_place_functions())
for _name, _function in _WHOLE.items():
    globals()[_name] = _function
    setattr(Tensor, _name, _function)

_install.guard(globals())
_boundaries.guard_methods(Tensor)


def _prepared(name: str, value: Any) -> Any:
    # the functions of libraries keep their errors
    inside = getattr(value, "__module__", "").startswith(("twofold.frontend.", "twofold.runtime."))
    return _boundaries.prepared(name, _install.guarded(name, value) if inside else value)


__getattr__, __dir__ = lazy.attach(__name__, _prepared)


def _reduced(function: Any) -> tuple[Any, tuple[str, ...]]:
    if _boundaries.is_boundary(function):
        return _boundaries.find, (function.__module__, function.__qualname__)
    return _import_module("twofold.nn.functional")._function_named, (function.__name__,)


_copyreg.pickle(type(Tensor.exp), _reduced)


def is_tensor(obj: Any) -> builtins.bool:
    """Whether ``obj`` is a tensor.

    >>> import twofold as torch
    >>> torch.is_tensor(torch.tensor([1.0])), torch.is_tensor([1.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


def set_num_threads(count: builtins.int) -> None:
    """Set how many threads kernels may use; results do not depend on it. Raises RuntimeError below 1.

    >>> import twofold as torch
    >>> count = torch.get_num_threads()
    >>> torch.set_num_threads(1)
    >>> torch.get_num_threads()
    1
    >>> torch.set_num_threads(count)
    """
    if count < 1:
        raise RuntimeError(f"set_num_threads expects a positive integer, but got {count}. Use 1 or more.")
    _core.set_threads(count)


def get_num_threads() -> builtins.int:
    """How many threads kernels may use.

    >>> import twofold as torch
    >>> torch.get_num_threads() >= 1
    True
    """
    return _core.threads()


torch = _import_module(__name__)
"""The package itself, which programs also name ``torch.torch``, as PyTorch's does."""
