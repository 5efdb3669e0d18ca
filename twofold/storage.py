"""The memory that tensors share with their views, as elements and as bytes: ``torch.storage``."""

from twofold.frontend.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
