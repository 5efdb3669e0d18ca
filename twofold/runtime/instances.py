"""Op instances: operations with attributes on given operand types, and their lazily built graphs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from twofold.compiler.portable_program import PortableProgram
from twofold.compiler.saved_plans import key_at_once, saved_plans
from twofold.compiler.spans import spanned
from twofold.errors import TwofoldError
from twofold.ir.graph import Graph
from twofold.ir.node import Attributes
from twofold.ir.op import REGISTRY, Op
from twofold.ir.sizes import current_sizes, is_symbolic
from twofold.ir.types import TensorType, check_limits
from twofold.runtime.tracing import at_call, parameter_names, public_name

if TYPE_CHECKING:
    from types import EllipsisType

    from twofold.compiler.templates import Template
    from twofold.transforms.derived import Traits
    from twofold.transforms.gradient_forms import WrittenForm


class OpInstance:
    """An operation with attributes on given operand types.

    The graph is built on demand: never, if result type, gradients and program are in the disk cache.
    """

    __slots__ = ("_graph", "_key", "_traits", "attrs", "op", "types")

    made_for: tuple[int, ...] = ()  # it has concrete sizes

    def __init__(self, op: Op, attrs: Attributes, types: tuple[TensorType, ...]) -> None:
        self.op = op
        self.attrs = attrs
        self.types = types
        self._key: bytes | EllipsisType | None = ...
        self._graph: Graph | None = None
        self._traits: Traits | None = None

    @classmethod
    def of(
        cls,
        op: Op,
        attrs: Attributes,
        types: tuple[TensorType, ...],
        graph: Graph | None = None,
        traits: Traits | None = None,
    ) -> OpInstance:
        """An op instance whose graph or traits are at hand.

        Args:
            op: The operation.
            attrs: Its attributes.
            types: The types of its operands.
            graph: Its closed graph.
            traits: Its traits.
        """
        made = cls(op, attrs, types)
        made._graph, made._traits = graph, traits
        return made

    @property
    def key(self) -> bytes | None:
        """The key of its plans; made on demand, as the many slices that differentiate a ``stack`` need none."""
        if self._key is ...:
            self._key = saved_plans().key("op instance", self.op, self.attrs, self.types)
        return self._key

    @property
    def graph(self) -> Graph:
        """The closed primitive graph that the call computes."""
        if self._graph is None:
            from twofold.transforms.derived import stable_graph

            self._graph = stable_graph(self.op, self.attrs, self.types)
        return self._graph

    @property
    def traits(self) -> Traits:
        """See ``derived.Traits``."""
        if self._traits is None:
            from twofold.transforms.derived import traits_of

            self._traits = traits_of(self.op, self.graph)
        return self._traits

    def part(self, *names: Any) -> bytes | None:
        """The key of one of its plans."""
        return None if self.key is None else saved_plans().key(self.key, *names)


@spanned("type rule")
def expand(
    op: Op, attrs: Attributes, types: tuple[TensorType, ...], operands: tuple[Any, ...]
) -> tuple[OpInstance | None, TensorType, bool]:
    """Run the type rule of a call that the core has not seen before.

    Args:
        op: The operation.
        attrs: Its attributes.
        types: The types of its operands.
        operands: Its operands, for errors.

    Returns:
        The op instance (None over symbolic sizes), the result type, and whether it is differentiable.

    Raises:
        TwofoldError: Attributes or operands are invalid.
    """
    from twofold.ir.shape_inference import result_type

    differentiable = getattr(op, "differentiable", True)
    try:
        if is_symbolic(attrs) or any(size < 0 for type in types for size in type.shape):
            sizes = current_sizes()
            found = result_type(op, attrs, types) if sizes is None else sizes.result_type(op, attrs, types)
            return None, found, differentiable
        made = OpInstance(op, attrs, types)
        saved = saved_plans().read(made.key)
        if saved is not None:
            type, made._traits = saved
            return made, type, differentiable
        type = made.graph.outputs[0].type
        check_limits(type)
    except TwofoldError as error:
        raise at_call(error, public_name(op), parameter_names(op), types, operands) from None
    saved_plans().keep(made.key, (type, made.traits))
    return made, type, differentiable


Expanded = tuple[int, "tuple[Op, Attributes, OpInstance, TensorType, tuple[int, ...], WrittenForm]"]


@spanned("gradient rule")
def expand_gradients(
    op: Op, attrs: Attributes, types: tuple[TensorType, ...], instance: OpInstance, wrt: tuple[int, ...]
) -> list[Expanded | tuple[int, NotImplementedError]]:
    """Differentiate an op instance.

    Args:
        op: The operation.
        attrs: Its attributes.
        types: The types of its operands.
        instance: The op instance.
        wrt: The inputs whose gradients are returned.

    Returns:
        For each gradient and shared value, the latter before what reads them: its number, and a tuple of operation,
        attributes, op instance, result type, slots and form; or the error of a gradient that is not implemented.
    """
    key = instance.part("gradients", wrt)
    saved = saved_plans().read(key)
    if saved is not None:
        return [_gradient(*one) for one in saved]
    from twofold.transforms.derived import Pullback, pullbacks_of

    found: list[Any] = []
    kept: list[Any] = []
    for index, one in pullbacks_of(op, attrs, types, wrt, instance.graph).items():
        if isinstance(one, Pullback):
            output, inputs = one.graph.outputs[0].type, one.graph.input_types
            made = _gradient(index, one.attrs, inputs, output, one.slots, one.form, graph=one.graph)
            kept.append((index, one.attrs, inputs, output, one.slots, one.form, made[1][2].traits))
            found.append(made)
        else:
            found.append((index, one))
    if len(kept) == len(found):
        saved_plans().keep(key, kept)
    return found


def _gradient(
    index: int,
    attrs: Attributes,
    types: tuple[TensorType, ...],
    type: TensorType,
    slots: tuple[int, ...],
    form: WrittenForm,
    traits: Traits | None = None,
    graph: Graph | None = None,
) -> Expanded:
    op = REGISTRY["pullback"]
    return index, (op, attrs, OpInstance.of(op, attrs, types, graph, traits), type, slots, form)


@spanned("compile operation")
def compile_op_instance(instance: OpInstance) -> Any:
    """The unfused program of an op instance."""
    key = instance.part("program")
    saved = saved_plans().read(key)
    if saved is not None:
        with contextlib.suppress(LookupError):  # a kernel was deleted from the disk cache
            return saved.program()
    from twofold.compiler.compile import compile_graph

    program = compile_graph(instance.graph)
    with contextlib.suppress(NotImplementedError):
        saved_plans().keep(key, PortableProgram.of(program))
    return program.program()


def template_of(
    op: Op,
    attrs: Attributes,
    types: tuple[TensorType, ...],
    varies: tuple[bool, ...],
    at_once: bool,
    saved_only: bool,
) -> Any:
    """See ``twofold.compiler.templates``, which is imported only if there is a plan, or one is made."""
    if saved_only and not saved_plans().has(key_at_once(op, attrs, types, varies)):
        return None
    from twofold.compiler import templates

    return templates.template_of(op, attrs, types, varies, at_once, saved_only)


def traits_of(instance: OpInstance) -> Traits:
    """The traits of an op instance, which the core asks for on demand."""
    return instance.traits


def is_cheap(call: OpInstance | Template) -> bool:
    """Whether a large result is rematerialised rather than kept, see ``compiler.recompute``."""
    key = call.part("is cheap", call.made_for)
    saved: bool | None = saved_plans().read(key)
    if saved is None:
        from twofold.compiler.recompute import is_cheap as is_cheap_graph

        saved = is_cheap_graph(call.graph)
        saved_plans().keep(key, saved)
    return saved
