"""``compile``: a Python function of tensors declared once and then called as one closed graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from twofold import _core

Tensor = _core.Tensor
_MOST_DECLARATIONS = 64


def compile(model: Callable[..., Any] | None = None, **options: Any) -> Any:
    """``model`` as a closed graph, declared anew for each combination of input dtypes and shapes.

    Plain define-by-run needs no annotation to be fast; this saves the recording as well, for functions called
    from tight loops. Differences from running the function: its Python code runs once for each combination of
    types, so it must not branch on values (that raises), and what it closes over is bound when it is declared.
    When an argument requires grad, or is no tensor, the function runs as plain Python. Takes and ignores the
    options of ``torch.compile``, as there is nothing to choose. Works as a decorator.

    >>> import twofold as torch
    >>> @torch.compile
    ... def distance(a, b):
    ...     return ((a - b) ** 2).sum()
    >>> distance(torch.tensor([1.0, 2.0]), torch.tensor([4.0, 6.0]))
    tensor(25.)
    """
    if model is None:
        return compile
    declared = [0]

    def declare(*args: Any, **kwargs: Any) -> Any:
        bound = all(isinstance(value, Tensor) and not value._is_symbolic for value in args)
        gradient = _core.grad_enabled() and any(getattr(value, "requires_grad", False) for value in args)
        if kwargs or not args or not bound or gradient or declared[0] >= _MOST_DECLARATIONS:
            return model(*args, **kwargs)
        inputs = tuple(_core.placeholder(tensor.type_) for tensor in args)
        result = model(*inputs)
        single = isinstance(result, Tensor)
        outputs = (result,) if single else tuple(result)
        for place, output in enumerate(outputs):
            if not isinstance(output, Tensor):
                raise TypeError(
                    f"compile: result {place} is a {type(output).__name__}, not a tensor. Return tensors."
                )
        function = _core.function(inputs, outputs, single, None)
        made.declare(args, function)
        declared[0] += 1
        return function(*args)

    made = _core.compiled(declare)
    functools.update_wrapper(made, model, updated=())
    return made
