"""What an operation is: one entry from which everything else about it is derived.

Kinds of operation, by how the compiler treats a node of it:

========== =====================================================================================
source      no inputs: ``input`` (attrs ``(index,)``), ``constant`` (attrs ``(value,)``, shape ``()``),
            ``iota`` (flat row-major element number of its shape)
elementwise all inputs have the shape of the result; ``lower`` computes one element (or sixteen lanes)
reduction   attrs ``(axes,)``, axes sorted and not negative; the reduced axes vanish; ``combine`` names how
view        result elements are input elements at other positions: ``index_map`` says where
contraction the matrix product ``[*batch, m, k] @ [*batch, k, n]``, equal batch axes; or a convolution
custom      ``emit`` writes the loops of its kernel itself
host        ``host`` computes on NumPy arrays, in Python
program     calls other closed graphs; its value is only a handle of its results, whose types ``results`` tells
part        result number ``attrs[0]`` of the program node that is its input
composite   never a node of the primitive graph: ``build`` writes it with other operations
========== =====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from twofold.index import ENTRIES
from twofold.ir.layout import Layout
from twofold.ir.types import Shape, TensorType
from twofold.lazy import Registry, by_name

if TYPE_CHECKING:
    from twofold.ir.node import Attributes, Node

KINDS = (
    "source",
    "elementwise",
    "reduction",
    "view",
    "contraction",
    "custom",
    "host",
    "program",
    "part",
    "composite",
)


class Op:
    """One operation: its name, kind, and the rules for type, gradient, code and reference value.

    Subclasses (one per kind, then one per operation) override what they need.
    """

    name: str
    kind: str
    signature: str = ""
    doc: str = ""
    product: str = (
        ""  # contraction, custom: the plan of kernels that computes it, where it has no loops itself
    )
    matrix_axes: tuple[int, int] = (
        1,
        1,
    )  # contraction: how many axes of the result are its rows, its columns
    overwrites: int | None = None  # custom: the input whose memory the result may take over
    keeps_nan: bool = (
        False  # elementwise, host: whether NaNs pass with their bits; else results hold the canonical one
    )
    checks: bool = (
        False  # custom: whether it reports wrong values, and so runs even if nobody reads the result
    )
    may_fail: bool = (
        False  # custom: whether its kernel can report an error although it is not known to check values
    )
    checked_above: bool = False  # a call that it is derived from has reported wrong values already
    is_view: bool = False  # a define-by-run handle of the result shares storage with the first input
    may_copy: bool = False  # of such an operation: strides may fail to show the result, save of a dense input
    pure: bool = True
    autocast: str = ""
    """Inside an autocast region, the dtype of floating operands narrower than float64: that of the region ("lower"),
    "float32", float32 where one of them has it ("widest"); "": their own."""
    autograd_name: Any = ""
    """What PyTorch calls the gradient function, or a function ``(attributes, input types)`` that tells; "": the name in
    CamelCase with "Backward0"; None: that of the call which made the first input, if there is one."""
    lays: str = ""
    """Custom: how inputs come to lie in the result: "joined" along the axis that is the attribute; as a "block", the
    inputs ``(value, fill, *starts)`` with the attributes of a view that shows one, or a "changed block" of the first
    input; as "set rows", "changed rows" or "further rows" (added) of it at an index, "added rows" of zeros, the inputs
    ``(index, rows)``."""
    shows: str = ""
    """View: what its result is of the first input: "all elements" in their order, in another shape; "permuted axes",
    with the attribute ``order``; "repeated axes", where it broadcasts; a "block" with the attributes
    ``(sizes, steps, axes)``, whose starts are the other inputs."""
    stands_for_input: bool = False
    """Elementwise, custom: whether the result is the first input, in another dtype or once it was checked."""
    shifts: tuple[str, ...] = ()
    """Elementwise: what moves one of two operands by the other, in the words of ``changed_rows``: the first, then the
    second."""
    selects: bool = False  # elementwise: the first operand chooses between the others
    memory: tuple[float, str] = (2, "")
    """How many times the bytes of inputs and result a call alone may take in all; if more than twice, why."""

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The nodes that compute this operation on ``inputs`` of any dtypes and shapes it accepts.

        Promotes, broadcasts and checks; a composite operation calls other operations. Raises errors from
        ``twofold.errors`` with ``what`` and ``fix``.
        """
        raise NotImplementedError(self.name)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        """Cotangents of the inputs of a primitive node, None for a structural zero.

        A composite needs none (its parts are differentiated) but may give one.
        """
        raise NotImplementedError(self.name)

    def goes_on(self, node: Node) -> bool:
        """Whether a node is a sum over rows, or over positions of windows, that may begin with another."""
        return False

    def begun_at(self, node: Node, start: Node) -> Node:
        """The sum that ``goes_on``, from ``start`` on."""
        raise NotImplementedError(self.name)

    def shares(self, cotangent: Node, node: Node, inputs: tuple[Node, ...]) -> Sequence[Any] | None:
        """The cotangents of the inputs where they are parts of sums over calls; None: those of ``vjp`` as they are."""
        return None

    def for_samples(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """``node`` for ``size`` samples along a new leading axis; None: what its kind gives.

        ``values`` stand for its inputs; the flagged ones have the axis of samples. Each sample must keep its bits.
        """
        return None

    def lower(self, builder: Any, attrs: Attributes, dtype: Any, *values: Any) -> Any:
        """Element-wise: emits the result element(s) from ``values`` (compute dtype) with a Builder."""
        raise NotImplementedError(self.name)

    def index_map(self, attrs: Attributes, input_shape: Shape, output_shape: Shape) -> Any:
        """View: per input axis ``(output axis or None, step, offset)``; None for the whole map of a reshape.

        The input index on that axis is ``step * output_index + offset``; an offset ``("input", k)`` adds the run-time
        integer held by the node's scalar input ``k``.
        """
        raise NotImplementedError(self.name)

    def layout(self, attrs: Attributes, source: Layout, inputs: Sequence[Any]) -> Layout | None:
        """With ``is_view``: where the elements of the result lie in the storage of the first input; None: nowhere.

        ``inputs`` are the others; the strides do not depend on them.
        """
        raise NotImplementedError(self.name)

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """Floating-point operations of a primitive node; a multiply-add counts as two, any other function as one."""
        if self.kind == "contraction":
            return 2 * output.size * inputs[0].shape[-1]
        if self.kind not in ("elementwise", "reduction", "custom") or not output.dtype.is_differentiable:
            return 0
        return max([type.size for type in inputs], default=0) if self.kind == "reduction" else output.size

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        """Custom: run-time integers of the kernel (sizes; never part of the code)."""
        return ()

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        """Custom: number of work items that threads may share, and the fewest worth a thread."""
        return (1, 1)

    def scratch(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """Custom: bytes of memory that a run needs beside its result, in the buffer behind that of the result."""
        return 0

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        """Custom: what the emitted code depends on beside the dtypes."""
        return ()

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        """Custom: emits the kernel for work items [builder.begin, builder.end).

        Inputs are dense row-major in buffers 0, 1, ...; the output is the last buffer. Sizes come from
        ``builder.param(j)`` in the order of ``parameters``.
        """
        raise NotImplementedError(self.name)

    def problem(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> Any:
        """With a ``product``: the sizes that its plan wants."""
        raise NotImplementedError(self.name)

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        """Host: the value, from and to NumPy arrays."""
        raise NotImplementedError(self.name)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        """The value by NumPy (float64 where it matters), which tests compare with."""
        raise NotImplementedError(self.name)

    def samples(self) -> Sequence[Any]:
        """Sample calls for the generated tests."""
        return ()

    def __repr__(self) -> str:
        return f"<op {self.name}>"


REGISTRY: Registry[Op] = Registry(by_name(ENTRIES))
"""Every operation by name; a look-up imports the module of its entry."""


def register(op: Op) -> Op:
    """Enter an operation; each name once."""
    if op.kind not in KINDS:
        raise ValueError(f"operation {op.name!r} has unknown kind {op.kind!r}")
    REGISTRY.enter(op.name, op)
    return op


Recorder = Callable[["Op", "Attributes", Sequence[Any]], Any]
_recorder: list[Recorder] = []


def set_recorder(recorder: Recorder) -> None:
    """Install what binds operations on user tensors (the frontend does, once)."""
    _recorder[:] = [recorder]
