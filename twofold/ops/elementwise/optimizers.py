"""The update rules of optimisers, one operation per new value, with every number a run-time input.

Formulas follow PyTorch operation by operation; where TensorFlow positions epsilon elsewhere, it has an entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.ops.base import apply, composite, ops
from twofold.ops.examples import example


def _rule(signature: str, *numbers: float) -> Any:
    """Complete an entry: no public function, samples of tensors followed by ``numbers``."""

    def decorate(body: Any) -> Any:
        tensors = len(signature.split(",")) - len(numbers)
        body.functions = ()
        body.signature = signature
        body.differentiable = False
        names = tuple(name.strip() for name in signature.split(","))
        body.call = staticmethod(_caller(body.__name__, names))
        body.samples = staticmethod(
            lambda: [_sample(tensors, numbers, shape) for shape in ((17,), (3, 5), ())]
        )
        return composite(body)

    return decorate


def _caller(name: str, names: Sequence[str]) -> Any:
    def call(*values: Any) -> Any:
        if len(values) != len(names):
            raise TypeError(f"{name} takes {', '.join(names)}")
        return apply(name, *values)

    return call


def _sample(tensors: int, numbers: Sequence[float], shape: tuple[int, ...]) -> Any:
    generator = numpy.random.default_rng(5)
    samples = [generator.uniform(0.1, 2.0, shape).astype(numpy.float32) for _ in range(tensors)]
    return example((), *samples, *[numpy.array(number) for number in numbers])


@_rule("gradient, parameter, weight_decay", 0.01)
class decayed_gradient:
    """``gradient + weight_decay * parameter``: the gradient of the loss with a square penalty."""

    compute = lambda g, p, decay: g + p * decay
    reference = lambda g, p, decay: g + decay * p


@_rule("gradient, buffer, momentum, dampening", 0.9, 0.1)
class sgd_momentum:
    """``momentum * buffer + (1 - dampening) * gradient``."""

    compute = lambda g, m, momentum, dampening: m * momentum + g * (1 - dampening)
    reference = lambda g, m, momentum, dampening: momentum * m + (1 - dampening) * g


@_rule("gradient, buffer, momentum", 0.9)
class nesterov_direction:
    """``gradient + momentum * buffer``: the step of Nesterov's method."""

    compute = lambda g, m, momentum: g + m * momentum
    reference = lambda g, m, momentum: g + momentum * m


@_rule("parameter, direction, lr", 0.1)
class sgd_parameter:
    """``parameter - lr * direction``."""

    compute = lambda p, d, lr: p + d * -lr
    reference = lambda p, d, lr: p - lr * d


@_rule("gradient, mean, beta1", 0.9)
class adam_mean:
    """``mean + (1 - beta1) * (gradient - mean)``: the running mean of the gradient."""

    compute = lambda g, m, beta1: m + (g - m) * (1 - beta1)
    reference = lambda g, m, beta1: m + (g - m) * (1 - beta1)


@_rule("gradient, square, beta2", 0.999)
class adam_square:
    """``beta2 * square + (1 - beta2) * gradient ** 2``: the running mean of the squared gradient."""

    compute = lambda g, v, beta2: v * beta2 + g * (1 - beta2) * g
    reference = lambda g, v, beta2: v * beta2 + (1 - beta2) * g * g


@_rule("parameter, mean, square, lr, correction1, correction2, eps", 0.001, 0.1, 0.002, 1e-8)
class adam_parameter:
    """``parameter - lr / correction1 * mean / (sqrt(square) / sqrt(correction2) + eps)``.

    ``correction`` is ``1 - beta ** step``. Source: Kingma, Ba, Adam, 2015, algorithm 1.
    """

    compute = lambda p, m, v, lr, c1, c2, eps: p + m * -(lr / c1) / (ops.sqrt(v) / ops.sqrt(c2) + eps)
    reference = lambda p, m, v, lr, c1, c2, eps: p - lr / c1 * m / (numpy.sqrt(v) / numpy.sqrt(c2) + eps)


def _in_touched_rows(gradient: Any, new: Any, old: Any) -> Any:
    touched = ops.not_equal(gradient, 0)
    if gradient.ndim > 1:
        touched = ops.any(touched, tuple(range(1, gradient.ndim)), True)
    return ops.where(touched, new, old)


@_rule("gradient, mean, beta1", 0.9)
class sparse_adam_mean:
    """``adam_mean`` in the rows where any element of the gradient is not 0; the others stay."""

    compute = lambda g, m, beta1: _in_touched_rows(g, m + (g - m) * (1 - beta1), m)
    reference = lambda g, m, beta1: m + (g - m) * (1 - beta1)


@_rule("gradient, square, beta2", 0.999)
class sparse_adam_square:
    """``adam_square`` in the rows where any element of the gradient is not 0; the others stay."""

    compute = lambda g, v, beta2: _in_touched_rows(g, v + (g * g - v) * (1 - beta2), v)
    reference = lambda g, v, beta2: v + (g * g - v) * (1 - beta2)


@_rule("parameter, gradient, mean, square, lr, correction1, correction2, eps", 0.001, 0.1, 0.002, 1e-8)
class sparse_adam_parameter:
    """``adam_parameter_late_epsilon`` in the rows where any element of the gradient is not 0."""

    def compute(p: Any, g: Any, m: Any, v: Any, lr: Any, c1: Any, c2: Any, eps: Any) -> Any:
        return _in_touched_rows(g, p - m * (lr * ops.sqrt(c2) / c1) / (ops.sqrt(v) + eps), p)

    def reference(p: Any, g: Any, m: Any, v: Any, lr: Any, c1: Any, c2: Any, eps: Any) -> Any:
        return p - lr * numpy.sqrt(c2) / c1 * m / (numpy.sqrt(v) + eps)


@_rule("parameter, lr, weight_decay", 0.001, 0.01)
class decayed_parameter:
    """``parameter * (1 - lr * weight_decay)``: decoupled weight decay.

    Source: Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2019.
    """

    compute = lambda p, lr, decay: p * (1 - lr * decay)
    reference = lambda p, lr, decay: p * (1 - lr * decay)


@_rule("parameter, mean, square, lr, correction1, correction2, eps", 0.001, 0.1, 0.002, 1e-7)
class adam_parameter_late_epsilon:
    """``parameter - lr * sqrt(correction2) / correction1 * mean / (sqrt(square) + eps)``, as in TensorFlow.

    Source: Kingma, Ba, Adam, 2015, the rearranged form before section 2.1 ("epsilon hat").
    """

    compute = lambda p, m, v, lr, c1, c2, eps: p - m * (lr * ops.sqrt(c2) / c1) / (ops.sqrt(v) + eps)
    reference = lambda p, m, v, lr, c1, c2, eps: p - lr * numpy.sqrt(c2) / c1 * m / (numpy.sqrt(v) + eps)


@_rule("parameter, gradient, square, lr, eps", 0.01, 1e-8)
class rmsprop_parameter:
    """``parameter - lr * gradient / (sqrt(square) + eps)``."""

    compute = lambda p, g, v, lr, eps: p + g * -lr / (ops.sqrt(v) + eps)
    reference = lambda p, g, v, lr, eps: p - lr * g / (numpy.sqrt(v) + eps)


@_rule("parameter, gradient, square, lr, eps", 0.01, 1e-8)
class adagrad_parameter:
    """``parameter - lr * gradient / (sqrt(square) + eps)``; where the gradient is 0 nothing moves."""

    def compute(p: Any, g: Any, v: Any, lr: Any, eps: Any) -> Any:
        return ops.where(ops.not_equal(g, 0), p + g * -lr / (ops.sqrt(v) + eps), p)

    reference = lambda p, g, v, lr, eps: p - lr * g / (numpy.sqrt(v) + eps)


@_rule("gradient, square, eps", 1e-8)
class rmsprop_direction:
    """``gradient / (sqrt(square) + eps)``: the direction that a momentum buffer then adds up."""

    compute = lambda g, v, eps: g / (ops.sqrt(v) + eps)
    reference = lambda g, v, eps: g / (numpy.sqrt(v) + eps)


@_rule("gradient, square, eps", 1e-7)
class rmsprop_direction_inner_epsilon:
    """``gradient / sqrt(square + eps)``, as in TensorFlow."""

    compute = lambda g, v, eps: g * ops.rsqrt(v + eps)
    reference = lambda g, v, eps: g / numpy.sqrt(v + eps)


@_rule("gradient, square")
class adagrad_square:
    """``square + gradient ** 2``; where the gradient is 0 nothing moves, so few rows of a large table do."""

    compute = lambda g, v: ops.where(ops.not_equal(g, 0), v + g * g, v)
    reference = lambda g, v: v + g * g


@_rule("gradient, scale", 0.5)
class clipped_gradient:
    """``gradient * min(scale, 1)``: one gradient of a group whose norm is limited."""

    compute = lambda g, scale: g * ops.minimum(scale, 1.0)
    reference = lambda g, scale: g * numpy.minimum(scale, 1.0)


@_rule("parameter, gradient, mean, square, rate, mean_rate, correction2, eps", 0.001, 0.002, 0.1, 1e-8)
class nadam_parameter:
    """``parameter - (rate * gradient + mean_rate * mean) / (sqrt(square / correction2) + eps)``.

    Source: Dozat, Incorporating Nesterov Momentum into Adam, 2016, algorithm 2.
    """

    def compute(p: Any, g: Any, m: Any, v: Any, rate: Any, mean_rate: Any, c2: Any, eps: Any) -> Any:
        root = ops.sqrt(v / c2) + eps
        return p + g * -rate / root + m * -mean_rate / root

    def reference(p: Any, g: Any, m: Any, v: Any, rate: Any, mean_rate: Any, c2: Any, eps: Any) -> Any:
        return p - (rate * g + mean_rate * m) / (numpy.sqrt(v / c2) + eps)


@_rule("gradient, norm, beta2, eps", 0.999, 1e-8)
class adamax_norm:
    """``max(beta2 * norm, |gradient| + eps)``: the decaying maximum of the gradient."""

    compute = lambda g, n, beta2, eps: ops.maximum(n * beta2, ops.abs(g) + eps)
    reference = lambda g, n, beta2, eps: numpy.maximum(n * beta2, numpy.abs(g) + eps)


@_rule("parameter, mean, norm, lr", 0.002)
class adamax_parameter:
    """``parameter - lr * mean / norm``.

    Source: Kingma, Ba, Adam, 2015, algorithm 2.
    """

    compute = lambda p, m, n, lr: p + m * -lr / n
    reference = lambda p, m, n, lr: p - lr * m / n


@_rule("gradient, before, sizes, shorter, longer, least, most", 0.5, 1.2, 1e-6, 50.0)
class rprop_step_size:
    """``sizes`` times ``longer`` where the signs of two gradients agree, ``shorter`` where they differ, within limits.

    Source: Riedmiller, Braun, A Direct Adaptive Method for Faster Backpropagation Learning, 1993.
    """

    def compute(g: Any, before: Any, sizes: Any, shorter: Any, longer: Any, least: Any, most: Any) -> Any:
        product = g * before
        shrunk = ops.where(ops.less(product, 0), sizes * shorter, sizes)
        changed = ops.where(ops.greater(product, 0), sizes * longer, shrunk)
        return ops.minimum(ops.maximum(changed, least), most)

    def reference(g: Any, before: Any, sizes: Any, shorter: Any, longer: Any, least: Any, most: Any) -> Any:
        factor = numpy.choose(numpy.sign(g * before).astype(int) + 1, [shorter, 1.0, longer])
        return numpy.clip(sizes * factor, least, most)


@_rule("gradient, before")
class rprop_gradient:
    """``gradient``, 0 where its sign differs from that of the one before."""

    compute = lambda g, before: ops.where(ops.less(g * before, 0), 0, g)
    reference = lambda g, before: numpy.where(g * before < 0, 0, g)


@_rule("parameter, gradient, sizes")
class rprop_parameter:
    """``parameter - sign(gradient) * sizes``."""

    compute = lambda p, g, sizes: p - ops.sign(g) * sizes
    reference = lambda p, g, sizes: p - numpy.sign(g) * sizes
