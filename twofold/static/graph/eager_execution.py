"""Operations computed when they are declared: what ``define`` and its kin do after ``enable_eager_execution``.

The bodies are those that declare to the core; they are given values instead of declared tensors, so both ways compute
the same. Gradients are those of define-by-run, recorded inside a ``GradientTape``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.errors import TwofoldError, as_invalid, at_operation
from twofold.runtime.tracing import here
from twofold.static.graph.context import local
from twofold.static.graph.graph import Tensor


class ComputedOperation:
    """An operation that was computed: its results, and what may be asked of an operation after that."""

    def __init__(self, type: str, name: str | None, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.type, self.name, self.outputs = type, name or type, list(outputs)
        self._inputs = list(inputs)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "observe":
            value(*[item.detach().numpy() if isinstance(item, Tensor) else item for item in self._inputs])
        else:
            super().__setattr__(name, value)

    @property
    def where(self) -> str:
        """The line that is running."""
        return here()

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Nothing: it has run."""


def value_of(given: Any) -> Any:
    """An argument with the values of variables instead of them."""
    if isinstance(given, (list, tuple)) and not hasattr(given, "_fields"):
        items = [value_of(item) for item in given]
        return items if isinstance(given, list) else type(given)(items)
    convert = getattr(given, "_as_graph_element", None)
    return given if convert is None else convert()


def compute(
    type: str, body: Callable[..., Any], arguments: Sequence[Any], keywords: dict[str, Any], name: str | None
) -> ComputedOperation:
    """What a body makes of values."""
    values = [value_of(item) for item in arguments]
    named = {key: value_of(item) for key, item in keywords.items()}
    inputs = [*values, *named.values()]
    local.in_body += 1
    try:
        made = body(*values, **named)
    except TwofoldError as error:
        shown = [str(item.type_) for item in inputs if isinstance(item, Tensor)]
        raise as_invalid(at_operation(error, type, shown, here())) from None
    finally:
        local.in_body -= 1
    results = list(made) if isinstance(made, (list, tuple)) else [made]
    outputs = [item if isinstance(item, Tensor) else _core.from_array(item, False) for item in results]
    return ComputedOperation(type, name, inputs, outputs)


def leaf(value: Tensor, trained: bool) -> Tensor:
    """A value that derivatives may be taken by, if it is one of a variable that is trained."""
    found = value.detach()
    return found.requires_grad_(True) if trained and value.dtype.kind == "f" else found


def call_python(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
    """What a function of arrays, those of strings of bytes objects, makes of values; it may write to the arrays."""
    made = function(*[item.detach().numpy() for item in inputs])
    return list(made) if isinstance(made, (list, tuple)) else [made]
