"""Training, evaluating and predicting with a function that declares a model: ``tf.estimator``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.static.contrib import tpu
    from twofold.static.contrib.estimator import (
        make_early_stopping_hook,
        stop_if_higher_hook,
        stop_if_lower_hook,
        stop_if_no_decrease_hook,
        stop_if_no_increase_hook,
    )
    from twofold.static.estimator import export, inputs
    from twofold.static.estimator.canned import (
        DNNClassifier,
        DNNLinearCombinedClassifier,
        DNNLinearCombinedRegressor,
        DNNRegressor,
        LinearClassifier,
        LinearRegressor,
    )
    from twofold.static.estimator.estimator import Estimator
    from twofold.static.estimator.exporters import BestExporter, Exporter, FinalExporter, LatestExporter
    from twofold.static.estimator.spec import EstimatorSpec, ModeKeys, RunConfig
    from twofold.static.estimator.training import EvalSpec, TrainSpec, train_and_evaluate
    from twofold.static.saving.warm_start import WarmStartSettings
    from twofold.static.train.session_hooks import *  # noqa: F403
    from twofold.static.train.session_run_hook import (
        SecondOrStepTimer,
        SessionRunArgs,
        SessionRunContext,
        SessionRunHook,
        SessionRunValues,
    )

__getattr__, __dir__ = _attach(__name__, _prepared)
