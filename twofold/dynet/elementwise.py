"""Functions of every element: operation entries under DyNet's names, and the few that mean something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.dynet.expression import Expression, aligned, need_alike
from twofold.dynet.graph import operation, state
from twofold.frontend.install import PUBLIC

Tensor = _core.Tensor


def _documented(function: Any, name: str, text: str) -> Callable[..., Expression]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def _named(function: Any, name: str, text: str) -> Callable[..., Expression]:
    return operation(_documented(function, name, text))


def _unary(name: str, entry: str) -> Callable[[Expression], Expression]:
    method = getattr(Tensor, entry, None) or PUBLIC[entry]

    def general(x: Expression) -> Expression:
        return Expression(method(x._tensor), x._batch)

    def function(x: Expression) -> Expression:
        if state.watcher is None:
            return Expression(method(x._tensor), x._batch)
        return watched(x)

    watched = _named(general, name, "")
    return _documented(function, name, f"``{entry}`` of each element.")


def _binary(name: str, entry: str, alike: bool = False) -> Callable[[Expression, Expression], Expression]:
    method = getattr(Tensor, entry, None) or PUBLIC[entry]

    def general(x: Expression, y: Expression) -> Expression:
        if alike:
            need_alike(name, x, y)
        a, b, batch = aligned(x, y)
        return Expression(method(a, b), batch)

    def function(x: Expression, y: Expression) -> Expression:
        if state.watcher is None and x._batch == 1 and y._batch == 1 and not alike:
            return Expression(method(x._tensor, y._tensor))
        return watched(x, y)

    watched = _named(general, name, "")
    broadcast = "the batch is" if alike else "dimensions of 1, and the batch, are"
    return _documented(function, name, f"``{entry}`` of two expressions; {broadcast} broadcast.")


# DyNet's name, and the operation entry of the same meaning.
exp = _unary("exp", "exp")
square = _unary("square", "square")
sqrt = _unary("sqrt", "sqrt")
abs = _unary("abs", "abs")
erf = _unary("erf", "erf")
log = _unary("log", "log")
lgamma = _unary("lgamma", "lgamma")
log_sigmoid = _unary("log_sigmoid", "logsigmoid")
logistic = _unary("logistic", "sigmoid")
rectify = _unary("rectify", "relu")
softsign = _unary("softsign", "softsign")
selu = _unary("selu", "selu")
sin = _unary("sin", "sin")
cos = _unary("cos", "cos")
tan = _unary("tan", "tan")
asin = _unary("asin", "asin")
acos = _unary("acos", "acos")
atan = _unary("atan", "atan")
sinh = _unary("sinh", "sinh")
cosh = _unary("cosh", "cosh")
tanh = _unary("tanh", "tanh")
asinh = _unary("asinh", "asinh")
acosh = _unary("acosh", "acosh")
atanh = _unary("atanh", "atanh")
cmult = _binary("cmult", "mul")
cwise_multiply = cmult  # its name before DyNet 2
cdiv = _binary("cdiv", "div")
bmin = _binary("bmin", "minimum", alike=True)
bmax = _binary("bmax", "maximum", alike=True)
pow = _binary("pow", "pow")
colwise_add = _binary("colwise_add", "add")

_elu = PUBLIC["elu"]


@operation
def cube(x: Expression) -> Expression:
    """The third power of each element.

    >>> import twofold.dynet as dy
    >>> dy.cube(dy.inputVector([2, -3])).value()
    [8.0, -27.0]
    """
    return Expression(x._tensor * x._tensor * x._tensor, x._batch)


@operation
def elu(x: Expression, alpha: float = 1.0) -> Expression:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""
    return Expression(_elu(x._tensor, alpha), x._batch)


@operation
def silu(x: Expression, beta: float = 1.0) -> Expression:
    """``x * logistic(beta * x)``."""
    return Expression(x._tensor * (x._tensor * beta).sigmoid(), x._batch)


def _passing(x: Any, value: Any, gradient_mode: str) -> Any:
    """``value``, which does not depend on ``x``, with the gradient that the mode says."""
    if gradient_mode == "zero_gradient":
        return value.detach()
    if gradient_mode == "straight_through_gradient":
        return value.detach() + (x - x.detach())
    raise ValueError(
        f"gradient_mode is {gradient_mode!r}; use 'zero_gradient' or 'straight_through_gradient'."
    )


def _stepped(name: str) -> Callable[[Expression, str], Expression]:
    method = getattr(Tensor, name)

    def function(x: Expression, gradient_mode: str) -> Expression:
        return Expression(_passing(x._tensor, method(x._tensor), gradient_mode), x._batch)

    return _named(
        function,
        name,
        f"``{name}`` of each element; its gradient is 0, or 1 in mode 'straight_through_gradient'.",
    )


round = _stepped("round")
ceil = _stepped("ceil")
floor = _stepped("floor")


@operation
def argmax(x: Expression, gradient_mode: str) -> Expression:
    """1 at the largest element of a vector and 0 elsewhere; the gradient is 0, or passed through.

    >>> import twofold.dynet as dy
    >>> dy.argmax(dy.inputVector([1, 5, 2]), gradient_mode="zero_gradient").value()
    [0.0, 1.0, 0.0]
    """
    tensor = x._tensor
    hot = PUBLIC["one_hot"](tensor.detach().argmax(-1), tensor.shape[-1]).to(tensor.dtype)
    return Expression(_passing(tensor, hot, gradient_mode), x._batch)


@operation
def nobackprop(x: Expression) -> Expression:
    """``x``, through which no gradient flows."""
    return Expression(x._tensor.detach(), x._batch)


@operation
def scale_gradient(x: Expression, lambd: float = 1.0) -> Expression:
    """``x``, whose gradient is multiplied by ``lambd``.

    >>> import twofold.dynet as dy
    >>> w = dy.Model().add_parameters(1, init=2)
    >>> dy.scale_gradient(dy.square(w), 0.5).backward()
    >>> w.grad_as_array()
    array([2.])
    """
    tensor = x._tensor
    kept = tensor.detach()
    return Expression(kept + (tensor - kept) * lambd, x._batch)


@operation
def flip_gradient(x: Expression) -> Expression:
    """``x``, whose gradient is negated."""
    return scale_gradient(x, -1.0)


@operation
def to_device(e: Expression, device_str: str) -> Expression:
    """``e`` on the one device there is, ``"CPU"``; raises RuntimeError for another."""
    check_device(device_str)
    return e


def check_device(name: str) -> None:
    """Raise RuntimeError unless ``name`` is empty or the processor's."""
    if name not in ("", "CPU"):
        raise RuntimeError(f"there is no device {name!r}: the only one is 'CPU'")
