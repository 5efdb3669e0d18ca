"""Tensors from Python values and arrays, and random tensors."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Iterable
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType, as_dtype, bfloat16, float32, int64
from twofold.frontend.mapping import sample_counter
from twofold.ir.op import REGISTRY
from twofold.ops.base import apply
from twofold.ops.source import shape_of
from twofold.runtime.closing import varied

Tensor = _core.Tensor
_default = [float32]


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype that Python floats become."""
    _default[0] = as_dtype(dtype)


def get_default_dtype() -> DType:
    """The dtype that Python floats become."""
    return _default[0]


def _array(data: Any, dtype: DType | None) -> numpy.ndarray:
    if isinstance(data, numpy.ndarray):
        array = data
    elif isinstance(data, (list, tuple)) and _holds_tensor(data):
        array = numpy.array(_plain(data))
    else:
        array = numpy.array(data)
    if (
        dtype is None
        and array.dtype == numpy.float64
        and not isinstance(data, (numpy.ndarray, numpy.generic))
    ):
        return array.astype(_default[0].numpy) if _default[0] is not bfloat16 else array.astype(numpy.float32)
    if (
        dtype is None
        and array.dtype == numpy.complex128
        and not isinstance(data, (numpy.ndarray, numpy.generic))
    ):
        return array.astype(_default[0].complex.numpy)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"tensor: data of type {type(data).__name__} does not become numbers. Give numbers or nested lists of them."
        )
    return array


def _holds_tensor(data: Iterable[Any]) -> bool:
    return any(
        isinstance(item, Tensor) or (isinstance(item, (list, tuple)) and _holds_tensor(item)) for item in data
    )


def _plain(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.detach().numpy()
    return [_plain(item) for item in data] if isinstance(data, (list, tuple)) else data


def _converted(array: numpy.ndarray, dtype: DType | None, share: bool) -> Tensor:
    if dtype is None or (dtype is not bfloat16 and array.dtype == dtype.numpy):
        return _core.from_array(array, share)
    if dtype is bfloat16:
        return apply("cast", _core.from_array(array.astype(numpy.float32), False), attrs=(dtype,))._realise()
    return _core.from_array(array.astype(dtype.numpy), False)


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new leaf that holds a copy of ``data``: numbers, nested lists, an array or a tensor.

    Python floats become float32 (see ``set_default_dtype``), integers int64; arrays keep their dtype.

    >>> tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    check_device(device)
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        made = data.detach().clone() if wanted is None else data.detach().to(wanted)._realise().clone()
        made = made._realise().detach()
    else:
        made = _converted(_array(data, wanted), wanted, False)
    if requires_grad:
        made.requires_grad = True
    return made


def from_numpy(array: numpy.ndarray) -> Tensor:
    """A tensor that shares the memory of ``array`` (copied if it is not dense).

    What others write to the array shows in the tensor, and in-place operations on the tensor in the array. An
    operation reads the array when it is called, as NumPy would: if others hold the array, it takes a snapshot.
    """
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"from_numpy: expected a NumPy array, got {type(array).__name__}")
    return _core.from_array(array, True)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """``data`` as a tensor, without a copy where that is possible."""
    check_device(device)
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        return data if wanted is None or wanted is data.dtype else data.to(wanted)
    if isinstance(data, numpy.ndarray):
        return _converted(data, wanted, True)
    return _converted(_array(data, wanted), wanted, False)


def from_dlpack(source: Any) -> Tensor:
    """A tensor that shares the memory of any CPU array with ``__dlpack__``."""
    return _core.from_array(numpy.from_dlpack(source), True)


def check_device(device: Any) -> None:
    """Raise RuntimeError for a device that is not there."""
    name = getattr(device, "type", device)
    if name is not None and str(name).split(":")[0] != "cpu":
        raise RuntimeError(f"device {str(device)!r} is not available. Use 'cpu'.")


class Generator:
    """A stream of random numbers: a seed and the number of draws so far (Philox-4x32-10, see ``ops.random``)."""

    def __init__(self, device: Any = None) -> None:
        check_device(device)
        self.key = secrets.randbits(63)
        self.counter = 0

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream over from ``seed``."""
        self.key = int(seed) & 0x7FFFFFFFFFFFFFFF
        self.counter = 0
        return self

    def seed(self) -> int:
        """Start over from a seed that the system gives, and return it."""
        self.manual_seed(secrets.randbits(63))
        return self.key

    def initial_seed(self) -> int:
        """The seed."""
        return self.key

    def draw(self) -> tuple[int, Any]:
        """Key and counter of the next draw."""
        counter = varied(sample_counter(self.counter))
        self.counter += 1
        return self.key, counter

    def get_state(self) -> Tensor:
        """Seed and counter as a tensor."""
        return tensor([self.key, self.counter])

    def set_state(self, state: Tensor) -> None:
        """Go back to a state that ``get_state`` gave."""
        self.key, self.counter = (int(x) for x in state.tolist())


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator."""
    return default_generator.manual_seed(seed)


def _stream(generator: Generator | None) -> tuple[int, Any]:
    return (generator or default_generator).draw()


def _leaf(made: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        made.requires_grad = True
    return made


def rand(
    *size: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers drawn evenly from [0, 1)."""
    check_device(device)
    attrs = (shape_of(size), as_dtype(dtype or _default[0]))
    return _leaf(apply("random_uniform", *_stream(generator), 0.0, 1.0, attrs=attrs), requires_grad)


def randn(
    *size: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers drawn from the standard normal distribution (Box and Muller 1958)."""
    check_device(device)
    attrs = (shape_of(size), as_dtype(dtype or _default[0]))
    return _leaf(apply("random_normal", *_stream(generator), 0.0, 1.0, attrs=attrs), requires_grad)


def randint(low: int, high: Any = None, size: Any = None, *, generator: Generator | None = None, dtype: Any = int64,
            device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Integers drawn evenly from [low, high); with two positional arguments the first is ``high``."""
    check_device(device)
    if size is None:
        low, high, size = 0, low, high
    return _leaf(
        draw_integers(*_stream(generator), int(low), int(high), size, as_dtype(dtype)), requires_grad
    )


def draw_integers(key: int, counter: Any, low: int, high: int, size: Any, dtype: DType) -> Tensor:
    """Bind ``random_integers``; raises ValueError for an empty range."""
    if not 0 < high - low <= 2**32:
        raise RuntimeError(f"randint: the range [{low}, {high}) is empty or too wide. Give low < high.")
    return apply("random_integers", key, counter, low, high, attrs=(shape_of((size,)), dtype))


def randperm(n: int, *, generator: Generator | None = None, dtype: Any = int64, device: Any = None) -> Tensor:
    """The integers 0 … n-1 in random order."""
    check_device(device)
    keys = rand(n, generator=generator, dtype="float64").numpy()
    return _core.from_array(numpy.argsort(keys, kind="stable").astype(as_dtype(dtype).numpy), False)


def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Ones with the probabilities in ``input``, else zeros."""
    return apply("random_bernoulli", *_stream(generator), input, attrs=(tuple(input.shape), input.dtype))


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability ``p`` and scale the others by 1/(1-p), when training.

    Source: Srivastava et al. 2014, Dropout: A Simple Way to Prevent Neural Networks from Overfitting.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is {p}. Use a probability from 0 to 1.")
    if not training or p == 0:
        return input
    made = apply("random_dropout", input, *_stream(None), float(p))
    return input._assign(made) if inplace else made


def _like(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(function)
    def made(
        input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any
    ) -> Tensor:
        return function(
            tuple(input.shape), dtype=dtype or input.dtype, device=device, requires_grad=requires_grad
        )

    made.__name__ = function.__name__ + "_like"
    made.__doc__ = f"As ``{function.__name__}``, with the shape and dtype of ``input``."
    return made


rand_like = _like(rand)
randn_like = _like(randn)


def _leaf_maker(op: Any) -> Callable[..., Tensor]:
    def made(*args: Any, device: Any = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
             memory_format: Any = None, **kwargs: Any) -> Tensor:  # fmt: skip
        check_device(device)
        if kwargs.get("dtype", 0) is None:
            del kwargs["dtype"]
        if op.creates == "default":
            kwargs.setdefault("dtype", _default[0])
        if "size" in kwargs:
            args = (kwargs.pop("size"), *args)
        return _leaf(op.call(*args, **kwargs), requires_grad)

    made.__name__ = made.__qualname__ = op.functions[0]
    made.__doc__ = op.doc
    return made


CREATION: dict[str, Callable[..., Tensor]] = {}
"""Functions that make new leaves, by name; beside the entry's own arguments they take PyTorch's ``requires_grad``."""

for _op in REGISTRY.values():
    if getattr(_op, "creates", ""):
        _maker = _leaf_maker(_op)
        CREATION.update(dict.fromkeys(_op.functions, _maker))  # type: ignore[attr-defined]
CREATION["empty"] = CREATION["zeros"]
