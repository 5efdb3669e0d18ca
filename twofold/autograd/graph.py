"""Nodes of the graph, and hooks for the tensors that it keeps for its backward pass."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from twofold import _core
from twofold.frontend.grad_fn import GradientEdge, Node, get_gradient_edge
from twofold.frontend.gradients import no_grad
from twofold.frontend.tensor_hooks import HookHandle, MultiGradHook

Tensor = _core.Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class _State(threading.local):
    def __init__(self) -> None:
        self.hooks: list[tuple[Callable[[Tensor], Any], Callable[[Any], Tensor], bool]] = []
        self.refusals: list[str] = []


_state = _State()


class saved_tensors_hooks:
    """A ``with`` block in which what a gradient will read is kept as ``pack_hook`` returns it.

    Each operation runs at once in the block. For every tensor that its gradient reads, ``pack_hook`` is called
    with the tensor; the backward pass calls ``unpack_hook`` with what that returned, which gives a tensor of the
    same dtype, shape and content. The graph itself then holds no memory of these tensors. Python numbers that a
    gradient reads are not packed.

    >>> import twofold as torch
    >>> def pack(x):
    ...     print("packed", x.tolist())
    ...     return x.numpy()
    >>> def unpack(x):
    ...     print("unpacked", x.tolist())
    ...     return torch.from_numpy(x)
    >>> a = torch.tensor([2.0], requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    ...     y = a * a
    packed [2.0]
    packed [2.0]
    >>> y.backward()
    unpacked [2.0]
    unpacked [2.0]
    >>> a.grad
    tensor([4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if _state.refusals:
            raise RuntimeError(_state.refusals[-1])
        _core.set_saved_tensor_hooks(self.pack_hook, self.unpack_hook)
        _state.hooks.append((self.pack_hook, self.unpack_hook, _core.set_eager(True)))

    def __exit__(self, *error: Any) -> None:
        *_, eager = _state.hooks.pop()
        pack, unpack = _state.hooks[-1][:2] if _state.hooks else (None, None)
        try:
            _core.set_saved_tensor_hooks(pack, unpack)
        finally:
            _core.set_eager(eager)


class save_on_cpu(saved_tensors_hooks):
    """A ``with`` block in which copies on the CPU are kept for the backward pass.

    Raises RuntimeError for ``pin_memory=True``: there is no other device that memory could be pinned for.

    >>> import twofold as torch
    >>> a = torch.tensor([2.0], requires_grad=True)
    >>> with torch.autograd.graph.save_on_cpu():
    ...     y = a * a
    >>> y.backward()
    >>> a.grad
    tensor([4.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        if pin_memory:
            raise RuntimeError(
                f"save_on_cpu: there is no {device_type} device to pin memory for. Leave pin_memory out."
            )
        super().__init__(lambda tensor: tensor.clone(), lambda kept: kept)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Refuse ``saved_tensors_hooks`` with this message inside a ``with`` block.

    >>> import twofold as torch
    >>> with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     try:
    ...         torch.autograd.graph.save_on_cpu().__enter__()
    ...     except RuntimeError as error:
    ...         print(error)
    not here
    """
    if _state.hooks:
        raise RuntimeError(error_message)
    _state.refusals.append(error_message)
    try:
        yield
    finally:
        _state.refusals.pop()


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count an in-place write that was made out of sight, so that a backward pass which reads the elements is refused.

    Raises TypeError for anything but a tensor, or several.

    >>> import twofold as torch
    >>> x = torch.zeros(2)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for one in [tensor] if isinstance(tensor, Tensor) else list(tensor):
        if not isinstance(one, Tensor):
            raise TypeError(
                f"increment_version: {type(one).__name__} is no tensor. Give a tensor, or several."
            )
        with no_grad():
            one._assign(one.detach())


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], Any], *, mode: str = "all"
) -> HookHandle:
    """Call ``fn`` once in each backward pass that computes gradients of some of ``tensors``.

    With mode "all" it is called at the end of the pass, with a list of the gradients, None for tensors that the pass
    does not come to; those of leaves have been added to ``.grad`` by then. With mode "any" it is called with the
    first gradient that is found: of tensors that are no leaves in the order of the pass, then of leaves. What it
    returns counts for nothing, and it should not change the gradients.

    Args:
        tensors: Tensors that require grad; with "any" others are left out.
        fn: The hook.
        mode: "all" or "any".

    Returns:
        A handle whose ``remove()`` takes the hook away.

    Raises:
        ValueError: For another mode.
        RuntimeError: With "all", for a tensor that does not require grad.

    >>> import twofold as torch
    >>> a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    >>> c, d = a * b, a * b
    >>> seen = lambda gradients: print([gradient is not None for gradient in gradients])
    >>> handle = torch.autograd.graph.register_multi_grad_hook((a, b, c, d), seen)
    >>> c.sum().backward(retain_graph=True)
    [True, True, True, False]
    >>> c.sum().backward(inputs=(a,), retain_graph=True)
    [True, False, True, False]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    return MultiGradHook(tensors, fn, mode == "any")
