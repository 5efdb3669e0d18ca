"""Several steps in a half type: computed in float32 and rounded once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from twofold.ir.node import Node
from twofold.ops.base import convert
from twofold.ops.promotion import common_dtype


def rounded_once(compute: Callable[..., Any]) -> Callable[..., Any]:
    """``compute``, but where its result would be of a half type, from float32 operands, and rounded at the end."""

    @functools.wraps(compute)
    def made(*given: Any) -> Any:
        dtype = common_dtype([one.type for one in given if isinstance(one, Node)])[0]
        if dtype.compute is dtype:
            return compute(*given)
        wide = [convert(one, dtype.compute) if isinstance(one, Node) else one for one in given]
        return convert(compute(*wide), dtype)

    return made
