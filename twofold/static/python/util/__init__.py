"""TensorFlow's tools for nested values, where its programs import them from."""

import contextlib as tf_contextlib

from twofold.static import compat as compat
from twofold.static.python.positions import enter
from twofold.static.python.util import all_util as all_util
from twofold.static.python.util import deprecation as deprecation
from twofold.static.python.util import function_utils as function_utils
from twofold.static.python.util import nest as nest
from twofold.static.python.util import tf_decorator as tf_decorator
from twofold.static.python.util import tf_inspect as tf_inspect

__all__ = [
    "all_util",
    "compat",
    "deprecation",
    "function_utils",
    "nest",
    "tf_contextlib",
    "tf_decorator",
    "tf_inspect",
]

enter(__name__, {"compat": "compat"})
