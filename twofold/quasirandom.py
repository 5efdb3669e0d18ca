"""Sequences of points that fill a cube evenly.

Source: Joe and Kuo 2008, Constructing Sobol sequences with better two-dimensional projections; their direction numbers
``new-joe-kuo-6`` of the first dimensions are in ``data/sobol.npz``.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy

from twofold import _core
from twofold.errors import ArgumentError
from twofold.frontend.creation import from_numpy
from twofold.frontend.options import get_default_dtype
from twofold.frontend.sampling import RANDOM_FUNCTIONS, Generator

Tensor = _core.Tensor

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "sobol.npz")
_BITS = 30


@functools.lru_cache(maxsize=8)
def _direction_numbers(dimension: int) -> Any:
    """The direction numbers of the first dimensions as int64 ``[dimension, 30]``, the first with the highest bit.

    The file has a primitive polynomial for each dimension, whose bits are its coefficients, and the odd initial
    numbers, the ``k``-th below ``2**k``, as their bits above the lowest.
    """
    with numpy.load(_FILE) as file:
        polynomials = file["polynomials"][:dimension].astype(numpy.int64)
        bits = numpy.unpackbits(file["bits"][:dimension], axis=1).astype(numpy.int64)
    found = numpy.ones((dimension, _BITS), numpy.int64)
    at = 0
    for k in range(1, 16):
        found[:, k] = 1 + (bits[:, at : at + k] << numpy.arange(1, k + 1)).sum(1)
        at += k
    degrees = numpy.array([int(one).bit_length() - 1 for one in polynomials])
    for k in range(1, _BITS):
        for degree in numpy.unique(degrees[1:]):
            rows = 1 + numpy.flatnonzero(degrees[1:] == degree)
            if k < degree:
                continue
            number = found[rows, k - degree].copy()
            for j in range(1, degree + 1):
                coefficient = polynomials[rows] >> (degree - j) & 1
                number ^= numpy.where(coefficient == 1, found[rows, k - j] << j, 0)
            found[rows, k] = number
    if dimension:
        found[0] = 1
    return found << numpy.arange(_BITS - 1, -1, -1)


class SobolEngine:
    """Points of a Sobol sequence in the unit cube.

    Without scrambling the points are PyTorch's; with it, they depend on random numbers, which differ.

    Args:
        dimension: The number of coordinates of a point, 4096 at most.
        scramble: Scramble the points by random matrices and shifts, which keeps how evenly they lie.
        seed: The seed of these; by default they come from the default generator.

    Raises ArgumentError for another dimension.

    >>> import twofold as torch
    >>> torch.quasirandom.SobolEngine(dimension=3).draw(3)
    tensor([[0.0000, 0.0000, 0.0000],
            [0.5000, 0.5000, 0.5000],
            [0.7500, 0.2500, 0.2500]])
    """

    MAXBIT = _BITS
    MAXDIM = 4096

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ArgumentError(
                f"SobolEngine: dimension {dimension}", f"Supported dimensions are 1 to {self.MAXDIM}."
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self._state = _direction_numbers(dimension)
        self._shift = numpy.zeros(dimension, numpy.int64)
        if scramble:
            self._scramble()
        self.num_generated = 0

    def _scramble(self) -> None:
        """Random shifts, and the columns of direction numbers times random lower triangular matrices of bits."""
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        random = RANDOM_FUNCTIONS["randint"]
        shifts = random(2, (self.dimension, _BITS), generator=generator).numpy()
        self._shift = (shifts << numpy.arange(_BITS)).sum(1)
        matrices = numpy.tril(random(2, (self.dimension, _BITS, _BITS), generator=generator).numpy(), -1)
        matrices = matrices + numpy.eye(_BITS, dtype=numpy.int64)
        highest_first = numpy.arange(_BITS - 1, -1, -1)
        columns = self._state[:, None, :] >> highest_first[:, None] & 1  # [dimension, bit, number]
        mixed = matrices @ columns & 1
        self._state = (mixed << highest_first[:, None]).sum(1)

    @property
    def sobolstate(self) -> Tensor:
        """The direction numbers, int64 ``[dimension, 30]``."""
        return from_numpy(self._state.copy())

    @property
    def shift(self) -> Tensor:
        """What the coordinates of all points are combined with by exclusive or, as integers of 30 bits."""
        return from_numpy(self._shift.copy())

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``n`` points, ``[n, dimension]``, in ``dtype`` or the default; written to ``out`` if given."""
        numbers = numpy.arange(self.num_generated, self.num_generated + n)
        codes = numbers ^ (numbers >> 1)  # neighbours differ in one bit
        points = numpy.broadcast_to(self._shift, (n, self.dimension)).copy()
        for bit in range(int(codes.max(initial=0)).bit_length()):
            points ^= numpy.where((codes >> bit & 1)[:, None] == 1, self._state[:, bit], 0)
        self.num_generated += n
        result = from_numpy(points / 2.0**_BITS).to(dtype or get_default_dtype())
        if out is None:
            return result
        return out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``2**m`` points, ``[2**m, dimension]``.

        Raises ValueError where the points so far and these are no power of two, with which they would not be balanced.
        """
        count = self.num_generated + 2**m
        if count & (count - 1):
            raise ValueError(
                f"draw_base2: {self.num_generated} points before and 2**{m} are {count}, no power of 2. Use draw()."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin again."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave the next ``n`` points out."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        parts += ["scramble=True"] * self.scramble
        parts += [] if self.seed is None else [f"seed={self.seed}"]
        return f"SobolEngine({', '.join(parts)})"
