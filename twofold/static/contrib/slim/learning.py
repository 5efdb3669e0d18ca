"""Training steps and the loop that runs them: ``slim.learning``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twofold.runtime.tracing import here
from twofold.static import debugging, math, summary
from twofold.static.api.op_functions import as_tensor, refuse
from twofold.static.api.signatures import takes
from twofold.static.arrays import shape_ops
from twofold.static.autodiff.clipping import clip_by_norm, global_norm
from twofold.static.autodiff.indexed_slices import IndexedSlices
from twofold.static.contrib.optimizing import multiplied
from twofold.static.errors import OutOfRangeError
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.scopes import control_dependencies
from twofold.static.platform import logs
from twofold.static.saving.saver import Saver
from twofold.static.train import get_or_create_global_step
from twofold.static.train.supervisor import Supervisor

Pairs = Sequence[tuple[Any, Any]]
_DEFAULT: Any = Supervisor.USE_DEFAULT


def clip_gradient_norms(gradients_to_variables: Pairs, max_norm: float) -> list[tuple[Any, Any]]:
    """Pairs of gradient and variable, each gradient scaled down to a norm of at most ``max_norm``."""
    return [
        (None if gradient is None else clip_by_norm(gradient, max_norm), variable)
        for gradient, variable in gradients_to_variables
    ]


def multiply_gradients(
    grads_and_vars: Pairs, gradient_multipliers: Mapping[Any, Any]
) -> list[tuple[Any, Any]]:
    """Pairs of gradient and variable, with gradients times the factors given by variable or name."""
    if not gradient_multipliers or not isinstance(gradient_multipliers, Mapping):
        fix = "Give factors by variable or name."
        raise ValueError(f"multiply_gradients: gradient_multipliers is no filled dict, at {here()}. {fix}")
    for gradient, variable in grads_and_vars:
        if gradient is None and {variable, variable.op.name} & gradient_multipliers.keys():
            what = f"multiply_gradients: {variable.op.name} has no gradient, at {here()}"
            raise ValueError(f"{what}. Leave its factor out.")
    return multiplied(list(grads_and_vars), gradient_multipliers)


def add_gradients_summaries(grads_and_vars: Pairs) -> list[Any]:
    """Summaries of each gradient: its distribution, and its norm."""
    found = []
    for gradient, variable in grads_and_vars:
        if gradient is None:
            logs.info("Var %s has no gradient", variable.op.name)
            continue
        values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        found.append(summary.histogram(f"{variable.op.name}/gradient", values))
        found.append(summary.scalar(f"{variable.op.name}/gradient_norm", global_norm([values])))
    return found


@example(
    "w = tf.Variable(3.0)",
    "step = tf.contrib.slim.learning.create_train_op(tf.square(w), tf.train.GradientDescentOptimizer(0.5))",
    "session.run(tf.global_variables_initializer())",
    "print(session.run(step), session.run(w))",
    "9.0 0.0",
)
@takes(
    "clip_gradient_norm=0, summarize_gradients=False, gate_gradients=1, aggregation_method=None, "
    "colocate_gradients_with_ops=False, gradient_multipliers=None, check_numerics=True"
)
def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = _DEFAULT,
    update_ops: Any = None,
    variables_to_train: Any = None,
    **options: Any,
) -> Any:
    """A tensor whose value is the loss, after a step of the optimizer behind ``update_ops`` (default: the collection).

    Each gradient is multiplied and clipped as ``gradient_multipliers`` and ``clip_gradient_norm`` say; a
    ``global_step`` of None counts nothing.
    """
    graph = get_default_graph()
    step = get_or_create_global_step() if global_step is _DEFAULT else global_step
    before = graph.get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
    with control_dependencies(before):
        loss = shape_ops.identity(as_tensor(total_loss))
    names = ("gate_gradients", "aggregation_method", "colocate_gradients_with_ops")
    pairs = optimizer.compute_gradients(loss, variables_to_train, **{name: options[name] for name in names})
    if options["gradient_multipliers"]:
        pairs = multiply_gradients(pairs, options["gradient_multipliers"])
    if options["clip_gradient_norm"] > 0:
        pairs = clip_gradient_norms(pairs, options["clip_gradient_norm"])
    if options["summarize_gradients"]:
        add_gradients_summaries(pairs)
    update = optimizer.apply_gradients(pairs, step)
    if options["check_numerics"]:
        loss = debugging.check_numerics(loss, "LossTensor is inf or nan")
    with control_dependencies([update]):
        made = shape_ops.identity(loss, name="train_op")
    graph.add_to_collection(GraphKeys.TRAIN_OP, made)
    return made


def train_step(
    sess: Any, train_op: Any, global_step: Any, train_step_kwargs: Mapping[str, Any]
) -> tuple[Any, Any]:
    """One step: the loss, and whether ``should_stop`` says that it was the last; ``should_log`` has it reported."""
    begin = time.monotonic()
    loss, step = sess.run([train_op, global_step])
    seconds = time.monotonic() - begin
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        logs.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, seconds)
    stops = sess.run(train_step_kwargs["should_stop"]) if "should_stop" in train_step_kwargs else False
    return loss, stops


@takes(
    "master='', is_chief=True, global_step=None, number_of_steps=None",
    init_op=_DEFAULT,
    init_feed_dict=None,
    local_init_op=_DEFAULT,
    init_fn=None,
    ready_op=_DEFAULT,
    summary_op=_DEFAULT,
    save_summaries_secs=600,
    summary_writer=_DEFAULT,
    startup_delay_steps=0,
    saver=None,
    save_interval_secs=600,
    sync_optimizer=None,
    session_config=None,
    session_wrapper=None,
    trace_every_n_steps=None,
    ignore_live_threads=False,
)
def train(
    train_op: Any,
    logdir: Any,
    train_step_fn: Callable[..., tuple[Any, Any]] = train_step,
    train_step_kwargs: Any = _DEFAULT,
    log_every_n_steps: int = 1,
    graph: Any = None,
    **options: Any,
) -> Any:
    """Run training steps until ``number_of_steps`` are counted or the data ends; the last loss.

    Checkpoints and summaries are written to ``logdir`` at intervals, and a checkpoint at the end; None writes nothing.
    ``startup_delay_steps`` is for workers beside the chief, of which there are none. A ``sync_optimizer``, a
    ``tf.train.SyncReplicasOptimizer``, needs no start of its own.
    """
    refused = ("trace_every_n_steps", "ignore_live_threads")
    refuse("slim.learning.train", **{name: options[name] for name in refused})
    if options["sync_optimizer"] is not None and not hasattr(options["sync_optimizer"], "get_init_tokens_op"):
        raise TypeError(f"train: sync_optimizer is no SyncReplicasOptimizer, at {here()}. Leave it out.")
    if logdir is None and (options["summary_op"] not in (_DEFAULT, None) or options["saver"] is not None):
        raise ValueError(f"train: a summary_op or saver without logdir, at {here()}. Give a logdir.")
    graph = graph or get_default_graph()
    with graph.as_default():
        step = options["global_step"]
        step = get_or_create_global_step() if step is None else step
        if train_step_kwargs is _DEFAULT:
            train_step_kwargs = {"should_log": math.equal(math.mod(step, log_every_n_steps), 0)}
            if options["number_of_steps"]:
                train_step_kwargs["should_stop"] = math.greater_equal(step, options["number_of_steps"])
        names = (
            "is_chief init_op init_feed_dict local_init_op init_fn ready_op summary_op save_summaries_secs"
        )
        supervisor = Supervisor(
            graph,
            logdir=logdir,
            saver=options["saver"] or Saver(),
            global_step=step,
            summary_writer=options["summary_writer"],
            save_model_secs=options["save_interval_secs"],
            **{name: options[name] for name in names.split()},
        )
    return _steps(supervisor, train_op, train_step_fn, train_step_kwargs, options)


def _steps(
    supervisor: Supervisor,
    train_op: Any,
    step: Callable[..., tuple[Any, Any]],
    given: Any,
    options: dict[str, Any],
) -> Any:
    """Steps until the end; the last loss."""
    loss = None
    with supervisor.managed_session(options["master"], options["session_config"]) as own:
        session = own if options["session_wrapper"] is None else options["session_wrapper"](own)
        try:
            stops = False
            while not stops and not supervisor.should_stop():
                loss, stops = step(session, train_op, supervisor.global_step, given)
        except OutOfRangeError:
            logs.info("Caught OutOfRangeError. Stopping Training.")
        # the checkpoint behind the last step is the newest
        supervisor.stop(close_summary_writer=False)
        if supervisor.save_path is not None:
            supervisor.saver.save(own, supervisor.save_path, global_step=supervisor.global_step)
    return loss
