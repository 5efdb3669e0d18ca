"""The signature of a public function is one: at run time, in the stubs and in the reference; and it holds."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import public_names
import reference
import stubs
from fitting_arguments import fitting

import twofold as torch
from twofold.frontend.install import PUBLIC

ROOT = Path(__file__).resolve().parents[2]

ANY_NAMES = {
    "cuda.current_device": "raises",
    "nn.ParameterList.__call__": "raises",
    "nn.Identity.__init__": "takes any arguments, as PyTorch's",
    "nn.Module.__call__": "passes them to forward",
    "nn.DataParallel.forward": "passes them to the module",
    "nn.utils.skip_init": "passes them to the class",
    "autograd.Function.apply": "passes them to forward",
    "autograd.Function.forward": "the user's",
    "utils.checkpoint.checkpoint": "passes them to the function",
    "utils.data.StackDataset.__init__": "names of data sets",
    "load": "passes them to the unpickler of a trusted file",
    "summary": "passes them to the module",
    "amp.GradScaler.step": "passes them to the optimizer",
}
"""What takes arguments of any names, and why."""


def callables() -> dict[str, Any]:
    """Everything public that is called, by name: functions, methods, constructors."""
    found = {}
    for name, value in public_names.public().items():
        if not inspect.isclass(value):
            found[name] = value
            continue
        found.update({f"{name}.{part}": one for part, one in public_names.methods(value).items()})
    return found


CALLABLES = callables()


def test_only_what_takes_any_names_shows_that() -> None:
    allowed = {id(CALLABLES[name]) for name in ANY_NAMES}
    found = []
    for name, value in CALLABLES.items():
        kinds = {part.kind for part in inspect.signature(value).parameters.values()}
        if inspect.Parameter.VAR_KEYWORD in kinds and id(value) not in allowed:
            found.append(name)
    assert found == []


def shape_of(parameters: Any) -> list[tuple[str, str, bool]]:
    """Name, kind and whether there is a default, of each parameter."""
    return [(part.name, str(part.kind), part.default is not part.empty) for part in parameters]


def declared(text: str) -> dict[str, list[tuple[str, str, bool]]]:
    """The functions in the text of a stub, as ``shape_of`` gives them."""
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list, node.returns = [], None
            for part in ast.walk(node.args):
                if isinstance(part, ast.arg):
                    part.annotation = None
            space: dict[str, Any] = {}
            exec(ast.unparse(node), space)
            found[node.name] = shape_of(inspect.signature(space[node.name]).parameters.values())
    return found


def differing(stub: Path, owner: Any, first: str | None = None) -> dict[str, Any]:
    """Functions whose signatures at run time are not those of a stub."""
    found = {}
    for name, shape in declared(stub.read_text()).items():
        value = inspect.getattr_static(owner, name)
        value = value.__func__ if isinstance(value, staticmethod) else value
        if isinstance(value, property) or (name.startswith("__") and not hasattr(value, "__code__")):
            continue
        own = shape_of(inspect.signature(value).parameters.values())
        if first is not None and own and not isinstance(inspect.getattr_static(owner, name), staticmethod):
            own[0] = (first, *own[0][1:]) if own[0][0] != "args" else own[0]
        if own != shape:
            found[name] = (own, shape)
    return found


def test_stubs_are_as_at_run_time() -> None:
    folder = ROOT / "twofold"
    assert differing(folder / "__init__.pyi", torch) == {}
    assert differing(folder / "_methods.pyi", torch.Tensor, "self") == {}
    for name in stubs.NAMESPACES:
        if (folder / f"{name}.pyi").exists():
            assert differing(folder / f"{name}.pyi", getattr(torch, name)) == {}


def test_the_reference_is_as_at_run_time() -> None:
    found = 0
    for page in reference.files().values():
        for name, text in re.findall(r"^## .*\n\n```python\ntwofold\.([\w.]+)(\(.*\))$", page, re.M):
            value: Any = torch
            for part in name.split("."):
                value = getattr(value, part, None)
            value = PUBLIC[name] if value is None else value
            parts = inspect.signature(value).parameters.values()
            shown = inspect.Signature([part.replace(annotation=part.empty) for part in parts])
            assert text == str(shown), name
            found += 1
    assert found > 500


def by_position(value: Any) -> list[inspect.Parameter]:
    parts = inspect.signature(value).parameters.values()
    return [part for part in parts if part.kind is part.POSITIONAL_OR_KEYWORD]


NOT_CALLED = re.compile(
    r"(.*\.)?(set_|seed|manual_seed|load|save|compile|wait_for|fork_rng|use_det).*|.*__.*"
)
SPACES = ("Tensor", "linalg", "fft", "special", "masked", "nn.functional")


def called_by_name() -> list[str]:
    """Functions and methods that have parameters with names, each once under its first name."""
    found: dict[int, str] = {}
    for name, value in CALLABLES.items():
        wanted = name.rpartition(".")[0] in ("", *SPACES) and not NOT_CALLED.match(name)
        if wanted and by_position(value):
            found.setdefault(id(value), name)
    return list(found.values())


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and np.array_equal(
            a.detach().to(torch.float64).numpy() if a.dtype is torch.bfloat16 else a.detach().numpy(),
            b.detach().numpy(),
            equal_nan=a.dtype.kind in "fc",
        )
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return type(a) is type(b)


@pytest.mark.parametrize("name", called_by_name())
def test_what_has_a_name_is_taken_by_that_name(name: str) -> None:
    """Once by position and once by name: the same result, or the same error, and never one about a name."""
    function, parts = CALLABLES[name], by_position(CALLABLES[name])
    needed = [part for part in parts if part.default is part.empty]
    every = inspect.signature(function).parameters.values()
    only = [part.name for part in every if part.kind is part.KEYWORD_ONLY and part.default is part.empty]

    def arguments() -> list[Any]:
        return [
            fitting(part.name if k or not name.startswith("Tensor.") else "input")
            for k, part in enumerate(needed)
        ]

    def outcome(positional: list[Any], named: dict[str, Any]) -> Any:
        torch.manual_seed(3)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = function(*positional, **named, **{one: fitting(one) for one in only})
                same(result, result)  # computes it
                return result
        except Exception as error:
            return error

    plain = outcome(arguments(), {})
    first = 1 if name.startswith("Tensor.") else 0
    for count in range(first, len(needed) + 1):
        given = arguments()
        named = {part.name: value for part, value in zip(needed[count:], given[count:])}
        found = outcome(given[:count], named)
        assert not re.search(r"keyword|positional argument|multiple values", str(found)), found
        if isinstance(plain, Exception):
            assert isinstance(found, type(plain)), (plain, found)
        elif not name.startswith(("empty", "rand", "Tensor.rand")):
            assert not isinstance(found, Exception), found
            assert same(plain, found)
    for part in parts[len(needed) :]:  # those with defaults, given as these
        found = outcome(arguments(), {part.name: part.default})
        assert not re.search(r"unexpected keyword|multiple values", str(found)), found
