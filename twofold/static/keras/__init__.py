"""Layers, models and data for networks: ``tf.keras``."""

from twofold.static.keras import activations as activations
from twofold.static.keras import backend as backend
from twofold.static.keras import callbacks as callbacks
from twofold.static.keras import constraints as constraints
from twofold.static.keras import datasets as datasets
from twofold.static.keras import initializers as initializers
from twofold.static.keras import layers as layers
from twofold.static.keras import losses as losses
from twofold.static.keras import metrics as metrics
from twofold.static.keras import models as models
from twofold.static.keras import optimizers as optimizers
from twofold.static.keras import preprocessing as preprocessing
from twofold.static.keras import regularizers as regularizers
from twofold.static.keras import utils as utils
from twofold.static.keras.models import Input as Input
from twofold.static.keras.models import Model as Model
from twofold.static.keras.models import Sequential as Sequential
