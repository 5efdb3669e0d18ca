"""What an operation is: one entry from which everything else about it is derived.

A class for each kind, by how the compiler treats a node of it:

=================  =====================================================================================
``SourceOp``       no inputs: ``InputOp``, ``ConstantOp``, or ``iota`` (flat row-major element number of its shape)
``ElementwiseOp``  all inputs have the shape of the result; ``lower`` computes one element (or sixteen lanes)
``ReductionOp``    attrs ``(axes,)``, axes sorted and not negative; the reduced axes vanish; ``combine`` names how
``ViewOp``         result elements are input elements at other positions: ``index_map`` says where
``ContractionOp``  the matrix product ``[*batch, m, k] @ [*batch, k, n]``, equal batch axes; or a convolution
``CustomOp``       a kernel of its own: ``LoopOp`` emits its loops
``HostOp``         ``host`` computes on NumPy arrays, in Python
``ControlFlowOp``  calls other closed graphs; its value is only a handle of its results, whose types ``results`` tells
``GetOutputOp``    result number ``attrs[0]`` of the program node that is its input
``CompositeOp``    never a node of the primitive graph: ``build`` writes it with other operations
=================  =====================================================================================

A contraction or a custom operation may also be a ``TemplateOp``, which a kernel template computes as a whole, or an
``AccumulatingOp``, a sum that may begin with another.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from twofold.index import ENTRIES
from twofold.ir.layout import Layout
from twofold.ir.types import Shape, TensorType
from twofold.lazy import Registry, by_name

if TYPE_CHECKING:
    from twofold.ir.graph import Graph
    from twofold.ir.node import Attributes, Node


class Op:
    """One operation: its name, and the rules that every kind has.

    Subclasses (one per kind, then one per operation) override what they need.
    """

    name: str
    kind: ClassVar[str]
    signature: str = ""
    doc: str = ""
    is_view: bool = False  # a define-by-run handle of the result shares storage with the first input
    may_copy: bool = False  # of such an operation: strides may fail to show the result, save of a dense input
    exact_reference: bool = False  # the reference wants arrays of the true dtypes, not of float64
    autocast: str = ""
    """Inside an autocast region, the dtype of floating operands narrower than float64: that of the region ("lower"),
    "float32", float32 where one of them has it ("widest"); "": their own."""
    autograd_name: Any = ""
    """What PyTorch calls the gradient function, or a function ``(attributes, input types)`` that tells; "": the name in
    CamelCase with "Backward0"; None: that of the call which made the first input, if there is one."""
    memory: tuple[float, str] = (2, "")
    """How many times the bytes of inputs and result a call alone may take in all; if more than twice, why."""

    def __reduce__(self) -> tuple[Any, ...]:
        """The name, by which another process finds the entry; TypeError if it is of this process alone."""
        if not REGISTRY.is_importable(self.name):
            raise TypeError(
                f"the operation {self.name!r} is not of this package: another process does not find it"
            )
        return entry_of, (self.name,)

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

    def shares(self, cotangent: Node, node: Node, inputs: tuple[Node, ...]) -> Sequence[Any] | None:
        """The cotangents of the inputs where they are parts of sums over calls; None: those of ``vjp`` as they are."""
        return None

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """``node`` for ``size`` samples along a new leading axis; None: what its kind gives.

        ``values`` stand for its inputs; the flagged ones have the axis of samples. Each sample must keep its bits.
        """
        return None

    def layout(self, attrs: Attributes, source: Layout, inputs: Sequence[Any]) -> Layout | None:
        """With ``is_view``: where the elements of the result lie in the storage of the first input; None: nowhere.

        ``inputs`` are the others; the strides do not depend on them.
        """
        raise NotImplementedError(self.name)

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """Floating-point operations of a primitive node; a multiply-add counts as two, any other function as one."""
        return 0

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        """The value by NumPy (float64 where it matters), which tests compare with."""
        raise NotImplementedError(self.name)

    def samples(self) -> Sequence[Any]:
        """Sample calls for the generated tests."""
        return ()

    def __repr__(self) -> str:
        return f"<op {self.name}>"


class SourceOp(Op):
    """A value that depends on no other."""

    kind = "source"

    def materialize(self, attrs: Attributes, type: TensorType) -> Any:
        """The value as a NumPy array."""
        raise NotImplementedError(self.name)


class InputOp(SourceOp):
    """An input of a closed graph; attributes ``(index,)``."""


class ConstantOp(SourceOp):
    """A value without axes; attributes ``(value,)``."""


class ElementwiseOp(Op):
    """A function of single elements."""

    kind = "elementwise"
    keeps_nan: bool = False  # whether NaNs pass with their bits; else results hold the canonical one
    converts: bool = False  # whether the result is the input in another dtype
    shifts: tuple[str, ...] = ()
    """What moves one of two operands by the other, in the words of ``changed_rows``: the first, then the second."""
    selects: bool = False  # the first operand chooses between the others
    has_poles: bool = False  # whether it is infinite at some finite operands
    nonfinite: Callable[[Sequence[float], bool], str] | None = None
    """Why a result is not finite, from the operands there and whether it is NaN; "" for no reason of its own."""

    @property
    def is_addition(self) -> bool:
        """Whether it is the sum of two operands, either of which moves the other."""
        return len(self.shifts) == 2

    @abstractmethod
    def lower(self, builder: Any, attrs: Attributes, dtype: Any, *values: Any) -> Any:
        """Emits the result element(s) from ``values`` (compute dtype) with a Builder."""
        raise NotImplementedError(self.name)

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """One for each element."""
        return output.size if output.dtype.is_differentiable else 0


class ReductionOp(Op):
    """A combination of all elements along some axes."""

    kind = "reduction"
    combine: str  # names the combination
    in_order: bool = False  # whether elements are combined one after another, rather than in sixteen lanes

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """One for each element that is combined."""
        return inputs[0].size if output.dtype.is_differentiable else 0


class ViewForm(Enum):
    """Views that transforms know: what the result shows of the first input."""

    RESHAPE = "all elements in row-major order, in another shape"
    PERMUTE = "all axes, in the order of the attribute ``order``"
    BROADCAST = "repeated along new axes in front and axes of size 1"
    SLICE = "a block with the attributes ``(sizes, steps, axes)``, whose starts are the other inputs"


class ViewOp(Op):
    """Elements of the first input at other positions."""

    kind = "view"
    form: ViewForm | None = None

    @abstractmethod
    def index_map(self, attrs: Attributes, input_shape: Shape, output_shape: Shape) -> Any:
        """Per input axis ``(output axis or None, step, offset)``; None for the whole map of a reshape.

        The input index on that axis is ``step * output_index + offset``; an offset ``("input", k)`` adds the run-time
        integer held by the node's scalar input ``k``.
        """
        raise NotImplementedError(self.name)


class ContractionOp(Op):
    """The matrix product, or a convolution: sums of products that element-wise operations may follow."""

    kind = "contraction"
    matrix_axes: tuple[int, int] = (1, 1)  # how many axes of the result are its rows, its columns

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """Two for each product of two elements."""
        return 2 * output.size * inputs[0].shape[-1]


class Assembly(Enum):
    """Kernels that copy or add their inputs into the result: how, as transforms know it."""

    CONCATENATE = "joined along the axis that is the attribute"
    PAD = (
        "inputs ``(value, fill, *starts)``: the value as a block of the fill, placed as a slice would show it"
    )
    UPDATE_SLICE = "inputs ``(data, value, *starts)``: the data with the value as one of its blocks"
    SCATTER = "inputs ``(data, index, rows)``: the data with rows set at an index"
    SCATTER_ADD = "inputs ``(data, index, rows)``: the data with rows added at an index"
    SEGMENT_SUM = "inputs ``(index, rows)``: zeros with rows added at an index"
    UPDATE_ROWS = (
        "inputs ``(data, index, rows, ...)``: the data with rows changed at an index without repetitions"
    )


class CustomOp(Op):
    """An operation with a kernel of its own."""

    kind = "custom"
    assembly: Assembly | None = None
    overwrites: int | None = None  # the input whose memory the result may take over
    checks: bool = False  # whether it reports wrong values, and so runs even if nobody reads the result
    may_fail: bool = False  # whether its kernel can report an error although it is not known to check values
    returns_input: bool = False  # whether the result is the first input, once it was checked

    def definition(self, attrs: Attributes, inputs: Sequence[Node]) -> Node | None:
        """The same value by other operations, whose gradients are taken in place of ``vjp``; None: there is none."""
        return None

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """One for each element."""
        return output.size if output.dtype.is_differentiable else 0


class LoopOp(CustomOp):
    """A custom operation that emits its loops itself."""

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        """Run-time integers of the kernel (sizes; never part of the code)."""
        return ()

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        """Number of work items that threads may share, and the fewest worth a thread."""
        return (1, 1)

    def scratch(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """Bytes of memory that a run needs beside its result, in the buffer behind that of the result."""
        return 0

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        """What the emitted code depends on beside the dtypes."""
        return ()

    @abstractmethod
    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        """Emits the kernel for work items [builder.begin, builder.end).

        Inputs are dense row-major in buffers 0, 1, ...; the output is the last buffer. Sizes come from
        ``builder.param(j)`` in the order of ``parameters``.
        """
        raise NotImplementedError(self.name)


class TemplateOp(Op):
    """A contraction or custom operation that a kernel template computes as a whole."""

    template: str

    @abstractmethod
    def kernel_shape(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> Any:
        """The sizes that the template wants."""
        raise NotImplementedError(self.name)


class AccumulatingOp(Op):
    """A contraction or custom operation that is a sum over rows, or over positions of windows."""

    @abstractmethod
    def accumulates(self, node: Node) -> bool:
        """Whether a node is such a sum, which may begin with another one."""
        raise NotImplementedError(self.name)

    @abstractmethod
    def accumulated(self, node: Node, start: Node) -> Node:
        """The sum from ``start`` on, where it ``accumulates``."""
        raise NotImplementedError(self.name)


class HostOp(Op):
    """A function of NumPy arrays in Python."""

    kind = "host"
    keeps_nan: bool = False  # whether NaNs pass with their bits; else results hold the canonical one
    pure: bool = True  # whether it may run once more without anybody seeing it

    @abstractmethod
    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        """The value, from and to NumPy arrays."""
        raise NotImplementedError(self.name)


class ControlFlowOp(Op):
    """An operation with several results that runs other graphs."""

    kind = "program"
    runs_on_host: bool = False

    @abstractmethod
    def results(self, attrs: Attributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """The types of the results."""
        raise NotImplementedError(self.name)

    def graphs(self, attrs: Attributes) -> tuple[Graph, ...]:
        """The graphs to compile."""
        return ()

    def nested(self, attrs: Attributes, inputs: Sequence[TensorType]) -> tuple[tuple[Any, ...], list[Any]]:
        """How the core runs the programs of the graphs: what no size changes, and numbers, see ``csrc/nested.h``."""
        raise NotImplementedError(self.name)

    def on_addresses(self, inputs: int, programs: Callable[[int], Any]) -> Callable[..., None]:
        """Where it ``runs_on_host``, a function of the addresses of so many inputs, and of results.

        ``programs`` gives the program with room for a number of iterations, see ``bounded_loops``.
        """
        raise NotImplementedError(self.name)

    def parts_vjp(
        self, node: Node, cotangents: Sequence[Node | None], backward: Callable[..., Any]
    ) -> Sequence[Any]:
        """Cotangents of the inputs of ``node`` from those of its results."""
        raise NotImplementedError(self.name)


class GetOutputOp(Op):
    """One result of a program node."""

    kind = "part"


class CompositeOp(Op):
    """An operation that its ``build`` writes with others."""

    kind = "composite"
    checked_above: bool = False  # a call that it is derived from has reported wrong values already
    accumulates: bool = False  # whether it is a sum that may have a further input, the last, to begin with


class DerivedOp(CompositeOp):
    """What is derived from another operation; attributes ``(its name, its attributes, ...)``."""

    is_gradient: bool = False  # whether it computes gradients of the other, rather than its values

    def base(self, attrs: Attributes) -> tuple[Op, Attributes]:
        """The other operation and its attributes."""
        return REGISTRY[attrs[0]], attrs[1]


REGISTRY: Registry[Op] = Registry(by_name(ENTRIES))
"""Every operation by name; a look-up imports the module of its entry."""


def entry_of(name: str) -> Op:
    """The operation of a name."""
    return REGISTRY[name]


def register(op: Op) -> Op:
    """Enter an operation; each name once."""
    REGISTRY.enter(op.name, op)
    return op


Recorder = Callable[["Op", "Attributes", Sequence[Any]], Any]
_recorder: list[Recorder] = []


def set_recorder(recorder: Recorder) -> None:
    """Install what binds operations on user tensors (the frontend does, once)."""
    _recorder[:] = [recorder]
