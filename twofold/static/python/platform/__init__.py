"""TensorFlow's files of the platform: flags, files and messages."""

from twofold.static import logs as tf_logging
from twofold.static import testing as googletest
from twofold.static import testing as test
from twofold.static.platform import app as app
from twofold.static.platform import flags as flags
from twofold.static.platform import gfile as gfile

__all__ = ["app", "flags", "gfile", "googletest", "test", "tf_logging"]
