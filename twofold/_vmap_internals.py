"""PyTorch's older name for ``torch.vmap``, which programs with Jacobians and Hessians of their own call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from twofold import func as transforms
from twofold.ops.base import ops


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """``func`` for every sample along axes of its arguments: ``torch.vmap`` without its later arguments.

    With ``allow_none_pass_through``, results of ``func`` may be None, as those of ``autograd.grad``, and stay so.

    >>> import twofold as torch
    >>> torch._vmap_internals._vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
    tensor([3., 3.])
    """
    if not allow_none_pass_through:
        return transforms.vmap(func, in_dims, out_dims)

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        present: list[bool] = []
        single = False

        def tensors(*samples: Any) -> tuple[Any, ...]:
            nonlocal single
            results = func(*samples)
            single = not isinstance(results, tuple)
            results = (results,) if single else results
            present[:] = [result is not None for result in results]
            return tuple(result for result in results if result is not None)

        batched = iter(transforms.vmap(tensors, in_dims)(*args))
        dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(present)
        if len(dims) != len(present):
            raise ValueError(
                f"vmap: out_dims has {len(dims)} axes for {len(present)} results. Give one for each."
            )
        results = tuple(
            ops.movedim(next(batched), 0, dim) if there else None for there, dim in zip(present, dims)
        )
        return results[0] if single else results

    return wrapped


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """``torch.vmap`` by the name that it had first.

    >>> import twofold as torch
    >>> torch._vmap_internals.vmap(torch.neg)(torch.ones(2))
    tensor([-1., -1.])
    """
    return transforms.vmap(func, in_dims, out_dims)
