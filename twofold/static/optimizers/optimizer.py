"""The base of all optimisers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NoReturn

from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_tensor, constant, convert_to_tensor, full_of
from twofold.static.api.signatures import REQUIRED, with_parameters
from twofold.static.arrays import shape_ops
from twofold.static.autodiff.gradients import as_list, gradients
from twofold.static.autodiff.indexed_slices import IndexedSlices, added_rows
from twofold.static.control_flow.dependencies import group
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.context import at_once
from twofold.static.graph.graph import Operation, get_default_graph
from twofold.static.graph.scopes import control_dependencies
from twofold.static.variables.variable import (
    Variable,
    assign,
    assign_add,
    in_variable_scope,
    trainable_variables,
    update,
)


class _Parameter:
    """A parameter of the rule by TensorFlow's name of the attribute, to be read and changed; or its tensor."""

    def __init__(self, key: str, as_a_tensor: bool = False) -> None:
        self._key, self._as_a_tensor = key, as_a_tensor

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, optimizer: Any, owner: type) -> Any:
        if optimizer is None:
            return self
        own, numbers = vars(optimizer), vars(optimizer).get("_numbers", {})
        if self._name not in own and self._key not in numbers:
            raise AttributeError(
                f"{owner.__name__} has no attribute {self._name!r}", name=self._name, obj=optimizer
            )
        found = own[self._name] if self._name in own else numbers[self._key]
        return convert_to_tensor(optimizer._call_if_callable(found)) if self._as_a_tensor else found

    def __set__(self, optimizer: Any, value: Any) -> None:
        numbers = vars(optimizer).get("_numbers", {})
        if self._key in numbers and not self._as_a_tensor:
            numbers[self._key] = value
        else:
            vars(optimizer)[self._name] = value


def slot_of(variable: Variable, value: Any, label: str) -> Variable:
    """A variable beside another one, named after it and ``label``, that has ``value`` at first."""
    graph = variable.graph
    with graph.name_scope(None), graph.control_dependencies(None):
        if isinstance(value, (bool, int, float)):
            name = f"{variable.op.name}/{label}/Initializer"
            value = constant(value, variable.dtype, variable.type_.shape, name=name)
        return Variable(value, False, name=in_variable_scope(graph, f"{variable.op.name}/{label}"))


class Optimizer:
    """Base of all optimisers: gradients of a loss, and what they do to the variables.

    No run sees half of an update, with or without ``use_locking``.
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2

    _type: str = "Update"
    """That of the operations which update a variable."""
    _rule: Callable[..., list[Any]]
    """The new values of a variable and its slots, from their values, the gradient and ``_numbers`` by name."""
    _first: Mapping[str, Any] = {}
    """The first values of the slots: numbers, or the names of parameters."""
    _limits: Mapping[str, str] = {}
    """By parameters what their numbers must be: a key of ``_SIGNS``."""
    _by_rows = True
    """Whether a table of which rows were looked up is changed in these rows alone, with their slots."""
    _in_rows_first: int | None = None
    """How many of the variable and its slots are changed in these rows alone; all unless set.

    With 0 the rule is told the rows that were looked up, as ``reached``.
    """

    _lr, _learning_rate, _beta1, _beta2 = (_Parameter(one) for one in ("lr", "lr", "beta1", "beta2"))
    _epsilon, _momentum, _rho = (_Parameter(one) for one in ("epsilon", "momentum", "rho"))
    _lr_t, _beta1_t, _beta2_t = (_Parameter(one, True) for one in ("lr", "beta1", "beta2"))
    _epsilon_t, _learning_rate_tensor = _Parameter("epsilon", True), _Parameter("lr", True)
    _momentum_tensor = _Parameter("momentum", True)

    def __init__(self, use_locking: bool = False, name: str = "Optimizer") -> None:
        self._name, self._use_locking = name, use_locking
        self._numbers: dict[str, Any] = {}
        self._slots: dict[tuple[Variable, str], Variable] = {}
        self._shared_variables: dict[tuple[str, Any], Variable] = {}

    def _begin(self, **numbers: Any) -> None:
        """Take the parameters of ``taking``: what the slots begin with, and the numbers of the rule."""
        for name, sign in self._limits.items():
            number = numbers[name]
            if isinstance(number, (int, float)) and not _SIGNS[sign](number):
                raise ValueError(f"{type(self).__name__}: {name} must be {sign}: {number}, at {here()}.")
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
        self._create_slots([variable for _, variable in pairs])
        with graph.name_scope(name or self._name) as scope:
            self._prepare()
            updates = [
                _constrained(variable, self._apply(gradient, variable)) for gradient, variable in pairs
            ]
            if global_step is None:
                made = self._finish(updates, scope)
            else:
                with control_dependencies([self._finish(updates, "update")]):
                    made = group(assign_add(global_step, 1), name=scope)
        if not at_once():
            graph.add_to_collection(GraphKeys.TRAIN_OP, made)
        return made

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """A variable that this optimiser keeps beside ``var``."""
        return self._slots.get((var, name))

    def get_slot_names(self) -> list[str]:
        """Names of what is kept beside each variable."""
        return sorted({slot for _, slot in self._slots})

    def variables(self) -> list[Variable]:
        """All variables that this optimiser keeps."""
        return [*self._slots.values(), *self._shared_variables.values()]

    def _create_slots(self, var_list: list[Variable]) -> None:
        """Make what is kept beside each variable; a class of a program's own calls ``_zeros_slot`` and its kin."""
        for variable in var_list:
            for slot, value in self._first.items():
                self._slot(variable, slot, value, self._slot_label(slot))

    def _slot(self, variable: Variable, slot: str, value: Any, label: str) -> Variable:
        found = self._slots.get((variable, slot))
        if found is None:
            found = self._slots[variable, slot] = slot_of(variable, value, label)
        return found

    def _zeros_slot(self, var: Variable, slot_name: str, op_name: str) -> Variable:
        """What is kept beside ``var`` as ``slot_name``, zeros at first; ``op_name`` ends its name."""
        return self._slot(var, slot_name, 0.0, op_name)

    def _get_or_make_slot(self, var: Variable, val: Any, slot_name: str, op_name: str) -> Variable:
        """What is kept beside ``var`` as ``slot_name``, ``val`` at first."""
        return self._slot(var, slot_name, val, op_name)

    def _get_or_make_slot_with_initializer(
        self, var: Variable, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Variable:
        """What is kept beside ``var`` as ``slot_name``, of ``shape`` and ``dtype`` by ``initializer`` at first."""
        return self._slot(var, slot_name, lambda: initializer(shape, dtype=dtype), op_name)

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any) -> Variable:
        """A variable that all variables share, by its name; made the first time."""
        graph = colocate_with.graph
        found = self._shared_variables.get((name, graph))
        if found is None:
            found = self._shared_variables[name, graph] = Variable(initial_value, False, name=name)
        return found

    def _get_non_slot_variable(self, name: str, graph: Any = None) -> Variable | None:
        """The variable of that name that all share, or None."""
        return self._shared_variables.get((name, graph or get_default_graph()))

    def _slot_label(self, slot: str) -> str:
        """The last part of the name of what is kept; a further one of that name gets a number, as in TensorFlow."""
        return self._name

    def _prepare(self) -> None:
        """Make the tensors that all updates share."""

    def _finish(self, update_ops: list[Any], name_scope: str) -> Operation:
        """An operation that ends with the updates of the variables, and makes those that come after them."""
        return group(*update_ops, name=name_scope)

    @staticmethod
    def _call_if_callable(param: Any) -> Any:
        """A parameter, or what the function that was given returns."""
        return param() if callable(param) and not hasattr(param, "type_") else param

    def _apply(self, gradient: Any, variable: Variable) -> Any:
        """An operation that updates a variable, by the method that TensorFlow asks for it."""
        if not isinstance(gradient, IndexedSlices):
            return (self._resource_apply_dense if variable.use_resource else self._apply_dense)(
                gradient, variable
            )
        if variable.use_resource:
            given = (gradient.values, variable, gradient.indices)
            return self._resource_apply_sparse_duplicate_indices(*given)
        return self._apply_sparse_duplicate_indices(gradient, variable)

    def _apply_dense(self, grad: Any, var: Variable) -> Any:
        """An operation that updates ``var`` by a gradient."""
        return self._updated(var, [grad], self._type)

    def _resource_apply_dense(self, grad: Any, handle: Variable) -> Any:
        """An operation that updates a resource variable by a gradient."""
        return self._apply_dense(grad, handle)

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Variable) -> Any:
        """An operation that updates rows of ``var``, of which some are named several times: first these are summed."""
        if hasattr(self, "_rule"):
            return self._updated(var, [grad.values, grad.indices], f"Sparse{self._type}", in_rows=True)
        return self._apply_sparse(_summed(grad), var)

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Any:
        """An operation that updates rows of ``var``, each named once."""
        return (
            self._apply_sparse_duplicate_indices(grad, var) if hasattr(self, "_rule") else self._unwritten()
        )

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Variable, indices: Any) -> Any:
        """An operation that updates rows of a resource variable, of which some are named several times."""
        slices = IndexedSlices(grad, indices, shape_ops.shape(handle))
        if hasattr(self, "_rule"):
            return self._apply_sparse_duplicate_indices(slices, handle)
        found = _summed(slices)
        return self._resource_apply_sparse(found.values, handle, found.indices)

    def _resource_apply_sparse(self, grad: Any, handle: Variable, indices: Any) -> Any:
        """An operation that updates rows of a resource variable, each named once."""
        return self._apply_sparse(IndexedSlices(grad, indices, shape_ops.shape(handle)), handle)

    def _unwritten(self) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__} does not say how variables are updated, at {here()}. Write _apply_dense and "
            "_apply_sparse."
        )

    def _updated(self, var: Variable, given: list[Any], type: str, in_rows: bool = False) -> Operation:
        """The update that the rule of a variable makes."""
        if not hasattr(self, "_rule"):
            self._unwritten()
        states = [var, *[self._slots[var, slot] for slot in self._first]]
        rule, taken = self._rule_of(var)
        numbers = {key: as_tensor(self._call_if_callable(value)) for key, value in taken.items()}
        rule = _in_rows(rule, len(states), self._in_rows_first) if in_rows else rule
        return update(type, states, rule, given, numbers, f"update_{var.op.name}/{self._type}")

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

_SIGNS: Mapping[str, Callable[[float], bool]] = {
    "positive": lambda number: number > 0,
    "positive or zero": lambda number: number >= 0,
    "negative or zero": lambda number: number <= 0,
}


def taking(**parameters: Any) -> Callable[..., None]:
    """The ``__init__`` of an optimiser with these parameters and defaults; ``_begin`` takes those of its own."""

    def initialize(self: Optimizer, use_locking: bool, name: str, **own: Any) -> None:
        Optimizer.__init__(self, use_locking, name)
        self._begin(**own)

    return with_parameters(initialize, {"self": REQUIRED, **parameters})


def _in_rows(rule: Callable[..., list[Any]], count: int, only: int | None = None) -> Callable[..., list[Any]]:
    """A rule for whole variables, applied to the rows that were looked up; slices of one row are added up first.

    Of all ``count`` states, or the first ``only`` of them, other rows stay as they are.
    """
    last = count if only is None else only

    def changed(*given: Any, **numbers: Any) -> list[Any]:
        states, values, indices = given[:count], given[count], given[count + 1]
        shape = tuple(states[0].shape)
        ones = full_of(1, (values.shape[0],), values.dtype, values)
        column = (shape[0], *[1] * (len(shape) - 1))
        reached = ops.greater(added_rows(ones, indices, column), 0)
        numbers = numbers if last else {**numbers, "reached": reached}
        made = rule(*states, added_rows(values, indices, shape), **numbers)
        return [*[ops.where(reached, new, old) for new, old in zip(made[:last], states)], *made[last:]]

    return changed


def _summed(slices: IndexedSlices) -> IndexedSlices:
    """Slices that name each row once, with the sums of the slices of a row."""
    rows, positions = import_module("twofold.static.arrays.selection").unique(slices.indices)
    total = import_module("twofold.static.arrays.segments").unsorted_segment_sum
    return IndexedSlices(total(slices.values, positions, shape_ops.shape(rows)[0]), rows, slices.dense_shape)


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
    given = tape.watched_variables() if var_list is None else var_list() if callable(var_list) else var_list
    chosen = as_list(given)
    return list(zip(tape.gradient(value, chosen, grad_loss), chosen))


def _constrained(variable: Variable, changed: Operation) -> Any:
    """The change of a variable and, after it, what its constraint makes of it."""
    if variable.constraint is None:
        return changed
    with variable.graph.control_dependencies([changed]):
        return assign(variable, variable.constraint(variable.read_value()))
