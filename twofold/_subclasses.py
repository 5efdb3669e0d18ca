"""What programs ask of tensors without values that PyTorch's compiler traces with: here no tensor is one."""

from __future__ import annotations

from typing import Any

from twofold.lazy import other_files


class FakeTensor:
    """The class of tensors that have a type and no values in PyTorch; here no tensor is one."""


def is_fake(x: Any) -> bool:
    """Whether a tensor has no values, as PyTorch's compiler traces with: no.

    >>> import twofold as torch
    >>> from twofold._subclasses.fake_tensor import is_fake
    >>> is_fake(torch.ones(2))
    False
    """
    return isinstance(x, FakeTensor)


other_files(__name__, {"fake_tensor": f"FakeTensor={__name__}:FakeTensor is_fake={__name__}:is_fake"})
