"""Training, evaluating and predicting with a function that declares a model: ``tf.estimator``."""

from twofold.static.estimator import inputs as inputs
from twofold.static.estimator.estimator import Estimator as Estimator
from twofold.static.estimator.spec import EstimatorSpec as EstimatorSpec
from twofold.static.estimator.spec import ModeKeys as ModeKeys
from twofold.static.estimator.spec import RunConfig as RunConfig
from twofold.static.estimator.training import EvalSpec as EvalSpec
from twofold.static.estimator.training import TrainSpec as TrainSpec
from twofold.static.estimator.training import train_and_evaluate as train_and_evaluate
