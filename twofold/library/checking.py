"""``opcheck``: whether what is registered for an operator fits together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.library.namespaces import find
from twofold.library.operators import OpOverload
from twofold.utils._pytree import tree_flatten, tree_map_only

Tensor = _core.Tensor


class OpCheckError(Exception):
    """What is registered for an operator does not fit together."""


def _tensors(values: Any) -> list[Tensor]:
    return [one for one in tree_flatten(values)[0] if isinstance(one, Tensor)]


def _check_writes(op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Arguments that the schema does not say are written to keep their versions."""
    values, keywords = op._schema.bound(args, kwargs)
    names = [one.name for one in op._schema.arguments if not one.is_keyword]
    given = {**dict(zip(names, values, strict=True)), **keywords}
    given = tree_map_only(Tensor, lambda one: one.detach().clone(), given)
    op(**given)
    for one in op._schema.arguments:
        if not one.is_mutated and any(tensor._version for tensor in _tensors(given[one.name])):
            raise OpCheckError(
                f"{op} writes to '{one.name}', which its schema does not say: {op._schema.text}"
            )


def _check_gradient(op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Where an argument requires grad, there is a gradient."""
    if any(one.requires_grad for one in _tensors([args, kwargs])) and not op.has_gradient:
        raise OpCheckError(f"{op} has no gradient, and an argument requires grad. Use register_autograd.")


def _check_fake(op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """The fake function gives results of the same shapes and dtypes."""
    fake = op.functions.get("fake")
    if fake is None:
        if "kernel" in op.functions:
            raise OpCheckError(f"There was no fake impl registered for {op}. Use register_fake.")
        return
    values, keywords = op._schema.bound(args, kwargs)

    def shapeless(one: Tensor) -> Tensor:
        return _core.placeholder(one.type_)

    found = fake(*tree_map_only(Tensor, shapeless, values), **tree_map_only(Tensor, shapeless, keywords))
    copies = tree_map_only(Tensor, lambda one: one.detach().clone(), [values, keywords])
    real = op(*copies[0], **copies[1])
    fakes, reals = ([(tuple(one.shape), one.dtype) for one in _tensors(one)] for one in (found, real))
    if fakes != reals:
        raise OpCheckError(
            f"{op}: the fake function gives {fakes}, the operator {reals}, as shapes and dtypes."
        )


_CHECKS = {
    "test_schema": _check_writes,
    "test_autograd_registration": _check_gradient,
    "test_faketensor": _check_fake,
}


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(_CHECKS),
    raise_exception: bool = True,
) -> dict[str, Any]:
    """Test whether what is registered for an operator fits together.

    Args:
        op: The operator.
        args: Arguments to call it with, as tuples of its positional ones.
        kwargs: And of its keywords.
        test_utils: What to test: ``"test_schema"``, that it writes to no other arguments than its schema says;
            ``"test_autograd_registration"``, that it has a gradient where arguments require one;
            ``"test_faketensor"``, that its fake function gives the right shapes and dtypes.
        raise_exception: Raise what a test finds; else it stands in the result.

    Returns:
        dict: For each test ``"SUCCESS"``, or what it found.

    Raises:
        OpCheckError: A test failed.
        ValueError: A test that is not known.

    >>> import twofold as torch
    >>> @torch.library.custom_op("docs::double", mutates_args=())
    ... def double(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 2
    >>> double.register_fake(torch.empty_like) and None
    >>> torch.library.opcheck(double, (torch.ones(2),))["test_faketensor"]
    'SUCCESS'
    """
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    unknown = set(names) - set(_CHECKS)
    if unknown:
        raise ValueError(f"opcheck: {sorted(unknown)} are no tests. Use some of {', '.join(_CHECKS)}.")
    results: dict[str, Any] = {}
    for name in names:
        try:
            _CHECKS[name](find(op), args, kwargs or {})
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
        else:
            results[name] = "SUCCESS"
    return results
