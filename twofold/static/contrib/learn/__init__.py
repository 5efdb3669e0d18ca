"""Estimators that take arrays, experiments, vocabularies and small data sets: ``tf.contrib.learn``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.static.contrib.learn import preprocessing as preprocessing

if TYPE_CHECKING:
    from twofold.static.contrib.learn import datasets, monitors, python
    from twofold.static.contrib.learn import experiment as learn_runner
    from twofold.static.contrib.learn.estimators import (
        DNNClassifier,
        DNNLinearCombinedClassifier,
        DNNLinearCombinedRegressor,
        DNNRegressor,
        Estimator,
        LinearClassifier,
        LinearRegressor,
        MetricSpec,
        ModelFnOps,
        RunConfig,
        SKCompat,
        infer_real_valued_columns_from_input,
        infer_real_valued_columns_from_input_fn,
    )
    from twofold.static.contrib.learn.experiment import Experiment
    from twofold.static.estimator import inputs as io

__getattr__, __dir__ = _attach(__name__)


class ModeKeys:
    """What a model is made for.

    >>> import twofold.static as tf
    >>> tf.contrib.learn.ModeKeys.INFER
    'infer'
    """

    TRAIN, EVAL, INFER = "train", "eval", "infer"
