"""Training, evaluating and predicting with a function that declares a model: ``tf.estimator``."""

from twofold.static.estimator import inputs as inputs
from twofold.static.estimator.estimator import Estimator as Estimator
from twofold.static.estimator.spec import EstimatorSpec as EstimatorSpec
from twofold.static.estimator.spec import ModeKeys as ModeKeys
from twofold.static.estimator.spec import RunConfig as RunConfig
