"""TensorFlow's tools for nested values, where its programs import them from."""

import contextlib as tf_contextlib
import inspect as tf_inspect

from twofold.static import compat as compat
from twofold.static import nest as nest
from twofold.static.python.util import tf_decorator as tf_decorator

__all__ = ["compat", "nest", "tf_contextlib", "tf_decorator", "tf_inspect"]
