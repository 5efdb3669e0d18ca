"""Signal processing: ``signal.windows``."""

from twofold.signal import windows as windows
