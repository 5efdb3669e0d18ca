"""Learning rates that follow the count of steps, as objects: ``tf.keras.optimizers.schedules``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.runtime.tracing import here
from twofold.signatures import arguments, signature_of
from twofold.signatures import parameters as parameters_of
from twofold.static.graph.docstrings import with_example
from twofold.static.keras.named import CustomObjectScope, found_in
from twofold.static.keras.named import serialize as _serialize
from twofold.static.optimizers import learning_rate_schedules as _functions


class LearningRateSchedule:
    """Base of learning rates that follow the count of steps: a subclass has ``__call__(step)`` and ``get_config()``."""

    def __call__(self, step: Any) -> Any:
        """The learning rate at a step."""
        raise NotImplementedError(f"{type(self).__name__} has no __call__(step), at {here()}. Define it.")

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal schedule."""
        raise NotImplementedError(f"{type(self).__name__} has no get_config, at {here()}. Define it.")

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The schedule of these arguments."""
        return cls(**config)


class _OfFunction(LearningRateSchedule):
    """A schedule that a function of ``tf.train`` computes."""

    function: Callable[..., Any]
    parameters: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = type(self)
        self._given = arguments(cls.__name__, signature_of(cls.parameters), args, kwargs)

    def __getattr__(self, name: str) -> Any:
        given = vars(self).get("_given", {})
        if name in given:
            return given[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name, obj=self)

    def __call__(self, step: Any) -> Any:
        """The learning rate at a step."""
        given = dict(self._given)
        if "initial_learning_rate" in given:
            given["learning_rate"] = given.pop("initial_learning_rate")
        return type(self).function(step, given)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal schedule."""
        return dict(self._given)


def _schedule(name: str, function: Callable[..., Any], text: str, example: str, result: str) -> Any:
    members = {
        "function": staticmethod(function),
        "parameters": parameters_of(text),
        "__doc__": with_example(
            f"``tf.train.{example.partition('(')[0]}`` as an object, called with the step.",
            f"tf.keras.optimizers.schedules.{name}({example.partition('(')[2]}",
            result,
        ),
        "__module__": __name__,
    }
    return type(name, (_OfFunction,), members)


def _of(name: str) -> Callable[..., Any]:
    function = getattr(_functions, name)
    return lambda step, given: function(global_step=step, **given)


_INITIAL = "initial_learning_rate, decay_steps, "
ExponentialDecay = _schedule(
    "ExponentialDecay",
    _of("exponential_decay"),
    f"{_INITIAL}decay_rate, staircase=False, name=None",
    "exponential_decay(1.0, 1, 0.5)(2)",
    "0.25",
)
InverseTimeDecay = _schedule(
    "InverseTimeDecay",
    _of("inverse_time_decay"),
    f"{_INITIAL}decay_rate, staircase=False, name=None",
    "inverse_time_decay(1.0, 1, 0.5)(2)",
    "0.5",
)
PolynomialDecay = _schedule(
    "PolynomialDecay",
    _of("polynomial_decay"),
    f"{_INITIAL}end_learning_rate=0.0001, power=1.0, cycle=False, name=None",
    "polynomial_decay(0.5, 10, 0.1)(5)",
    "0.3",
)
PiecewiseConstantDecay = _schedule(
    "PiecewiseConstantDecay",
    lambda step, given: _functions.piecewise_constant(step, **given),
    "boundaries, values, name=None",
    "piecewise_constant([3, 9], [1.0, 0.5, 0.1])(5)",
    "0.5",
)
_KINDS = {
    one.__name__: one for one in (ExponentialDecay, InverseTimeDecay, PiecewiseConstantDecay, PolynomialDecay)
}


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The schedule of a dict of ``class_name`` and ``config``."""
    with CustomObjectScope(custom_objects or {}):
        return found_in(_KINDS, "decay", config)


def serialize(learning_rate_schedule: Any) -> Any:
    """A dict from which ``deserialize`` makes an equal schedule."""
    return _serialize(learning_rate_schedule)
