"""Define-by-run's choices and loops on tensors of a declared graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.frontend.control import DECLARING, Declaring
from twofold.runtime.structure import flatten, unflatten
from twofold.static.define import convert_to_tensor
from twofold.static.flow import choose, repeat, while_loop
from twofold.static.graph import Tensor, local, owner_of


class InGraph(Declaring):
    """Declares operations of the tensors' graph, but not while a graph is replayed."""

    def owns(self, tensor: Tensor) -> bool:
        return not local.replaying and owner_of(tensor) is not None

    def choose(
        self, operation: str, choice: Any, functions: Sequence[Callable[[], Any]], names: Sequence[str]
    ) -> Any:
        return choose(operation, convert_to_tensor(choice), functions, names, operation)

    def while_loop(self, cond: Callable[..., Any], body: Callable[..., Any], carried: tuple[Any, ...]) -> Any:
        return tuple(while_loop(cond, body, list(carried), return_same_structure=True))

    def scan(self, step: Callable[..., Any], init: Any, xs: Any, reverse: bool) -> tuple[Any, Any]:
        carried, names, structure = flatten(init, "init")
        rows, _, x_structure = flatten(xs, "xs")
        found: list[Any] = []

        def flat(carry: Sequence[Any], row: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
            new, y = step(unflatten(structure, carry), unflatten(x_structure, row))
            ys, _, shape = flatten(y, "y")
            found.append(shape)
            return flatten(new, "init")[0], ys

        starts = [convert_to_tensor(value) for value in carried]
        arrays = [convert_to_tensor(row) for row in rows]
        results = repeat("scan", flat, starts, names, arrays, reverse, "scan")
        count = len(starts)
        return unflatten(structure, results[:count]), unflatten(found[0], results[count:])


DECLARING.append(InGraph())
