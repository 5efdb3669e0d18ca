"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.distribution import Distribution
from twofold.distributions.utils import broadcast_all
from twofold.dtypes import float64
from twofold.frontend.sampling import stream
from twofold.ops.base import FUNCTIONS, apply

Tensor = _core.Tensor

_i0e, _i1e = FUNCTIONS["special.i0e"], FUNCTIONS["special.i1e"]


class VonMises(Distribution):
    """Angles with density proportional to exp(concentration * cos(x - loc))."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The circular mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - _i1e(self.concentration) / _i0e(self.concentration)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        kappa = self.concentration.detach().to(float64).expand(tuple(self._extended_shape(sample_shape)))
        samples = apply("random_von_mises", kappa, *stream(None)) + self.loc.detach() + math.pi
        return (samples % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        exponent = self.concentration * ((value - self.loc).cos() - 1)
        return exponent - math.log(2 * math.pi) - _i0e(self.concentration).log()

    def entropy(self) -> Tensor:
        ratio = _i1e(self.concentration) / _i0e(self.concentration)
        normaliser = math.log(2 * math.pi) + _i0e(self.concentration).log() + self.concentration
        return normaliser - self.concentration * ratio
