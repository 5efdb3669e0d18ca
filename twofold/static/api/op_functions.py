"""Declaring operations: from a body written for concrete values to a function with TensorFlow's conventions.

``@operation("MatMul")`` makes the public function of a body. Parameters annotated ``Any`` are tensors: arrays, lists
and numbers given for them become tensors of the first tensor's dtype. Parameters annotated ``Number`` are shapes, axes
and the like: the body must know their numbers, which may come from constants, from ``tf.shape`` or, at some cost, from
any other tensor.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType, bfloat16, finfo, float32, iinfo, int64, string
from twofold.dtypes import as_dtype as _as_dtype
from twofold.errors import ArgumentError, TwofoldError, at_operation
from twofold.ir.node import Node
from twofold.ir.sizes import Symbol, current_sizes, is_symbolic
from twofold.ops.axes import given_once
from twofold.ops.base import METHODS, apply, broadcast, filled, iota, ops
from twofold.runtime.tracing import here
from twofold.signatures import bound
from twofold.static.graph.context import at_once, local
from twofold.static.graph.docstrings import example
from twofold.static.graph.eager_execution import compute as at_once_compute
from twofold.static.graph.graph import Operation, Tensor, describe, get_default_graph, owner_of
from twofold.static.graph.graph_elements import Slot, importable
from twofold.static.graph.inference import Numbers, Source, infer
from twofold.static.graph.string_table import bytes_array, encode, holds_strings

Number = Any
"""Annotation of a parameter whose numbers the body must know."""


@example('print(tf.as_dtype("float"))', "twofold.float32")
def as_dtype(value: Any) -> DType:
    """The dtype for a dtype or its name; ``"float"`` and ``float`` are float32, as in TensorFlow."""
    if value is float:
        return float32
    if isinstance(value, str) and value in ("float", "string"):
        return float32 if value == "float" else string
    return _as_dtype(value)


def is_tensor_like(value: Any) -> bool:
    """Whether a value is a declared tensor or a variable.

    >>> import twofold.static as tf
    >>> tf.is_tensor(1)
    False
    """
    return isinstance(value, Tensor) or hasattr(value, "_as_graph_element")


def as_tensor(value: Any) -> Any:
    """The tensor of a variable; anything else as it is."""
    convert = getattr(value, "_as_graph_element", None)
    return value if convert is None else convert()


def install_operators(kind: type, reflected: bool = False) -> None:
    """Give a class of what becomes a tensor the operators of tensors.

    Equality stays identity, so that its objects can be looked up in lists and dictionaries. ``reflected`` gives it
    only those that a tensor on the left asks it for, as far as it has none of its own.
    """

    def operator(name: str) -> Callable[..., Any]:
        def method(self: Any, *others: Any) -> Any:
            return getattr(as_tensor(self), name)(*[as_tensor(other) for other in others])

        method.__name__ = name
        return method

    if reflected:
        for name in METHODS:
            own = any(name in vars(base) for base in kind.__mro__)
            if name.startswith("__r") and name != "__rshift__" and not own:
                setattr(kind, name, operator(name))
        return
    for name in METHODS:
        if name.startswith("__") and name not in ("__eq__", "__ne__"):
            setattr(kind, name, operator(name))
    kind.__array_ufunc__ = None  # type: ignore[attr-defined]


_UNKNOWN = re.compile(r"\bs-\d+\b")
"""A size of a placeholder that no value has told yet, in a message of a type rule."""


def array_of(value: Any, dtype: Any = None) -> numpy.ndarray:
    """Numbers as an array with TensorFlow's defaults: float32 and int32 for numbers of Python and lists of numbers."""
    array = numpy.asarray(value)
    if array.dtype == object:
        found = array.ravel().tolist()
        if None in found:
            raise ValueError(
                f"None is no number, at {here()}. Give numbers and tensors, such as zeros for a missing gradient."
            )
        if found and all(hasattr(one, "__index__") for one in found):  # dimensions of shapes
            array, value = numpy.array([operator.index(one) for one in found]).reshape(array.shape), found
    if dtype is not None:
        return array.astype(_numpy_of(as_dtype(dtype)))
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"a value of type {type(value).__name__} does not become a tensor of numbers, at {here()}. Give numbers."
        )
    if not _keeps_dtype(value):
        if array.dtype == numpy.float64:
            return array.astype(numpy.float32)
        if array.dtype == numpy.int64 and (array == (short := array.astype(numpy.int32))).all():
            return short
    return array


def _numpy_of(dtype: DType) -> numpy.dtype[Any]:
    """The dtype of arrays that hold numbers of a dtype; of bfloat16, which NumPy lacks, float32."""
    return numpy.dtype(numpy.float32) if dtype is bfloat16 else dtype.numpy


def _listed_operand(value: Any, partner: Any) -> Any:
    """A list beside an operator, as a constant of the dtype of the tensor on the other side."""
    if partner.dtype is string:
        return encode(value, constant=True)
    array = array_of(value)
    kinds = "biufc"
    if kinds.index(array.dtype.kind) > kinds.index(partner.dtype.kind):
        raise TypeError(
            f"a list of {array.dtype} beside {partner}, at {here()}. Cast the tensor, or give numbers of its dtype."
        )
    return ops.cast(_core.from_array(numpy.ascontiguousarray(array), False), partner.dtype)


_core.set_hook("listed_operand", _listed_operand)


def _keeps_dtype(value: Any) -> bool:
    """Whether numbers keep the dtype that NumPy gives them: arrays do, and at once lists of NumPy's floats."""
    first = value
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if first is value or not isinstance(first, (numpy.ndarray, numpy.generic)):
        return hasattr(first, "__array__")
    return first.ndim > 0 or (at_once() and first.dtype.kind == "f")


@example("tf.constant([1.0, 2.0])", "[1. 2.]")
def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: str | None = "Const", verify_shape: bool = False
) -> Any:
    """A tensor that holds ``value``: numbers or strings, nested lists of them, or an array.

    With ``shape`` a value of fewer elements is repeated: its last element fills the rest. Raises ValueError for more
    elements, and with ``verify_shape`` TypeError for any other shape.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is string or (wanted is None and holds_strings(value)):
        if at_once():
            return encode(value if shape is None else numpy.broadcast_to(bytes_array(value), shape))
        array = encode(value, constant=True).numpy()
        wanted = string
    else:
        array = array_of(value, wanted)
    if shape is not None:
        sizes = tuple(int(size) for size in shape) if not isinstance(shape, int) else (shape,)
        if verify_shape and array.shape != sizes:
            raise TypeError(
                f"constant: a value of shape {array.shape} for shape {sizes}, at {here()}. Make them equal."
            )
        flat = array.ravel()
        count = int(numpy.prod(sizes))
        if flat.size > count or not flat.size:
            raise ValueError(
                f"constant: {flat.size} values for shape {sizes}, at {here()}. Give at most {count}."
            )
        array = numpy.concatenate([flat, numpy.repeat(flat[-1:], count - flat.size)]).reshape(sizes)
    code = string.code if wanted is string else -1
    bound = _core.from_array(numpy.ascontiguousarray(array).reshape(array.shape), False, code)
    if wanted is bfloat16:
        bound = ops.cast(bound, bfloat16)._realise()
    if at_once():
        return bound
    return get_default_graph().add("Const", name or "Const", [bound.type_], (), constant=bound).outputs[0]


@example("tf.convert_to_tensor([1.0, 2.0])", "[1. 2.]")
def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
) -> Any:
    """``value`` as a tensor of the graph; lists may hold tensors.

    Raises ValueError for a tensor of another dtype than the one asked for. Numbers are of ``preferred_dtype`` where
    no dtype is asked for and that loses no fraction; ``dtype_hint`` is a later name of it.
    """
    preferred_dtype = given_once(preferred_dtype=preferred_dtype, dtype_hint=dtype_hint)
    found = as_tensor(value)
    if isinstance(found, Tensor):
        if dtype is not None and found.dtype is not as_dtype(dtype):
            raise ValueError(
                f"convert_to_tensor: {describe(found)} is not of {as_dtype(dtype).name}, at {here()}. "
                "Use tf.cast for it."
            )
        return _in_graph(found)
    if isinstance(value, (list, tuple)) and holds_tensor(value):
        return _packed(value, None if dtype is None else as_dtype(dtype))
    if dtype is None and preferred_dtype is not None and not isinstance(value, (str, bytes)):
        wanted = as_dtype(preferred_dtype)
        if wanted.kind in "fc" or numpy.asarray(value).dtype.kind not in "fc":
            dtype = wanted
    return constant(value, dtype, name=name or "Const")


def _in_graph(tensor: Any) -> Any:
    if owner_of(tensor) is None and not tensor._is_symbolic and not at_once():
        return constant(tensor.detach().numpy())
    return tensor


def holds_tensor(value: Any) -> bool:
    """Whether a value is a tensor, or a list with one in it."""
    if isinstance(value, (list, tuple)):
        return any(holds_tensor(item) for item in value)
    return is_tensor_like(value)


def _packed(value: Sequence[Any], dtype: DType | None) -> Any:
    parts = [as_tensor(item) if is_tensor_like(item) else item for item in value]
    dtype = dtype or next((part.dtype for part in parts if isinstance(part, Tensor)), None)
    return PACK[0]([convert_to_tensor(part, None if isinstance(part, Tensor) else dtype) for part in parts])


PACK: list[Callable[..., Any]] = []
"""The function that stacks tensors, entered where it is defined."""


class Arguments:
    """Collects the tensors in the arguments of a call and replaces them by slots."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.host: set[int] = set()

    def slot(self, tensor: Any, host: bool) -> Slot:
        """A slot for a tensor."""
        found = owner_of(tensor)
        if found is None:
            raise TypeError(
                f"a tensor that is not in a graph was given ({tensor.type_}), at {here()}. "
                "Declare it with twofold.static."
            )
        if host:
            self.host.add(len(self.sources))
        self.sources.append(get_default_graph().captured(found))
        return Slot(len(self.sources) - 1)

    def template(self, value: Any, host: bool) -> Any:
        """``value`` with its tensors replaced by slots."""
        if is_tensor_like(value):
            return self.slot(as_tensor(value), host)
        if isinstance(value, (list, tuple)) and holds_tensor(value):
            return [self.template(item, host) for item in value]
        return value


def _tensor_argument(value: Any, dtype: DType | None) -> Any:
    """A value for a tensor parameter: numbers stay numbers, arrays and lists become tensors."""
    if value is None or isinstance(value, (bool, int, float, DType)) or is_tensor_like(value):
        return value
    if isinstance(value, (str, bytes)):
        return constant(value) if dtype is string else value
    if holds_strings(value):
        return constant(value)
    if isinstance(value, numpy.generic):
        return value.item() if dtype is not None else constant(value)
    if isinstance(value, (numpy.ndarray, list, tuple)):
        if isinstance(value, (list, tuple)) and holds_tensor(value):
            return _packed(value, dtype)
        array = array_of(value)
        empty = isinstance(value, (list, tuple)) and not array.size  # which has numbers of no dtype
        other = dtype is None or (array.dtype.kind == "f" and dtype.kind != "f" and not empty)
        return constant(array) if other else constant(array, dtype)
    if hasattr(value, "__index__"):
        return operator.index(value)
    raise TypeError(
        f"a value of type {type(value).__name__} does not become a tensor, at {here()}. "
        "Give numbers, an array or a tensor."
    )


def _first_dtype(values: Sequence[Any]) -> DType | None:
    for value in values:
        if is_tensor_like(value):
            return as_tensor(value).dtype
        if isinstance(value, (list, tuple)) and (found := _first_dtype(value)):
            return found
    return None


def snake_case(name: str) -> str:
    """The name of a class or of a type of operations in lower case, with an underscore between its words."""
    apart = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", apart).lower()


def _scopes(text: str) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in text.split())
    return {type: scope or snake_case(type) for type, _, scope in pairs}


_SCOPES = _scopes(
    "CentralCrop CholeskySolve ClipByNorm ClipByValue CountNonzero CropToBoundingBox Div Einsum "
    "FlipLeftRight FlipUpDown FloorDiv=floordiv GlobalNorm HistogramFixedWidth InTopK L2Normalize Lbeta "
    "LinSpace=linspace LogDet=logdet LogPoissonLoss LogSumExp=ReduceLogSumExp MatrixDiag=diag "
    "MatrixDiagPart=diag_part MatrixExponential MatrixSetDiag=set_diag MatrixSolveLs MatrixTranspose "
    "MatrixTriangularSolve=triangular_solve OnesLike PadToBoundingBox PerImageStandardization "
    "ResizeImageWithCropOrPad Rot90 SelfAdjointEigvals=SelfAdjointEigV2 "
    "SigmoidCrossEntropyWithLogits=logistic_loss SoftmaxCrossEntropyWithLogits Std=reduce_std "
    "SufficientStatistics TotalVariation TransposeImage=transpose TrueDiv=truediv Variance=reduce_variance "
    "WeightedCrossEntropyWithLogits=logistic_loss ZeroFraction ZerosLike"
)
"""Names of operations whose TensorFlow name, that of a scope around several, is not their type."""


_OF_VALUES = frozenset(["Cast", "Abs", "Neg", "Sign", "Square", "Sqrt", "Erf", "Tanh"])
"""Types of operations of each element that keep zeros, so that they take a ``SparseTensor``, too."""


def define(
    type: str,
    body: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: dict[str, Any],
    name: str | None,
    host: frozenset[str] = frozenset(),
    is_random: bool = False,
    count: int = 1,
) -> Any:
    """Declare an operation, or compute it at once; ``host`` names the keywords whose numbers ``body`` must know.

    Of ``count`` outputs dtypes are guessed where only a run can tell their types.

    Raises the error of the body, worded for this line, where the inputs do not fit.
    """
    if at_once():
        return at_once_compute(
            type, body, arguments, {**keywords, **({"counter": 0} if is_random else {})}, name
        )
    collected = Arguments()
    positional = tuple(collected.template(value, False) for value in arguments)
    named = {key: collected.template(value, key in host) for key, value in keywords.items()}
    graph = collected.sources[0][0].graph if collected.sources else get_default_graph()
    probe = Operation(graph, type, name or type)
    for target in (probe,):
        target.body, target.arguments, target.keywords = body, positional, named
        target.host, target.is_random = frozenset(collected.host), is_random
        target.sources = tuple(collected.sources)
    graph.check_open(type)
    try:
        types = infer(probe, count)
    except TwofoldError as error:
        operands = [describe(owner.outputs[index]) for owner, index in collected.sources]
        error.what = _UNKNOWN.sub("?", error.what)
        raise at_operation(error, type, operands, here()) from None
    parts = {"body": body, "arguments": positional, "keywords": named}
    made = graph.add(type, name or _SCOPES.get(type), types, collected.sources, **parts)
    made.host, made.is_random = probe.host, is_random
    return made


def operation(
    type: str,
    several: Any = None,
    is_random: bool = False,
    default: str | None = None,
    name_at: int | None = None,
    older: Mapping[str, str] | None = None,
    count: int = 1,
    row: inspect.Signature | None = None,
    unused: str = "",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the public function of a body; see the module.

    Its parameters are those of the body, ``name`` and ``older``, or those of a ``row``.

    Args:
        type: That of the operations.
        several: ``list`` or ``tuple`` of the tensors where the body returns several; None where it returns one.
        is_random: Whether the body samples.
        default: The name of operations that are given none.
        name_at: The index of the parameter ``name``; the last unless given.
        older: Further parameters at the end, and of which parameters they are former names; with a row all names that
            the body does not have, and its own for them.
        count: How many tensors the body returns, for where only a run can tell their types.
        row: All parameters in TensorFlow's order.
        unused: Those of them that change nothing and that the body does not take.
    """
    formerly = dict(older or {})

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        importable(body)
        own = inspect.signature(body).parameters
        host = frozenset(key for key, parameter in own.items() if parameter.annotation == "Number")
        public = row or _public_signature(body, name_at, formerly)
        usual = _usual(type, row, own, formerly, unused) if row else {}

        @functools.wraps(body)
        def function(*args: Any, **kwargs: Any) -> Any:
            inside = local.in_body or any(isinstance(value, Node) for value in args)
            if inside and not row:
                kwargs.pop("name", None)
                return body(*args, **kwargs)
            given = bound(function.__name__, public, args, kwargs).arguments
            if type in _OF_VALUES:
                key, value = next(iter(given.items()))
                if hasattr(value, "with_values"):
                    return value.with_values(function(**{**given, key: value.values}))
            name = given.pop("name", None)
            _rename(given, formerly)
            if row:
                given = {key: given.get(key, value) for key, value in usual.items()}
            if inside:
                return body(**given)
            made = define(type, body, (), _all_converted(given, own), name or default, host, is_random, count)
            return several(made.outputs) if several else made.outputs[0]

        function.__signature__, function.unused = public, unused.split()  # type: ignore[attr-defined]
        return function

    return decorate


def _usual(
    type: str, row: inspect.Signature, own: Iterable[str], older: Mapping[str, str], unused: str
) -> dict[str, Any]:
    """The defaults of a body's parameters; raises TypeError unless a row has the names of all, and no further ones."""
    public = row.parameters
    needless = {*public} - {*own, *older, *unused.split(), "name"}
    missing = {*own} - {*public} - {older[key] for key in older if key in public}
    if needless or missing:
        raise TypeError(f"{type}: parameters {sorted(needless | missing)} are in the row or the body alone")
    return {key: public[key].default if key in public else None for key in own}


def _rename(given: dict[str, Any], formerly: Mapping[str, str]) -> None:
    """Give the arguments of former names their present ones; raises ValueError where both are given."""
    for old, new in formerly.items():
        value = given_once(**{new: given.get(new), old: given.pop(old, None)})
        if value is not None:
            given[new] = value


def _public_signature(
    body: Callable[..., Any], name_at: int | None, older: Iterable[str]
) -> inspect.Signature:
    """That of the function that declares operations of a body."""
    found = inspect.signature(body)
    public = [parameter.replace(annotation=Any) for parameter in found.parameters.values()]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    name, *former = [inspect.Parameter(key, kind, default=None, annotation=Any) for key in ("name", *older)]
    public.insert(len(public) if name_at is None else name_at, name)
    return found.replace(parameters=[*public, *former])


def _all_converted(given: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """The arguments of a body; where no tensor tells the dtype, its numbers are constants."""
    kinds = {key: parameters[key].annotation for key in given}
    dtype = _first_dtype([value for key, value in given.items() if kinds[key] not in _APART])
    found = {key: _converted(value, dtype, kinds[key]) for key, value in given.items()}
    values = {key: value for key, value in found.items() if kinds[key] != "Number"}
    if "dtype" not in found and not any(is_tensor_like(v) or holds_tensor(v) for v in values.values()):
        numbers = {key: constant(v) for key, v in values.items() if isinstance(v, (bool, int, float))}
        found.update(numbers)
    return found


def _converted(value: Any, dtype: DType | None, kind: Any) -> Any:
    """An argument for a parameter of the annotation ``kind``, beside tensors of a dtype."""
    if kind == "Number":
        return value
    if kind == "Dtype":
        return None if value is None else as_dtype(value)
    if kind == "Alone":
        return convert_to_tensor(value)
    if kind == "Tensors" and isinstance(value, (list, tuple)):
        found = [_tensor_argument(item, dtype) for item in value]
        return [convert_to_tensor(item, None if is_tensor_like(item) else dtype) for item in found]
    return _tensor_argument(value, dtype)


Tensors = Any
"""Annotation of a parameter that is a list of tensors."""

Alone = Any
"""Annotation of a parameter that is a tensor whatever the dtypes of further ones are, such as one of indices."""

Dtype = Any
"""Annotation of a parameter that is a dtype, or None."""

_APART = ("Number", "Alone", "Dtype")


def numbers(value: Any) -> Any:
    """The numbers of a shape, axis or the like: Python's, NumPy's, those of a bound tensor, or lists of them."""
    if isinstance(value, Tensor):
        return value.detach().numpy().tolist()
    if isinstance(value, Numbers):
        return value.array.tolist()
    if isinstance(value, (numpy.ndarray, Symbol)):
        return value if isinstance(value, Symbol) else value.tolist()
    if isinstance(value, (list, tuple)):
        return [numbers(item) for item in value]
    if isinstance(value, numpy.generic):
        return value.item()
    return value.__index__() if hasattr(value, "__index__") and not isinstance(value, int) else value


def whole(value: Any) -> Any:
    """A number as an integer; a symbol stays one."""
    found = numbers(value)
    if isinstance(found, list):
        raise ArgumentError(f"a list of {len(found)} numbers where one is taken", "Give one number.")
    return found if isinstance(found, Symbol) else int(found)


def sizes(value: Any) -> tuple[int, ...]:
    """A shape as a tuple of integers."""
    found = numbers(list(value) if hasattr(value, "dims") else value)
    return tuple([whole(size) for size in (found if isinstance(found, list) else [found])])


def counted(size: int, beside: Any) -> Any:
    """The int64 vector 0 ... size - 1 for a body that combines it with ``beside``."""
    if current_sizes() is None and isinstance(beside, (Node, Symbol)):
        return iota((size,))
    return apply("iota", attrs=((size,),)) if isinstance(size, Symbol) else ops.arange(size)


def full_of(value: Any, shape: Sequence[int], dtype: DType, beside: Any) -> Any:
    """A tensor of ``shape`` that holds ``value`` everywhere, for a body that combines it with ``beside``."""
    if isinstance(value, Node):
        return broadcast(ops.cast(value, dtype), tuple(shape))
    if isinstance(beside, Node) or (current_sizes() is None and is_symbolic(tuple(shape))):
        return filled(numbers(value), dtype, tuple(shape))
    return ops.full(tuple(shape), value, dtype=dtype)


def checked_below(values: Any, count: Any, what: str, ignored: int = 0) -> Any:
    """``values`` as int64, for a body; a run raises IndexRangeError for one not in ``[0, count)`` nor ``ignored``."""
    given = ops.cast(values, int64)
    return apply("number_below", given, full_of(ignored, (), int64, given), attrs=(count, what))


def limits_of(dtype: DType) -> tuple[Any, Any]:
    """The smallest and the largest number of a dtype."""
    if dtype.kind == "b":
        return 0, 1
    found: Any = finfo(dtype) if dtype.kind == "f" else iinfo(dtype)
    return found.min, found.max


def axis_of(value: Any) -> Any:
    """An axis, several axes as a tuple, or None."""
    found = numbers(value)
    return tuple(int(axis) for axis in found) if isinstance(found, list) else found


def refuse(what: str, **options: Any) -> None:
    """Raise ArgumentError for an option that is set and not offered."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise ArgumentError(f"{what}: {name} is not offered, at {here()}", "Leave it out.")
