"""Classes of a program whose objects stand for tensors: in operations, and among fetches and feeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_tensor, install_operators


class RunConversion(NamedTuple):
    """How a session fetches and feeds the objects of a class."""

    kind: type
    fetch: Callable[[Any], tuple[list[Any], Callable[[list[Any]], Any]]]
    feed: Callable[[Any, Any], list[tuple[Any, Any]]] | None


_CONVERSIONS: list[RunConversion] = []


def conversion_of(value: Any) -> RunConversion | None:
    """What was registered last for a class of ``value``."""
    return next((one for one in _CONVERSIONS if isinstance(value, one.kind)), None)


def apart(feeds: Mapping[Any, Any]) -> dict[Any, Any]:
    """Feeds with those of tuples, and of tensors that have parts (sparse ones), as feeds of their parts."""
    found: dict[Any, Any] = {}
    for key, value in feeds.items():
        if (registered := conversion_of(key)) is not None and registered.feed is not None:
            found.update(apart(dict(registered.feed(key, value))))
            continue
        parts = key.parts if hasattr(key, "parts") else key if isinstance(key, tuple) else None
        if parts is None:
            found[key] = value
            continue
        values = (None,) * len(parts) if value is None else tuple(value)
        if len(values) != len(parts):
            raise ValueError(
                f"feed: {len(values)} values for {len(parts)} tensors, at {here()}. Feed one value for each."
            )
        found.update(apart(dict(zip(parts, values))))
    return found


def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: Callable[[Any], Any],
    feed_function: Callable[[Any, Any], Any] | None = None,
    feed_function_for_partial_run: Callable[[Any], Any] | None = None,
) -> None:
    """Let sessions fetch and feed the objects of a class.

    Args:
        tensor_type: The class.
        fetch_function: Gives for an object what is fetched, and a function of the values that makes the result.
        feed_function: Gives for an object and a value fed for it pairs of a tensor and its value.
        feed_function_for_partial_run: Gives for an object the tensors that a partial run feeds; unread, since those
            of ``feed_function`` are the same.

    Raises:
        ValueError: Where the class, or one derived from it, is registered.

    >>> import twofold.static as tf
    >>> class Doubled:
    ...     def __init__(self, x):
    ...         self.tensor = 2 * x
    >>> register_session_run_conversion_functions(Doubled, lambda one: ([one.tensor], lambda found: found[0]))
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(Doubled(tf.constant(3))))
    6
    """
    if any(issubclass(one.kind, tensor_type) for one in _CONVERSIONS):
        what = f"{tensor_type.__name__} has already been registered, at {here()}"
        raise ArgumentError(what, "Register a class once.")
    _CONVERSIONS.insert(0, RunConversion(tensor_type, fetch_function, feed_function))


def register_tensor_conversion_function(
    base_type: type | tuple[type, ...], conversion_func: Callable[..., Any], priority: int = 100
) -> None:
    """Let operations take the objects of a class for tensors.

    Args:
        base_type: A class of the program's own, or a tuple of such classes.
        conversion_func: A function of an object, a dtype, a name and ``as_ref`` that gives a tensor, or
            ``NotImplemented`` to leave the object to the next function. The dtype is always None: a tensor of
            another one than an operation takes raises there.
        priority: Functions with smaller numbers are asked first.

    Raises:
        TypeError: For a class of Python's or of an extension, to which nothing can be added.

    >>> import twofold.static as tf
    >>> class Pair:
    ...     first, second = 1.0, 2.0
    >>> tf.register_tensor_conversion_function(Pair, lambda one, *_, **__: tf.stack([one.first, one.second]))
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.square(Pair())))
    [1. 4.]
    """
    kind: Any
    for kind in base_type if isinstance(base_type, tuple) else (base_type,):
        functions = vars(kind).get("_tensor_conversions", ())
        ordered = sorted([*functions, (priority, conversion_func)], key=lambda one: one[0])
        kind._tensor_conversions = ordered
        kind._as_graph_element = _converted
        install_operators(kind, reflected=True)


def _converted(value: Any) -> Any:
    for kind in type(value).__mro__:
        for _, function in vars(kind).get("_tensor_conversions", ()):
            found = function(value, dtype=None, name=None, as_ref=False)
            if found is not NotImplemented:
                return as_tensor(found)
    what = f"no function makes a tensor of a value of type {type(value).__name__}, at {here()}"
    raise ArgumentError(what, "Register one that does with tf.register_tensor_conversion_function.")
