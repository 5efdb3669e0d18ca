"""What TensorBoard is told besides summaries."""

from twofold.static.contrib.tensorboard import plugins as plugins
