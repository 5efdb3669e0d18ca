"""Optimisers and savers: ``tf.train``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.dtypes import float32, float64, int64
from twofold.errors import GraphError
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, ops
from twofold.runtime.tracing import here
from twofold.static.control import group
from twofold.static.coordination import Coordinator as Coordinator
from twofold.static.define import as_tensor, constant, define
from twofold.static.gradients import gradients
from twofold.static.graph import GraphKeys, Operation, get_default_graph
from twofold.static.saver import (
    Saver,
    checkpoint_exists,
    get_checkpoint_state,
    latest_checkpoint,
)
from twofold.static.variables import Variable, assign_add, trainable_variables, update

__all__ = ["Saver", "checkpoint_exists", "get_checkpoint_state", "latest_checkpoint"]


class Optimizer:
    """Base of all optimisers: gradients of a loss, and what they do to the variables."""

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2

    def __init__(self, use_locking: bool = False, name: str = "Optimizer") -> None:
        self._name = name
        self._slots: dict[tuple[Variable, str], Variable] = {}

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
        pairs = self.compute_gradients(loss, var_list, grad_loss=grad_loss)
        if all(gradient is None for gradient, _ in pairs):
            names = ", ".join(variable.name for _, variable in pairs)
            raise ValueError(
                f"minimize: the loss depends on none of the variables {names}, at {here()}. Give others as var_list."
            )
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: Any = 1,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Variable]]:
        """Pairs of gradient (None without a path) and variable; of all trainable variables unless given."""
        loss = loss() if callable(loss) and not hasattr(loss, "type_") else loss
        chosen = (
            trainable_variables()
            if var_list is None
            else list(var_list)
            if isinstance(var_list, (list, tuple))
            else [var_list]
        )
        if not chosen:
            raise ValueError(
                f"minimize: there are no variables to change, at {here()}. Declare a trainable tf.Variable first."
            )
        found = gradients(loss, chosen, grad_loss)
        return list(zip(found, chosen))

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Operation:
        """An operation that changes the variables by their gradients and counts ``global_step`` up."""
        pairs = [
            (as_tensor(gradient), variable) for gradient, variable in grads_and_vars if gradient is not None
        ]
        if not pairs:
            raise ValueError(f"apply_gradients: no gradient is given, at {here()}.")
        graph = get_default_graph()
        for _, variable in pairs:
            for slot, value in self._slot_values().items():
                self._slot(variable, slot, value)
        self._prepare(pairs[0][1])
        with graph.name_scope(name or self._name) as scope:
            updates: list[Any] = [self._apply(gradient, variable) for gradient, variable in pairs]
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
        return sorted(self._slot_values())

    def variables(self) -> list[Variable]:
        """All variables that this optimiser keeps."""
        return list(self._slots.values())

    def _slot_values(self) -> dict[str, float]:
        return {}

    def _slot(self, variable: Variable, slot: str, value: float) -> Variable:
        found = self._slots.get((variable, slot))
        if found is None:
            graph = variable.graph
            with graph.name_scope(None), graph.control_dependencies(None):
                initial = constant(
                    value,
                    variable.dtype,
                    variable.type_.shape,
                    name=f"{variable.op.name}/{self._name}/Initializer",
                )
                label = (
                    self._name
                    if slot in ("momentum", "accumulator")
                    else f"{self._name}_{slot}"
                    if slot == "v"
                    else self._name
                )
                found = Variable(initial, False, name=f"{variable.op.name}/{label}")
            self._slots[variable, slot] = found
        return found

    def _prepare(self, first: Variable) -> None:
        """Make what all variables share."""

    def _finish(self) -> list[Any]:
        """Updates that come after those of the variables."""
        return []

    def _apply(self, gradient: Any, variable: Variable) -> Operation:
        raise NotImplementedError

    def _update(
        self, type: str, variable: Variable, slots: Sequence[str], body: Any, gradient: Any, **numbers: Any
    ) -> Operation:
        states = [variable, *[self._slots[variable, slot] for slot in slots]]
        return update(
            type,
            states,
            body,
            [gradient],
            {key: as_tensor(value) for key, value in numbers.items()},
            f"update_{variable.op.name}/{type}",
        )


def _descended(p: Any, g: Any, lr: Any) -> list[Any]:
    return [apply("sgd_parameter", p, g, lr)]


class GradientDescentOptimizer(Optimizer):
    """``variable - learning_rate * gradient``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     w = tf.Variable(3.0)
    ...     step = tf.train.GradientDescentOptimizer(0.25).minimize(w * w)
    ...     session.run(tf.global_variables_initializer())
    ...     session.run(step)
    ...     print(session.run(w))
    1.5
    """

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._rate = learning_rate

    def _apply(self, gradient: Any, variable: Variable) -> Operation:
        return self._update("ApplyGradientDescent", variable, (), _descended, gradient, lr=self._rate)


def _with_momentum(p: Any, m: Any, g: Any, lr: Any, momentum: Any) -> list[Any]:
    new = apply("sgd_momentum", g, m, momentum, 0.0)
    return [apply("sgd_parameter", p, new, lr), new]


def _with_nesterov(p: Any, m: Any, g: Any, lr: Any, momentum: Any) -> list[Any]:
    new = apply("sgd_momentum", g, m, momentum, 0.0)
    return [apply("sgd_parameter", p, apply("nesterov_direction", g, new, momentum), lr), new]


class MomentumOptimizer(Optimizer):
    """``accumulated = momentum * accumulated + gradient; variable -= learning_rate * accumulated``."""

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._rate, self._momentum = learning_rate, momentum
        self._body = _with_nesterov if use_nesterov else _with_momentum

    def _slot_values(self) -> dict[str, float]:
        return {"momentum": 0.0}

    def _apply(self, gradient: Any, variable: Variable) -> Operation:
        return self._update(
            "ApplyMomentum",
            variable,
            ("momentum",),
            self._body,
            gradient,
            lr=self._rate,
            momentum=self._momentum,
        )


def _adam(rule: str) -> Any:
    def body(
        p: Any,
        m: Any,
        v: Any,
        g: Any,
        lr: Any,
        beta1: Any,
        beta2: Any,
        epsilon: Any,
        correction1: Any,
        correction2: Any,
    ) -> list[Any]:
        mean = apply("adam_mean", g, m, beta1)
        square = apply("adam_square", g, v, beta2)
        return [apply(rule, p, mean, square, lr, correction1, correction2, epsilon), mean, square]

    return body


def _correction(beta: Any, step: Any) -> Any:
    return ops.subtract(1.0, ops.pow(beta, ops.cast(step, beta.dtype)))


_ADAM = {"tensorflow": _adam("adam_parameter_late_epsilon"), "pytorch": _adam("adam_parameter")}


class AdamOptimizer(Optimizer):
    """Adam (Kingma, Ba 2015).

    ``formulation`` is this library's own: ``"tensorflow"`` (the default) adds epsilon to the uncorrected root
    ("epsilon hat"), ``"pytorch"`` computes exactly what the define-by-run ``optim.Adam`` does.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
        formulation: str = "tensorflow",
    ) -> None:
        super().__init__(use_locking, name)
        if formulation not in _ADAM:
            raise ValueError(f"AdamOptimizer: formulation is {formulation!r}. Use 'tensorflow' or 'pytorch'.")
        self._rate, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon
        self._body = _ADAM[formulation]
        self._step: Variable | None = None

    def _slot_values(self) -> dict[str, float]:
        return {"m": 0.0, "v": 0.0}

    def _prepare(self, first: Variable) -> None:
        if self._step is None:
            with first.graph.name_scope(None), first.graph.control_dependencies(None):
                self._step = Variable(constant(0, int64), False, name=f"{self._name}/step")
        self._count = assign_add(self._step, 1)
        self._corrections = [self._correction(beta) for beta in (self._beta1, self._beta2)]

    def variables(self) -> list[Variable]:
        """All variables that this optimiser keeps."""
        return super().variables() + ([] if self._step is None else [self._step])

    def _apply(self, gradient: Any, variable: Variable) -> Operation:
        return self._update(
            "ApplyAdam",
            variable,
            ("m", "v"),
            self._body,
            gradient,
            lr=self._rate,
            beta1=self._beta1,
            beta2=self._beta2,
            epsilon=self._epsilon,
            correction1=self._corrections[0],
            correction2=self._corrections[1],
        )

    def _finish(self) -> list[Any]:
        return [self._count]

    def _correction(self, beta: Any) -> Any:
        """``1 - beta ** step``: given to each run as a number, so that no precision of the step is lost."""
        step = self._step
        assert step is not None
        if not isinstance(beta, (int, float)):
            return define("BiasCorrection", _correction, (as_tensor(beta), self._count), {}, None).outputs[0]
        made = step.graph.add("BiasCorrection", None, [tensor_type(float64, (), True)], ())
        made.number_of = lambda state: 1 - beta ** (state[step].item() + 1)
        return made.outputs[0]


def _adagrad(p: Any, v: Any, g: Any, lr: Any) -> list[Any]:
    square = apply("adagrad_square", g, v)
    return [apply("adagrad_parameter", p, g, square, lr, 0.0), square]


class AdagradOptimizer(Optimizer):
    """``accumulated += gradient ** 2; variable -= rate * gradient / sqrt(accumulated)`` (Duchi et al. 2011)."""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        super().__init__(use_locking, name)
        self._rate, self._initial = learning_rate, initial_accumulator_value

    def _slot_values(self) -> dict[str, float]:
        return {"accumulator": self._initial}

    def _apply(self, gradient: Any, variable: Variable) -> Operation:
        return self._update("ApplyAdagrad", variable, ("accumulator",), _adagrad, gradient, lr=self._rate)


def _rmsprop(p: Any, v: Any, m: Any, g: Any, lr: Any, decay: Any, momentum: Any, epsilon: Any) -> list[Any]:
    square = apply("adam_square", g, v, decay)
    scaled = ops.multiply(apply("rmsprop_direction_inner_epsilon", g, square, epsilon), lr)
    moved = apply("sgd_momentum", scaled, m, momentum, 0.0)
    return [ops.subtract(p, moved), square, moved]


def _rmsprop_centered(
    p: Any, v: Any, m: Any, mean: Any, g: Any, lr: Any, decay: Any, momentum: Any, epsilon: Any
) -> list[Any]:
    square, centre = apply("adam_square", g, v, decay), apply("adam_mean", g, mean, decay)
    spread = ops.subtract(square, ops.square(centre))
    moved = apply(
        "sgd_momentum",
        ops.multiply(apply("rmsprop_direction_inner_epsilon", g, spread, epsilon), lr),
        m,
        momentum,
        0.0,
    )
    return [ops.subtract(p, moved), square, moved, centre]


class RMSPropOptimizer(Optimizer):
    """RMSProp: ``ms = decay * ms + (1 - decay) * g ** 2; mom = momentum * mom + rate * g / sqrt(ms + epsilon)``."""

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._rate, self._decay, self._momentum, self._epsilon, self._centered = (
            learning_rate,
            decay,
            momentum,
            epsilon,
            centered,
        )

    def _slot_values(self) -> dict[str, float]:
        return {"rms": 1.0, "momentum": 0.0, **({"mg": 0.0} if self._centered else {})}

    def _apply(self, gradient: Any, variable: Variable) -> Operation:
        slots = ("rms", "momentum", "mg") if self._centered else ("rms", "momentum")
        body = _rmsprop_centered if self._centered else _rmsprop
        return self._update(
            "ApplyRMSProp",
            variable,
            slots,
            body,
            gradient,
            lr=self._rate,
            decay=self._decay,
            momentum=self._momentum,
            epsilon=self._epsilon,
        )


def _decayed(rate: Any, step: Any, steps: Any, factor: Any, staircase: bool) -> Any:
    power = ops.divide(ops.cast(step, float32), steps)
    return ops.multiply(ops.pow(factor, ops.floor(power) if staircase else power), rate)


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """``learning_rate * decay_rate ** (global_step / decay_steps)``; with ``staircase`` the exponent is whole."""
    keywords = {"steps": as_tensor(decay_steps), "factor": as_tensor(decay_rate), "staircase": staircase}
    return define(
        "ExponentialDecay",
        _decayed,
        (as_tensor(learning_rate), as_tensor(global_step)),
        keywords,
        name or "ExponentialDecay",
    ).outputs[0]


def create_global_step(graph: Any = None) -> Variable:
    """The variable that counts steps; raises ValueError if there is one."""
    found = graph or get_default_graph()
    if found.get_collection(GraphKeys.GLOBAL_STEP):
        raise ValueError('"global_step" already exists.')
    with found.as_default(), found.name_scope(None):
        made = Variable(constant(0, int64), False, name="global_step")
    found.add_to_collection(GraphKeys.GLOBAL_STEP, made)
    return made


def get_global_step(graph: Any = None) -> Variable | None:
    """The variable that counts steps, or None."""
    found = (graph or get_default_graph()).get_collection(GraphKeys.GLOBAL_STEP)
    return found[0] if found else None


def get_or_create_global_step(graph: Any = None) -> Variable:
    """The variable that counts steps."""
    return get_global_step(graph) or create_global_step(graph)


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps so far."""
    return int(sess.run(global_step_tensor))


class ExponentialMovingAverage:
    """Running averages of variables, kept in variables of their own."""

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        if num_updates is not None:
            raise GraphError("ExponentialMovingAverage: num_updates is not offered", "Leave it out.")
        self._decay, self._name = decay, name
        self._averages: dict[Variable, Variable] = {}

    def apply(self, var_list: Sequence[Variable] | None = None) -> Operation:
        """An operation that updates the averages."""
        updates = []
        for variable in trainable_variables() if var_list is None else var_list:
            if variable not in self._averages:
                self._averages[variable] = Variable(
                    variable.initialized_value(), False, name=f"{variable.op.name}/{self._name}"
                )
            average = self._averages[variable]
            updates.append(
                update(
                    "AssignMovingAvg",
                    [average],
                    _averaged,
                    [as_tensor(variable)],
                    {"decay": as_tensor(self._decay)},
                    None,
                )
            )
        return group(*updates)

    def average(self, var: Variable) -> Variable | None:
        """The variable that holds the average of ``var``."""
        return self._averages.get(var)


def _averaged(state: Any, value: Any, decay: Any) -> Any:
    return apply("adam_mean", value, state, decay)
