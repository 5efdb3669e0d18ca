"""Operations: the interface of an entry, from which everything else about an operation is derived.

Each kind of operation is a class, by how the compiler treats its nodes:

=================  =====================================================================================
``SourceOp``       no inputs: ``InputOp``, ``ConstantOp``, or ``iota`` (flat row-major element number of its shape)
``ElementwiseOp``  all inputs have the shape of the result; ``lower`` computes one element (or sixteen lanes)
``ReductionOp``    attrs ``(axes,)``, axes sorted and not negative; the reduced axes vanish; ``combine`` names how
``ViewOp``         result elements are input elements at other indices, see ``index_map``
``ContractionOp``  the matrix product ``[*batch, m, k] @ [*batch, k, n]``, equal batch axes; or a convolution
``CustomOp``       a custom kernel: a ``LoopOp`` emits its loops
``HostOp``         ``host`` computes on NumPy arrays, in Python
``ControlFlowOp``  runs other closed graphs; its value is a handle of its results, whose types are ``results``
``GetOutputOp``    result number ``attrs[0]`` of the control flow node that is its input
``CompositeOp``    never a node of the primitive graph: ``build`` decomposes it into other operations
=================  =====================================================================================

A contraction or a custom operation may also be a ``TemplateOp``, which a kernel template computes as a whole, or an
``AccumulatingOp``, a sum that may have an initial value.
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
    """An operation: its name, and the rules that every kind has.

    Subclasses (one for each kind, then one for each operation) override what they need.
    """

    name: str
    kind: ClassVar[str]
    signature: str = ""
    doc: str = ""
    is_view: bool = False  # a define-by-run handle of the result shares storage with the first input
    is_written_view: bool = False
    """Whether the result is the first operand with the elements of a view replaced, as an in-place write does."""
    is_gradient: bool = False
    """Whether it computes gradients of another operation, see ``DerivedOp``."""
    is_copy: bool = False
    """Whether the result has the values of its only operand, bit for bit."""
    returns_program: bool = False
    """Whether it returns the results of dtype ``attrs[2]`` of a program ``attrs[1]`` with the sizes ``attrs[3]``."""
    is_program_result: bool = False
    """Whether the result is the one of a program that begins at ``attrs[0]`` in its flat results of one dtype."""
    may_copy: bool = (
        False  # of a view: whether it copies where strides cannot express the result (never of a dense one)
    )
    exact_reference: bool = False  # whether the reference takes arrays of the true dtypes, not of float64
    reads_views: bool = False
    """Whether PyTorch's operation computes on views of its operands, so that its gradient reads what they held even
    where an operand was given other memory since (``weight.data = ...``)."""
    autocast: str = ""
    """Inside an autocast region, the dtype of floating operands narrower than float64: that of the region ("lower"),
    "float32", float32 where one of them has it ("widest"); "": their own."""
    autograd_name: Any = ""
    """PyTorch's name of ``grad_fn``, or a function ``(attributes, input types)`` that returns it; "": the name in
    CamelCase with "Backward0"; None: that of the producer of the first input, if there is one."""
    sparse_gradient: Callable[[Attributes], bool] | None = None
    """Whether, with these attributes, ``.grad`` of a leaf that has such gradients only is shown by its rows."""
    memory: tuple[float, str] = (2, "")
    """Peak memory of a call alone, as a multiple of the bytes of inputs and result; if more than twice, why."""

    def __reduce__(self) -> tuple[Any, ...]:
        """The name, by which another process finds the entry; TypeError if it is of this process alone."""
        if not REGISTRY.is_importable(self.name):
            raise TypeError(
                f"the operation {self.name!r} is not of this package: another process does not find it"
            )
        return entry_of, (self.name,)

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """Check, promote and broadcast operands, and build the nodes that compute the operation.

        Args:
            attrs: Its attributes.
            inputs: Its operands, of any dtypes and shapes.

        Returns:
            The node of its result; for a composite that of its decomposition.

        Raises:
            TwofoldError: Operands or attributes are invalid; with ``what`` and ``fix``.
        """
        raise NotImplementedError(self.name)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        """The gradient rule. A composite needs none, as its decomposition is differentiated, but may have one.

        Args:
            attrs: The attributes of the node.
            cotangent: The cotangent of its result.
            output: Its result.
            inputs: Its inputs.

        Returns:
            The cotangents of its inputs, None for a structural zero.
        """
        raise NotImplementedError(self.name)

    def shares(self, cotangent: Node, node: Node, inputs: tuple[Node, ...]) -> Sequence[Any] | None:
        """The gradient rule of an operation whose cotangents are terms of a sum over calls, such as products over rows.

        Args:
            cotangent: The cotangent of the result.
            node: The node.
            inputs: What rules read as its inputs.

        Returns:
            The cotangents of its inputs, see ``row_products.Share``; None if ``vjp`` applies.
        """
        return None

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """The batching rule; the bits of each sample must stay as they are.

        Args:
            node: The node for one sample.
            values: Nodes in place of its inputs.
            flags: For each of them, whether it has a leading batch axis.
            size: The batch size.

        Returns:
            The node for the batch; None if the rule of its kind applies.
        """
        return None

    def layout(self, attrs: Attributes, source: Layout, inputs: Sequence[Any]) -> Layout | None:
        """The layout of a view, if ``is_view``.

        Args:
            attrs: The attributes.
            source: The layout of the first input.
            inputs: The other inputs, on which strides do not depend.

        Returns:
            The layout of the result in the same storage; None if strides cannot express it.
        """
        raise NotImplementedError(self.name)

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """The number of floating-point operations of a node; a multiply-add counts as two, any function as one."""
        return 0

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        """The value by NumPy, in float64 where precision matters; the oracle of tests."""
        raise NotImplementedError(self.name)

    def samples(self) -> Sequence[Any]:
        """Sample calls for the generated tests."""
        return ()

    def __repr__(self) -> str:
        return f"<op {self.name}>"


class SourceOp(Op):
    """An operation without operands."""

    kind = "source"

    def materialize(self, attrs: Attributes, type: TensorType) -> Any:
        """The value as a NumPy array."""
        raise NotImplementedError(self.name)


class InputOp(SourceOp):
    """An input of a closed graph; attributes ``(index,)``."""


class ConstantOp(SourceOp):
    """A scalar constant; attributes ``(value,)``."""


class ElementwiseOp(Op):
    """A function of one element of each operand."""

    kind = "elementwise"
    keeps_nan: bool = False  # whether NaNs pass with their bits; else results hold the canonical one
    reads_bits: bool = False  # whether operands arrive as they are stored, halves not widened for arithmetic
    is_idempotent: bool = False  # whether its result of its own result is that result
    has_stable_forms: bool = False  # whether formulas that end with it have stable forms
    converts: bool = False  # whether the result is the input in another dtype
    shifts: tuple[str, ...] = ()
    """For operands that the other one shifts: the mode of ``changed_rows`` for the first, then for the second."""
    copies: bool = False  # whether the result is an operand as it is
    selects: bool = False  # the first operand chooses between the others
    has_poles: bool = False  # whether it is infinite at some finite operands
    nonfinite: Callable[[Sequence[float], bool], str] | None = None
    """Why a result is not finite, from its operands and whether it is NaN; "" if the operands are the reason."""

    @property
    def is_addition(self) -> bool:
        """Whether it is a sum of two operands."""
        return len(self.shifts) == 2

    @abstractmethod
    def lower(self, builder: Any, attrs: Attributes, dtype: Any, *values: Any) -> Any:
        """Emit the code of an element, or of a vector of sixteen.

        Args:
            builder: The kernel builder.
            attrs: The attributes.
            dtype: The dtype of the result.
            *values: The operands, in their compute dtype.
        """
        raise NotImplementedError(self.name)

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """One for each element, none for what converts, copies or chooses elements."""
        computes = output.dtype.is_differentiable and not (self.converts or self.copies or self.selects)
        return output.size if computes else 0


class ReductionOp(Op):
    """A reduction of all elements along some axes."""

    kind = "reduction"
    combine: str  # names the combination
    in_order: bool = False  # whether elements are combined one after another, rather than in sixteen lanes

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """One for each element that is combined."""
        return inputs[0].size if output.dtype.is_differentiable else 0


class ViewForm(Enum):
    """Forms of views that transforms know, by how the result indexes the first input."""

    RESHAPE = "all elements in row-major order, in another shape"
    PERMUTE = "all axes, in the order of the attribute ``order``"
    BROADCAST = "repeated along new axes in front and axes of size 1"
    SLICE = "a block with the attributes ``(sizes, steps, axes)``, whose starts are the other inputs"


class ViewOp(Op):
    """Elements of the first input at other indices."""

    kind = "view"
    form: ViewForm | None = None

    @abstractmethod
    def index_map(self, attrs: Attributes, input_shape: Shape, output_shape: Shape) -> Any:
        """The affine map from result indices to input indices.

        Args:
            attrs: The attributes.
            input_shape: The shape of the first input.
            output_shape: The shape of the result.

        Returns:
            For each input axis ``(output axis or None, step, offset)``: the input index is ``step * output_index +
            offset``. An offset ``("input", k)`` is the run-time value of the scalar input ``k``. None for a reshape.
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
    """Custom kernels that transforms know, by how they copy or add their inputs into the result."""

    CONCATENATE = "inputs concatenated along the axis that is the attribute"
    PAD = "inputs ``(value, fill, *starts)``: the fill with the value in place of the slice at ``starts``"
    UPDATE_SLICE = "inputs ``(data, value, *starts)``: the data with the value in place of a slice"
    SCATTER = "inputs ``(data, index, rows)``: the data with rows set at an index"
    SCATTER_ADD = "inputs ``(data, index, rows)``: the data with rows added at an index"
    SEGMENT_SUM = "inputs ``(index, rows)``: zeros with rows added at an index"
    UPDATE_ROWS = (
        "inputs ``(data, index, rows, ...)``: the data with rows updated at an index without duplicates"
    )


_COPYING = (Assembly.CONCATENATE, Assembly.PAD, Assembly.UPDATE_SLICE, Assembly.SCATTER)


class CustomOp(Op):
    """An operation with a kernel of its own."""

    kind = "custom"
    assembly: Assembly | None = None
    overwrites: int | None = None  # the input whose buffer may be donated to the result
    checks: bool = False  # whether it reports invalid values, and so runs even if its result is dead
    may_fail: bool = False  # whether its kernel may report an error for other reasons
    returns_input: bool = False  # whether the result is the first input, after a check
    copies: bool = (
        False  # whether the elements of the result are those of inputs, in other ways than the ``assembly``
    )

    def definition(self, attrs: Attributes, inputs: Sequence[Node]) -> Node | None:
        """The same value by other operations, which are differentiated in place of ``vjp``; None if ``vjp`` applies."""
        return None

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """One for each element, none for what copies elements."""
        copies = self.copies or self.returns_input or self.assembly in _COPYING
        return output.size if output.dtype.is_differentiable and not copies else 0


class LoopOp(CustomOp):
    """A custom operation that emits the loops of its kernel."""

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        """The run-time integers of the kernel, such as sizes, which the code does not depend on."""
        return ()

    def row_axis(self, attrs: Attributes) -> int | None:
        """The axis with which rows of operands begin, if these may lie apart in a larger value.

        Then the last parameters are, for each operand, the elements before its first row and from row to row.
        """
        return None

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        """The number of work items, and the grain: the fewest that are worth a thread."""
        return (1, 1)

    def scratch(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """Bytes of scratch memory, which is the buffer behind that of the result."""
        return 0

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        """The key of the emitted code, together with the dtypes."""
        return ()

    @abstractmethod
    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        """Emit the kernel for work items ``[builder.begin, builder.end)``.

        Inputs are dense row-major, but for rows that ``row_axis`` lets lie apart, in buffers 0, 1, ...; the output is
        the last buffer. Sizes come from ``builder.param(j)`` in the order of ``parameters``.
        """
        raise NotImplementedError(self.name)


class TemplateOp(Op):
    """A contraction or custom operation that a kernel template computes as a whole."""

    template: str

    @abstractmethod
    def kernel_shape(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> Any:
        """The kernel shape: the sizes by which the template is instantiated."""
        raise NotImplementedError(self.name)


class AccumulatingOp(Op):
    """A contraction or custom operation that is a sum over rows, or over positions of windows."""

    @abstractmethod
    def accumulates(self, node: Node) -> bool:
        """Whether a node is such a sum and may have an initial value."""
        raise NotImplementedError(self.name)

    @abstractmethod
    def accumulated(self, node: Node, initial: Node) -> Node:
        """The sum accumulated into ``initial``, if it ``accumulates``."""
        raise NotImplementedError(self.name)


class HostOp(Op):
    """A function of NumPy arrays in Python."""

    kind = "host"
    keeps_nan: bool = False  # whether NaNs pass with their bits; else results hold the canonical one
    pure: bool = True  # whether it has no side effects

    @abstractmethod
    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        """The result of NumPy arrays, a NumPy array."""
        raise NotImplementedError(self.name)


class ControlFlowOp(Op):
    """An operation with several results that runs other graphs: a call, branch or loop."""

    kind = "control_flow"
    runs_on_host: bool = False

    @abstractmethod
    def results(self, attrs: Attributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """The types of the results."""
        raise NotImplementedError(self.name)

    def graphs(self, attrs: Attributes) -> tuple[Graph, ...]:
        """The graphs to compile."""
        return ()

    def nested(self, attrs: Attributes, inputs: Sequence[TensorType]) -> tuple[tuple[Any, ...], list[Any]]:
        """The instruction of the core: what does not depend on sizes, and integers that do, see ``csrc/nested.h``."""
        raise NotImplementedError(self.name)

    def on_addresses(self, inputs: int, programs: Callable[[int], Any]) -> Callable[..., None]:
        """The host function of an operation that ``runs_on_host``.

        Args:
            inputs: The number of inputs.
            programs: The program with room for a number of iterations, see ``bounded_loops``.

        Returns:
            A function of the addresses of inputs and results.
        """
        raise NotImplementedError(self.name)

    def results_vjp(
        self, node: Node, cotangents: Sequence[Node | None], backward: Callable[..., Any]
    ) -> Sequence[Any]:
        """The gradient rule.

        Args:
            node: The node.
            cotangents: Those of its results, None for zero.
            backward: ``transforms.reverse.backward_sums``.

        Returns:
            The cotangents of its inputs, see ``row_products.Share``.
        """
        raise NotImplementedError(self.name)


class GetOutputOp(Op):
    """One result of a control flow node."""

    kind = "get_output"


class CompositeOp(Op):
    """An operation that ``build`` decomposes into others."""

    kind = "composite"
    checked_above: bool = False  # whether the call that it is derived from reports invalid values
    accumulates: bool = False  # whether it is a sum whose last input may be an initial value


class DerivedOp(CompositeOp):
    """An operation that is derived from another; attributes ``(its name, its attributes, ...)``."""

    def base(self, attrs: Attributes) -> tuple[Op, Attributes]:
        """The other operation and its attributes."""
        return REGISTRY[attrs[0]], attrs[1]


REGISTRY: Registry[Op] = Registry(by_name(ENTRIES))
"""Every operation by name; the module of an entry is imported when it is looked up."""


def entry_of(name: str) -> Op:
    """The operation of a name."""
    return REGISTRY[name]


def register(op: Op) -> Op:
    """Add an operation to the registry; each name once."""
    REGISTRY.enter(op.name, op)
    return op


Recorder = Callable[["Op", "Attributes", Sequence[Any]], Any]
_recorder: list[Recorder] = []


def set_recorder(recorder: Recorder) -> None:
    """Set the function that ``bind`` calls for operands that are tensors; the frontend does so once."""
    _recorder[:] = [recorder]
