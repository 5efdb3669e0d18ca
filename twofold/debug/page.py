"""A picture as one page that needs no network: the layout library, the program and the data stand in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from twofold.debug.picture import Picture

ASSETS = Path(__file__).with_name("assets")
_MOST_SIDE_BY_SIDE = 120
_LARGEST_PART = 60


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def divided(boxes: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The boxes of operations in order, with boxes around stretches of them where too many stand side by side.

    >>> divided([()] * 3)
    [(), (), ()]
    >>> len(set(divided([("f",)] * 500)))
    9
    """
    found = [tuple(path) for path in boxes]
    depth = 0
    while any(len(path) >= depth for path in found) and depth < 12:
        beside: dict[tuple[str, ...], dict[Any, list[int]]] = {}
        for number, path in enumerate(found):
            if len(path) >= depth:
                child: Any = path[depth] if len(path) > depth else number
                beside.setdefault(path[:depth], {}).setdefault(child, []).append(number)
        for prefix, children in beside.items():
            if len(children) > _MOST_SIDE_BY_SIDE:
                size = max(_LARGEST_PART, -(-len(children) // _MOST_SIDE_BY_SIDE))
                for position, members in enumerate(children.values()):
                    first = position // size * size
                    name = f"part {first + 1} to {min(first + size, len(children))}"
                    for number in members:
                        found[number] = (*prefix, name, *found[number][depth:])
        depth += 1
    return found


def page(picture: Picture) -> str:
    """The page of a picture."""
    data = picture.as_dict()
    for view in data["views"]:
        for step, path in zip(view["steps"], divided([step["boxes"] for step in view["steps"]])):
            step["boxes"] = path
    # nothing in the data may end the script that holds it
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return Template(_asset("picture.html")).substitute(
        title=escape(picture.title),
        css=_asset("picture.css"),
        data=text,
        dagre=_asset("dagre.min.js"),
        script=_asset("picture.js"),
    )
