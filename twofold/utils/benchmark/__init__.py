"""Measured times of statements: ``Timer`` runs them, ``Measurement`` has their times, ``Compare`` makes tables."""

from twofold.utils.benchmark.compare import Compare
from twofold.utils.benchmark.measurement import Measurement, TaskSpec
from twofold.utils.benchmark.timer import Timer

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer"]
