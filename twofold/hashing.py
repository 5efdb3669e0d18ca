"""The hash of content that keys are made of."""

from __future__ import annotations

import hashlib
from functools import partial

content_hash = partial(hashlib.blake2b, digest_size=32)
"""Python's own code, which without memory raises MemoryError, where OpenSSL raises ValueError."""
