"""How values of collections are written to messages and read again: ``ops.register_proto_function``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from twofold.runtime.tracing import here


class CollectionMessages(NamedTuple):
    """The kind of message of the values of a collection, and functions to and from it."""

    kind: Any
    to_message: Callable[..., Any] | None
    from_message: Callable[..., Any] | None


_REGISTERED: dict[str, CollectionMessages] = {}


def register_proto_function(
    collection_name: str,
    proto_type: Any = None,
    to_proto: Callable[..., Any] | None = None,
    from_proto: Callable[..., Any] | None = None,
) -> None:
    """Say how meta graphs hold the values of a collection.

    Args:
        collection_name: The name of the collection.
        proto_type: The class of the messages.
        to_proto: Called with a value and ``export_scope``; returns its message, or None to leave it out.
        from_proto: Called with a message and ``import_scope``; returns the value.

    Raises:
        TypeError: For functions that cannot be called.
        KeyError: For a collection that was registered before.

    >>> from twofold.static.python.framework import ops
    >>> ops.register_proto_function("counts", to_proto=lambda value, export_scope=None: None)
    >>> ops.get_from_proto_function("counts") is None
    True
    """
    for name, function in (("to_proto", to_proto), ("from_proto", from_proto)):
        if function is not None and not callable(function):
            raise TypeError(
                f"register_proto_function: {name} must be callable, got {function!r}, at {here()}"
            )
    if collection_name in _REGISTERED:
        raise KeyError(f"register_proto_function: {collection_name!r} is registered already, at {here()}")
    _REGISTERED[collection_name] = CollectionMessages(proto_type, to_proto, from_proto)


def get_collection_proto_type(collection_name: str) -> Any:
    """The class of the messages of a collection, or None."""
    found = _REGISTERED.get(collection_name)
    return None if found is None else found.kind


def get_to_proto_function(collection_name: str) -> Callable[..., Any] | None:
    """The function from values of a collection to messages, or None."""
    found = _REGISTERED.get(collection_name)
    return None if found is None else found.to_message


def get_from_proto_function(collection_name: str) -> Callable[..., Any] | None:
    """The function from messages of a collection to its values, or None."""
    found = _REGISTERED.get(collection_name)
    return None if found is None else found.from_message
