"""Gradients in define-by-run: ``backward``, ``grad``, and the switches around them."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from twofold import _core
from twofold.errors import GraphError, described
from twofold.frontend.grad_fn import several, tensors_of
from twofold.frontend.tensor_hooks import backward_pass, constant
from twofold.ops.base import FUNCTIONS
from twofold.runtime.tracing import here

Tensor = _core.Tensor
F = TypeVar("F", bound=Callable[..., Any])


class _GradientMode(_core.GradientMode):
    """Sets whether gradients are recorded, as a ``with`` block or a decorator."""

    def __call__(self, function: F) -> F:
        return self._decorated(function, functools.partial(_GradientMode, self.enabled))

    @staticmethod
    def _decorated(function: F, again: Callable[[], Any]) -> F:
        if inspect.isgeneratorfunction(function):
            return _resumed_inside(again, function)  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with again():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


def _resumed_inside(mode: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """The generator function whose body alone runs inside of the mode, not what its caller does between values."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        resume: Callable[[], Any] = functools.partial(next, generator)
        while True:
            try:
                with mode():
                    value = resume()
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield value
            except GeneratorExit:
                with mode():
                    generator.close()
                raise
            except BaseException as error:
                resume = functools.partial(generator.throw, error)
            else:
                resume = functools.partial(generator.send, sent)

    return wrapped


class no_grad(_GradientMode):
    """Inside, no gradient is recorded.

    >>> import twofold as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     print((x * 2).requires_grad)
    False
    """

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__(False)

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """The context manager, or with ``@no_grad`` without brackets the decorated function."""
        return super().__new__(cls) if function is None else _GradientMode(False)(function)


class enable_grad(_GradientMode):
    """Inside, gradients are recorded again, whatever stands around.

    >>> import twofold as torch
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> with torch.no_grad(), torch.enable_grad():
    ...     y = x * x
    >>> y.requires_grad
    True
    """

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__(True)

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """The context manager, or with ``@enable_grad`` without brackets the decorated function."""
        return super().__new__(cls) if function is None else _GradientMode(True)(function)


class inference_mode(_GradientMode):
    """As ``no_grad``; ``inference_mode(False)`` as ``enable_grad``.

    >>> import twofold as torch
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> with torch.inference_mode():
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool | Callable[..., Any] = True) -> None:
        super().__init__(not mode)
        self.mode = bool(mode)

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        """The context manager, or with ``@inference_mode`` without brackets the decorated function."""
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __call__(self, function: F) -> F:
        return self._decorated(function, functools.partial(inference_mode, self.mode))


def is_inference_mode_enabled() -> bool:
    """Whether tensors that are made now are inference tensors: no, those of ``inference_mode`` are as others.

    >>> import twofold as torch
    >>> with torch.inference_mode():
    ...     torch.is_inference_mode_enabled()
    False
    """
    return False


class set_grad_enabled(_GradientMode):
    """Sets the mode at once; as a ``with`` block it is set back at the end.

    >>> import twofold as torch
    >>> with torch.set_grad_enabled(False):
    ...     torch.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(mode, True)

    def __call__(self, function: F) -> F:
        with self:  # what is decorated has the mode, not what follows
            pass
        return super().__call__(function)

    @property
    def mode(self) -> bool:
        """Whether gradients are recorded inside."""
        return self.enabled


def is_grad_enabled() -> bool:
    """Whether gradients are being recorded.

    >>> import twofold as torch
    >>> torch.is_grad_enabled()
    True
    """
    return bool(_core.grad_enabled())


_keeping = False


@contextmanager
def graphs_kept() -> Iterator[None]:
    """Inside, no backward pass uses its graph up, so that tools find it after the program has ended."""
    global _keeping
    before, _keeping = _keeping, True
    try:
        yield
    finally:
        _keeping = before


def keeps_graph(retain_graph: bool | None, create_graph: bool) -> bool:
    """Whether a backward pass called with these arguments leaves its graph for another pass."""
    return _keeping or (create_graph if retain_graph is None else retain_graph)


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of this tensor to ``.grad`` of every leaf that requires it.

    ``gradient`` is the cotangent, of this tensor's shape, and is cast to its dtype; a tensor of one element needs
    none. ``inputs`` limits the leaves. Raises RuntimeError when nothing requires a gradient or the graph was used up
    before.

    >>> import twofold as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> (x * x).backward()
    >>> x.grad
    tensor(6.)
    """
    keep = keeps_graph(retain_graph, create_graph)
    _need_values((self,), (gradient,))
    if inputs is None:
        backward_pass(self._backward, _cotangent(self, gradient, create_graph), keep, create_graph)
    else:
        backward_all((self,), (gradient,), keep, create_graph, inputs)


def like_its_output(output: Tensor, cotangent: Any) -> Any:
    """A cotangent in the dtype of its output, as PyTorch casts it; a complex one is not made real."""
    wanted = output.dtype
    if (
        not isinstance(cotangent, Tensor)
        or cotangent.dtype is wanted
        or "c" in (cotangent.dtype.kind, wanted.kind)
    ):
        return cotangent
    return cotangent.to(wanted)


def _cotangent(output: Tensor, given: Any, create: bool) -> Any:
    """What a pass takes as the cotangent of an output."""
    return constant(like_its_output(output, given), create)


def backward_all(
    roots: tuple[Tensor, ...], seeds: tuple[Any, ...], keep: bool, create: bool, inputs: Any = None
) -> None:
    """One backward pass from all ``roots``, to all leaves or to ``inputs`` only."""
    chosen = () if inputs is None else tensors_of(inputs)
    if inputs is not None and not chosen:
        raise RuntimeError("`inputs` argument to `backward` cannot be empty.")
    _check_inputs("backward", chosen)
    _need_values(roots, seeds)
    given = tuple(_cotangent(root, seed, create) for root, seed in zip(roots, seeds, strict=True))
    backward_pass(_core.backward_of, roots, given, chosen, keep, create)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Gradients of ``outputs`` (their sum, weighted by ``grad_outputs``) with respect to ``inputs``.

    Both are a tensor, a ``GradientEdge``, or several; the gradient of a sparse tensor has its coordinates.
    With ``is_grads_batched``, ``grad_outputs`` have a leading axis of samples, and so have the gradients; all are
    computed in one batched pass, and the graph stays.
    Raises RuntimeError for an input that no path reaches, unless ``allow_unused``.

    >>> import twofold as torch
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    >>> torch.autograd.grad(first, x)
    (tensor(12.),)
    """
    given = several(inputs)
    roots, targets = tensors_of(outputs), tensors_of(given)
    seeds: Sequence[Any] = [None] * len(roots)
    if grad_outputs is not None:
        seeds = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    if len(seeds) != len(roots):
        raise RuntimeError(
            f"grad: {len(roots)} outputs and {len(seeds)} grad_outputs, at {here()}. Give one for each, None for ones."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    _check_inputs("grad", targets)
    seeds = tuple(_cotangent(root, seed, create_graph) for root, seed in zip(roots, seeds, strict=True))
    found: list[Tensor | None]
    if is_grads_batched:
        found = _batched(roots, seeds, targets, create_graph)
    elif any(isinstance(seed, Tensor) and seed._is_symbolic for seed in seeds):  # inside of vmap
        found = _of_declared(roots, seeds, targets, create_graph)
    else:
        keep = keeps_graph(retain_graph, create_graph)
        shown = not create_graph
        found = backward_pass(_core.gradients_of, roots, seeds, targets, keep, create_graph, shown)
    for k, target in enumerate(targets):
        if found[k] is None and materialize_grads:
            found[k] = FUNCTIONS["zeros_like"](target.detach())
        elif found[k] is None and not allow_unused:
            raise RuntimeError(
                f"grad: the differentiated Tensor at index {k} appears to not have been used in the graph: no path "
                f"leads from the output to {described(target)}, at {here()}. Pass allow_unused=True to get None for it."
            )
    return tuple(map(_as_given, given, found))


def _as_given(input: Any, gradient: Tensor | None) -> Any:
    """The gradient of an input; that of a sparse tensor with its coordinates."""
    return input._with(gradient) if gradient is not None and getattr(input, "is_sparse", False) else gradient


def _need_values(roots: Sequence[Tensor], seeds: Sequence[Any]) -> None:
    for root, seed in zip(roots, seeds):
        if isinstance(seed, Tensor) and seed._is_symbolic and not root._is_symbolic:
            raise GraphError(
                f"backward: the gradient {described(seed)} has no value yet, as it depends on what vmap maps, and "
                f".grad holds values, at {here()}",
                "Use autograd.grad.",
            )


def _check_inputs(what: str, targets: Sequence[Tensor]) -> None:
    for target in targets:
        if not target.requires_grad:
            raise RuntimeError(
                f"{what}: One of the differentiated Tensors does not require grad: {described(target)}. "
                "Set requires_grad on it."
            )


def _of_declared(
    roots: Sequence[Tensor], seeds: Sequence[Any], targets: Sequence[Tensor], create: bool
) -> list[Tensor | None]:
    """The gradients for seeds that have no values yet; the graph stays."""
    from twofold.frontend.transforms import derivatives

    given = [
        FUNCTIONS["ones_like"](root.detach()) if seed is None else seed
        for root, seed in zip(roots, seeds, strict=True)
    ]
    return derivatives(roots, given, targets, create)


def _batched(
    roots: Sequence[Tensor], seeds: Sequence[Any], targets: Sequence[Tensor], create: bool
) -> list[Tensor | None]:
    """The gradients for every sample of the seeds along their leading axes."""
    from twofold.frontend.transforms import lift, pull

    for root, seed in zip(roots, seeds):
        if not isinstance(seed, Tensor) or tuple(seed.shape[1:]) != tuple(root.shape):
            shown = seed.type_ if isinstance(seed, Tensor) else f"a {type(seed).__name__}"
            raise RuntimeError(
                f"grad: with is_grads_batched, grad_outputs hold samples of {root.type_} along a new leading axis; "
                f"one is {shown}, at {here()}."
            )
    placeholders = [_core.placeholder(root.type_) for root in roots]
    found = pull(roots, placeholders, targets, create)
    reached = [part for part in found if part is not None]
    lifted = iter(lift(reached, placeholders, seeds))
    return [None if part is None else next(lifted)[0] for part in found]


def no_gradient_message(tensor: Tensor, position: int) -> str:
    """What ``backward`` says of one of its roots when no leaf asked for a gradient."""
    return (
        f"backward: element {position} of tensors does not require grad and does not have a grad_fn: "
        f"{described(tensor)} does not depend on any leaf, at {here()}. "
        "Mark a leaf first: give requires_grad=True where it is made, or call its requires_grad_(); "
        "gradients depend on leaves where the pass that made them was given create_graph=True."
    )
