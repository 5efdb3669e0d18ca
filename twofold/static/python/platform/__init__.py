"""TensorFlow's files of the platform: flags, files and messages."""

from twofold.static import logging as tf_logging
from twofold.static.platform import testing as googletest
from twofold.static.platform import testing as test
from twofold.static.platform.file_io import gfile as gfile
from twofold.static.platform.flags import app as app
from twofold.static.platform.flags import flags as flags

__all__ = ["app", "flags", "gfile", "googletest", "test", "tf_logging"]
