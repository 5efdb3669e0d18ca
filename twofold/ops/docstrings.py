"""Docstrings of functions that are made from a table."""

from __future__ import annotations


def shown(text: str, *lines: str) -> str:
    """``text``, and below it an example: statements ``>>> ...`` and what they print.

    >>> shown("Twice it.", ">>> torch.tensor(4) * 2", "tensor(8)").splitlines()
    ['Twice it.', '', '>>> import twofold as torch', '>>> torch.tensor(4) * 2', 'tensor(8)']
    """
    return "\n".join((text.strip(), "", ">>> import twofold as torch", *lines))
