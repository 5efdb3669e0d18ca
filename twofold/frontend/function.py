"""``compile``: a Python function of tensors declared once and then called as one closed graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from twofold import _core
from twofold.errors import ArgumentError
from twofold.frontend.breakpoints import breakpoints_as, stopping
from twofold.frontend.options import get_default_dtype
from twofold.frontend.purity import Impure, arguments_only, stateful

if TYPE_CHECKING:
    from twofold.frontend.captures import Capture

Tensor = _core.Tensor
_MOST_DECLARATIONS = 64
stepped: Callable[[Any], Any] | None = None
"""Under a debugger, what makes a compiled function one that is stepped through."""


class DeclaredGraph(NamedTuple):
    """What a compiled function runs for arguments of the types of ``inputs``."""

    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    single: bool
    """Whether the one output is returned as it is."""
    mark: int
    dtypes: Any
    """What it computes in: the default dtype, and that of a region of ``autocast``."""
    stops: tuple[tuple[int, int], ...] = ()
    """Locations of its breakpoints, in the order in which it came by them, with the declaration marks then."""

    def closed(self) -> Any:
        """The closed trace."""
        return _core.close(self.inputs, self.outputs, self.mark)

    def calls_after(self, mark: int) -> int:
        """How many calls of the forward pass that the outputs need were declared after ``mark``."""
        later = _core.close(self.inputs, self.outputs, mark)
        return sum(not forward for _, forward in later.provenance)


def _dtypes() -> Any:
    enabled, dtype = _core.autocast_state()
    return get_default_dtype(), dtype if enabled else None


def _types_of(arguments: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(value.type_ for value in arguments)


def _declares(arguments: Sequence[Any]) -> bool:
    """Whether a graph may stand for a call: bound tensors, and no gradient to record."""
    bound = all(isinstance(value, Tensor) and not value._is_symbolic for value in arguments)
    gradient = _core.grad_enabled() and any(getattr(value, "requires_grad", False) for value in arguments)
    return bool(arguments) and bound and not gradient


def graph_of_call(compiled: Any, arguments: Sequence[Any]) -> DeclaredGraph | None:
    """The graph that a compiled function runs for arguments, declared if need be; None of what runs as Python."""
    if not _declares(arguments):
        return None
    types, dtypes = _types_of(arguments), _dtypes()

    def known() -> DeclaredGraph | None:
        fits = (one for one in compiled.graphs if _types_of(one.inputs) == types)
        return next((one for one in fits if one.dtypes == dtypes), None)

    if known() is None:
        compiled.declare_graph(arguments)
    return known()


_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def check_compile_options(backend: Any, mode: str | None, options: Any) -> None:
    """Raise for a compiler that is not there, and for settings of one."""
    if backend not in ("inductor", "eager"):
        raise ArgumentError(
            f"compile: backend {backend!r} is not available",
            "Use 'inductor', which stands for the compiler of this library, or 'eager' for none.",
        )
    if mode is not None and mode not in _MODES:
        raise ArgumentError(f"compile: unrecognized mode {mode!r}", f"Use one of {', '.join(_MODES)}.")
    if options:
        raise ArgumentError(f"compile: options {options!r} of another compiler", "Leave them out.")


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
    verify: bool = False,
) -> Any:
    """``model`` as a closed graph, declared anew for each combination of input dtypes and shapes.

    Plain define-by-run needs no annotation to be fast; this saves the recording as well, for functions of their
    arguments alone that are called from tight loops. Their Python code runs once for each combination of types. When an
    argument requires grad, or is no tensor, the function runs as plain Python. So it does from then on when it looks at
    values, writes to its arguments or returns views of them, or uses anything but its arguments and constants:
    parameters, modules, tensors that it closes over or makes, random numbers, lists and objects. So do calls after a
    name that it reads has got another value. Modules are returned as they are. At a ``breakpoint()`` each call stops,
    in frames that step through the graph. Works as a decorator.

    Args:
        model: The function.
        fullgraph: Without effect: a function that is declared is always one whole graph.
        dynamic: Without effect: no result depends on whether sizes are symbols.
        backend: ``"inductor"`` for the compiler of this library, ``"eager"`` for plain Python.
        mode: One of PyTorch's modes, which choose between times to compile and to run; there is one here.
        options: None: those of other compilers are not known here.
        disable: Return ``model`` itself.
        verify: Compare the bits of each call with those of its operations one by one, see ``twofold.debug.verify``.

    Raises:
        ArgumentError: For another backend or mode, and for options.
        VerificationError: From a call with ``verify`` whose results differ.

    >>> import twofold as torch
    >>> @torch.compile
    ... def distance(a, b):
    ...     return ((a - b) ** 2).sum()
    >>> distance(torch.tensor([1.0, 2.0]), torch.tensor([4.0, 6.0]))
    tensor(25.)
    """
    check_compile_options(backend, mode, options)
    if model is None:
        return functools.partial(compile, backend=backend, disable=disable, verify=verify)
    as_it_is = disable or backend == "eager" or (isinstance(model, tuple(stateful)) and not verify)
    return model if as_it_is else _declared(model, verify)


def _run_to_stops(graph: DeclaredGraph, model: Any, compiled: Callable[..., Any], *args: Any) -> Any:
    """A call of a graph with breakpoints: in frames that are stepped through, unless nothing is to stop."""
    if not stopping():
        return compiled(*args)
    return _core.call_untraced(import_module("twofold.debug.stepping").run_graph, graph, model, args)


def _is_graph(inputs: Sequence[Any], keys: Sequence[int], outputs: Sequence[Any]) -> bool:
    """Whether a graph has the effect of a function: it gave tensors, and left its placeholders what they were.

    Outputs of a graph lie in row-major order, in memory of their own.
    """
    for tensor, key in zip(inputs, keys, strict=True):
        if _core.value_key(tensor) != key or tensor._base is not None or tensor.requires_grad:
            return False
    if not all(isinstance(one, Tensor) and one._is_symbolic and one._is_row_major for one in outputs):
        return False
    roots = [tensor if tensor._base is None else tensor._base for tensor in (*inputs, *outputs)]
    return bool(outputs) and len({id(root) for root in roots}) == len(roots)


def _while_they_hold(captures: Sequence[Capture], function: Any, model: Any, *args: Any) -> Any:
    """A call of a declared function while its names mean what they meant then, else of the Python function."""
    return (function if all(capture.holds() for capture in captures) else model)(*args)


def _declared(model: Callable[..., Any], verify: bool) -> Any:
    """The callable that declares ``model`` for the types that it meets."""
    from twofold.frontend.captures import captures_of, restore

    verification = import_module("twofold.debug.verification") if verify else None
    plain = verification.verified(model) if verification else model
    is_plain = [False]
    raised: set[tuple[Any, ...]] = set()  # types for which it raises on placeholders

    def declare(args: Sequence[Any]) -> Callable[..., Any] | None:
        is_full = len(made.graphs) >= _MOST_DECLARATIONS
        if not _declares(args) or is_plain[0] or is_full or _types_of(args) in raised:
            return None
        captures = captures_of(model)
        if captures is None:
            is_plain[0] = True
            return None
        mark = _core.declaration_mark()
        inputs = tuple(_core.placeholder(tensor.type_) for tensor in args)
        keys = [_core.value_key(tensor) for tensor in inputs]
        stops: list[tuple[int, int]] = []

        def stop() -> None:
            stops.append((_core.capture_location(), _core.declaration_mark()))

        try:
            with breakpoints_as(stop), arguments_only():
                result = model(*inputs)
        except Impure:
            result = None
        except Exception:  # as a gradient does of what no leaf is above, and as it may on tensors
            restore(captures)
            raised.add(_types_of(args))
            return None
        single = isinstance(result, Tensor)
        outputs = (result,) if single else result if type(result) is tuple else ()
        is_plain[0] = restore(captures) or not _is_graph(inputs, keys, outputs)
        if is_plain[0]:
            return None
        function: Callable[..., Any] = _core.function(inputs, outputs, single, None)
        if verification:
            function = verification.verified_function(function, inputs, outputs, mark)
        graph = DeclaredGraph(inputs, outputs, single, mark, _dtypes(), tuple(stops))
        if stops:
            function = functools.partial(_run_to_stops, graph, model, function)
        if captures:
            function = functools.partial(_while_they_hold, captures, function, plain)
        made.declare(tuple(args), function)
        made.graphs.append(graph)
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        function = None if kwargs or not _core.declarations_used() else declare(args)
        return plain(*args, **kwargs) if function is None else function(*args)

    made = _core.compiled(call)
    made.graphs, made.declare_graph = [], declare
    functools.update_wrapper(made, model, updated=())
    return made if stepped is None else stepped(made)
