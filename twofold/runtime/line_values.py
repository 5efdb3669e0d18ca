"""The values that the user's running line names, for errors of functions that know no operands.

Only names, elements and stored attributes are read: nothing of the program is called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType, ModuleType
from typing import Any

import numpy

from twofold import _core

_MOST = 6  # values of a line
_FEW = 8  # values that are printed without an ellipsis
_NOTHING = object()
_REGISTRIES = ("_parameters", "_buffers", "_modules")


def named_in(tree: ast.AST, frame: FrameType) -> dict[str, Any]:
    """The tensors, arrays and collections of them that an expression names, by their text in the source.

    Args:
        tree: The expression.
        frame: The frame that evaluates it.

    Returns:
        The first few of them, in the order of the source.
    """
    scope = {**frame.f_globals, **frame.f_locals}
    found: dict[str, Any] = {}
    for text, value in _values(tree, scope):
        if has_numbers(value) and len(found) < _MOST:
            found.setdefault(text, value)
    return found


def element_of(value: Any, named: Mapping[str, Any]) -> str | None:
    """What a tensor is called among the values that a line names, or as an element of one of these, or None."""
    key = _core.value_key(value)
    for text, holder in named.items():
        if isinstance(holder, _core.Tensor):
            if _core.value_key(holder) == key:
                return text
            continue
        items = (
            holder.items()
            if type(holder) is dict
            else enumerate(holder if type(holder) in (list, tuple) else ())
        )
        for index, one in items:
            if isinstance(one, _core.Tensor) and _core.value_key(one) == key:
                return f"{text}[{index!r}]"
    return None


def has_numbers(value: Any) -> bool:
    """Whether a value is a tensor, an array, or a list, tuple or dictionary of some."""
    if isinstance(value, (_core.Tensor, _core.Expression, numpy.ndarray)):
        return True
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(has_numbers(one) for one in value[:_MOST])
    return _is_variable(value)


def _is_variable(value: Any) -> bool:
    """Whether a value is a variable of a declared graph."""
    return hasattr(type(value), "initialized_value") and hasattr(value, "type_")


def described_collection(value: Any) -> str:
    """The text of a value that is no tensor of the core: types, shapes, and first values of arrays."""
    if isinstance(value, _core.Expression):
        dimensions, batch = value.dim()  # type: ignore[attr-defined]  # a method that DyNet's face adds
        kind = str(value._tensor.dtype).removeprefix("torch.").removeprefix("twofold.")
        text = f"{kind} {dimensions}" + f" in a batch of {batch}" * (batch != 1)
        known = value._tensor._is_realised and batch == 1
        return f"{text} {first_of(value._tensor._read().T)}" if known else text
    if isinstance(value, numpy.ndarray):
        return f"{value.dtype}[{','.join(map(str, value.shape))}] {first_of(value)}"
    if isinstance(value, (list, tuple)):
        inner = [described_collection(one) for one in value[:_MOST]] + ["..."] * (len(value) > _MOST)
        return f"[{', '.join(inner)}]" if isinstance(value, list) else f"({', '.join(inner)})"
    if isinstance(value, dict):
        parts = [f"{name!r}: {described_collection(one)}" for name, one in list(value.items())[:_MOST]]
        return "{" + ", ".join(parts + ["..."] * (len(value) > _MOST)) + "}"
    return str(value.type_) if isinstance(value, _core.Tensor) or _is_variable(value) else repr(value)[:60]


def first_of(array: Any) -> str:
    """The first values of an array on one line."""
    with numpy.printoptions(precision=4, threshold=_FEW, edgeitems=2, linewidth=10**6):
        return " ".join(str(array).split())


def _values(tree: ast.AST, scope: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What an expression reads, with its text: the longest chains of attributes and elements that can be read."""
    if isinstance(tree, (ast.Name, ast.Attribute, ast.Subscript)):
        value = read(tree, scope)
        if value is not _NOTHING and (has_numbers(value) or isinstance(tree, ast.Name)):
            yield ast.unparse(tree), value
            return
    if not isinstance(tree, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        for part in ast.iter_child_nodes(tree):
            yield from _values(part, scope)


def may_be_operand(value: Any) -> bool:
    """Whether an operation takes a value: what is read off no expression, or a tensor, number or collection."""
    taken = (type(None), bool, int, float, complex, str, numpy.generic, slice, list, tuple, range)
    return (
        value is _NOTHING
        or value is ...
        or isinstance(value, taken)
        or (has_numbers(value) and type(value) is not dict)
    )


def read(tree: ast.AST, scope: Mapping[str, Any]) -> Any:
    """What a name, an element or a stored attribute is; ``_NOTHING`` for other expressions."""
    if isinstance(tree, ast.Name):
        return scope.get(tree.id, _NOTHING)
    if isinstance(tree, ast.Attribute):
        return _attribute(read(tree.value, scope), tree.attr)
    if isinstance(tree, ast.Subscript) and isinstance(tree.slice, (ast.Constant, ast.Name)):
        holder, key = read(tree.value, scope), _key(tree.slice, scope)
        try:
            return holder[key] if type(holder) in (dict, list, tuple) else _NOTHING
        except (LookupError, TypeError):
            return _NOTHING
    return _NOTHING


def _key(tree: ast.AST, scope: Mapping[str, Any]) -> Any:
    key = tree.value if isinstance(tree, ast.Constant) else read(tree, scope)
    return key if type(key) in (str, int, bool) else _NOTHING


def _attribute(holder: Any, name: str) -> Any:
    """An attribute that an object stores, without a call of a property or ``__getattr__``."""
    if isinstance(holder, ModuleType):
        return _NOTHING
    try:
        stored: Mapping[str, Any] = vars(holder)
    except TypeError:
        return _NOTHING
    mappings: Sequence[Any] = [stored, *(stored.get(one, ()) for one in _REGISTRIES)]
    return next((mapping[name] for mapping in mappings if name in mapping), _NOTHING)
