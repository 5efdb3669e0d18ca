"""Sobol sequences against SciPy's, and what scrambling keeps."""

from __future__ import annotations

import numpy
import pytest

import twofold as torch
from twofold.errors import ArgumentError
from twofold.quasirandom import SobolEngine

stats = pytest.importorskip("scipy.stats")


@pytest.mark.parametrize("dimension", [1, 2, 7, 600, 4096])
def test_points_are_those_of_the_sequence(dimension: int) -> None:
    expected = stats.qmc.Sobol(dimension, scramble=False, bits=30).random(64)
    engine = SobolEngine(dimension)
    parts = [engine.draw(n, dtype=torch.float64).numpy() for n in (1, 2, 13)]
    engine.fast_forward(8)
    parts.append(engine.draw(40, dtype=torch.float64).numpy())
    assert engine.num_generated == 64
    found = numpy.concatenate(parts)
    assert (found[:16] == expected[:16]).all() and (found[16:] == expected[24:]).all()
    assert (engine.reset().draw(5).numpy() == expected[:5].astype(numpy.float32)).all()


def test_scrambled_points_lie_as_evenly() -> None:
    engine = SobolEngine(5, scramble=True, seed=3)
    points = engine.draw_base2(8).numpy()
    assert ((points >= 0) & (points < 1)).all()
    for axis in points.T:
        assert sorted((axis * 256).astype(int)) == list(range(256))
    again = SobolEngine(5, True, 3)
    assert (again.draw(256).numpy() == points).all() and (
        SobolEngine(5, True, 4).draw(256).numpy() != points
    ).any()
    assert repr(again) == "SobolEngine(dimension=5, scramble=True, seed=3)"
    assert (again.sobolstate.shape, again.shift.shape) == ((5, 30), (5,))


def test_arguments() -> None:
    for dimension in (0, 4097):
        with pytest.raises(ArgumentError, match="Supported dimensions"):
            SobolEngine(dimension)
    engine = SobolEngine(2)
    out = torch.empty(0)
    assert engine.draw(3, out=out) is out and out.shape == (3, 2)
    with pytest.raises(ValueError, match="no power of 2"):
        engine.draw_base2(2)
