"""Optimisers and schedules of their learning rates, with PyTorch's names."""

from twofold.lazy import other_files as _other_files
from twofold.optim import lr_scheduler, swa_utils
from twofold.optim.adadelta import Adadelta
from twofold.optim.adafactor import Adafactor
from twofold.optim.adagrad import Adagrad
from twofold.optim.adam import Adam, AdamW
from twofold.optim.adamax import Adamax
from twofold.optim.asgd import ASGD
from twofold.optim.lbfgs import LBFGS
from twofold.optim.muon import Muon
from twofold.optim.nadam import NAdam
from twofold.optim.optimizer import Optimizer
from twofold.optim.radam import RAdam
from twofold.optim.rmsprop import RMSprop
from twofold.optim.rprop import Rprop
from twofold.optim.sgd import SGD
from twofold.optim.sparse_adam import SparseAdam
from twofold.tracebacks import guard_namespace as _guard_namespace

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]

_guard_namespace(globals())

_other_files(__name__, {"adamw": "AdamW adamw=twofold.optim.adam:adamw"})
