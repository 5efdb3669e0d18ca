"""Classes of programs that derive from distributions."""

from __future__ import annotations

from typing import Any

import pytest

import twofold as torch
from twofold.distributions import Distribution, Independent, Normal, transforms


class DiagonalNormal(Independent):
    def __init__(self, loc: Any, scale: Any, ndims: int = 1) -> None:
        super().__init__(Normal(loc, scale), ndims)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(DiagonalNormal, _instance))


class Shifted(Normal):
    """A normal whose constructor takes something else."""

    def __init__(self, center: Any) -> None:
        self.center = center
        super().__init__(center + 1.0, torch.ones(()), validate_args=False)


def test_expanded_distributions_keep_their_class_whatever_it_is_made_of() -> None:
    found = DiagonalNormal(torch.zeros(3), torch.ones(3)).expand((2,))
    assert type(found) is DiagonalNormal and found.batch_shape == (2,) and found.event_shape == (3,)
    assert found.log_prob(torch.zeros(3)).shape == (2,)
    shifted = Shifted(torch.tensor(2.0)).expand((4,))
    assert type(shifted) is Shifted and shifted.loc.tolist() == [3.0] * 4 and shifted.center.item() == 2.0


def test_classes_say_whether_arguments_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Distribution, "_validate_args", False)
    assert torch.isnan(Normal(torch.zeros(()), torch.tensor(-1.0)).log_prob(torch.zeros(())))
    assert Normal(torch.zeros(()), torch.ones(())).cdf(0.0).item() == 0.5
    assert transforms.ExpTransform().inv.__class__ is transforms._InverseTransform


def test_names_that_subclasses_use() -> None:
    from twofold.distributions.utils import _standard_normal

    noise = _standard_normal((20000,), dtype=torch.float64, device="cpu")
    assert (
        noise.dtype is torch.float64
        and abs(noise.mean().item()) < 0.05
        and abs(noise.std().item() - 1) < 0.05
    )

    class Given(torch.distributions.MultivariateNormal):
        """Made of its factor alone."""

        def __init__(self, factor: Any) -> None:
            self.loc, self._unbroadcasted_scale_tril = torch.zeros(2), factor
            Distribution.__init__(self, (), (2,), validate_args=False)

    assert Given(2 * torch.eye(2)).covariance_matrix.tolist() == [[4, 0], [0, 4]]


def test_constraints_are_listed() -> None:
    from twofold.distributions import constraints

    assert {"real", "simplex", "dependent_property"} <= set(constraints.__all__)
    assert all(hasattr(constraints, name) for name in constraints.__all__)


def test_rules_of_divergences_for_classes_that_distributions_mix_in() -> None:
    class Marked:
        pass

    class Own(Distribution, Marked):
        pass

    @torch.distributions.register_kl(Marked, Marked)
    def rule(p: Any, q: Any) -> Any:
        return torch.tensor(7.0)

    assert torch.distributions.kl_divergence(Own(), Own()).item() == 7
    with pytest.raises(TypeError, match="is no class"):
        torch.distributions.register_kl(3, Normal)
