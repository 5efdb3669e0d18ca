"""Default arguments for many layers at once, and variables by name: ``tf.contrib.framework``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.namespaces import look_up
from twofold.static.api.op_functions import is_tensor_like as is_tensor  # noqa: F401
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.graph import get_default_graph
from twofold.static.python.positions import enter
from twofold.static.variables.variable_scope import get_variable, get_variable_scope

F = TypeVar("F", bound=Callable[..., Any])

_scopes: list[dict[Any, dict[str, Any]]] = [{}]


def add_arg_scope(func: F) -> F:
    """A function whose arguments may have defaults from ``arg_scope``.

    >>> import twofold.static as tf
    >>> @tf.contrib.framework.add_arg_scope
    ... def scaled(x, factor=1):
    ...     return x * factor
    >>> with tf.contrib.framework.arg_scope([scaled], factor=3):
    ...     print(scaled(2), scaled(2, factor=5))
    6 10
    """

    @functools.wraps(func)
    def with_defaults(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **{**_scopes[-1].get(_key(with_defaults), {}), **kwargs})

    with_defaults._takes_arg_scope = True  # type: ignore[attr-defined]
    return with_defaults  # type: ignore[return-value]


def has_arg_scope(func: Any) -> bool:
    """Whether a function takes defaults from ``arg_scope``."""
    return hasattr(func, "_takes_arg_scope")


def _key(func: Any) -> Any:
    return getattr(func, "__wrapped__", func)


@contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[dict[Any, dict[str, Any]]]:
    """Inside, the functions listed have ``kwargs`` as defaults, over those of the scopes around.

    A scope that was kept (``with arg_scope(...) as scope``) takes no ``kwargs`` and replaces the scopes around. Raises
    ArgumentError for a function that ``add_arg_scope`` did not make.
    """
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            fix = "Give functions, or leave the arguments out."
            raise ArgumentError(f"arg_scope: arguments beside a scope, at {here()}", fix)
        made = {key: dict(value) for key, value in list_ops_or_scope.items()}
    else:
        made = {key: dict(value) for key, value in _scopes[-1].items()}
        for func in list_ops_or_scope:
            if not has_arg_scope(func):
                fix = "Decorate it with add_arg_scope."
                raise ArgumentError(f"arg_scope: {func!r} takes no arguments from scopes, at {here()}", fix)
            made.setdefault(_key(func), {}).update(kwargs)
    _scopes.append(made)
    try:
        yield made
    finally:
        _scopes.pop()


def current_arg_scope() -> dict[Any, dict[str, Any]]:
    """The defaults in force, by function."""
    return _scopes[-1]


def get_name_scope() -> str:
    """The name scope of the default graph.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.name_scope("layer"):
    ...     print(tf.contrib.framework.get_name_scope())
    layer
    """
    return get_default_graph().get_name_scope()


@add_arg_scope
def variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    use_resource: bool | None = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """``get_variable`` on a device, with defaults from ``arg_scope``.

    ``custom_getter(name, reuse=..., **arguments)`` is called instead of ``get_variable``.

    >>> import twofold.static as tf
    >>> framework = tf.contrib.framework
    >>> with tf.Graph().as_default(), framework.arg_scope([framework.variable], trainable=False):
    ...     made = framework.variable("v", [2])
    ...     print(made.name, tf.trainable_variables())
    v:0 []
    """
    given = {
        "shape": shape,
        "dtype": dtype,
        "initializer": initializer,
        "regularizer": regularizer,
        "trainable": trainable,
        "collections": [GraphKeys.GLOBAL_VARIABLES]
        if collections is None
        else list(dict.fromkeys(collections)),
        "caching_device": caching_device,
        "partitioner": partitioner,
        "use_resource": use_resource,
        "synchronization": synchronization,
        "aggregation": aggregation,
    }
    with get_default_graph().device(device or ""):
        if custom_getter is None:
            return get_variable(name, **given)
        return custom_getter(name, reuse=get_variable_scope().reuse, **given)


@add_arg_scope
def model_variable(name: str, *args: Any, **options: Any) -> Any:
    """``variable``, entered in ``MODEL_VARIABLES`` and ``collections`` too."""
    given = inspect.signature(variable).bind_partial(name, *args, **options).arguments
    entered = [*(given.get("collections") or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable(**{**given, "collections": entered})


def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = GraphKeys.GLOBAL_VARIABLES
) -> list[Any]:
    """Variables of a collection whose names begin with ``scope`` and end with ``suffix``."""
    found = get_default_graph().get_collection(collection, getattr(scope, "name", scope))
    return [one for one in found if suffix is None or one.name.split(":")[0].endswith(suffix)]


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """``get_variables`` of those that layers made."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """``get_variables`` of those that are trained."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """``get_variables`` of local ones."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """``get_variables`` whose names end with ``suffix``."""
    return get_variables(scope, suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """Variables whose last part of the name is ``given_name``."""
    return [one for one in get_variables(scope) if one.name.split(":")[0].split("/")[-1] == given_name]


def get_variables_to_restore(include: Any = None, exclude: Any = None) -> list[Any]:
    """Variables in the scopes of ``include``, or all, without those in the scopes of ``exclude``."""
    chosen = get_variables() if include is None else [one for s in include for one in get_variables(s)]
    left_out = {id(one) for scope in exclude or () for one in get_variables(scope)}
    return [one for one in chosen if id(one) not in left_out]


enter(__name__, {"python.ops python.ops.variables": "contrib.framework"})


__getattr__, __dir__ = look_up(
    __name__,
    {
        "arrays.reordering": "argsort sort",
        "contrib.assigning": """add_model_variable assign_from_checkpoint assign_from_checkpoint_fn assign_from_values
            assign_from_values_fn filter_variables get_unique_variable get_variable_full_name global_variable
            local_variable""",
        "python.tensor_util": "smart_cond",
        "python.util": "nest",
        "python.util.deprecation": "deprecated",
        "saving.checkpoint_reader": "list_variables load_checkpoint load_variable",
        "train": "assert_global_step create_global_step get_global_step get_or_create_global_step",
    },
)
