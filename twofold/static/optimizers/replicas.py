"""Steps on the mean of several gradients: ``tf.train.SyncReplicasOptimizer``, within one process."""

from __future__ import annotations

from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_tensor
from twofold.static.arrays import creation
from twofold.static.control_flow.conditional import cond
from twofold.static.control_flow.dependencies import group, no_op
from twofold.static.data.queues import FIFOQueue, QueueRunner
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.graph import Operation
from twofold.static.graph.scopes import control_dependencies
from twofold.static.math import equal
from twofold.static.optimizers.optimizer import Optimizer
from twofold.static.train.session_run_hook import SessionRunHook
from twofold.static.variables.variable import Variable, assign, assign_add


class SyncReplicasOptimizer(Optimizer):
    """An optimiser that steps once for ``replicas_to_aggregate`` gradients, on their mean.

    There is one process, which computes them all, one in each run: the last of them takes the step and counts the
    global step up, the others leave the variables as they are. So what TensorFlow's workers do at a time is done one
    after the other, with the same means, and no gradient is late.

    Args:
        opt: The optimiser that takes the steps.
        replicas_to_aggregate: How many gradients there are for a step.
        total_num_replicas: How many workers there would be: at least one; it changes nothing.
        variable_averages: A ``tf.train.ExponentialMovingAverage`` that follows each step.
        variables_to_average: Its variables.
        use_locking: Has no effect: updates are never mixed.
        name: The name of the operations.

    Raises:
        ArgumentError: A number below one, or averages without variables.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     w, x = tf.Variable(0.0), tf.placeholder(tf.float32, [])
    ...     descent = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2)
    ...     step = descent.minimize(w * x, global_step=tf.train.get_or_create_global_step())
    ...     session.run(tf.global_variables_initializer())
    ...     for value in (1.0, 3.0):
    ...         session.run(step, {x: value})
    ...         print(session.run(w))
    0.0
    -2.0
    """

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        super().__init__(use_locking, name)
        if replicas_to_aggregate < 1 or (total_num_replicas is not None and total_num_replicas < 1):
            what = f"SyncReplicasOptimizer: {replicas_to_aggregate} of {total_num_replicas} replicas, at {here()}"
            raise ArgumentError(what, "Give at least one.")
        if variable_averages is not None and variables_to_average is None:
            what = f"SyncReplicasOptimizer: variable_averages of no variables, at {here()}"
            raise ArgumentError(what, "Give variables_to_average.")
        self._opt, self._count = opt, replicas_to_aggregate
        self._averages, self._averaged = variable_averages, variables_to_average
        self.local_step_init_op: Operation | None = None
        self.chief_init_op: Operation | None = None
        self.ready_for_local_init_op = None
        self._applied = False

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Variable]]:
        """Those of the optimiser that takes the steps."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Operation:
        """An operation that takes in gradients and, once there are enough, steps.

        Raises ArgumentError without a global step, or without any gradient.
        """
        if global_step is None:
            what = f"SyncReplicasOptimizer: there is no global_step, at {here()}"
            raise ArgumentError(what, "Give one, such as tf.train.get_or_create_global_step().")
        self._applied = True
        self.chief_init_op = self.local_step_init_op = no_op()
        pairs = list(grads_and_vars)
        if self._count == 1:
            return self._step(pairs, global_step, name)
        kept = [(_Sum(one, variable), variable) for one, variable in pairs if one is not None]
        count = Variable(0, False, [GraphKeys.GLOBAL_VARIABLES], name=f"{self._name}/count")
        with control_dependencies([one.add for one, _ in kept]):
            seen = assign_add(count, 1)

        def step() -> Operation:
            means = [(one.total.read_value() / float(self._count), variable) for one, variable in kept]
            with control_dependencies([self._step(means, global_step, name)]):
                return group(assign(count, 0), *[one.reset() for one, _ in kept])

        return group(cond(equal(seen, self._count), step, no_op))

    def _step(self, pairs: Any, global_step: Any, name: str | None) -> Operation:
        made = self._opt.apply_gradients(pairs, global_step, name)
        if self._averages is None:
            return made
        with control_dependencies([made]):
            return group(self._averages.apply(self._averaged))

    def _made(self, what: str) -> None:
        if not self._applied:
            raise ValueError(
                f"{what} before apply_gradients or minimize, at {here()}. Declare the step first."
            )

    def get_chief_queue_runner(self) -> QueueRunner:
        """A queue runner without work: steps are taken by the runs themselves."""
        self._made("get_chief_queue_runner")
        return QueueRunner(FIFOQueue(1, ["int64"], shapes=[[]]), [])

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """An operation that does nothing: no worker waits for another."""
        self._made("get_init_tokens_op")
        return no_op()

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """A hook that does nothing: no worker waits for another."""
        return SessionRunHook()

    def get_slot(self, *args: Any, **kwargs: Any) -> Variable | None:
        """A variable that the optimiser keeps beside another one."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self) -> list[str]:
        """Names of what the optimiser keeps beside each variable."""
        return self._opt.get_slot_names()

    def variables(self) -> list[Variable]:
        """All variables that the optimiser keeps."""
        return self._opt.variables()


class _Sum:
    """The sum of gradients of a variable."""

    def __init__(self, gradient: Any, variable: Variable) -> None:
        shape = variable.get_shape().as_list()
        name = f"{variable.op.name}/gradient_sum"
        self.total = Variable(creation.zeros(shape, variable.dtype), False, name=name)
        self.add = assign_add(self.total, as_tensor(gradient))

    def reset(self) -> Any:
        """An operation that begins anew."""
        return assign(self.total, creation.zeros_like(self.total))
