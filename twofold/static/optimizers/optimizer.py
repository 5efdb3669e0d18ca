"""The base of all optimisers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_tensor, constant, full_of
from twofold.static.api.signatures import REQUIRED, with_parameters
from twofold.static.autodiff.gradients import as_list, gradients
from twofold.static.autodiff.indexed_slices import IndexedSlices, added_rows
from twofold.static.control_flow.dependencies import group
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.context import at_once
from twofold.static.graph.graph import Operation, get_default_graph
from twofold.static.variables.variable import (
    Variable,
    assign,
    assign_add,
    in_variable_scope,
    trainable_variables,
    update,
)


class Optimizer:
    """Base of all optimisers: gradients of a loss, and what they do to the variables.

    No run sees half of an update, with or without ``use_locking``.
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2

    _type: str
    """That of the operations which update a variable."""
    _rule: Callable[..., list[Any]]
    """The new values of a variable and its slots, from their values, the gradient and ``_numbers`` by name."""
    _first: Mapping[str, Any] = {}
    """The first values of the slots: numbers, or the names of parameters."""
    _by_rows = True
    """Whether a table of which rows were looked up is changed in these rows alone, with their slots."""

    def __init__(self, use_locking: bool = False, name: str = "Optimizer") -> None:
        self._name = name
        self._numbers: dict[str, Any] = {}
        self._slots: dict[tuple[Variable, str], Variable] = {}

    def _begin(self, **numbers: Any) -> None:
        """Take the parameters of ``taking``: what the slots begin with, and the numbers of the rule."""
        firsts = {slot: numbers.get(value, value) for slot, value in type(self)._first.items()}
        self._numbers = {
            _NUMBERS.get(name, name): value
            for name, value in numbers.items()
            if name not in type(self)._first.values()
        }
        self._first = firsts

    def get_name(self) -> str:
        """The name of the operation that updates."""
        return self._name

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: Any = 1,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """An operation that takes one step; raises ValueError where no variable influences ``loss``."""
        pairs = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if all(gradient is None for gradient, _ in pairs):
            names = ", ".join(variable.name for _, variable in pairs)
            raise ValueError(
                f"minimize: the loss depends on none of the variables {names}, at {here()}. Give others as var_list."
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: Any = 1,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Variable]]:
        """Pairs of gradient (None without a path) and variable; of all trainable variables unless given.

        Every ``gate_gradients`` gives the same: updates come after all gradients. ``aggregation_method`` and
        ``colocate_gradients_with_ops`` change nothing.
        """
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            fix = "Give GATE_NONE, GATE_OP or GATE_GRAPH."
            raise ValueError(f"compute_gradients: gate_gradients is {gate_gradients!r}, at {here()}. {fix}")
        if at_once():
            return _computed_at_once(loss, var_list, grad_loss)
        loss = loss() if callable(loss) and not hasattr(loss, "type_") else loss
        chosen = trainable_variables() if var_list is None else as_list(var_list)
        if not chosen:
            raise ValueError(
                f"minimize: there are no variables to change, at {here()}. Declare a trainable tf.Variable first."
            )
        found = gradients(
            loss,
            chosen,
            grad_loss,
            gate_gradients=gate_gradients == self.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        return list(zip(found, chosen))

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Operation:
        """An operation that changes the variables by their gradients and counts ``global_step`` up."""
        pairs = [
            (
                gradient if self._by_rows and isinstance(gradient, IndexedSlices) else as_tensor(gradient),
                variable,
            )
            for gradient, variable in grads_and_vars
            if gradient is not None
        ]
        if not pairs:
            raise ValueError(f"apply_gradients: no gradient is given, at {here()}.")
        graph = get_default_graph()
        for _, variable in pairs:
            for slot, value in self._first.items():
                self._slot(variable, slot, value)
        self._prepare(pairs[0][1])
        with graph.name_scope(name or self._name) as scope:
            updates: list[Any] = [
                _constrained(variable, self._apply(gradient, variable)) for gradient, variable in pairs
            ]
            updates += self._finish()
            if global_step is not None:
                updates.append(assign_add(global_step, 1))
        made = group(*updates, name=scope)
        graph.add_to_collection(GraphKeys.TRAIN_OP, made)
        return made

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """A variable that this optimiser keeps beside ``var``."""
        return self._slots.get((var, name))

    def get_slot_names(self) -> list[str]:
        """Names of what is kept beside each variable."""
        return sorted(self._first)

    def variables(self) -> list[Variable]:
        """All variables that this optimiser keeps."""
        return list(self._slots.values())

    def _slot(self, variable: Variable, slot: str, value: float) -> Variable:
        found = self._slots.get((variable, slot))
        if found is None:
            graph = variable.graph
            label = in_variable_scope(graph, f"{variable.op.name}/{self._slot_label(slot)}")
            with graph.name_scope(None), graph.control_dependencies(None):
                initial = constant(
                    value,
                    variable.dtype,
                    variable.type_.shape,
                    name=f"{variable.op.name}/{self._name}/Initializer",
                )
                found = Variable(initial, False, name=label)
            self._slots[variable, slot] = found
        return found

    def _slot_label(self, slot: str) -> str:
        """The last part of the name of what is kept; a further one of that name gets a number, as in TensorFlow."""
        return self._name

    def _prepare(self, first: Variable) -> None:
        """Make what all variables share."""

    def _finish(self) -> list[Any]:
        """Updates that come after those of the variables."""
        return []

    def _apply(self, gradient: Any, variable: Variable) -> Operation:
        states = [variable, *[self._slots[variable, slot] for slot in self._first]]
        rule, taken = self._rule_of(variable)
        numbers = {key: as_tensor(value) for key, value in taken.items()}
        name = f"update_{variable.op.name}/{self._type}"
        if isinstance(gradient, IndexedSlices):
            given, rule = [gradient.values, gradient.indices], _in_rows(rule, len(states))
            return update(f"Sparse{self._type}", states, rule, given, numbers, name)
        return update(self._type, states, rule, [gradient], numbers, name)

    def _rule_of(self, variable: Variable) -> tuple[Callable[..., list[Any]], Mapping[str, Any]]:
        """The rule of a variable, and the numbers that it takes."""
        return self._rule, self._numbers


_NUMBERS = {
    "learning_rate": "lr",
    "learning_rate_power": "power",
    "l1_regularization_strength": "l1",
    "l2_regularization_strength": "l2",
    "l2_shrinkage_regularization_strength": "shrinkage",
}
"""What rules call parameters."""


def taking(**parameters: Any) -> Callable[..., None]:
    """The ``__init__`` of an optimiser with these parameters and defaults; ``_begin`` takes those of its own."""

    def initialize(self: Optimizer, use_locking: bool, name: str, **own: Any) -> None:
        Optimizer.__init__(self, use_locking, name)
        self._begin(**own)

    return with_parameters(initialize, {"self": REQUIRED, **parameters})


def _in_rows(rule: Callable[..., list[Any]], count: int) -> Callable[..., list[Any]]:
    """A rule for whole variables, applied to the rows that were looked up; slices of one row are added up first."""

    def changed(*given: Any, **numbers: Any) -> list[Any]:
        states, values, indices = given[:count], given[count], given[count + 1]
        shape = tuple(states[0].shape)
        ones = full_of(1, (values.shape[0],), values.dtype, values)
        column = (shape[0], *[1] * (len(shape) - 1))
        reached = ops.greater(added_rows(ones, indices, column), 0)
        made = rule(*states, added_rows(values, indices, shape), **numbers)
        return [ops.where(reached, new, old) for new, old in zip(made, states)]

    return changed


def _computed_at_once(loss: Any, var_list: Any, grad_loss: Any) -> list[tuple[Any, Variable]]:
    """The gradients of what a function computes."""
    if not callable(loss) or hasattr(loss, "type_"):
        raise RuntimeError(
            "`loss` passed to Optimizer.compute_gradients should be a function when eager execution is enabled, at "
            f"{here()}."
        )
    tape = import_module("twofold.static.eager.gradient_tape").GradientTape()
    with tape:
        value = loss()
    chosen = (
        trainable_variables() if var_list is None else as_list(var_list() if callable(var_list) else var_list)
    )
    return list(zip(tape.gradient(value, chosen, grad_loss), chosen))


def _constrained(variable: Variable, changed: Operation) -> Any:
    """The change of a variable and, after it, what its constraint makes of it."""
    if variable.constraint is None:
        return changed
    with variable.graph.control_dependencies([changed]):
        return assign(variable, variable.constraint(variable.read_value()))
