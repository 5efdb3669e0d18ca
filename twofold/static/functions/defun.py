"""Functions with gradients of their own: ``Defun`` of ``tensorflow.python.framework.function``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.functions.custom_gradients import custom_gradient
from twofold.static.graph.context import at_once
from twofold.static.graph.scopes import name_scope


class _Call:
    """One call of a function, as its gradient function sees it: the ``inputs`` and ``outputs`` of an operation."""

    def __init__(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.name = self.type = name
        self.inputs, self.outputs = list(inputs), list(outputs)


class _Defined:
    """A function that ``Defun`` decorates."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.name: str = options["func_name"] or function.__name__
        self._function, self._dtypes = function, options["input_types"]
        self._gradient, self._python_gradient = options["grad_func"], options["python_grad_func"]
        self._shapes = options["shape_func"]

    def __call__(self, *args: Any, name: str | None = None) -> Any:
        """The results of the function; one that returns a single value gives it alone."""
        self._check(len(args))
        dtypes = self._dtypes or [None] * len(args)
        given = [convert_to_tensor(value, dtype) for value, dtype in zip(args, dtypes)]
        with name_scope(name, self.name, given):
            results = self._declared(given)
        if self._shapes is not None and not at_once():
            call = _Call(self.name, given, results)
            for result, shape in zip(results, self._shapes(call)):
                result.set_shape(shape)
        return results[0] if len(results) == 1 else results

    def _check(self, count: int) -> None:
        wanted = len(self._dtypes) or count
        if wanted != count:
            raise ValueError(
                f"{self.name}: expected number of arguments: {wanted}, received: {count}, at {here()}. "
                "Give one for each of the input types."
            )

    def _declared(self, given: Sequence[Any]) -> list[Any]:
        if self._gradient is None and self._python_gradient is None:
            return self._results(given)

        def with_rule(*inputs: Any) -> Any:
            results = self._results(inputs)

            def gradient(*gradients: Any, variables: Any = None) -> Any:
                found = self._backward(_Call(self.name, inputs, results), gradients)
                return found if variables is None else (found, [None] * len(variables))

            return results, gradient

        return list(custom_gradient(with_rule)(*given))

    def _results(self, given: Sequence[Any]) -> list[Any]:
        found = self._function(*given)
        many = list(found) if isinstance(found, (list, tuple)) else [found]
        return [convert_to_tensor(value) for value in many]

    def _backward(self, call: _Call, gradients: Sequence[Any]) -> list[Any]:
        if self._python_gradient is not None:
            found = self._python_gradient(call, *gradients)
        else:
            found = self._gradient(*call.inputs, *gradients)
        return list(found) if isinstance(found, (list, tuple)) else [found]


class Defun:
    """A decorator of functions of tensors, which may say what their gradient is.

    ``noinline``, ``compiled`` and ``separate_compiled_gradients`` change no number.

    Args:
        *input_types: The dtypes of the arguments; those that they have if none are given.
        func_name: The name of the function, after which its calls are named.
        grad_func: The function of the inputs and the gradients by the results that gives the gradients by the inputs.
        python_grad_func: The same as a function of the call, with its ``inputs`` and ``outputs``, and the gradients.
        shape_func: The shapes of the results, as a function of the call.

    >>> import twofold.static as tf
    >>> from twofold.static.python.framework import function
    >>> @function.Defun(python_grad_func=lambda call, gradient: 10 * gradient)
    ... def tenfold(x):
    ...     return tf.identity(x)
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.constant(3.0)
    ...     print(session.run(tf.gradients(tenfold(x), x)[0]))
    10.0
    """

    def __init__(
        self,
        *input_types: Any,
        func_name: str | None = None,
        grad_func: Callable[..., Any] | None = None,
        python_grad_func: Callable[..., Any] | None = None,
        shape_func: Callable[..., Any] | None = None,
        noinline: bool = False,
        compiled: bool = False,
        separate_compiled_gradients: bool = False,
    ) -> None:
        if grad_func is not None and python_grad_func is not None:
            raise ValueError(f"Defun: grad_func and python_grad_func, at {here()}. Give one gradient.")
        self._options: dict[str, Any] = {
            "input_types": [as_dtype(one) for one in input_types],
            "func_name": func_name,
            "grad_func": grad_func,
            "python_grad_func": python_grad_func,
            "shape_func": shape_func,
        }

    def __call__(self, func: Callable[..., Any]) -> _Defined:
        """The function, with the gradient."""
        taken = inspect.signature(func).parameters.values()
        positional = [p for p in taken if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        variadic = any(p.kind is p.VAR_POSITIONAL for p in taken)
        types = self._options["input_types"]
        if types and not variadic and len(types) != len(positional):
            raise ValueError(
                f"The function has fewer arguments than the number of specified input types: {len(positional)} and "
                f"{len(types)}, at {here()}. Give one type for each argument."
            )
        return _Defined(func, self._options)
