"""Optimisers and savers: ``tf.train``."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from twofold.dtypes import float64, int64
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, ops
from twofold.static import modes
from twofold.static.coordination import Coordinator as Coordinator
from twofold.static.define import as_tensor, constant, define
from twofold.static.docstrings import example
from twofold.static.example import BytesList as BytesList
from twofold.static.example import Example as Example
from twofold.static.example import Feature as Feature
from twofold.static.example import FeatureList as FeatureList
from twofold.static.example import FeatureLists as FeatureLists
from twofold.static.example import Features as Features
from twofold.static.example import FloatList as FloatList
from twofold.static.example import Int64List as Int64List
from twofold.static.example import SequenceExample as SequenceExample
from twofold.static.graph import Operation, get_default_graph
from twofold.static.graph_util import write_graph as write_graph
from twofold.static.keys import GraphKeys
from twofold.static.moving_averages import ExponentialMovingAverage as ExponentialMovingAverage
from twofold.static.optimizer import Optimizer
from twofold.static.optimizer_rules import AdadeltaOptimizer as AdadeltaOptimizer
from twofold.static.optimizer_rules import FtrlOptimizer as FtrlOptimizer
from twofold.static.optimizer_rules import ProximalAdagradOptimizer as ProximalAdagradOptimizer
from twofold.static.optimizer_rules import (
    ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer,
)
from twofold.static.queues import QueueRunner as QueueRunner
from twofold.static.queues import add_queue_runner as add_queue_runner
from twofold.static.queues import batch as batch
from twofold.static.queues import range_input_producer as range_input_producer
from twofold.static.queues import shuffle_batch as shuffle_batch
from twofold.static.queues import slice_input_producer as slice_input_producer
from twofold.static.queues import start_queue_runners as start_queue_runners
from twofold.static.readers import string_input_producer as string_input_producer
from twofold.static.saver import (
    Saver,
    checkpoint_exists,
    get_checkpoint_state,
    latest_checkpoint,
)
from twofold.static.schedules import cosine_decay as cosine_decay
from twofold.static.schedules import cosine_decay_restarts as cosine_decay_restarts
from twofold.static.schedules import exponential_decay as exponential_decay
from twofold.static.schedules import inverse_time_decay as inverse_time_decay
from twofold.static.schedules import linear_cosine_decay as linear_cosine_decay
from twofold.static.schedules import natural_exp_decay as natural_exp_decay
from twofold.static.schedules import piecewise_constant as piecewise_constant
from twofold.static.schedules import piecewise_constant_decay as piecewise_constant_decay
from twofold.static.schedules import polynomial_decay as polynomial_decay
from twofold.static.summary_messages import summary_iterator as summary_iterator
from twofold.static.variables import Variable, assign_add

__all__ = ["Saver", "checkpoint_exists", "get_checkpoint_state", "latest_checkpoint"]


def _descended(p: Any, g: Any, lr: Any) -> list[Any]:
    return [apply("sgd_parameter", p, g, lr)]


@example(
    "w = tf.Variable(3.0)",
    "step = tf.train.GradientDescentOptimizer(0.25).minimize(w * w)",
    "session.run(tf.global_variables_initializer())",
    "session.run(step)",
    "w",
    "1.5",
)
class GradientDescentOptimizer(Optimizer):
    """``variable - learning_rate * gradient``."""

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


@example(
    "w = tf.Variable(1.0)",
    "step = tf.train.MomentumOptimizer(0.25, 0.9).minimize(w * w)",
    "session.run(tf.global_variables_initializer())",
    "session.run(step)",
    "w",
    "0.5",
)
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


_BETAS = ("beta1", "beta2")
_ADAM = {"tensorflow": _adam("adam_parameter_late_epsilon"), "pytorch": _adam("adam_parameter")}


@example(
    "w = tf.Variable(1.0)",
    "step = tf.train.AdamOptimizer(0.25).minimize(w * w)",
    "session.run(tf.global_variables_initializer())",
    "session.run(step)",
    "w",
    "0.75",
)
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
            named = {first.graph.unique_name(f"{name}_power"): getattr(self, f"_{name}") for name in _BETAS}
            if all(isinstance(beta, (int, float)) for beta in named.values()):
                self._step.powers = named
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
        if modes.at_once():
            return 1 - beta ** int(step.numpy())
        made = step.graph.add("BiasCorrection", None, [tensor_type(float64, (), True)], ())
        made.number_of = lambda state: 1 - beta ** (state[step].item() + 1)
        return made.outputs[0]


def _adagrad(p: Any, v: Any, g: Any, lr: Any) -> list[Any]:
    square = apply("adagrad_square", g, v)
    return [apply("adagrad_parameter", p, g, square, lr, 0.0), square]


@example(
    "w = tf.Variable(1.0)",
    "step = tf.train.AdagradOptimizer(0.25).minimize(w * w)",
    "session.run(tf.global_variables_initializer())",
    "session.run(step)",
    "w",
    "0.7530676",
)
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


@example(
    "w = tf.Variable(1.0)",
    "step = tf.train.RMSPropOptimizer(0.25).minimize(w * w)",
    "session.run(tf.global_variables_initializer())",
    "session.run(step)",
    "w",
    "0.561471",
)
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
        return {"rms": 1.0, **({"mg": 0.0} if self._centered else {}), "momentum": 0.0}

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


@example("print(tf.train.create_global_step().name)", "global_step:0")
def create_global_step(graph: Any = None) -> Variable:
    """The variable that counts steps; raises ValueError if there is one."""
    found = graph or get_default_graph()
    if found.get_collection(GraphKeys.GLOBAL_STEP):
        raise ValueError('"global_step" already exists.')
    with nullcontext() if modes.at_once() else found.as_default(), found.name_scope(None):
        made = Variable(constant(0, int64), False, name="global_step")
    found.add_to_collection(GraphKeys.GLOBAL_STEP, made)
    return made


@example("print(tf.train.get_global_step())", "None")
def get_global_step(graph: Any = None) -> Variable | None:
    """The variable that counts steps, or None."""
    found = (graph or get_default_graph()).get_collection(GraphKeys.GLOBAL_STEP)
    return found[0] if found else None


@example("print(tf.train.get_or_create_global_step() is tf.train.get_or_create_global_step())", "True")
def get_or_create_global_step(graph: Any = None) -> Variable:
    """The variable that counts steps."""
    return get_global_step(graph) or create_global_step(graph)


@example(
    "step = tf.train.create_global_step()",
    "session.run(tf.global_variables_initializer())",
    "print(tf.train.global_step(session, step))",
    "0",
)
def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps so far."""
    return int(sess.run(global_step_tensor))
