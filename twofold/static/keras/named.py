"""What Keras names by strings: activations, initializers, regularizers, constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy

from twofold.dtypes import DType, float32
from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import initializers, math, nn
from twofold.static.api.signatures import parameters, with_parameters
from twofold.static.arrays import creation
from twofold.static.autodiff import clipping

_scopes: list[dict[str, Any]] = [{}]
"""Objects of programs by their names in configurations: for everything, then those of the scopes that are open."""


def get_custom_objects() -> dict[str, Any]:
    """The objects that names in configurations stand for everywhere; a program may enter its own."""
    return _scopes[0]


class CustomObjectScope:
    """Inside, names in configurations and arguments stand for the objects of dicts.

    >>> import twofold.static as tf
    >>> def cube(x):
    ...     return x**3
    >>> with tf.keras.utils.CustomObjectScope({"cube": cube}):
    ...     layer = tf.keras.layers.Dense(2, activation="cube")
    >>> layer.activation is cube
    True
    """

    def __init__(self, *dicts: Mapping[str, Any]) -> None:
        self._own = {key: value for one in dicts for key, value in (one or {}).items()}

    def __enter__(self) -> CustomObjectScope:
        _scopes.append(self._own)
        return self

    def __exit__(self, *error: Any) -> None:
        _scopes.pop()


custom_object_scope = CustomObjectScope


def custom_object(name: str) -> Any:
    """What a program calls ``name`` in configurations, or None."""
    return next((scope[name] for scope in reversed(_scopes) if name in scope), None)


def found_in(table: Mapping[str, Any], kind: str, identifier: Any) -> Any:
    """What a string names, or a dict of a name and a configuration makes; anything else stands for itself."""
    if isinstance(identifier, dict) and {"class_name", "config"} <= identifier.keys():
        made = found_in(table, kind, identifier["class_name"])
        config = dict(identifier["config"])
        return made.from_config(config) if hasattr(made, "from_config") else made(**config)
    if not isinstance(identifier, str):
        return identifier
    own = custom_object(identifier)
    if own is None and identifier not in table:
        raise ValueError(f"Unknown {kind}: {identifier}, at {here()}. Use one of {', '.join(sorted(table))}.")
    return table[identifier] if own is None else own


def getter(table: Mapping[str, Any], kind: str) -> Callable[[Any], Any]:
    """What a module's ``get`` does: the object of a name or a configuration; a class is called."""

    def get(identifier: Any) -> Any:
        found = found_in(table, kind, identifier)
        return found() if isinstance(found, type) else found

    get.__doc__ = f"The {kind} of a name or of a configuration; any other object is returned."
    return get


class Configured:
    """A function with its name and configuration, as which models keep it."""

    def __init__(self, name: str, function: Callable[..., Any], **config: Any) -> None:
        self.configured_name, self._function, self._config = name, function, config

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """The arguments of what made the function."""
        return dict(self._config)


def look_up(table: Mapping[str, Any], module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module that has the names of a table."""

    def find(name: str) -> Any:
        if name not in table:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        return table[name]

    return find, lambda: sorted(table)


def _hard_sigmoid(x: Any) -> Any:
    return clipping.clip_by_value(x * 0.2 + 0.5, 0.0, 1.0)


ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "elu": nn.elu,
    "exponential": math.exp,
    "hard_sigmoid": _hard_sigmoid,
    "linear": lambda x: x,
    "relu": nn.relu,
    "selu": nn.selu,
    "sigmoid": nn.sigmoid,
    "softmax": nn.softmax,
    "softplus": nn.softplus,
    "softsign": nn.softsign,
    "tanh": nn.tanh,
}


_kept: list[dict[str, Any]] = []


@contextmanager
def kept_objects() -> Iterator[dict[str, Any]]:
    """Inside, ``serialize`` enters classes and functions in the dict, so that no name is missing when it is read."""
    _kept.append({})
    try:
        yield _kept[-1]
    finally:
        _kept.pop()


def serialize(value: Any) -> Any:
    """A value as JSON holds it: an object by its class and configuration, a function by its name.

    Raises ArgumentError for a function without a name.
    """
    if isinstance(value, Mapping):
        return {key: serialize(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [serialize(one) for one in value]
    if isinstance(value, DType):
        return value.name
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return value.tolist()
    if hasattr(value, "get_config"):
        name = getattr(value, "configured_name", type(value).__name__)
        if _kept and name == type(value).__name__:
            _kept[-1][name] = type(value)
        return {"class_name": name, "config": serialize(value.get_config())}
    if callable(value):
        known = [name for name, one in ACTIVATIONS.items() if one is value]
        name = known[0] if known else getattr(value, "__name__", "<lambda>")
        if _kept and not known:
            name = f"{name} {id(value)}"
            _kept[-1][name] = value
        if name == "<lambda>":
            what = "a function without a name cannot be kept in a configuration"
            raise ArgumentError(f"{what}, at {here()}", "Define it with def, and give it in custom_objects.")
        return name
    return value.__index__() if hasattr(value, "__index__") and not isinstance(value, bool) else value


_scaled = initializers.VarianceScaling


def _with_defaults(kind: Callable[..., Any], text: str) -> Callable[..., Any]:
    """Makes initializers of a kind with Keras's defaults."""
    return with_parameters(lambda **given: kind(**given), {**parameters(text), "dtype": float32})


def _of_fans(scale: float, mode: str, distribution: str) -> Callable[..., Any]:
    return with_parameters(
        lambda **given: _scaled(scale, mode, distribution, **given), {"seed": None, "dtype": float32}
    )


INITIALIZERS: dict[str, Callable[..., Any]] = {
    "constant": initializers.Constant,
    "glorot_normal": _of_fans(1.0, "fan_avg", "truncated_normal"),
    "glorot_uniform": _of_fans(1.0, "fan_avg", "uniform"),
    "he_normal": _of_fans(2.0, "fan_in", "truncated_normal"),
    "he_uniform": _of_fans(2.0, "fan_in", "uniform"),
    "identity": initializers.Identity,
    "lecun_normal": _of_fans(1.0, "fan_in", "truncated_normal"),
    "lecun_uniform": _of_fans(1.0, "fan_in", "uniform"),
    "ones": initializers.Ones,
    "orthogonal": initializers.Orthogonal,
    "random_normal": _with_defaults(initializers.RandomNormal, "mean=0.0, stddev=0.05, seed=None"),
    "random_uniform": _with_defaults(initializers.RandomUniform, "minval=-0.05, maxval=0.05, seed=None"),
    "truncated_normal": _with_defaults(initializers.TruncatedNormal, "mean=0.0, stddev=0.05, seed=None"),
    "variance_scaling": initializers.VarianceScaling,
    "zeros": initializers.Zeros,
}
INITIALIZERS |= {
    "".join(part.capitalize() for part in name.split("_")): made for name, made in INITIALIZERS.items()
}
INITIALIZERS |= {"normal": INITIALIZERS["random_normal"], "uniform": INITIALIZERS["random_uniform"]}
INITIALIZERS |= {"zero": initializers.Zeros, "one": initializers.Ones}


def _penalty(l1: float = 0.0, l2: float = 0.0) -> Configured:
    """``l1 * sum(abs(x)) + l2 * sum(x ** 2)``."""

    def penalty(x: Any) -> Any:
        sums = [(l1, lambda: math.reduce_sum(math.abs(x))), (l2, lambda: math.reduce_sum(math.square(x)))]
        parts = [weight * total() for weight, total in sums if weight]
        return math.add_n(parts) if parts else creation.zeros([])

    return Configured("L1L2", penalty, l1=l1, l2=l2)


REGULARIZERS: dict[str, Callable[..., Any]] = {
    "l1": _penalty(l1=0.01),
    "l2": _penalty(l2=0.01),
    "l1_l2": _penalty(0.01, 0.01),
    "L1L2": _penalty,
    "L1": lambda l1=0.01: _penalty(l1=l1),
    "L2": lambda l2=0.01: _penalty(l2=l2),
}


def l1(l: float = 0.01) -> Callable[[Any], Any]:
    """A penalty of ``l`` times the sum of absolute values."""
    return _penalty(l1=l)


def l2(l: float = 0.01) -> Callable[[Any], Any]:
    """A penalty of ``l`` times the sum of squares."""
    return _penalty(l2=l)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> Callable[[Any], Any]:
    """The sum of both penalties."""
    return _penalty(l1, l2)


def _norms(w: Any, axis: Any) -> Any:
    return math.sqrt(math.reduce_sum(math.square(w), axis, keepdims=True))


def max_norm(max_value: float = 2, axis: Any = 0) -> Callable[[Any], Any]:
    """Scales what has a norm above ``max_value`` along ``axis`` down to it."""

    def scaled(w: Any) -> Any:
        norms = _norms(w, axis)
        return w * (clipping.clip_by_value(norms, 0.0, max_value) / (norms + 1e-7))

    return Configured("MaxNorm", scaled, max_value=max_value, axis=axis)


def min_max_norm(
    min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0
) -> Callable[[Any], Any]:
    """Scales towards norms along ``axis`` between two values: with ``rate`` 1 all of the way."""

    def scaled(w: Any) -> Any:
        norms = _norms(w, axis)
        wanted = rate * clipping.clip_by_value(norms, min_value, max_value) + (1.0 - rate) * norms
        return w * (wanted / (norms + 1e-7))

    return Configured("MinMaxNorm", scaled, min_value=min_value, max_value=max_value, rate=rate, axis=axis)


def unit_norm(axis: Any = 0) -> Callable[[Any], Any]:
    """Scales to a norm of 1 along ``axis``."""
    return Configured("UnitNorm", lambda w: w / (_norms(w, axis) + 1e-7), axis=axis)


def non_neg() -> Callable[[Any], Any]:
    """Sets what is negative to 0."""
    return Configured("NonNeg", lambda w: w * math.cast(w >= 0.0, w.dtype))


CONSTRAINTS: dict[str, Any] = {"max_norm": max_norm(), "unit_norm": unit_norm(), "non_neg": non_neg()}
CONSTRAINTS |= {"MaxNorm": max_norm, "UnitNorm": unit_norm, "NonNeg": non_neg}
CONSTRAINTS |= {"min_max_norm": min_max_norm(), "MinMaxNorm": min_max_norm}
