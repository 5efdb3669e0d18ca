"""Dtypes under the names of ``tf.dtypes``: a row of the table of namespaces."""

from twofold.static.api.namespaces import look_up

__getattr__, __dir__ = look_up(__name__)
