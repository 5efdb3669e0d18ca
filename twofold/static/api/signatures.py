"""Functions whose parameters are data: names in TensorFlow's order, with their defaults."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from twofold.signatures import REQUIRED as REQUIRED
from twofold.signatures import arguments, signature_of
from twofold.signatures import parameters as parameters


def with_parameters(
    function: Callable[..., Any], parameters: Mapping[str, Any], like: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """A function of ``parameters``, names and defaults in order, that calls ``function`` by name with all of them.

    Its name and docstring are those of ``like``, or of ``function``.

    >>> import inspect
    >>> import twofold.static as tf
    >>> list(inspect.signature(tf.losses.huber_loss).parameters)[:4]
    ['labels', 'predictions', 'weights', 'delta']
    """
    public = signature_of(parameters)

    @functools.wraps(like or function)
    def named(*args: Any, **kwargs: Any) -> Any:
        return function(**arguments(named.__name__, public, args, kwargs))

    named.__signature__ = public  # type: ignore[attr-defined]
    return named


def defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a function that have names, with their defaults."""
    found = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in found if one.kind is one.POSITIONAL_OR_KEYWORD}


def takes(text: str = "", /, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that replaces a function's ``**options`` by names and defaults, behind its own parameters.

    >>> import inspect
    >>> import twofold.static as tf
    >>> list(inspect.signature(tf.layers.dense).parameters)[:4]
    ['inputs', 'units', 'activation', 'use_bias']
    """
    return lambda body: with_parameters(body, {**defaults_of(body), **parameters(text), **options})
