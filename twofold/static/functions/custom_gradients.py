"""Gradients that the program gives: ``custom_gradient``, ``RegisterGradient`` and ``Graph.gradient_override_map``.

Such an operation keeps its gradient function. The first derivative through it declares that function's operations as
a body, which the core is given as a gradient of the user's, as ``autograd.Function`` does.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.autograd.function import Function
from twofold.errors import GradientError, ShapeError
from twofold.ir.graph import interned
from twofold.ir.op import REGISTRY
from twofold.ops.base import apply, ops
from twofold.ops.control_flow.programs import with_parameters
from twofold.ops.control_flow.user_gradient import Pullback
from twofold.runtime.closure_conversion import closure_convert, record_calls
from twofold.runtime.failures import end_in
from twofold.runtime.pytree import flatten, unflatten
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_tensor, convert_to_tensor, define
from twofold.static.functions.bodies import Body, above, source_of, tensor_of, trace_body
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Operation, Tensor
from twofold.static.graph.inference import Source, read_of

_COPY = REGISTRY["copied"]
Gradient = Callable[..., Any]
_REGISTERED: dict[str, tuple[Gradient | None, str]] = {
    "Identity": (lambda op, gradient: gradient, "TensorFlow")
}


class RegisterGradient:
    """A decorator that enters a function of an operation and its gradients under a name.

    The function returns a gradient, or None, for each input of the operation. ``Graph.gradient_override_map`` says for
    which operations it is used. Raises KeyError for a name that is taken.

    >>> import uuid
    >>> import twofold.static as tf
    >>> name = f"Reversed{uuid.uuid4()}"  # one that nobody else has entered
    >>> @tf.RegisterGradient(name)
    ... def reversed(op, gradient):
    ...     return -gradient
    >>> with tf.Graph().as_default() as graph, tf.Session() as session:
    ...     x = tf.constant(3.0)
    ...     with graph.gradient_override_map({"Identity": name}):
    ...         y = tf.identity(x)
    ...     print(session.run(tf.gradients(y, x)[0]))
    -1.0
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._name = op_type

    def __call__(self, f: Gradient) -> Gradient:
        """Enter ``f``."""
        _register(self._name, f)
        return f


def _register(name: str, function: Gradient | None) -> None:
    if name in _REGISTERED:
        raise KeyError(
            f"Registering two gradient with name '{name}'! (Previous registration was at {_REGISTERED[name][1]})"
        )
    _REGISTERED[name] = (function, here())


def NotDifferentiable(op_type: str) -> None:
    """Say that no gradient passes through operations of the type, or those that are given this name for one.

    >>> import uuid
    >>> import twofold.static as tf
    >>> name = f"Counted{uuid.uuid4()}"  # one that nobody else has entered
    >>> tf.NotDifferentiable(name)
    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.constant(3.0)
    ...     with graph.gradient_override_map({"Identity": name}):
    ...         y = tf.identity(x)
    ...     print(tf.gradients(y, x))
    [None]
    """
    _register(op_type, None)


NoGradient = NotDifferentiable


def _function_of(operation: Operation) -> Gradient | None:
    if callable(operation.gradient):
        return operation.gradient
    if operation.gradient not in _REGISTERED:
        raise LookupError(
            f"No gradient defined for operation '{operation.name}' (op type: {operation.type}): none is registered as "
            f"{operation.gradient!r}, at {here()}. Register it with tf.RegisterGradient."
        )
    return _REGISTERED[operation.gradient][0]


class Rule:
    """The operations that the gradient function of an operation declared.

    ``body`` goes from the gradients by the floating results ``results`` to those by the inputs ``positions``.
    """

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.results = [k for k, output in enumerate(operation.outputs) if output.dtype.is_differentiable]
        self.positions: list[int] = []
        function = _function_of(operation)
        outputs = [operation.outputs[k] for k in self.results]

        def declare(*given: Tensor) -> list[Any]:
            if function is None:
                return []
            gradients: list[Any] = [None] * len(operation.outputs)
            for k, gradient in zip(self.results, given):
                gradients[k] = gradient
            return self._kept(function(operation, *gradients))

        graph = operation.graph
        with graph.as_default(), graph.name_scope(f"gradients/{operation.name}_grad/"):
            names = [f"gradient_{k}" for k in self.results]
            self.body: Body = trace_body(graph, declare, [output.type_ for output in outputs], names)

    def _kept(self, found: Any) -> list[Any]:
        operation = self.operation
        shares = list(found) if isinstance(found, (list, tuple)) else [found]
        if len(shares) != len(operation.sources):
            raise ValueError(
                f"Num gradients {len(shares)} generated for op {operation.name} ({operation.where}) do not match num "
                f"inputs {len(operation.sources)}, at {here()}. Return one for each, or None."
            )
        kept = []
        for position, (share, source) in enumerate(zip(shares, operation.sources)):
            if share is not None and tensor_of(source).dtype.is_differentiable:
                self.positions.append(position)
                kept.append(convert_to_tensor(share))
        return kept

    def attach(self, lowerer: Any, made: Sequence[Any]) -> list[Any]:
        """The outputs ``made`` of the operation, with the gradient that this gives."""
        operation = self.operation
        for source in self.body.captured:
            _ensure(lowerer, source[0], operation)
        inputs = [lowerer.symbolic(lowerer.read(operation, operation.sources[k])) for k in self.positions]
        results = [lowerer.symbolic(made[k]) for k in self.results]
        found = list(made)
        for own, k in enumerate(self.results):

            def backward(cotangent: Any, *values: Any, own: int = own) -> list[Any]:
                given = [
                    cotangent if other == own else ops.zeros_like(value) for other, value in enumerate(values)
                ]
                with lowerer.apart():
                    lowerer.inner[operation] = [
                        values[self.results.index(k)] if k in self.results else value
                        for k, value in enumerate(made)
                    ]
                    shares = self.body.declare(lowerer, given)
                return [_fitting(operation, share, value) for share, value in zip(shares, inputs)]

            closed = closure_convert(backward, [results[own].type_, *[result.type_ for result in results]])
            closed.record_lines()
            positions, name = range(len(inputs)), operation.type
            content = interned(Pullback(closed.graph, positions, len(inputs), own, len(results), name))
            record_calls(content.content_key, [closed], 1 + len(results))
            value = apply("stop_gradient", results[own])
            found[k] = apply(
                "user_gradient", value, *inputs, *results, *closed.captured, attrs=with_parameters(content)
            )
        return found


def rule_of(operation: Operation) -> Rule:
    """The rule of an operation that has a gradient of the program's."""
    if operation.pullback is None:
        operation.pullback = Rule(operation)
    found: Rule = operation.pullback
    return found


def _ensure(lowerer: Any, above: Operation, operation: Operation) -> None:
    """Compute what a gradient function reads, which may be declared after the operation."""
    if above is operation or lowerer.is_computed(above):
        return
    for owner, _ in above.sources:
        _ensure(lowerer, owner, operation)
    lowerer.inner[above] = lowerer.outputs_of(above)


def _fitting(operation: Operation, share: Any, value: Any) -> Any:
    if share.type_.shape != value.type_.shape or share.dtype is not value.dtype:
        raise ShapeError(
            f"the gradient function of {operation.name} returns {share.type_} for an input {value.type_}",
            "Return gradients of the types of the inputs.",
        )
    return share if share._is_symbolic else _core.declare(_COPY, (), (share,))


def _variables_between(inputs: Sequence[Source], results: Sequence[Source]) -> list[Any]:
    """The trainable variables that ``results`` read, on paths that do not go through ``inputs``."""
    between = above([owner for owner, _ in results], without=[owner for owner, _ in inputs])
    read = {read_of((operation, 0)) for operation in between} - {None}
    found = [variable for variable in read if variable.trainable]
    return sorted(found, key=lambda variable: variable.op.number)


def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """The function ``f``, which returns a result and the function of its gradient, with that gradient.

    The gradient function is given the gradient by each result and returns that by each argument. If ``f`` reads
    trainable variables, it takes ``variables`` besides and returns a list of the gradients by them as a second value;
    TypeError if it does not. It is declared for each result alone, so it must be linear if there are several.

    >>> import twofold.static as tf
    >>> @tf.custom_gradient
    ... def log1pexp(x):
    ...     e = tf.exp(x)
    ...     return tf.log(1 + e), lambda gradient: gradient * (1 - 1 / (1 + e))
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.constant(100.0)
    ...     print(session.run(tf.gradients(log1pexp(x), x)[0]))
    1.0
    """
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise ValueError(
                f"custom_gradient: arguments by name ({', '.join(kwargs)}), at {here()}. Give them by position."
            )
        values, _, structure = flatten(list(args), "args")
        given = [convert_to_tensor(value) for value in values]
        if at_once():
            return _computed(f, given, structure)
        found = f(*unflatten(structure, given))
        if not isinstance(found, (list, tuple)) or len(found) != 2:
            raise TypeError(
                f"custom_gradient: the function returns no pair, at {here()}. Return result, gradient."
            )
        result, gradient = found
        results, _, shape = flatten(result, "result")
        made = _with_gradient(given, [convert_to_tensor(as_tensor(value)) for value in results], gradient)
        return unflatten(shape, made)

    return decorated


def _computed(f: Callable[..., Any], given: Sequence[Any], structure: Any) -> Any:
    """The result of a function of values, with its gradient."""
    shapes: list[Any] = []
    rules: list[Gradient] = []

    class Decorated(Function):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            result, gradient = f(*unflatten(structure, values))
            if "variables" in inspect.signature(gradient).parameters:
                raise TypeError(
                    f"custom_gradient: gradients by variables are offered in graphs alone, at {here()}. "
                    "Give the variables' values as arguments."
                )
            results, _, shape = flatten(result, "result")
            shapes.append(shape)
            rules.append(gradient)
            return tuple(convert_to_tensor(value) for value in results)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            found = rules[-1](*gradients)
            return tuple(flatten(found, "gradient")[0]) if isinstance(found, (list, tuple)) else found

    made = Decorated.apply(*given)
    return unflatten(shapes[-1], list(made))


def _with_gradient(given: Sequence[Any], results: Sequence[Any], gradient: Gradient) -> list[Any]:
    inputs = [source_of(value) for value in given]
    variables = _variables_between(inputs, [source_of(value) for value in results])
    takes = inspect.signature(gradient).parameters
    if variables and "variables" not in takes and not any(p.kind is p.VAR_KEYWORD for p in takes.values()):
        raise TypeError(
            f"custom_gradient: the function reads variables ({', '.join(v.name for v in variables)}), at {here()}. "
            "Let its gradient function take 'variables'."
        )

    def rule(operation: Operation, *gradients: Any) -> list[Any]:
        own: Any = None
        if variables:
            own, others = gradient(*gradients, variables=variables)
            others = list(others) if isinstance(others, (list, tuple)) else [others]
        else:
            own, others = gradient(*gradients), []
        own = flatten(own, "gradient")[0] if isinstance(own, (list, tuple)) else [own]
        if len(own) != len(given) or len(others) != len(variables):
            error = ValueError(
                f"custom_gradient: {len(own)} and {len(others)} gradients for {len(given)} arguments and "
                f"{len(variables)} variables, at {here()}. Return one for each."
            )
            raise end_in(error, gradient, None)
        return [*[None] * len(results), *own, *others]

    made = _identity_n([*results, *given, *variables], len(results))
    made.gradient = rule
    return list(made.outputs)


def _identity_n(values: Sequence[Any], count: int) -> Operation:
    """The first ``count`` of some values, as results of one operation that is given them all."""
    return define(
        "IdentityN", lambda *given: [ops.copied(value) for value in given[:count]], values, {}, None
    )


def identity_of_several(values: Sequence[Any], name: str) -> list[Tensor]:
    """Some values as the results of one operation of a name."""
    made = define("IdentityN", lambda *given: [ops.copied(value) for value in given], values, {}, name)
    return list(made.outputs)


def with_gradient_of(operation: Operation) -> list[Tensor]:
    """The results of an operation that Python computes, through one that has the gradient of its type, if any."""
    if operation.gradient is None:
        return list(operation.outputs)
    name, operation.gradient = operation.gradient, None
    count = len(operation.outputs)
    inputs = [tensor_of(source) for source in operation.sources]
    made = _identity_n([*operation.outputs, *inputs], count)

    def rule(_: Operation, *gradients: Any) -> list[Any]:
        operation.gradient = name
        try:
            function = _function_of(operation)
        finally:
            operation.gradient = None
        found = [None] * len(inputs) if function is None else function(operation, *gradients)
        return [*[None] * count, *(found if isinstance(found, (list, tuple)) else [found])]

    made.gradient = rule
    return list(made.outputs)


@example("x = tf.constant(1.3)", "tf.gradients(tf.grad_pass_through(tf.round)(x), x)[0]", "1.0")
def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, with the gradient of a function that returns its argument."""

    @custom_gradient
    def passing(*args: Any) -> Any:
        def gradient(*gradients: Any, variables: Any = None) -> Any:
            own = gradients[0] if len(gradients) == 1 else list(gradients)
            return own if variables is None else (own, [None] * len(variables))

        return f(*args), gradient

    return passing


@example("tf.recompute_grad(tf.square)(tf.constant(3.0))", "9.0")
def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` itself: the compiler decides what is kept for a gradient and what is computed again."""
    return f


def refuse_rules(what: str, operations: Sequence[Operation]) -> None:
    """Raise GradientError if one of the operations has a gradient of the program's."""
    for operation in operations:
        if operation.gradient is not None:
            raise GradientError(
                f"{what}: {operation.name} ({operation.where}) has a gradient of its own, at {here()}",
                "Take gradients of gradients.",
            )
