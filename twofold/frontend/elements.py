"""Elements of a tensor by a key: what indexing reads and writes, iteration, and membership."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy

from twofold import _core
from twofold.frontend.creation import tensor
from twofold.ops.base import apply
from twofold.ops.indexing.keys import getitem, is_byte_mask, setitem
from twofold.ops.promotion import need_fitting_tensor
from twofold.tracebacks import warn_user

Tensor = _core.Tensor


def _lift(array: numpy.ndarray) -> Tensor:
    return _core.from_array(numpy.ascontiguousarray(array), False)


_ITEMS = (Tensor, list, tuple, range, slice, numpy.ndarray, type(None), type(Ellipsis))


def _key(key: Any) -> Any:
    """A Python key with lists as arrays; one list that holds more than numbers counts as a tuple, and is warned of."""
    if isinstance(key, list) and len(key) < 32 and any(isinstance(item, _ITEMS) for item in key):
        warn_user("x[sequence] is x[tuple(sequence)] here, and deprecated. Write x[tuple(sequence)].")
        key = tuple(key)
    return tuple(_item(item) for item in key) if isinstance(key, tuple) else _item(key)


def _item(key: Any) -> Any:
    """An item of a key, lists as arrays."""
    if isinstance(key, list):
        if all(type(item) is int for item in key):
            return _lift(numpy.array(key, numpy.int64))
        return _lift(numpy.asarray(tensor(key).numpy()))
    if isinstance(key, tuple):
        return tuple(_item(item) for item in key)
    if isinstance(key, Tensor) and key.ndim == 0 and key.dtype.kind in "iu" and not key._is_symbolic:
        return key if is_byte_mask(key) else key.item()
    return key


def _observe(mask: Any) -> numpy.ndarray:
    return mask._read()


def __getitem__(self: Tensor, key: Any) -> Tensor:
    found = getitem(self, _key(key), _observe, _lift)
    return (
        apply("basic_index", self, attrs=((*self.shape,), (1,) * self.ndim, (), (), (*range(self.ndim),)))
        if found is self
        else found
    )


def instead_of(old: Tensor, new: Tensor) -> Tensor:
    """``new``, through which zeros flow back to ``old`` where a gradient is wanted."""
    wanted = old.requires_grad and _core.grad_enabled()
    return apply("where", True, new, old) if wanted else new


_BASIC = (int, slice, type(None), type(Ellipsis))


def _is_whole(key: Any, shape: tuple[int, ...]) -> bool:
    """Whether a key without arrays shows every element."""
    if not all(isinstance(item, _BASIC) for item in (key if isinstance(key, tuple) else (key,))):
        return False
    shown: int = numpy.broadcast_to(numpy.False_, shape)[key].size
    return shown == prod(shape)


def __setitem__(self: Tensor, key: Any, value: Any) -> None:
    if isinstance(value, numpy.ndarray):
        value = _core.from_array(value, False)
    elif isinstance(value, (list, tuple)):
        value = tensor(value)
    if not isinstance(value, Tensor):
        need_fitting_tensor(value, self.dtype)
    elif value.dtype is not self.dtype:
        value = apply("cast", value, attrs=(self.dtype,))
    if not self._is_row_major and 0 in self._strides:
        # of an expanded tensor a part can be written to in which no element occurs twice
        shown = getitem(self, _key(key), _observe, _lift)
        if shown._base is not None and shown is not self:
            shown.copy_(value) if isinstance(value, Tensor) else shown.fill_(value)
            return
    written = _with_item(self, key, value)
    if self.requires_grad and _is_whole(key, tuple(self.shape)):
        written = instead_of(self, written)
    self._assign(written, value)


def _written(self: Tensor, key: Any, value: Any) -> Tensor:
    return setitem(self, _key(key), value, _observe, _lift)


_written.__name__ = "__setitem__"  # as errors call it
_with_item = _core.operation_callable(None, 0, _written, "", False, True, True)
"""What a tensor is once a value is written at an index of it."""


def __iter__(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d tensor. Use item() for its number.")
    return (self[k] for k in range(self.shape[0]))


def __contains__(self: Tensor, value: Any) -> bool:
    return bool((self == value).any())


METHODS = {
    "__getitem__": __getitem__,
    "__setitem__": __setitem__,
    "__iter__": __iter__,
    "__contains__": __contains__,
}
