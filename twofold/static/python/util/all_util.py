"""What a module shows: ``tensorflow.python.util.all_util``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any


def remove_undocumented(
    module_name: str, allowed_exception_list: Sequence[str] | None = None, doc_string_modules: Any = None
) -> None:
    """Delete the names of a module that neither its ``__all__`` nor the list has, beside those with underscores.

    Without an ``__all__``, what is named in the documentation of the module with an @ before it is kept. As in
    TensorFlow, other modules that are to be read for such names are given as ``doc_string_modules``.

    >>> import types
    >>> sys.modules["shown"] = made = types.ModuleType("shown")
    >>> made.__all__, made.one, made.two = ["one"], 1, 2
    >>> remove_undocumented("shown")
    >>> hasattr(made, "one"), hasattr(made, "two")
    (True, False)
    """
    module = sys.modules[module_name]
    kept = set(allowed_exception_list or ()) | set(
        getattr(module, "__all__", _documented(doc_string_modules or [module]))
    )
    for name in [name for name in vars(module) if not name.startswith("_") and name not in kept]:
        delattr(module, name)


def _documented(modules: Sequence[Any]) -> list[str]:
    lines = [line.strip() for module in modules for line in (module.__doc__ or "").splitlines()]
    return [line.removeprefix("@@") for line in lines if line.startswith("@@")]
