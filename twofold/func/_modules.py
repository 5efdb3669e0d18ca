"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from twofold import _core
from twofold.nn.module import Module
from twofold.ops.base import ops

Tensor = _core.Tensor


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call ``module`` with these tensors in place of its parameters and buffers, by their names.

    The module is as before afterwards, whatever happens. With ``tie_weights``, a parameter that the module has
    under several names is replaced under all of them. ``strict`` raises RuntimeError unless every name is given.
    Unknown names raise RuntimeError.

    >>> import twofold as torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> given = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    >>> torch.func.functional_call(layer, given, torch.tensor([3.0, 4.0]))
    tensor([7.])
    """
    given = _merged(parameter_and_buffer_dicts)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def _merged(dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    if isinstance(dicts, Mapping):
        return dict(dicts)
    merged: dict[str, Tensor] = {}
    for part in dicts:
        for name, value in part.items():
            if name in merged:
                raise ValueError(f"functional_call: {name!r} is given twice. Give each name once.")
            merged[name] = value
    return merged


def _positions(module: Module) -> dict[str, tuple[dict[str, Any], str]]:
    """For each name the table that holds the tensor, and its key there; tied ones under every name."""
    found = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for table in (part._parameters, part._buffers):
            for key, value in table.items():
                if value is not None:
                    found[f"{prefix}.{key}" if prefix else key] = (table, key)
    return found


@contextmanager
def _replaced(module: Module, given: Mapping[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    positions = _positions(module)
    unknown = sorted(set(given) - set(positions))
    missing = sorted(set(positions) - set(given)) if strict else []
    if unknown or missing:
        text = f"unknown: {unknown}" if unknown else f"missing: {missing}"
        raise RuntimeError(
            f"functional_call: the names do not fit {type(module).__name__}, {text}. Its names are {sorted(positions)}."
        )
    before = [(table, key, table[key]) for table, key in positions.values()]
    wanted = (
        {id(positions[name][0][positions[name][1]]): value for name, value in given.items()}
        if tie_weights
        else {}
    )
    try:
        for name, (table, key) in positions.items():
            if name in given:
                table[key] = given[name]
            elif id(table[key]) in wanted:
                table[key] = wanted[id(table[key])]
        yield
    finally:
        for table, key, value in before:
            table[key] = value


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of equal modules, each stacked along a new leading axis, for ``vmap``.

    The stacked parameters are leaves that require grad where those of the modules do. Raises RuntimeError for no
    modules, or modules of different classes or modes.

    >>> import twofold as torch
    >>> parameters, buffers = torch.func.stack_module_state([torch.nn.Linear(3, 2) for _ in range(5)])
    >>> parameters["weight"].shape
    twofold.Size([5, 2, 3])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: expected at least one model, got 0.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: the models have different classes. Stack those of one class.")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError(
            "stack_module_state: some models train and some do not. Call train() or eval() on all."
        )
    parameters = {name: _stacked(models, "get_parameter", name) for name, _ in models[0].named_parameters()}
    buffers = {name: _stacked(models, "get_buffer", name) for name, _ in models[0].named_buffers()}
    return parameters, buffers


def _stacked(models: Sequence[Module], getter: str, name: str) -> Tensor:
    parts = [getattr(model, getter)(name) for model in models]
    stacked: Tensor = ops.stack([part.detach() for part in parts], 0)
    if any(part.requires_grad for part in parts):
        stacked.requires_grad = True
    return stacked
