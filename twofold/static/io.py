"""Files, records and serialised tensors under their later names: ``tf.io``."""

from twofold.static.api.namespaces import look_up

__getattr__, __dir__ = look_up(__name__)
