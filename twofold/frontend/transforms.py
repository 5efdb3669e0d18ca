"""What transforms of functions are made of: gradients through declared calls, and calls for every sample.

A function is run once on its arguments, or on placeholders, and leaves calls behind, declared or recorded.
``pull`` walks them backwards and binds one pullback for each cotangent; ``lift`` walks them forwards and binds
each once for all samples. Both bind on whatever they are given, so transforms may stand inside each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, NamedTuple

from twofold import _core
from twofold.errors import GradientError
from twofold.frontend.called_backward import after_hooks
from twofold.frontend.mapping import active_mappings
from twofold.ir.op import Op
from twofold.ir.types import TensorType
from twofold.ops.base import apply, ops
from twofold.ops.shape.joining import in_groups
from twofold.transforms.derived import (
    PULLBACK,
    PULLBACK_CHAIN,
    PULLBACK_ROWS,
    VMAP,
    Pullback,
    Pullbacks,
    pullbacks_of,
)
from twofold.transforms.gradient_forms import COMPUTED, GradientKind

Tensor = _core.Tensor

_ACCUMULATE = "add"
_COPY = "copied"  # what a gradient starts at is a copy of the value that it is taken in
_LAST_BIT = 63


class Call(NamedTuple):
    """A call that was declared or recorded.

    ``keys`` name the inputs (0: none), ``mask`` says to which a gradient flows. ``result`` and inputs that no
    gradient reads may be None. A declared gradient has no ``op``; its inputs are root, target and perhaps seed.
    """

    key: int
    result: Tensor | None
    op: Op | None
    attrs: tuple[Any, ...]
    keys: tuple[int, ...]
    inputs: tuple[Any, ...]
    types: tuple[TensorType, ...]
    mask: int

    def flows_to(self, index: int) -> bool:
        """Whether a gradient flows to this input."""
        return bool(self.mask >> min(index, _LAST_BIT) & 1)


@contextmanager
def _where(call: Call) -> Iterator[None]:
    """Position what is recorded inside where a call was made, as far as that is known."""
    before = _core.declare_at(0 if call.result is None else call.result)
    try:
        yield
    finally:
        _core.declare_at(before)


def calls_above(tensors: Sequence[Tensor], recorded: bool) -> list[Call]:
    """The calls that made ``tensors``, in order; recorded ones, that require a gradient, only if asked for."""
    return [Call(*call) for call in _core.calls_above(tuple(tensors), recorded)]


def pull(
    outputs: Sequence[Tensor], cotangents: Sequence[Tensor], targets: Sequence[Tensor], create: bool = True
) -> list[Tensor | None]:
    """Cotangents of ``targets`` from those of ``outputs``; None where no path leads.

    Without ``create`` they are differentiable in the cotangents only.
    Contributions to one value are added as the core's own backward pass adds them.
    """
    calls = calls_above(outputs, True)
    wanted = [_core.call_key(target) for target in targets]
    reaching = set(wanted)
    for call in calls:
        if call.op is None and any(key in reaching for key in call.keys):
            raise GradientError(
                "a gradient that was declared before is differentiated here once more",
                "Take both derivatives in one function, or use gradients for both.",
            )
        if any(key in reaching for index, key in enumerate(call.keys) if call.flows_to(index)):
            reaching.add(call.key)
    made = {call.key for call in calls if call.op is None or call.op.name != _COPY}
    waiting = _Waiting(made)
    for output, seed in zip(outputs, cotangents, strict=True):
        waiting[_core.call_key(output)].add(seed)
    for position, call in reversed(list(enumerate(calls))):
        if call.key not in waiting:
            continue
        arrived = waiting[call.key]
        positions = [index for index, key in enumerate(call.keys) if key in reaching and call.flows_to(index)]
        shares = _pullbacks(call, positions)
        transposes = len(call.keys) == 1 and shares and shares[0].form[0] == GradientKind.TRANSPOSE
        if transposes and call.key not in wanted:
            products = [term for term in arrived.terms if term.kind == GradientKind.PRODUCT]
            waiting[call.keys[0]].terms += [term.transposed() for term in products]
            arrived.terms = [term for term in arrived.terms if term.kind != GradientKind.PRODUCT]
        cotangent = arrived.total()
        if cotangent is not None and call.result is not None and not call.result._is_symbolic:
            with _core.GradientMode(create):
                arrived.plain = cotangent = after_hooks(call.result, cotangent)
        if cotangent is None:
            continue
        read = _Read(call, shares, cotangent, create)
        with _where(call):
            for index in positions:
                if (found := shares.get(index)) is not None:
                    waiting[call.keys[index]].take(position, call, found, read.operands(found))
    return [waiting[key].total() if key in waiting else None for key in wanted]


class _Term(NamedTuple):
    """A contribution: the product of the rows of two values, rows of the right added at numbers in the left, or rows.

    Of rows the left is how many axes one has; without the right they are computed. A plain one is the right, a chain
    has neither.
    """

    position: int  # of its call
    call: Call
    kind: int
    left: Any
    right: Any
    alone: tuple[Pullback, list[Any]] | None  # the gradient by itself; None for its transpose

    def rows(self) -> Any:
        """The rows that are added up."""
        if self.right is not None:
            return self.right
        assert self.alone is not None
        found, values = self.alone
        return _core.record(PULLBACK_ROWS, found.attrs, values)

    def transposed(self) -> _Term:
        """The contribution to what the value is the transpose of."""
        return _Term(self.position, self.call, self.kind, self.right, self.left, None)


class _Arrived:
    """The contributions to one cotangent, summed as ``twofold.ops.indexing.row_products.Cotangent`` defines it.

    At a source plain contributions, too, are added in the order of their calls.
    """

    def __init__(self, is_source: bool) -> None:
        self.is_source = is_source
        self.plain: Tensor | None = None
        self.summed: Tensor | None = None
        self.terms: list[_Term] = []

    def add(self, share: Tensor) -> None:
        self.plain = share if self.plain is None else apply(_ACCUMULATE, self.plain, share)

    def take(self, position: int, call: Call, found: Pullback, values: list[Any]) -> None:
        """The contribution of the call at a position."""
        kind, left, right, _ = found.form
        if kind in (GradientKind.PRODUCT, GradientKind.TABLE):
            sides = (values[found.slots.index(left)], values[found.slots.index(right)])
            self.terms.append(_Term(position, call, kind, *sides, (found, values)))
        elif kind == GradientKind.ROWS:
            rows = None if right == COMPUTED else values[found.slots.index(right)]
            self.terms.append(_Term(position, call, kind, left, rows, (found, values)))
        elif kind == GradientKind.CHAIN:
            self.terms.append(_Term(position, call, kind, None, None, (found, values)))
        else:
            share = _core.record(PULLBACK, found.attrs, values)
            if self.is_source:
                self.terms.append(_Term(position, call, GradientKind.PLAIN, None, share, None))
            else:
                self.add(share)

    def total(self) -> Tensor | None:
        """The sum of what has arrived; None if nothing has."""
        terms, self.terms = self.terms[::-1], []
        terms.sort(key=lambda term: term.position)
        products = [term for term in terms if term.kind in (GradientKind.PRODUCT, GradientKind.CHAIN)]
        groups = [list(group) for kind, group in groupby(products, lambda term: term.kind)]
        groups += [
            [term for term in terms if term.kind == kind] for kind in (GradientKind.TABLE, GradientKind.ROWS)
        ]
        for group in groups:
            if group and group[0].kind == GradientKind.CHAIN:
                for term in group:
                    self._add_group([term])
            elif group:
                self._add_group(group)
        if self.summed is not None:
            self.add(self.summed)
            self.summed = None
        for term in terms:
            if term.kind == GradientKind.PLAIN:
                self.add(term.right)
        return self.plain

    def _add_group(self, group: list[_Term]) -> None:
        """Goes on from the sum with contributions of one kind."""
        with _where(group[0].call):
            found, values = group[0].alone or (None, [])
            if found is not None and len(group) == 1 and self.summed is None:
                self.summed = _core.record(PULLBACK, found.attrs, values)
            elif found is not None and group[0].kind == GradientKind.CHAIN:
                self.summed = _core.record(PULLBACK_CHAIN, found.attrs, [*values, self.summed])
            else:
                self.summed = self._sum(group[0].kind, group)

    def _sum(self, kind: int, terms: list[_Term]) -> Tensor:
        begin = () if self.summed is None else (self.summed,)
        lefts, rights = [term.left for term in terms], [term.right for term in terms]
        if kind == GradientKind.PRODUCT:
            return apply("product_over_rows", _joined(lefts, 1), _joined(rights, 1), *begin)
        assert terms[0].alone is not None
        shape = terms[0].alone[0].graph.outputs[0].shape
        if kind == GradientKind.ROWS:
            rows = [apply("concatenate_rows", term.rows(), attrs=(term.left,)) for term in terms]
            return apply("sum_of_rows", _joined(rows, 1), *begin, attrs=tuple(shape))
        sides = _joined(lefts, 0), _joined(rights, len(shape) - 1)
        return apply("rows_added_at", *sides, *begin, attrs=tuple(shape))


class _Waiting(dict[int, _Arrived]):
    """Cotangents by the keys of values; all but those in ``made`` are sources."""

    def __init__(self, made: set[int]) -> None:
        self.made = made

    def __missing__(self, key: int) -> _Arrived:
        arrived = self[key] = _Arrived(key not in self.made)
        return arrived


def _joined(values: list[Any], axes: int) -> Any:
    """The rows of all values behind each other, in the groups of ``csrc/gradient_sums.cc``; the last ``axes`` axes are
    those of a row.
    """
    while len(values) > 1:
        values = [
            group[0] if len(group) == 1 and axes == 1 else apply("concatenate_rows", *group, attrs=(axes,))
            for group in in_groups(values)
        ]
        axes = 1
    return values[0]


def _pullbacks(call: Call, positions: Sequence[int]) -> dict[int, Pullback]:
    """What a call passes on to some of its inputs, and the values that they share."""
    wanted = tuple(index for index in positions if call.types[index].dtype.is_differentiable)
    if not wanted:
        return {}
    assert call.op is not None
    found: Pullbacks = pullbacks_of(call.op, call.attrs, call.types, wanted)
    for one in found.values():
        if isinstance(one, NotImplementedError):
            raise one
    return {index: one for index, one in found.items() if isinstance(one, Pullback)}


class _Read:
    """What the pullbacks of one call read; values that they share are computed when the first reads them."""

    def __init__(self, call: Call, pullbacks: dict[int, Pullback], cotangent: Tensor, create: bool) -> None:
        self.call, self.pullbacks, self.cotangent, self.create = call, pullbacks, cotangent, create
        self.shared: dict[int, Any] = {}

    def operands(self, found: Pullback) -> list[Any]:
        """The operands of a pullback."""
        return [self._operand(slot) for slot in found.slots]

    def _operand(self, slot: int) -> Any:
        if slot == -1:
            return self.cotangent
        if slot >= len(self.call.types):
            if slot not in self.shared:
                made = self.pullbacks[slot]
                self.shared[slot] = _core.record(PULLBACK, made.attrs, self.operands(made))
            return self.shared[slot]
        value = self.call.result if slot == -2 else self.call.inputs[slot]
        if value is None:
            raise RuntimeError("backward: a value that the gradient reads was not kept")
        # a detached operand is constant in the gradient, too
        constant = not self.create or (slot >= 0 and not self.call.flows_to(slot))
        return value.detach() if constant and isinstance(value, Tensor) else value


def derivatives(
    outputs: Sequence[Tensor], seeds: Sequence[Tensor], targets: Sequence[Tensor], create: bool
) -> list[Tensor | None]:
    """Gradients of ``outputs``, weighted by ``seeds``, in ``targets``; the graph stays for another pass.

    ``create``: they are themselves differentiable (those of declared values always are).
    """
    if any(value._is_symbolic for value in (*outputs, *seeds)):
        return pull(outputs, seeds, targets, create or any(output._is_symbolic for output in outputs))
    pairs = [pair for pair in zip(outputs, seeds, strict=True) if pair[0].requires_grad]
    if not pairs:
        return [None] * len(targets)
    roots, given = zip(*pairs, strict=True)
    return _core.gradients_of(roots, given, tuple(targets), True, create, False)


def start_of(tensor: Tensor) -> Tensor:
    """A copy of ``tensor`` where a gradient starts.

    Inside a function that is declared for every sample it is declared, too, and so is all that follows from it:
    whether it requires a gradient is then known only when ``lift`` binds it.
    """
    return _core.tracked(tensor, bool(active_mappings()))


Lifted = dict[int, tuple[Tensor, bool]]


def lift(
    outputs: Sequence[Tensor], placeholders: Sequence[Tensor], samples: Sequence[Tensor]
) -> list[tuple[Tensor, bool]]:
    """``outputs`` for all ``samples`` (along their leading axes) of the ``placeholders`` that they depend on.

    Each comes with whether it has a leading axis of samples: one that no placeholder reaches has none.
    """
    lifted = {
        _core.call_key(given): (value, True) for given, value in zip(placeholders, samples, strict=True)
    }
    _lift_calls(outputs, lifted)
    return [lifted.get(_core.call_key(output), (output, False)) for output in outputs]


def _lift_calls(outputs: Sequence[Tensor], lifted: Lifted) -> None:
    for call in calls_above(outputs, False):
        if call.key in lifted:
            continue
        if call.op is None:
            _lift_gradient(call, lifted)
            continue
        found = [lifted.get(key, (value, False)) for key, value in zip(call.keys, call.inputs, strict=True)]
        waits = any(isinstance(value, Tensor) and value._is_symbolic for value in call.inputs)
        if waits and not any(key in lifted for key in call.keys):
            continue  # of an enclosing function, which binds it later
        flags = tuple(flag for _, flag in found)
        operands = [_operand(call, index, value) for index, (value, _) in enumerate(found)]
        with _where(call):
            if any(flags):
                made = _core.record(VMAP, (call.op.name, call.attrs, flags), operands)
            else:
                made = _core.record(call.op, call.attrs, operands)
        lifted[call.key] = made, any(flags)


def _operand(call: Call, index: int, value: Any) -> Any:
    """An input, cut off from gradients if it was when the call was declared."""
    cut = isinstance(value, Tensor) and call.types[index].dtype.is_differentiable and not call.flows_to(index)
    return value.detach() if cut else value


def _lift_gradient(call: Call, lifted: Lifted) -> None:
    root, target, *seeds = call.inputs
    (found,) = pull((root,), (seeds[0] if seeds else ones_of(root),), (target,))
    found = zeros_of(target) if found is None else found
    _lift_calls((found,), lifted)
    key = _core.call_key(found)
    if key in lifted:
        lifted[call.key] = lifted[key]


def second_derivatives(value: Tensor, target: Tensor) -> Tensor:
    """The derivatives of the gradient of a declared scalar, one batched pass: shape of ``target`` twice."""
    (first,) = pull((value,), (ones_of(value),), (target,))
    shape = (*target.shape, *target.shape)
    if first is None:
        return apply("zeros", attrs=(shape, target.dtype))
    direction = _core.placeholder(target.type_)
    (second,) = pull((first,), (direction,), (target,))
    if second is None:
        return apply("zeros", attrs=(shape, target.dtype))
    size = target.type_.size
    units = ops.reshape(ops.eye(size, dtype=target.dtype), (size, *target.shape))
    ((rows, _),) = lift((second,), (direction,), (units,))
    return ops.reshape(rows, shape)


def ones_of(tensor: Tensor) -> Tensor:
    """Ones of a tensor's type."""
    return apply("ones", attrs=(tuple(tensor.shape), tensor.dtype))


def zeros_of(tensor: Tensor) -> Tensor:
    """Zeros of a tensor's type."""
    return apply("zeros", attrs=(tuple(tensor.shape), tensor.dtype))
