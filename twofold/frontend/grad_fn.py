"""``tensor.grad_fn``: the calls behind a tensor, as PyTorch shows them."""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from twofold import _core
from twofold.frontend.tensor_hooks import (
    HookHandle,
    constant,
    register_hook,
    register_post_accumulate_grad_hook,
)
from twofold.runtime.failures import end_in, wrong_gradient

Tensor = _core.Tensor


class Node:
    """A function of the backward pass: the call that made a tensor, seen from the gradient.

    It is made when a program asks for it, from what the graph knows anyway; recording knows nothing of it. Two
    nodes are equal, and the same object, where they are one call.

    The class of a node is named as PyTorch names it: the operation in CamelCase, with ``Backward0``, or what the
    operation says in its place. A node is one call as it was recorded. So what PyTorch computes in several steps
    is one node here (``linear`` of more than two axes, ``l1_loss``, ``cross_entropy``: named after PyTorch's last
    step), what is recorded in several steps shows the last (``stack`` is a ``cat``, ``select`` a ``squeeze``), and
    where several functions record the same call, all have one name (``x.sum((0, 1))`` is ``x.sum()``, ``x.t()`` is
    ``x.permute(1, 0)``, ``x**0.5`` is ``x.sqrt()``). A value that an in-place operation wrote shows that operation.

    >>> import twofold as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> y = (x * 2).mean()
    >>> y.grad_fn.name()
    'MeanBackward0'
    >>> y.grad_fn.next_functions[0][0].name()
    'MulBackward0'
    >>> y.grad_fn.next_functions[0][0].next_functions[0][0].variable is x
    True
    """

    def __init__(self, tensor: Tensor, hashed: int) -> None:
        self._tensor, self._hash = tensor, hashed

    def name(self) -> str:
        """The name that PyTorch gives such a function."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """``(node, 0)`` for each tensor that went in, ``(None, 0)`` where no gradient flows to it.

        Python numbers and tensors of integers or bools, which never have a gradient, are left out. Empty once a
        backward pass has used the graph up and the tensor has been computed.
        """
        made = _core.made_by(self._tensor)
        if made is None:
            return ()
        types = made[3]
        return tuple(
            (_node_above(source), 0)
            for source, type in zip(_core.made_from(self._tensor), types, strict=False)
            if type.dtype.is_differentiable and not type.weak
        )

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict of the program's own, which stays with the call as long as its graph.

        >>> import twofold as torch
        >>> y = torch.tensor(3.0, requires_grad=True) * 2
        >>> y.grad_fn.metadata["layer"] = "first"
        >>> y.grad_fn.metadata
        {'layer': 'first'}
        """
        found: dict[Any, Any] = self._tensor._call_state()[1]
        return found

    def register_hook(self, fn: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]) -> HookHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` when the function has run in a backward pass.

        Args:
            fn: The hook. ``grad_inputs`` has what the function gives to each of ``next_functions``, None where no
                gradient flows; ``grad_outputs`` has the gradient of the result. What it returns, unless None, replaces
                ``grad_inputs``: a tensor or None for each of them.

        Returns:
            A handle whose ``remove()`` takes the hook away.

        Raises RuntimeError, in the pass, for another number of gradients, or one of another type.

        >>> import twofold as torch
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> y = x * 2
        >>> handle = y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10,))
        >>> y.backward()
        >>> x.grad
        tensor(20.)
        """
        made = _core.made_by(self._tensor)
        shown = [] if made is None else [one.dtype.is_differentiable and not one.weak for one in made[3]]
        registered_at = _core.capture_location()

        def call(inputs: tuple[Tensor | None, ...], output: Tensor | None) -> Any:
            given = tuple(one for one, is_shown in zip(inputs, shown) if is_shown)
            found = fn(given, (output,))
            if found is None:
                return None
            returned = iter(_replacements(fn, given, found, registered_at))
            return tuple(next(returned) if is_shown else one for one, is_shown in zip(inputs, shown))

        hooks = self._tensor._call_state()[0]
        hooks.append(call)
        return HookHandle(hooks, call)

    def register_prehook(self, fn: Callable[[tuple[Tensor | None]], Any]) -> HookHandle:
        """Call ``fn`` with the gradient of the result, in a tuple, before the function runs.

        What it returns, unless None, replaces that.

        >>> import twofold as torch
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> y = x * x
        >>> handle = y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 10,))
        >>> y.backward()
        >>> x.grad
        tensor(60.)
        """
        registered_at = _core.capture_location()

        def hook(gradient: Tensor | None) -> Any:
            found = fn((gradient,))
            if isinstance(found, tuple) and len(found) != 1:
                what = f"register_prehook: a hook was given 1 gradient and returned {len(found)}"
                raise end_in(RuntimeError(f"{what}. Return one, or None."), fn, None, registered_at)
            return found[0] if isinstance(found, tuple) else found

        return register_hook(self._tensor, hook)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        return _core.call_key(self._tensor) == _core.call_key(other._tensor)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


def _replacements(
    hook: Any, given: Sequence[Tensor | None], returned: Any, registered_at: int
) -> Sequence[Tensor | None]:
    """What a hook returned instead of gradients; an error ends in the hook."""
    found = returned if isinstance(returned, tuple) else (returned,)
    where = f", registered at {_core.location_text(registered_at)}" if registered_at else ""
    if len(found) != len(given):
        what = f"register_hook: a hook was given {len(given)} gradients and returned {len(found)}{where}"
        raise end_in(RuntimeError(f"{what}. Return one for each, or None."), hook, None, registered_at)
    for before, after in zip(given, found):
        if after is not None and (
            not isinstance(after, Tensor) or (before is not None and after.type_ != before.type_)
        ):
            raise wrong_gradient(before, after, hook, registered_at)
    return tuple(map(constant, found))


class AccumulateGrad(Node):
    """Where a backward pass ends: what adds to the ``.grad`` of a leaf."""

    def name(self) -> str:
        """PyTorch's name of this class."""
        return "torch::autograd::AccumulateGrad"

    @property
    def variable(self) -> Tensor:
        """The leaf."""
        return self._tensor

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Nothing: the pass ends here."""
        return ()

    def register_hook(self, fn: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]) -> HookHandle:
        """Call ``fn`` with an empty tuple and the gradient of a pass, in a tuple, once it is in ``.grad`` of the leaf.

        >>> import twofold as torch
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> end = (x * x).grad_fn.next_functions[0][0]
        >>> handle = end.register_hook(lambda nothing, gradients: print(gradients, x.grad))
        >>> (x * x).backward()
        (tensor(6.),) tensor(6.)
        """
        arrived: list[Tensor | None] = []

        def before(gradient: Tensor | None) -> None:
            arrived[:] = [gradient]  # of this pass alone

        def after(leaf: Tensor) -> None:
            fn((), (arrived.pop(),))

        first = register_hook(self._tensor, before)
        return _TwoHandles(first, register_post_accumulate_grad_hook(self._tensor, after))


class _TwoHandles(HookHandle):
    """Takes two hooks away."""

    def __init__(self, *handles: HookHandle) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Take both away."""
        for handle in self._handles:
            handle.remove()


_living: weakref.WeakKeyDictionary[Node, weakref.ref[Node]] = weakref.WeakKeyDictionary()


def _unique(node: Node) -> Node:
    """The node itself, or the living one of the same call."""
    known = _living.get(node)
    found = known() if known is not None else None
    if found is None:
        _living[node] = weakref.ref(node)
        return node
    return found


def camel_case(name: str) -> str:
    """The rule by which PyTorch's generator names functions.

    >>> camel_case("max_pool2d_with_indices"), camel_case("log1p"), camel_case("atan2")
    ('MaxPool2DWithIndices', 'Log1P', 'Atan2')
    """
    words = (word[:1].upper() + word[1:] for word in name.split("_"))
    return re.sub(r"(?<=\d)[a-z]", lambda found: found[0].upper(), "".join(words))


def autograd_name(op: Any, attrs: tuple[Any, ...], types: tuple[Any, ...]) -> str:
    """What PyTorch calls the gradient function of a call."""
    name = op.autograd_name(attrs, types) if callable(op.autograd_name) else op.autograd_name
    return name or f"{camel_case(op.name)}Backward0"


@functools.cache
def _class(name: str) -> type[Node]:
    """The class of nodes of that name, which may be qualified as in C++."""
    return type(name.rpartition("::")[2], (Node,), {"__module__": "builtins", "name": lambda self: name})


def _node_above(tensor: Tensor | None) -> Node | None:
    """The node that a gradient of the tensor goes to next; None where there is none."""
    if tensor is None:
        return None
    if not tensor.is_leaf:
        return _node_of(tensor)
    return _unique(AccumulateGrad(tensor, hash((AccumulateGrad, tensor.dtype, tuple(tensor.shape)))))


def _node_of(tensor: Tensor) -> Node | None:
    made = _core.made_by(tensor)
    while made is not None and made[1].autograd_name is None:
        above = next(iter(_core.made_from(made[0])), None)
        further = _core.made_by(above) if above is not None else None
        if further is None:
            break
        made = further
    if made is None:
        return None
    handle, op, attrs, types, number = made
    return _unique(_class(autograd_name(op, attrs, types))(handle, hash((op.name, number))))


def grad_fn(self: Tensor) -> Node | None:
    """The function that a backward pass starts with: that of the call which made the tensor; None for a leaf.

    >>> import twofold as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> x.exp()
    tensor([2.7183, 7.3891], grad_fn=<ExpBackward0>)
    >>> x.grad_fn is None
    True
    """
    return None if self.is_leaf else _node_of(self)


class GradientEdge(NamedTuple):
    """What stands for a tensor in a backward pass: pass it to ``grad`` or ``backward`` where a tensor may stand.

    ``node`` is where its gradient goes, ``output_nr`` the number of the result there, which is 0, as each result is a
    call of its own; ``ownership_token`` keeps the graph.
    """

    node: Node | None
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """What stands for a tensor in a backward pass, also after in-place operations on the tensor.

    Raises RuntimeError for a tensor that does not require grad.

    >>> import twofold as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> edge = torch.autograd.graph.get_gradient_edge(y)
    >>> torch.autograd.grad(y * 5, edge)
    (tensor(5.),)
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "get_gradient_edge: a tensor that does not require gradients has none. Set requires_grad on it."
        )
    made = None if tensor.is_leaf else _core.made_by(tensor)
    return GradientEdge(_node_above(tensor), 0, tensor if made is None else made[0])


def several(given: Any) -> tuple[Any, ...]:
    """A tensor, a sparse one, or an edge in a tuple; several as a tuple."""
    is_one = isinstance(given, (Tensor, GradientEdge)) or getattr(given, "is_sparse", False)
    return (given,) if is_one else tuple(given)


def tensors_of(given: Any) -> tuple[Tensor, ...]:
    """A tensor, or an edge, or several, as a tuple of tensors; of sparse ones the values."""
    return tuple(
        one.ownership_token
        if isinstance(one, GradientEdge)
        else one._values()
        if getattr(one, "is_sparse", False)
        else one
        for one in several(given)
    )
