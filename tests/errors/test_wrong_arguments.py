"""Wrong arguments of every public function: errors of ours, that tell the function and the user's line.

The calls are made from the signatures: one argument is replaced by what no function takes, or few do. Whatever is
not accepted must have been told on purpose; an error that came up by itself in the package or in NumPy fails.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import re
import sys
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fitting_arguments import fitting
from public_names import names_of

import twofold as torch
from twofold import _core
from twofold.errors import AxisError, TwofoldError

WRONG: dict[str, Any] = {
    "a word": lambda: "a",
    "an object": object,
    "a negative number": lambda: -3,
    "a fraction": lambda: 2.5,
    "no elements": list,
    "many axes": lambda: torch.ones(2, 2, 1, 2, 3),
    "complex numbers": lambda: torch.ones(3, 3) * 1j,
}
SETTINGS = (
    "dim",
    "axis",
    "index",
    "other",
    "weight",
    "n",
    "dtype",
    "size",
    "ord",
    "p",
    "k",
    "offset",
    "reduction",
)
"""Parameters with defaults that are tried, too."""

NO_CALLS = re.compile(r"set_|get_|manual_seed|seed|save|load|compile|from_file|eager|wait_for|default_|__.*")


def public() -> dict[str, Any]:
    """Every public function once, by name."""
    found: dict[int, tuple[str, Any]] = {}
    for start, module in (("", torch), ("linalg.", torch.linalg), ("fft.", torch.fft), ("special.", torch.special),
                          ("nn.functional.", torch.nn.functional)):  # fmt: skip
        for name, function in names_of(module).items():
            if (
                name.startswith("_")
                or NO_CALLS.match(name)
                or inspect.isclass(function)
                or not callable(function)
            ):
                continue
            if parameters(function) is not None and not name.endswith("_"):
                found.setdefault(id(function), (start + name, function))
    return dict(sorted(found.values()))


def parameters(function: Any) -> list[inspect.Parameter] | None:
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [part for part in found if part.kind in (part.POSITIONAL_ONLY, part.POSITIONAL_OR_KEYWORD)]


FUNCTIONS = public()


def was_told(error: BaseException) -> bool:
    """Whether somebody raised an error with words of ours, in Python or in the core."""
    if isinstance(error, (TwofoldError, NotImplementedError)) or re.match(
        r"[\w()]+: .+\.$", str(error), re.DOTALL
    ):
        return True
    trace: TracebackType | None = error.__traceback__
    assert trace is not None
    frames = [trace]
    while frames[-1].tb_next is not None:
        frames.append(frames[-1].tb_next)
    # an error of the package ends at the line here: where it came up is the frame above
    trace = next((one for one in reversed(frames) if one.tb_frame.f_code.co_filename != __file__), frames[-1])
    code = trace.tb_frame.f_code
    # the call does not fit the signature, perhaps of a context manager, or the core raised it
    if code.co_filename in (__file__, contextlib.__file__):
        return type(error) in (TypeError, ValueError, RuntimeError)
    operation = next(step.opname for step in dis.get_instructions(code) if step.offset == trace.tb_lasti)
    return operation in ("RAISE_VARARGS", "RERAISE") and "numpy" not in code.co_filename


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_not_accepted_is_told(name: str) -> None:
    function = FUNCTIONS[name]
    parts = parameters(function) or []
    needed = [part.name for part in parts if part.default is part.empty] or ["input"] * (not parts)
    tried = [*needed, *[part.name for part in parts if part.name not in needed and part.name in SETTINGS]]
    for position in tried:
        for what, make in WRONG.items():
            arguments = [make() if part == position else fitting(part) for part in needed]
            settings = {position: make()} if position not in needed else {}
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(*arguments, **settings)
                    _core.flush()  # what only a run can tell is not left to the next test
            except Exception as error:
                assert was_told(error), f"{name} with {what} as {position}: {type(error).__name__}: {error}"


OF_AXES = [
    name
    for name, function in FUNCTIONS.items()
    if any(part.name in ("dim", "axis", "dim0", "axis0") for part in parameters(function) or [])
]
NO_AXIS = (
    "lu_unpack", "renorm", "vander",
)  # fmt: skip


@pytest.mark.parametrize("name", OF_AXES)
@pytest.mark.parametrize("axis", [5, -6])
def test_an_axis_outside_the_tensor_is_told(name: str, axis: int) -> None:
    function = FUNCTIONS[name]
    parts = parameters(function) or []
    needed = [part.name for part in parts if part.default is part.empty]
    position = next(part.name for part in parts if part.name in ("dim", "axis", "dim0", "axis0"))
    arguments = {part: fitting(part) for part in needed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(**{**arguments, position: 0})
        except Exception as error:
            pytest.skip(f"takes other arguments: {error}")
        with pytest.raises(IndexError, match=r"at .*test_wrong_arguments\.py:\d+") as caught:
            function(**{**arguments, position: axis})
    assert isinstance(caught.value, AxisError)


@pytest.mark.parametrize("name", ["sum", "softmax", "cumsum", "unsqueeze", "logsumexp"])
def test_an_axis_is_an_integer(name: str) -> None:
    for wrong in (1.5, "a", np.float32(1), torch.tensor(0.5)):
        with pytest.raises(TypeError) as caught:
            FUNCTIONS[name](torch.ones(2, 3), dim=wrong)
        assert isinstance(caught.value, TwofoldError)


def test_errors_of_the_users_own_functions_pass() -> None:
    def broken(carry: Any, x: Any) -> Any:
        return {}["missing"]

    with pytest.raises(KeyError, match="missing"):
        torch.scan(broken, torch.tensor(1.0), torch.ones(3))


def test_text_of_an_error_that_nobody_foresaw() -> None:
    with pytest.raises(TypeError) as caught:
        torch.reshape(torch.ones(4), (2.0, 2))
    text = re.sub(r"test_wrong_arguments\.py:\d+", "here.py:N", str(caught.value))
    assert text == (
        "reshape: cannot work with these arguments ('float' object cannot be interpreted as an integer): "
        "input=float32[4], operand 1=[2.0, 2], at here.py:N. It is reshape(input, *sizes, shape=None)."
    )
    assert isinstance(caught.value.__cause__, TypeError)
