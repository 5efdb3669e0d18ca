"""Running averages of variables and tensors: ``tf.train.ExponentialMovingAverage``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.dtypes import float32
from twofold.errors import ArgumentError
from twofold.ops.base import apply, ops
from twofold.runtime.tracing import here
from twofold.static import initializers, math
from twofold.static.api.op_functions import as_tensor, convert_to_tensor
from twofold.static.arrays import creation
from twofold.static.control_flow.dependencies import group
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Operation, describe, get_default_graph
from twofold.static.graph.scopes import control_dependencies
from twofold.static.variables.variable import (
    Variable,
    in_variable_scope,
    moving_average_variables,
    trainable_variables,
    update,
)
from twofold.static.variables.variable_scope import get_variable, variable_scope


@example(
    "v = tf.Variable(1.0)",
    "average = tf.train.ExponentialMovingAverage(0.5)",
    "update = average.apply([v])",
    "session.run(tf.global_variables_initializer())",
    "session.run(tf.assign(v, 3.0))",
    "session.run(update)",
    "average.average(v)",
    "np.float32(3.0)\n2.0",
)
class ExponentialMovingAverage:
    """``average = decay * average + (1 - decay) * value``, kept in variables of their own.

    The average of a variable starts from its initial value, that of a tensor from zeros.

    Args:
        decay: A number or tensor from 0 to 1, near 1.
        num_updates: The number of steps so far, a number or tensor: early ones have the smaller decay
            ``(1 + num_updates) / (10 + num_updates)``.
        zero_debias: Whether averages that start from zeros are divided by ``1 - decay ** steps`` (Kingma, Ba 2015).
        name: The last part of the names of the variables.
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay, self._updates, self._debias, self.name = decay, num_updates, zero_debias, name
        self._averages: dict[int, tuple[Any, Variable]] = {}  # by identity, with what keeps that
        self._beside: dict[int, list[Variable]] = {}

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation:
        """An operation that updates the averages of variables and floating tensors (all trainable variables).

        Raises ArgumentError for a tensor whose sizes are not known.
        """
        given = trainable_variables() if var_list is None else list(var_list)
        for value in given:
            if id(value) not in self._averages:
                self._averages[id(value)] = (value, self._made(value))
        decay = as_tensor(self._decay)
        if self._updates is not None:
            steps = math.cast(self._updates, float32)
            decay = math.minimum(decay, (1.0 + steps) / (10.0 + steps))
        return group(*[self._update(value, decay) for value in given])

    def _made(self, value: Any) -> Variable:
        graph = get_default_graph()
        label = in_variable_scope(graph, f"{value.op.name}/{self.name}")
        keys = [GraphKeys.GLOBAL_VARIABLES]
        with graph.name_scope(None), control_dependencies(None):
            if isinstance(value, Variable):
                graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, value)
                return Variable(value.initialized_value(), False, keys, name=label)
            if not value.get_shape().is_fully_defined():
                what = f"ExponentialMovingAverage: {describe(value)} has unknown sizes, at {here()}"
                raise ArgumentError(what, "Give it a shape with tf.reshape, or average a variable.")
            zeros = creation.zeros(value.get_shape(), value.dtype)
            made = Variable(zeros, False, keys, name=label)
            if self._debias:
                self._beside[id(value)] = [
                    Variable(zeros, False, keys, name=f"{label}/biased"),
                    Variable(0.0, False, keys, name=f"{label}/local_step"),
                ]
            return made

    def _update(self, value: Any, decay: Any) -> Any:
        average = self._averages[id(value)][1]
        beside = self._beside.get(id(value), [])
        body = _debiased if beside else _averaged
        states = [average, *beside]
        return update("AssignMovingAvg", states, body, [as_tensor(value)], {"decay": decay}, None)

    def average(self, var: Any) -> Variable | None:
        """The variable that holds the average of ``var``; None where there is none."""
        found = self._averages.get(id(var))
        return None if found is None else found[1]

    def average_name(self, var: Any) -> str:
        """The name of the variable that holds the average, or would."""
        found = self.average(var)
        return f"{var.op.name}/{self.name}" if found is None else found.op.name

    def variables_to_restore(self, moving_avg_variables: Sequence[Variable] | None = None) -> dict[str, Any]:
        """Variables by the names that ``Saver`` restores them from: those averaged by the names of their averages.

        Averaged are ``moving_avg_variables``, unless given the trainable ones and those that ``apply`` was given.
        """
        averaged = moving_avg_variables
        if averaged is None:
            averaged = [*trainable_variables(), *moving_average_variables()]
        found = {self.average_name(variable): variable for variable in averaged}
        kept = set(map(id, averaged))
        for variable in get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES):
            if id(variable) not in kept:
                found.setdefault(variable.op.name, variable)
        return found


@example(
    "from twofold.static.python.training import moving_averages",
    "v = tf.get_variable('v', [], initializer=tf.zeros_initializer())",
    "update = moving_averages.assign_moving_average(v, 4.0, 0.75, zero_debias=False)",
    "session.run(tf.global_variables_initializer())",
    "before = session.run(update)",
    "update",
    "1.75",
)
def assign_moving_average(
    variable: Variable, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Update a variable to ``decay * variable + (1 - decay) * value``, and return the average.

    Args:
        variable: The variable that holds the average.
        value: What is averaged.
        decay: A number or tensor from 0 to 1, near 1.
        zero_debias: Whether the average counts as started from zeros, and is divided by ``1 - decay ** steps``; the
            sum and the number of steps are variables of their own, ``biased`` and ``local_step``.
        name: The name of the update.
    """
    dtype = variable.dtype
    given, states = convert_to_tensor(value, dtype), [variable]
    if zero_debias:
        with variable_scope(variable.op.name):
            for key, shape in (("biased", variable.get_shape()), ("local_step", [])):
                zeros = initializers.zeros_initializer()
                states.append(get_variable(key, shape, dtype, zeros, trainable=False))
    body = _debiased if zero_debias else _averaged
    return update("AssignMovingAvg", states, body, [given], {"decay": as_tensor(decay)}, name).outputs[0]


def _averaged(state: Any, value: Any, decay: Any) -> Any:
    return apply("adam_mean", value, state, decay)


def _debiased(state: Any, biased: Any, step: Any, value: Any, decay: Any) -> list[Any]:
    mean = apply("adam_mean", value, biased, decay)
    step = ops.add(step, 1.0)
    scale = ops.subtract(1.0, ops.pow(ops.cast(decay, float32), step))
    return [ops.divide(mean, ops.cast(scale, mean.dtype)), mean, step]
