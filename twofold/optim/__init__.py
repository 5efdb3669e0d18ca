"""Optimisers and schedules of their learning rates, with PyTorch's names."""

from twofold.optim import lr_scheduler
from twofold.optim.adam import Adam, AdamW, SparseAdam
from twofold.optim.adaptive import Adadelta, Adagrad, RMSprop
from twofold.optim.optimizer import Optimizer
from twofold.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Optimizer",
    "RMSprop",
    "SparseAdam",
    "lr_scheduler",
]
