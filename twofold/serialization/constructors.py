"""What a checkpoint may consist of: a fixed table from the names in a file to constructors that check arguments."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import numpy

from twofold import _core, dtypes
from twofold.dtypes import DType, Size
from twofold.frontend.device import Device
from twofold.nn.parameter import Parameter
from twofold.serialization.storages import KINDS, UNTYPED, Storage

Tensor = _core.Tensor
_KEY_ELEMENTS = 10_000
KEYS: tuple[type, ...] = (
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    type(None),
    DType,
    Device,
    Tensor,
    numpy.generic,
)
_NUMPY_KINDS = "biufc"


def _expect(condition: Any, name: str, args: Any) -> None:
    if not condition:
        raise UnpicklingError(f"{name}: arguments {args!r:.200} are none that a checkpoint has")


def checked_key(value: Any, kinds: tuple[type, ...] = KEYS) -> Any:
    """``value``, as a key of a dictionary or an element of a set; UnpicklingError for what should not be hashed.

    Hashing nested tuples takes time and stack for every level, and a file can nest them without end.
    """
    left, pending = _KEY_ELEMENTS, [(value, 0)]
    while pending:
        one, depth = pending.pop()
        left -= 1
        if isinstance(one, (tuple, frozenset)) and depth < 16 and left > 0:
            pending += [(item, depth + 1) for item in one]
        elif not isinstance(one, kinds):
            raise UnpicklingError(f"a key of type {type(one).__name__}, or a key nested too deep")
    return value


def keep_apart(tensor: Tensor) -> Tensor:
    """A handle of its own on the memory of ``tensor``."""
    return tensor.detach()


def rebuild_tensor(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, metadata: Any = None
) -> Tensor:
    """The tensor over a typed storage."""
    name = "rebuild_tensor"
    _expect(isinstance(storage, Storage) and storage.dtype is not None, name, (storage,))
    return _finished(storage, storage.dtype, offset, size, stride, requires_grad, hooks, metadata, name)


def rebuild_untyped(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """The tensor of ``dtype`` over a storage of bytes."""
    name = "rebuild_tensor"
    _expect(isinstance(storage, Storage) and isinstance(dtype, DType), name, (storage, dtype))
    return _finished(storage, dtype, offset, size, stride, requires_grad, hooks, metadata, name)


def _finished(
    storage: Any,
    dtype: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    metadata: Any,
    name: str,
) -> Tensor:
    _expect(type(requires_grad) is bool and not hooks, name, (requires_grad, hooks))
    _expect(metadata is None or (type(metadata) is dict and set(metadata) <= {"conj", "neg"}), name, metadata)
    _expect(not requires_grad or dtype.is_differentiable, name, (dtype, requires_grad))
    made = storage.tensor(dtype, offset, size, stride, name)
    if metadata and metadata.get("conj"):
        made = made.conj().detach()._realise()
    if metadata and metadata.get("neg"):
        made = (-made).detach()._realise()
    if requires_grad:
        made.requires_grad = True
    return made


def rebuild_old_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    """The tensor over a typed storage, as PyTorch before 0.4 saved it."""
    return rebuild_tensor(storage, offset, size, stride, False, None)


def rebuild_parameter(data: Any, requires_grad: Any, hooks: Any) -> Parameter:
    """The parameter with the memory of ``data``."""
    _expect(
        isinstance(data, Tensor) and type(requires_grad) is bool and not hooks, "rebuild_parameter", (data,)
    )
    return Parameter(keep_apart(data), requires_grad)


def rebuild_parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Parameter:
    """The parameter with the memory of ``data``, and attributes."""
    return _with_attributes(rebuild_parameter(data, requires_grad, hooks), state)


def rebuild_from_type(func: Any, kind: Any, args: Any, state: Any) -> Any:
    """A tensor or parameter with attributes, from one of the constructors above and its arguments."""
    _expect(getattr(func, "build", func) in _REBUILDERS and type(args) is tuple, "rebuild_from_type", (func,))
    made = getattr(func, "build", func)(*args)
    if isinstance(kind, type) and issubclass(kind, Tensor) and kind is not type(made):
        made = kind(made)
    else:
        _expect(
            getattr(kind, "build", kind) in (as_tensor_type, as_parameter, Tensor, Parameter), "type", kind
        )
    return _with_attributes(made, state)


def _with_attributes(made: Any, state: Any) -> Any:
    if isinstance(state, tuple) and len(state) == 2:
        _expect(not state[1], "state", state)
        state = state[0]
    for name, value in (state or {}).items():
        _expect(type(name) is str and not hasattr(type(made), name), "attributes", name)
        setattr(made, name, value)
    return made


def as_tensor_type(*args: Any) -> Tensor:
    """Only the name of the tensor type: tensors of a file are rebuilt over a storage."""
    raise UnpicklingError("a tensor without a storage")


def as_parameter(data: Any, requires_grad: Any = True) -> Parameter:
    """A parameter, as its class is called."""
    return rebuild_parameter(data, requires_grad, None)


_REBUILDERS = (
    rebuild_tensor,
    rebuild_untyped,
    rebuild_old_tensor,
    rebuild_parameter,
    rebuild_parameter_with_state,
)


def as_size(*args: Any) -> Size:
    """A shape."""
    sizes = args[0] if len(args) == 1 else ()
    _expect(type(sizes) in (tuple, list) and all(type(n) is int for n in sizes), "Size", args)
    return Size(sizes)


def as_device(*args: Any) -> Device:
    """A device; one that is not there loads, too, as a name in a file harms nothing."""
    _expect(args and type(args[0]) is str and all(type(n) is int for n in args[1:]), "device", args)
    return Device(*args)


def as_ordered(*args: Any) -> OrderedDict[Any, Any]:
    """An ordered dictionary, from pairs."""
    _expect(len(args) < 2 and all(type(pairs) is list for pairs in args), "OrderedDict", args)
    pairs = args[0] if args else []
    _expect(all(type(pair) in (list, tuple) and len(pair) == 2 for pair in pairs), "OrderedDict", args)
    return OrderedDict((checked_key(key), value) for key, value in pairs)


def as_counter(*args: Any) -> Counter[Any]:
    """A counter, from a dictionary."""
    _expect(len(args) < 2 and all(type(counts) is dict for counts in args), "Counter", args)
    made: Counter[Any] = Counter()
    dict.update(made, args[0] if args else {})
    return made


_FACTORIES = (list, dict, set, tuple, int, float, str, bool)


def as_defaultdict(*args: Any) -> defaultdict[Any, Any]:
    """A dictionary with defaults from one of Python's containers or numbers."""
    _expect(len(args) <= 1, "defaultdict", args)
    factory = args[0] if args else None
    made = getattr(factory, "made", factory)
    _expect(made is None or made in _FACTORIES, "defaultdict", args)
    return defaultdict(made)


def _from_elements(kind: Any) -> Callable[..., Any]:
    def build(*args: Any) -> Any:
        _expect(len(args) < 2 and all(type(items) in (list, tuple) for items in args), kind.__name__, args)
        return kind(checked_key(item) for item in args[0]) if args else kind()

    return build


def _from_numbers(kind: Any) -> Callable[..., Any]:
    def build(*args: Any) -> Any:
        _expect(
            len(args) <= 3 and all(type(one) in (int, float, bool, type(None)) for one in args),
            str(kind),
            args,
        )
        return kind(*args)

    return build


def as_bytes(*args: Any) -> bytes:
    """Bytes that the older protocols write as text."""
    _expect(len(args) == 2 and type(args[0]) is str and args[1] in ("latin1", "latin-1"), "encode", args)
    return args[0].encode("latin-1")


def as_bytearray(*args: Any) -> bytearray:
    """Bytes that can be changed."""
    if len(args) == 2:
        args = (as_bytes(*args),)
    _expect(len(args) < 2 and all(type(content) is bytes for content in args), "bytearray", args)
    return bytearray(*args)


class Pending:
    """A NumPy array or dtype whose state is still to come; ``index`` is where the machine remembers it."""

    index: int | None = None

    def __init__(self, finish: Callable[[Any], Any]) -> None:
        self.finish = finish


def as_array(*args: Any) -> Pending:
    """The start of a NumPy array: BUILD brings shape, dtype and bytes."""
    _expect(len(args) == 3 and args[1] == (0,), "_reconstruct", args)
    return Pending(array_from_state)


def array_from_state(state: Any) -> numpy.ndarray:
    """A NumPy array from what its ``__setstate__`` takes."""
    _expect(type(state) is tuple and len(state) == 5, "ndarray", state)
    _, shape, dtype, fortran, content = state
    if type(content) is str:
        content = content.encode("latin-1")
    return _array(content, dtype, shape, "F" if fortran is True else "C")


def _array(content: Any, dtype: Any, shape: Any, order: Any) -> numpy.ndarray:
    shape = (shape,) if type(shape) is int else shape
    _expect(type(content) in (bytes, bytearray) and isinstance(dtype, numpy.dtype), "ndarray", dtype)
    _expect(type(shape) is tuple and all(type(n) is int and n >= 0 for n in shape), "ndarray", shape)
    flat = numpy.frombuffer(content, dtype) if len(content) else numpy.empty(0, dtype)
    _expect(order in ("C", "F") and len(shape) <= 32, "ndarray", (shape, order))
    try:
        return flat.reshape(shape, order=order).copy(order="K")
    except ValueError:
        raise UnpicklingError(f"ndarray: {len(flat)} elements do not have shape {shape}") from None


def as_array_from_buffer(content: Any, dtype: Any, shape: Any, order: Any) -> numpy.ndarray:
    """A NumPy array from its bytes, as protocol 5 writes it."""
    return _array(content, dtype, shape, order)


def as_dtype(*args: Any) -> Pending:
    """The start of a NumPy dtype of numbers, by its code, such as ``f8``: BUILD brings the byte order."""
    code = args[0] if args else None
    fits = type(code) is str and code[:1] in _NUMPY_KINDS and code[1:] in ("1", "2", "4", "8", "16")
    _expect(fits, "dtype", args)
    try:
        found = numpy.dtype(code)
    except TypeError:
        raise UnpicklingError(f"dtype: {code!r} is no dtype of numbers") from None
    return Pending(lambda state: _dtype_from_state(found, state))


def _dtype_from_state(dtype: numpy.dtype, state: Any) -> numpy.dtype:
    """``dtype`` in the byte order that its ``__setstate__`` would take."""
    _expect(type(state) is tuple and len(state) >= 2 and state[1] in ("<", ">", "|", "="), "dtype", state)
    _expect(all(item in (None, -1, 0) for item in state[2:]), "dtype", state)
    return dtype.newbyteorder(state[1])


def as_scalar(dtype: Any, content: Any) -> Any:
    """A NumPy number from its bytes."""
    if type(content) is str:
        content = content.encode("latin-1")
    found = _array(content, dtype, (), "C")
    return found[()]


CONSTRUCTORS: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): as_ordered,
    ("collections", "Counter"): as_counter,
    ("collections", "defaultdict"): as_defaultdict,
    ("builtins", "set"): _from_elements(set),
    ("builtins", "frozenset"): _from_elements(frozenset),
    ("builtins", "complex"): _from_numbers(complex),
    ("builtins", "slice"): _from_numbers(slice),
    ("builtins", "bytearray"): as_bytearray,
    ("_codecs", "encode"): as_bytes,
    ("torch", "Size"): as_size,
    ("torch", "device"): as_device,
    ("torch", "Tensor"): as_tensor_type,
    ("torch.nn.parameter", "Parameter"): as_parameter,
    ("torch._utils", "_rebuild_tensor"): rebuild_old_tensor,
    ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v3"): rebuild_untyped,
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): rebuild_parameter_with_state,
    ("torch._tensor", "_rebuild_from_type_v2"): rebuild_from_type,
    ("numpy", "dtype"): as_dtype,
    ("numpy._core.multiarray", "_reconstruct"): as_array,
    ("numpy._core.multiarray", "scalar"): as_scalar,
    ("numpy._core.numeric", "_frombuffer"): as_array_from_buffer,
}
"""Names in a file, and what takes their arguments; modules of older versions are brought to these first."""

CLASSES: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): None,
    **{("builtins", kind.__name__): kind for kind in _FACTORIES},
}
"""Names that are only arguments: of the start of an array, and what a ``defaultdict`` has its defaults from."""

CONSTANTS: dict[tuple[str, str], Any] = {
    **{("torch", dtype.name): dtype for dtype in dtypes.ALL},
    **{(kind.module, kind.name): kind for kind in (*KINDS.values(), UNTYPED)},
    ("torch", "UntypedStorage"): UNTYPED,
}
"""Names that stand for a value; nothing is called for them."""

MODULES = {
    "__builtin__": "builtins",
    "numpy.core.multiarray": "numpy._core.multiarray",
    "numpy.core.numeric": "numpy._core.numeric",
    "torch.nn": "torch.nn.parameter",
}
