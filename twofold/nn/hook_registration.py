"""The methods of modules that register hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.nn.hooks import RemovableHandle, add_hook


class _WithoutModule:
    """A hook that is called without the module."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook

    def __call__(self, module: Any, *args: Any) -> Any:
        return self.hook(*args)


class Hooked:
    """The base of ``Module``: what calls of a module, its gradients and its state call beside it."""

    _hooked = False
    _forward_hooks: dict[int, Any]
    _forward_pre_hooks: dict[int, Any]
    _backward_hooks: dict[int, Any]
    _backward_pre_hooks: dict[int, Any]

    def _hook(
        self,
        hooks: dict[int, Any],
        hook: Callable[..., Any],
        with_kwargs: bool,
        prepend: bool,
        always_call: bool = False,
    ) -> RemovableHandle:
        self.__dict__["_hooked"] = True
        return add_hook(hooks, hook, with_kwargs, prepend, always_call)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before ``forward``; what it returns replaces the arguments."""
        return self._hook(self._forward_pre_hooks, hook, with_kwargs, prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after ``forward``; what it returns replaces the output.

        With ``always_call`` also, with None as output, where ``forward`` raises.
        """
        return self._hook(self._forward_hooks, hook, with_kwargs, prepend, always_call)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the backward pass of ``forward``.

        ``grad_output`` is a tuple; one that the hook returns takes its place.
        """
        return self._hook(self._backward_pre_hooks, hook, False, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` once the gradients of the module's inputs are found.

        Both are tuples, as the positional arguments and the results are, with None where there is no gradient.
        A tuple that the hook returns takes the place of ``grad_input``. Where no input requires grad, the hook
        is called when the gradients of the results are there.

        >>> import twofold as torch
        >>> layer = torch.nn.Linear(2, 1)
        >>> handle = layer.register_full_backward_hook(
        ...     lambda layer, grad_input, grad_output: print(grad_input[0].shape, grad_output)
        ... )
        >>> layer(torch.ones(1, 2, requires_grad=True)).sum().backward()
        twofold.Size([1, 2]) (tensor([[1.]]),)
        """
        return self._hook(self._backward_hooks, hook, False, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As ``register_full_backward_hook``: the gradients are always those of the module as a whole."""
        return self.register_full_backward_hook(hook)

    def _state_hook(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        return add_hook(self.__dict__.setdefault(kind, {}), hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` enters the members of the module."""
        return self._state_hook("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict``; it may change the state.

        It must return None.

        >>> import twofold as torch
        >>> layer = torch.nn.Linear(1, 1)
        >>> handle = layer.register_state_dict_post_hook(
        ...     lambda module, state, prefix, metadata: state.pop(prefix + "bias") and None
        ... )
        >>> list(layer.state_dict())
        ['weight']
        """

        def changing_in_place(*args: Any) -> None:
            if hook(*args) is not None:
                raise RuntimeError("state_dict post-hook must return None")

        return self._state_hook("_state_dict_hooks", changing_in_place)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As ``register_state_dict_post_hook``, but what the hook returns takes the place of the state."""
        return self._state_hook("_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook`` before the module's members are loaded; it may change the state and the lists.

        Args:
            hook: Called with the module, the state, the prefix of the module's keys in it, the metadata, whether to be
                strict, and the lists of missing keys, of unexpected keys and of errors.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        found = hook if with_module else _WithoutModule(hook)
        return self._state_hook("_load_state_dict_pre_hooks", found)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after the module and all below it are loaded.

        It may change the lists ``missing_keys`` and ``unexpected_keys`` and must return None.
        """
        return self._state_hook("_load_state_dict_post_hooks", hook)
