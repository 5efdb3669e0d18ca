"""Changes of shape and order under the names of ``tf.manip``: a row of the table of namespaces."""

from twofold.static.api.namespaces import look_up

__getattr__, __dir__ = look_up(__name__)
