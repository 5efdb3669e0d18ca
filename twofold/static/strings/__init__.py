"""Strings as elements of tensors, and functions of them: ``tf.strings``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.static.strings.hash_buckets import string_to_hash_bucket_fast as to_hash_bucket_fast
    from twofold.static.strings.serialized import bytes_split, split
    from twofold.static.strings.serialized import string_format as format
    from twofold.static.strings.string_functions import (
        as_string,
        reduce_join,
        regex_full_match,
        regex_replace,
        substr,
    )
    from twofold.static.strings.string_functions import string_join as join
    from twofold.static.strings.string_functions import string_length as length
    from twofold.static.strings.string_functions import string_lower as lower
    from twofold.static.strings.string_functions import string_strip as strip
    from twofold.static.strings.string_functions import string_to_number as to_number
    from twofold.static.strings.string_functions import string_upper as upper

__getattr__, __dir__ = _attach(__name__, _prepared)
