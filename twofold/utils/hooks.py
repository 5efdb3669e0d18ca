"""Handles of hooks: ``torch.utils.hooks``."""

from twofold.nn.hooks import RemovableHandle as RemovableHandle

__all__ = ["RemovableHandle"]
