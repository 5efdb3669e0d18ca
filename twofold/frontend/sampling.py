"""Streams of random numbers, and the functions that sample from them."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType, as_dtype, int64
from twofold.errors import ArgumentError, DTypeError
from twofold.frontend.creation import leaf, tensor
from twofold.frontend.mapping import sample_counter
from twofold.frontend.options import OPTIONS, check_device, check_options, get_default_dtype, in_format
from twofold.ops.base import apply, broadcast_shapes
from twofold.ops.random import distributions, sampling
from twofold.ops.signatures import shows
from twofold.ops.source import shape_of
from twofold.runtime.closure_conversion import varied

Tensor = _core.Tensor
_counting = threading.Lock()
_SEEDS = 2**63


def _new_seed() -> int:
    """A seed that the system gives."""
    return int.from_bytes(os.urandom(8), "little") % _SEEDS


class Generator:
    """A stream of random numbers: a seed and the number of samples so far (Philox-4x32-10, see ``docs/random.md``).

    >>> import twofold as torch
    >>> first, second = (torch.rand(3, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    >>> torch.equal(first, second)
    True
    """

    def __init__(self, device: Any = None) -> None:
        check_device(device)
        self.device = "cpu"
        self.manual_seed(_new_seed())

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream over from ``seed``, of which the lowest 63 bits count."""
        self.key = int(seed) % _SEEDS
        self.counter = 0
        return self

    def seed(self) -> int:
        """Start over from a seed that the system gives, and return it."""
        self.manual_seed(_new_seed())
        return self.key

    def initial_seed(self) -> int:
        """The seed."""
        return self.key

    def advance(self) -> tuple[int, Any]:
        """Key and counter of the next sample."""
        with _counting:
            _core.not_by_types()
            counter = self.counter
            self.counter += 1
        return self.key, varied(sample_counter(counter))

    def get_state(self) -> Tensor:
        """Seed and number of samples as 16 bytes."""
        return tensor(numpy.array([self.key, self.counter], "<u8").view(numpy.uint8))

    def set_state(self, new_state: Tensor) -> Generator:
        """Go back to a state that ``get_state`` gave; raises ValueError for anything else."""
        array = numpy.asarray(new_state.numpy())
        if array.dtype != numpy.uint8 or array.shape != (16,):
            raise ArgumentError(f"a state of {array.dtype} {array.shape}", "Give what get_state returned.")
        self.key, self.counter = (int(number) for number in array.view("<u8"))
        return self

    def clone_state(self) -> Generator:
        """A generator that goes on as this one does."""
        return Generator().set_state(self.get_state())


default_generator = Generator()


class _Given(threading.local):
    def __init__(self) -> None:
        self.streams: list[Callable[[], tuple[int, Any]]] = []


_given = _Given()
_NEXT_KEY = 0x9E3779B97F4A7C15


@contextmanager
def stream_from(key: int, counter: Any) -> Iterator[None]:
    """Inside, samples of the default generator have this counter and one key after the other, from ``key`` on."""
    number = itertools.count()
    _given.streams.append(lambda: ((key + next(number) * _NEXT_KEY) % _SEEDS, counter))
    try:
        yield
    finally:
        _given.streams.pop()


def stream(generator: Generator | None) -> tuple[int, Any]:
    """Key and counter of the next sample of a generator, None for the default one."""
    if generator is None and _given.streams:
        return _given.streams[-1]()
    return (generator or default_generator).advance()


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    """The core's callable, which names function and line in its errors, and stores results in ``out``."""
    if hasattr(function, "__wrapped__"):
        return function
    made: Any = _core.operation_callable(None, 0, function)
    made.__name__ = made.__qualname__ = function.__name__
    made.__doc__ = function.__doc__
    return made


RANDOM_FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Public functions that sample, by name."""

METHODS: dict[str, Callable[..., Any]] = {}
"""Methods that sample: those without an underscore from the chances in a tensor, the others in place."""


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    if "options" in inspect.signature(function).parameters:
        shows(function, function, *OPTIONS[1:], without=("options",))
    RANDOM_FUNCTIONS[function.__name__] = made = _named(function)
    return made


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    METHODS[function.__name__] = made = _named(function)
    return made


class _Options:
    """The dtype of a new tensor, and whether it requires grad; the rest of PyTorch's options is checked."""

    def __init__(
        self,
        default: DType,
        dtype: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
        **options: Any,
    ) -> None:
        check_options(**options)
        self.memory_format = memory_format
        self.dtype = as_dtype(dtype) if dtype is not None else default
        self.requires_grad = requires_grad

    def leaf(self, made: Tensor) -> Tensor:
        """A sampled tensor as the options want it."""
        return leaf(in_format(made, self.memory_format), self.requires_grad)


_default_options = functools.lru_cache(_Options)


def _wanted(default: DType, options: dict[str, Any]) -> _Options:
    """The options of a call, whose dtype is ``default`` if none is given."""
    return _Options(default, **options) if options else _default_options(default)


def _size(sizes: tuple[Any, ...], size: Any) -> tuple[int, ...]:
    return shape_of(sizes if size is None else (size,))


@_function
def rand(*sizes: Any, size: Any = None, generator: Generator | None = None, **options: Any) -> Tensor:
    """Numbers sampled evenly from [0, 1).

    >>> import twofold as torch
    >>> x = torch.rand(2, 3, generator=torch.Generator().manual_seed(5))
    >>> x.shape, bool(((x >= 0) & (x < 1)).all())
    (twofold.Size([2, 3]), True)
    """
    wanted = _wanted(get_default_dtype(), options)
    return wanted.leaf(sampling.sample_uniform(*stream(generator), _size(sizes, size), wanted.dtype))


@_function
def randn(*sizes: Any, size: Any = None, generator: Generator | None = None, **options: Any) -> Tensor:
    """Numbers sampled from the standard normal distribution (Box and Muller 1958).

    >>> import twofold as torch
    >>> x = torch.randn(1000, generator=torch.Generator().manual_seed(5))
    >>> bool(x.mean().abs() < 0.1), bool((x.std() - 1).abs() < 0.1)
    (True, True)
    """
    wanted = _wanted(get_default_dtype(), options)
    return wanted.leaf(sampling.sample_normal(*stream(generator), _size(sizes, size), wanted.dtype))


@_function
def randint(
    low: Any = 0, high: Any = None, size: Any = None, *, generator: Generator | None = None, **options: Any
) -> Tensor:
    """Integers sampled evenly from [low, high); of two positional arguments the first is ``high``.

    >>> import twofold as torch
    >>> torch.randint(3, 9, (1000,)).aminmax()
    twofold.return_types.aminmax(
    min=tensor(3),
    max=tensor(8))
    """
    wanted = _wanted(int64, options)
    if high is not None and size is None and not isinstance(high, int):
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if size is None:
        raise ArgumentError("no size", "Give it, as in randint(0, 10, (3,)).")
    samples = sampling.sample_integers(*stream(generator), int(low), int(high), size, wanted.dtype)
    return wanted.leaf(samples)


@_function
def rand_like(input: Tensor, *, generator: Generator | None = None, **options: Any) -> Tensor:
    """As ``rand``, with the shape and dtype of ``input``.

    >>> import twofold as torch
    >>> torch.rand_like(torch.zeros(2, 3, dtype=torch.float64)).type_
    float64[2,3]
    """
    return rand(tuple(input.shape), generator=generator, **{"dtype": input.dtype, **options})


@_function
def randn_like(input: Tensor, *, generator: Generator | None = None, **options: Any) -> Tensor:
    """As ``randn``, with the shape and dtype of ``input``.

    >>> import twofold as torch
    >>> torch.randn_like(torch.zeros(2, 3)).shape
    twofold.Size([2, 3])
    """
    return randn(tuple(input.shape), generator=generator, **{"dtype": input.dtype, **options})


@_function
def randint_like(
    input: Tensor,
    low: int | None = None,
    high: int | None = None,
    *,
    generator: Generator | None = None,
    **options: Any,
) -> Tensor:
    """Integers sampled evenly from [low, high), with the shape and dtype of ``input``; one number is ``high``.

    Raises TypeError where there is none.

    >>> import twofold as torch
    >>> torch.randint_like(torch.zeros(2, 3), 1)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if low is None and high is None:
        raise TypeError("randint_like: how many integers to sample from is missing. Give high.")
    low, high = (0, low) if high is None else (low or 0, high)
    found = {"dtype": input.dtype, **options}
    return randint(low, high, tuple(input.shape), generator=generator, **found)


@_function
def randperm(n: int, *, generator: Generator | None = None, **options: Any) -> Tensor:
    """The integers 0 … n-1 in random order.

    >>> import twofold as torch
    >>> torch.randperm(9).sort().values.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8]
    """
    wanted = _wanted(int64, options)
    order = distributions.sample_permutation(*stream(generator), int(n))
    return wanted.leaf(order if wanted.dtype is int64 else order.to(wanted.dtype))


def _within(value: Tensor, name: str, high: float = math.inf) -> Tensor:
    """Floats of 0 up to ``high``, checked when they are computed."""
    if not isinstance(value, Tensor) or value.dtype.kind != "f":
        given = value.dtype.name if isinstance(value, Tensor) else f"type {type(value).__name__}"
        raise ArgumentError(f"{name} of {given}", "Give a tensor of floats.")
    return apply("within", value, attrs=(name, 0.0, high))


def _chances(p: Tensor, name: str = "p") -> Tensor:
    return _within(p.detach(), name, 1.0)


@_function
@_method
def bernoulli(input: Tensor, p: Any = None, *, generator: Generator | None = None) -> Tensor:
    """Ones with the probabilities in ``input``, else zeros; ``p`` is one probability for all.

    Raises RuntimeError for a probability outside [0, 1].

    >>> import twofold as torch
    >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    shape, dtype = tuple(input.shape), input.dtype
    if p is None:
        return sampling.sample_bernoulli(*stream(generator), _chances(input, "input"), shape, dtype)
    return sampling.sample_bernoulli(*stream(generator), _one_chance(p), shape, dtype)


def _one_chance(p: Any) -> Any:
    if isinstance(p, Tensor):
        return _chances(p)
    if not 0 <= p <= 1:
        raise ArgumentError(f"p is {p}", "Use a probability from 0 to 1.")
    return float(p)


@_function
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability ``p`` and scale the others by 1/(1-p), when training.

    Source: Srivastava et al. 2014, Dropout: A Simple Way to Prevent Neural Networks from Overfitting.

    >>> import twofold as torch
    >>> sorted(set(torch.nn.functional.dropout(torch.ones(100)).tolist()))
    [0.0, 2.0]
    """
    if not 0 <= p <= 1:
        raise ArgumentError(f"p is {p}", "Use a probability from 0 to 1.")
    if not training or p == 0:
        return input
    if input.dtype.kind not in "fc":
        raise DTypeError(
            f"takes floating and complex dtypes, not {input.dtype.name}", "Cast with .to() first."
        )
    made = sampling.sample_dropout(input, *stream(None), float(p))
    return input._assign(made) if inplace else made


@_function
@_method
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Class numbers sampled from a vector of weights, or from each row of a matrix, as int64.

    Raises RuntimeError for negative weights, for no weight above 0, and for more samples without replacement than
    there are weights above 0.

    >>> import twofold as torch
    >>> torch.multinomial(torch.tensor([0.0, 3.0, 1.0]), 2).sort().values
    tensor([1, 2])
    """
    return distributions.sample_choice(input.detach(), *stream(generator), int(num_samples), replacement)


@_function
def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, **options: Any
) -> Tensor:
    """Normal numbers with the means and standard deviations of tensors, or of numbers and a ``size``.

    Raises RuntimeError for a negative deviation, ShapeError for shapes that do not broadcast.

    >>> import twofold as torch
    >>> torch.normal(torch.tensor([0.0, 100.0]), torch.tensor([0.0, 0.0]))
    tensor([  0., 100.])
    """
    given = [value for value in (mean, std) if isinstance(value, Tensor)]
    wanted = _wanted(given[0].dtype if given else get_default_dtype(), options)
    if not isinstance(std, Tensor) and not std >= 0:
        raise ArgumentError(f"std is {std}", "Use a standard deviation from 0 on.")
    if given and size is not None:
        raise ArgumentError("a size beside tensors", "Leave it out: the tensors have the shape.")
    if not given and size is None:
        raise ArgumentError("numbers without a size", "Give it, as in normal(0.0, 1.0, (3,)).")
    shape = broadcast_shapes(*[tuple(value.shape) for value in given]) if given else shape_of((size,))
    if isinstance(std, Tensor):
        std = _within(std.detach(), "std")
    mean = mean.detach() if isinstance(mean, Tensor) else float(mean)
    std = std if isinstance(std, Tensor) else float(std)
    return wanted.leaf(sampling.sample_normal(*stream(generator), shape, wanted.dtype, mean, std))


@_function
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers with the rates in ``input``, in its dtype; the gradient is 0.

    Raises RuntimeError for a negative rate. Sources: see ``ops.random_rejection``.

    >>> import twofold as torch
    >>> torch.poisson(torch.zeros(3))
    tensor([0., 0., 0.])
    """
    return distributions.sample_poisson(_within(input, "input"), *stream(generator))


@_function
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of ``count`` trials of probability ``prob`` succeed, in the dtype of ``count``; the gradient is 0.

    >>> import twofold as torch
    >>> torch.binomial(torch.tensor([5.0, 7.0]), torch.tensor([0.0, 1.0]))
    tensor([0., 7.])
    """
    shape = broadcast_shapes(tuple(count.shape), tuple(prob.shape))
    count, prob = (value.expand(shape) for value in (count, prob))
    count, prob = _within(count, "count"), _within(prob, "prob", 1.0)
    return distributions.sample_binomial(count, prob, *stream(generator))


def _in_place(self: Tensor, name: str, generator: Generator | None, *parameters: Any) -> Tensor:
    sampler = {"uniform": sampling.sample_uniform, "normal": sampling.sample_normal}.get(name)
    if self.dtype.kind != "f" and name != "geometric" and not (sampler and self.dtype.kind == "c"):
        raise ArgumentError(f"{name} numbers in {self.dtype.name}", "Use a tensor of floats.")
    shape, values = tuple(self.shape), [float(value) for value in parameters]
    if sampler is not None:
        return self._assign(sampler(*stream(generator), shape, self.dtype, *values))
    return self._assign(distributions.sample(name, *stream(generator), shape, self.dtype, *values))


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise ArgumentError(f"{name} is {value}", "Use a positive number.")


@_method
def uniform_(self: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """In-place: sample evenly from [a, b)."""
    if not a <= b:
        raise ArgumentError(f"the range from {a} to {b}", "Use a range that does not end before it begins.")
    return _in_place(self, "uniform", generator, a, b)


@_method
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """In-place: sample from a normal distribution."""
    if not std >= 0:
        raise ArgumentError(f"std is {std}", "Use a standard deviation from 0 on.")
    return _in_place(self, "normal", generator, mean, std)


@_method
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """In-place: sample from the exponential distribution with rate ``lambd``."""
    _positive("lambd", lambd)
    return _in_place(self, "exponential", generator, lambd)


@_method
def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """In-place: sample from the Cauchy distribution around ``median`` with scale ``sigma``."""
    _positive("sigma", sigma)
    return _in_place(self, "cauchy", generator, median, sigma)


@_method
def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """In-place: sample numbers whose logarithms are normal with this mean and deviation."""
    _positive("std", std)
    return _in_place(self, "log_normal", generator, mean, std)


@_method
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """In-place: sample how many trials of probability ``p`` it takes until the first succeeds."""
    if not 0 < p < 1:
        raise ArgumentError(f"p is {p}", "Use a probability between 0 and 1, both excluded.")
    return _in_place(self, "geometric", generator, p)


@_method
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """In-place: ones with probability ``p``, a number or a tensor that broadcasts, else zeros."""
    return self._assign(
        sampling.sample_bernoulli(*stream(generator), _one_chance(p), tuple(self.shape), self.dtype)
    )


_MANTISSA = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def _whole_range(dtype: DType) -> int:
    """One more than the largest of the integers from 0 on that a dtype holds without a gap."""
    if dtype.kind == "f":
        return 2 ** _MANTISSA[dtype.name] + 1
    return 2 if dtype.kind == "b" else min(int(numpy.iinfo(dtype.numpy).max), 2**63 - 1) + 1


@_method
def random_(
    self: Tensor, start: int | None = None, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """In-place: integers sampled evenly from [start, to), or [0, start), or all from 0 on that the dtype holds.

    Floats hold the integers up to 2 to the number of their digits.
    """
    if start is not None and to is None:
        start, to = 0, start
    limit = _whole_range(self.dtype)
    low, high = 0 if start is None else int(start), limit if to is None else int(to)
    if not low < high:
        raise ArgumentError(f"the range from {low} to {high}", "Give start < to.")
    lowest = 0 if self.dtype.kind in "bu" else -limit
    if low < lowest or high > limit:
        raise ArgumentError(f"the range from {low} to {high} for {self.dtype.name}", "Use a wider dtype.")
    return self._assign(
        sampling.sample_integers(*stream(generator), low, high, tuple(self.shape), self.dtype)
    )


def manual_seed(seed: int) -> Generator:
    """Seed the default generator.

    >>> import twofold as torch
    >>> state = torch.get_rng_state()
    >>> generator = torch.manual_seed(5)
    >>> x = torch.rand(3)
    >>> generator = torch.manual_seed(5)
    >>> torch.equal(x, torch.rand(3))
    True
    >>> torch.set_rng_state(state)
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the system; returns the seed.

    >>> import twofold as torch
    >>> state = torch.get_rng_state()
    >>> isinstance(torch.seed(), int)
    True
    >>> torch.set_rng_state(state)
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator.

    >>> import twofold as torch
    >>> isinstance(torch.initial_seed(), int)
    True
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator.

    >>> import twofold as torch
    >>> state = torch.get_rng_state()
    >>> x = torch.rand(3)
    >>> torch.set_rng_state(state)
    >>> torch.equal(x, torch.rand(3))
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Bring the default generator back to a state.

    >>> import twofold as torch
    >>> state = torch.get_rng_state()
    >>> x = torch.rand(3)
    >>> torch.set_rng_state(state)
    >>> torch.equal(x, torch.rand(3))
    True
    """
    default_generator.set_state(new_state)
