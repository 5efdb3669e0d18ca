"""Scopes of graphs that are to be compiled, as all are here: ``tf.contrib.compiler``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twofold.lazy import submodules


@contextmanager
def experimental_jit_scope(
    compile_ops: Any = True, separate_compiled_gradients: bool = False
) -> Iterator[None]:
    """Inside, TensorFlow compiles operations; here graphs are always compiled, and the arguments change nothing.

    >>> import twofold.static as tf
    >>> with tf.contrib.compiler.jit.experimental_jit_scope():
    ...     x = tf.constant(1.0)
    """
    yield


submodules(__name__, {"jit": {"experimental_jit_scope": experimental_jit_scope}})
