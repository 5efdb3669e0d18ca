"""One training step from a loss: ``tf.contrib.layers.optimize_loss``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import random, summary, train
from twofold.static.api.op_functions import as_tensor, convert_to_tensor
from twofold.static.arrays import shape_ops
from twofold.static.autodiff.clipping import clip_by_global_norm, global_norm
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.scopes import control_dependencies
from twofold.static.variables.variable_scope import variable_scope

OPTIMIZER_CLS_NAMES: dict[str, Callable[..., Any]] = {
    "Adagrad": train.AdagradOptimizer,
    "Adam": train.AdamOptimizer,
    "Ftrl": train.FtrlOptimizer,
    "Momentum": lambda learning_rate: train.MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": train.RMSPropOptimizer,
    "SGD": train.GradientDescentOptimizer,
}
OPTIMIZER_SUMMARIES = ["learning_rate", "loss", "gradients", "gradient_norm"]


def _made(optimizer: Any, rate: Any) -> Any:
    if isinstance(optimizer, str):
        if optimizer not in OPTIMIZER_CLS_NAMES:
            fix = f"Use one of {', '.join(OPTIMIZER_CLS_NAMES)}."
            raise ArgumentError(f"optimize_loss: optimizer {optimizer!r}, at {here()}", fix)
        return OPTIMIZER_CLS_NAMES[optimizer](learning_rate=rate)
    if isinstance(optimizer, type):
        return optimizer(learning_rate=rate)
    return optimizer(rate) if callable(optimizer) else optimizer


def multiplied(pairs: list[Any], multipliers: Any) -> list[Any]:
    """Pairs of gradient and variable, with gradients times factors by variable or name."""
    found = []
    for gradient, variable in pairs:
        factor = multipliers.get(variable, multipliers.get(variable.name.split(":")[0]))
        found.append((gradient if factor is None or gradient is None else gradient * factor, variable))
    return found


def _noisy(pairs: list[Any], scale: float) -> list[Any]:
    return [
        (
            None
            if gradient is None
            else as_tensor(gradient) + random.random_normal(shape_ops.shape(gradient)) * scale,
            variable,
        )
        for gradient, variable in pairs
    ]


def _clipped(pairs: list[Any], clip: Any) -> list[Any]:
    if callable(clip):
        return list(clip(pairs))
    gradients, variables = zip(*pairs, strict=True)
    return list(zip(clip_by_global_norm(list(gradients), clip)[0], variables, strict=True))


@example(
    "w = tf.Variable(3.0)",
    'step = tf.contrib.layers.optimize_loss(tf.square(w), None, 0.5, "SGD", clip_gradients=2.0)',
    "session.run(tf.global_variables_initializer())",
    "print(session.run(step), session.run(w))",
    "9.0 2.0",
)
def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: Any = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Callable[[Any, Any], Any] | None = None,
    update_ops: Any = None,
    variables: Any = None,
    name: str | None = None,
    summaries: Any = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Any:
    """A tensor whose value is the loss after a training step.

    ``optimizer`` is a name such as "Adam", a class, an object, or a function of the learning rate.
    ``clip_gradients`` is the largest norm of all gradients together, or a function of pairs of gradient and
    variable; ``gradient_multipliers`` has factors by variable or name. ``update_ops`` (default: the collection)
    run before.
    """
    graph = get_default_graph()
    with variable_scope(name, "OptimizeLoss"):
        step = train.get_global_step() if global_step is None else global_step
        before = graph.get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
        with control_dependencies(before):
            loss = shape_ops.identity(convert_to_tensor(loss))
        shown = ["loss", "learning_rate"] if summaries is None else list(summaries)
        made = _made(optimizer, _rate(learning_rate, learning_rate_decay_fn, step, shown))
        chosen = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES) if variables is None else variables
        pairs = made.compute_gradients(loss, chosen)
        if gradient_noise_scale is not None:
            pairs = _noisy(pairs, gradient_noise_scale)
        if gradient_multipliers is not None:
            pairs = multiplied(pairs, gradient_multipliers)
        if clip_gradients is not None:
            pairs = _clipped(pairs, clip_gradients)
        _summarise(shown, loss, pairs)
        update = made.apply_gradients(pairs, step if increment_global_step else None, name="train")
        with control_dependencies([update]):
            return shape_ops.identity(loss)


def _rate(given: Any, decay: Callable[[Any, Any], Any] | None, step: Any, shown: list[str]) -> Any:
    """The learning rate of a step, or None."""
    if given is None:
        return None
    rate = convert_to_tensor(float(given) if isinstance(given, (int, float)) else given)
    if decay is not None:
        if step is None:
            fix = "Give global_step."
            raise ArgumentError(f"optimize_loss: the decay has no steps to count, at {here()}", fix)
        rate = decay(rate, step)
    if "learning_rate" in shown:
        summary.scalar("learning_rate", rate)
    return rate


def _summarise(shown: list[str], loss: Any, pairs: list[Any]) -> None:
    if "loss" in shown:
        summary.scalar("loss", loss)
    for gradient, variable in pairs:
        label = variable.name.replace(":", "_")
        if gradient is not None and "gradients" in shown:
            summary.histogram(f"gradients/{label}", gradient)
        if gradient is not None and "gradient_norm" in shown:
            summary.scalar(f"gradient_norm/{label}", global_norm([gradient]))
    if "global_gradient_norm" in shown or "gradient_norm" in shown:
        given = [gradient for gradient, _ in pairs if gradient is not None]
        summary.scalar("global_norm/gradient_norm", global_norm(given))
