"""What Keras names by strings: activations, initializers, regularizers, constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from twofold.runtime.tracing import here
from twofold.static import initializers, math, nn
from twofold.static.api.op_functions import snake_case
from twofold.static.arrays import creation
from twofold.static.autodiff import clipping


def found_in(table: Mapping[str, Any], kind: str, identifier: Any) -> Any:
    """What a string names in a table; None and anything else stand for themselves."""
    if not isinstance(identifier, str):
        return identifier
    if identifier not in table:
        raise ValueError(f"Unknown {kind}: {identifier}, at {here()}. Use one of {', '.join(sorted(table))}.")
    return table[identifier]


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

_scaled = initializers.VarianceScaling

INITIALIZERS: dict[str, Callable[..., Any]] = {
    "constant": initializers.Constant,
    "glorot_normal": lambda seed=None: _scaled(1.0, "fan_avg", "truncated_normal", seed),
    "glorot_uniform": lambda seed=None: _scaled(1.0, "fan_avg", "uniform", seed),
    "he_normal": lambda seed=None: _scaled(2.0, "fan_in", "truncated_normal", seed),
    "he_uniform": lambda seed=None: _scaled(2.0, "fan_in", "uniform", seed),
    "identity": initializers.Identity,
    "lecun_normal": lambda seed=None: _scaled(1.0, "fan_in", "truncated_normal", seed),
    "lecun_uniform": lambda seed=None: _scaled(1.0, "fan_in", "uniform", seed),
    "ones": initializers.Ones,
    "orthogonal": initializers.Orthogonal,
    "random_normal": lambda mean=0.0, stddev=0.05, seed=None: initializers.RandomNormal(mean, stddev, seed),
    "random_uniform": lambda low=-0.05, high=0.05, seed=None: initializers.RandomUniform(low, high, seed),
    "truncated_normal": lambda mean=0.0, stddev=0.05, seed=None: initializers.TruncatedNormal(
        mean, stddev, seed
    ),
    "zeros": initializers.Zeros,
}
INITIALIZERS |= {"normal": INITIALIZERS["random_normal"], "uniform": INITIALIZERS["random_uniform"]}
INITIALIZERS |= {"zero": initializers.Zeros, "one": initializers.Ones}
_CLASSES = "Constant Identity Ones Orthogonal VarianceScaling Zeros"
INITIALIZERS |= {name: getattr(initializers, name) for name in _CLASSES.split()}
INITIALIZERS |= {
    name: INITIALIZERS[snake_case(name)] for name in ("RandomNormal", "RandomUniform", "TruncatedNormal")
}


def _penalty(l1: float = 0.0, l2: float = 0.0) -> Callable[[Any], Any]:
    """``l1 * sum(abs(x)) + l2 * sum(x ** 2)``."""

    def penalty(x: Any) -> Any:
        sums = [(l1, lambda: math.reduce_sum(math.abs(x))), (l2, lambda: math.reduce_sum(math.square(x)))]
        parts = [weight * total() for weight, total in sums if weight]
        return math.add_n(parts) if parts else creation.zeros([])

    return penalty


REGULARIZERS: dict[str, Callable[..., Any]] = {
    "l1": _penalty(l1=0.01),
    "l2": _penalty(l2=0.01),
    "l1_l2": _penalty(0.01, 0.01),
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

    return scaled


def unit_norm(axis: Any = 0) -> Callable[[Any], Any]:
    """Scales to a norm of 1 along ``axis``."""
    return lambda w: w / (_norms(w, axis) + 1e-7)


def non_neg() -> Callable[[Any], Any]:
    """Puts 0 in place of what is negative."""
    return lambda w: w * math.cast(w >= 0.0, w.dtype)


CONSTRAINTS: dict[str, Any] = {"max_norm": max_norm(), "unit_norm": unit_norm(), "non_neg": non_neg()}
