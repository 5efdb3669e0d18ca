"""Sequences, classes and data for networks: the parts of ``tf.keras`` that do without its models."""

from twofold.static.keras import datasets as datasets
from twofold.static.keras import preprocessing as preprocessing
from twofold.static.keras import utils as utils
