"""Whether a loop writes each element of a tensor array once, as its body tells; else its runs check it."""

from __future__ import annotations

from typing import Any

from twofold.static.api.op_functions import Slot
from twofold.static.functions.bodies import ARGUMENT, Body, above, tensor_of
from twofold.static.graph.graph import Operation
from twofold.static.graph.inference import Source
from twofold.static.python.tensor_util import constant_value

_SUMS = ("AddV2", "Add", "Sub")


def writes_once(body: Body, position: int) -> bool:
    """Whether no element is written twice by the iterations of a body that are given an array without elements.

    So it is where they do not write to it, or to one index that grows or falls with a variable that is counted.
    """
    source = body.results[position]
    if source[0] is body.arguments[position]:
        return True
    owner = source[0]
    if owner.type != "TensorArrayWrite" or owner.sources[0][0] is not body.arguments[position]:
        return False
    counter = _counter(body, owner.sources[2])
    return counter is not None and _is_counted(body, counter)


def _counter(body: Body, index: Source) -> int | None:
    """The position of the carried number that an index is another for each value of, or None."""
    owner = index[0]
    if owner in body.arguments:
        return body.arguments.index(owner)
    if owner.type in ("Cast", "Identity", "Neg"):
        return _counter(body, owner.sources[0])
    if owner.type in _SUMS:
        varying = [source for source in owner.sources if not _is_invariant(source[0])]
        return _counter(body, varying[0]) if len(varying) == 1 else None
    return None


def _is_invariant(owner: Operation) -> bool:
    return all(one.type != ARGUMENT for one in above([owner]))


def _is_counted(body: Body, counter: int) -> bool:
    """Whether each iteration adds one constant to a carried integer."""
    argument, (owner, _) = body.arguments[counter], body.results[counter]
    if owner.type not in _SUMS or argument.outputs[0].dtype.kind not in "iu":
        return False
    given = (*owner.arguments, *owner.keywords.values())
    first, second = [owner.sources[one.index] if isinstance(one, Slot) else one for one in given][:2]
    if owner.type != "Sub" and not _is(first, argument):
        first, second = second, first
    step: Any = constant_value(tensor_of(second)) if isinstance(second, tuple) else second
    return _is(first, argument) and step is not None and bool(step != 0)


def _is(term: Any, argument: Operation) -> bool:
    return isinstance(term, tuple) and term[0] is argument
