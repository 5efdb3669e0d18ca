"""Streams of random numbers, and the functions that draw from them."""

from __future__ import annotations

import functools
import secrets
import threading
from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.dtypes import as_dtype, int64
from twofold.frontend.creation import check_device, get_default_dtype, leaf, tensor
from twofold.frontend.mapping import sample_counter
from twofold.ops import random
from twofold.ops.source import shape_of
from twofold.runtime.closing import varied

Tensor = _core.Tensor
_counting = threading.Lock()


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
        with _counting:
            counter = self.counter
            self.counter += 1
        return self.key, varied(sample_counter(counter))

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


def stream(generator: Generator | None) -> tuple[int, Any]:
    """Key and counter of the next draw of a generator, None for the default one."""
    return (generator or default_generator).draw()


def rand(
    *size: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers drawn evenly from [0, 1)."""
    check_device(device)
    return leaf(
        random.draw_uniform(*stream(generator), shape_of(size), dtype or get_default_dtype()), requires_grad
    )


def randn(
    *size: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers drawn from the standard normal distribution (Box and Muller 1958)."""
    check_device(device)
    return leaf(
        random.draw_normal(*stream(generator), shape_of(size), dtype or get_default_dtype()), requires_grad
    )


def randint(low: int, high: Any = None, size: Any = None, *, generator: Generator | None = None, dtype: Any = int64,
            device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Integers drawn evenly from [low, high); with two positional arguments the first is ``high``."""
    check_device(device)
    if size is None:
        low, high, size = 0, low, high
    drawn = random.draw_integers(*stream(generator), int(low), int(high), size, dtype)
    return leaf(drawn, requires_grad)


def randperm(n: int, *, generator: Generator | None = None, dtype: Any = int64, device: Any = None) -> Tensor:
    """The integers 0 … n-1 in random order."""
    keys = rand(n, generator=generator, dtype="float64", device=device).numpy()
    return _core.from_array(random.permutation_of_keys(keys).astype(as_dtype(dtype).numpy), False)


def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Ones with the probabilities in ``input``, else zeros."""
    return random.draw_bernoulli(*stream(generator), input, tuple(input.shape), input.dtype)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability ``p`` and scale the others by 1/(1-p), when training.

    Source: Srivastava et al. 2014, Dropout: A Simple Way to Prevent Neural Networks from Overfitting.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is {p}. Use a probability from 0 to 1.")
    if not training or p == 0:
        return input
    made = random.draw_dropout(input, *stream(None), float(p))
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
