"""Modules of ``tf.contrib.learn`` by their files."""

from twofold.static.contrib.learn.python.learn import datasets as datasets
from twofold.static.python.positions import enter

_FILES = "estimator model_fn run_config dnn linear dnn_linear_combined"
enter(
    __name__,
    {
        "estimators " + " ".join(f"estimators.{name}" for name in _FILES.split()): "contrib.learn",
        "learn_runner": "contrib.learn.experiment",
        "metric_spec experiment": "contrib.learn",
        "monitors": "contrib.learn.monitors",
        "preprocessing preprocessing.text": "contrib.learn.preprocessing",
        "learn_io learn_io.numpy_io learn_io.pandas_io": "estimator.inputs",
    },
)
