"""Values on one of two branches, and what takes the one that is there: ``control_flow_ops.switch`` and ``merge``.

Both branches are computed. Which is alive is told by the conditions of the switches that a value comes from.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from twofold.dtypes import int32
from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.op_functions import constant, convert_to_tensor
from twofold.static.arrays.shape_ops import identity
from twofold.static.control_flow.conditional import cond
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Operation, operation_of
from twofold.static.graph.scopes import name_scope

_CONDITIONS: WeakKeyDictionary[Operation, Any] = WeakKeyDictionary()
"""When the branches that begin with these operations are alive."""

_SWITCH = (
    "from twofold.static.python.ops import control_flow_ops",
    "no, yes = control_flow_ops.switch(tf.constant(3.0), tf.constant(True))",
)


@example(
    *_SWITCH,
    "print(session.run(control_flow_ops.merge([no + 1, yes * 2])))",
    "(np.float32(6.0), np.int32(1))",
)
def switch(data: Any, pred: Any, dtype: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """A value for the branch where ``pred`` is false, and one for that where it is true; ``merge`` takes one.

    Args:
        data: A tensor.
        pred: A boolean without axes.
        dtype: That of ``data``, where it is made of numbers.
        name: The scope of the two.
    """
    value, chosen = convert_to_tensor(data, dtype), convert_to_tensor(pred)
    with name_scope(name, "Switch"):
        found = identity(value), identity(value)
        for made, condition in zip(found, (math.logical_not(chosen), chosen)):
            _CONDITIONS[operation_of(made)] = condition
    return found


@example(*_SWITCH, "control_flow_ops.merge([no + 1, yes * 2])[0]", "6.0")
def merge(inputs: Sequence[Any], name: str | None = None) -> tuple[Any, Any]:
    """The first of several values whose branch is alive, and its number; raises ValueError for one of no branch.

    Args:
        inputs: Tensors of one dtype that come from ``switch``.
        name: The scope.
    """
    values = [convert_to_tensor(one) for one in inputs]
    alive = [_alive(operation_of(one)) for one in values]
    if not values or None in alive:
        what = f"merge: a value that comes from no switch, at {here()}"
        raise ArgumentError(what, "Use tf.cond, or give values that come from control_flow_ops.switch.")
    with name_scope(name, "Merge"):
        numbered: list[Any] = [(value, constant(number, int32)) for number, value in enumerate(values)]
        found = numbered[-1]
        for one, condition in zip(numbered[-2::-1], alive[-2::-1]):
            found = cond(condition, functools.partial(tuple, one), functools.partial(tuple, found))
        return found[0], found[1]


def _alive(operation: Operation) -> Any:
    """When what an operation computes is alive: where all branches that it reads from are; None without any."""
    seen: set[Operation] = set()
    waiting, conditions = [operation], []
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in _CONDITIONS:
            conditions.append(_CONDITIONS[one])
        waiting += [owner for owner, _ in one.sources]
    if not conditions:
        return None
    found = conditions[0]
    for more in conditions[1:]:
        found = math.logical_and(found, more)
    return found
