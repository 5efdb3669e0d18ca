"""Another value for a parameter of a public function changes the result or a gradient, or raises: none is ignored."""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import public_names  # noqa: E402
from sample_arguments import Sample, others, sample_calls  # noqa: E402

import twofold as torch  # noqa: E402

SPACES = ("nn.functional.", "linalg.", "fft.", "special.", "array_api.", "signal.windows.", "Tensor.")
ORDERED = "results are sorted, and equal elements keep their order, whether it is asked for or not"
ONLY_SPEED = "chooses among ways to compute the same"
BOTH = "the function of this name always gives both, as PyTorch's"
REASONS: dict[tuple[str, str], str] = {
    ("argsort", "stable"): ORDERED,
    ("array_api.argsort", "stable"): ORDERED,
    ("array_api.sort", "stable"): ORDERED,
    ("copy_", "non_blocking"): "there is no other device",
    ("batch_norm", "cudnn_enabled"): ONLY_SPEED,
    ("instance_norm", "cudnn_enabled"): ONLY_SPEED,
    ("isin", "assume_unique"): ONLY_SPEED,
    ("nn.functional.adaptive_max_pool1d_with_indices", "return_indices"): BOTH,
    ("nn.functional.adaptive_max_pool2d_with_indices", "return_indices"): BOTH,
    ("nn.functional.adaptive_max_pool3d_with_indices", "return_indices"): BOTH,
    ("nn.functional.fractional_max_pool2d_with_indices", "return_indices"): BOTH,
    ("nn.functional.fractional_max_pool3d_with_indices", "return_indices"): BOTH,
    ("nn.functional.max_pool3d_with_indices", "return_indices"): BOTH,
    ("nn.functional.gumbel_softmax", "eps"): "PyTorch has kept it without effect, too",
    ("nn.functional.max_pool1d_with_indices", "return_indices"): BOTH,
    ("nn.functional.max_pool2d_with_indices", "return_indices"): BOTH,
    ("segment_reduce", "unsafe"): ONLY_SPEED,
    ("sort", "stable"): ORDERED,
    ("Tensor.copy_", "non_blocking"): "there is no other device",
    ("Tensor.to", "non_blocking"): "there is no other device",
    ("Tensor.to_dense", "masked_grad"): "is about the gradient of a sparse tensor, and there are none",
    ("sparse_coo_tensor", "check_invariants"): "raises at once for indices that their first use refuses",
    ("topk", "sorted"): ORDERED,
    ("unique", "sorted"): ORDERED,
}
ELSEWHERE = (
    "compile draw explain summary vmap cond map scan switch "
    "while_loop associative_scan Tensor.backward save load frombuffer"
)
DEVICES = "Tensor.cuda Tensor.to_device Tensor.pin_memory"  # raise, as there is no other device
SETTINGS = (
    "set_ use_deterministic_algorithms"  # how names begin of what would hold for the tests that follow, too
)
SAMPLES_TRIED = 4


def fresh(value: Any, wanted: bool) -> Any:
    """``value`` with tensors of its own, which require gradients where they can."""
    if isinstance(value, torch.Tensor):
        made = value.detach().clone()
        return made.requires_grad_() if wanted and (made.is_floating_point() or made.is_complex()) else made
    if isinstance(value, (list, tuple)):
        return type(value)(fresh(one, wanted) for one in value)
    return value


def tensors_in(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for item in value for one in tensors_in(item)] if isinstance(value, (list, tuple)) else []


def content(value: Any) -> Any:
    """What tells a result from another one."""
    if isinstance(value, torch.Tensor):
        made = value.detach().numpy()
        return str(value.dtype), made.shape, value.stride(), value.requires_grad, made.tobytes()
    if isinstance(value, torch.sparse.SparseTensor):
        return value.sparse_dim(), value.is_coalesced(), value.requires_grad, content(value.to_dense())
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [content(one) for one in value]
    if isinstance(value, numpy.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return repr(value) if isinstance(value, (int, float, complex, str, bool, type(None))) else type(value)


def outcome(function: Any, args: list[Any], options: dict[str, Any], wanted: bool) -> Any:
    """The result, the gradients and what is written to the arguments."""
    torch.manual_seed(0)
    given = fresh(args, wanted)
    named = {key: fresh(value, wanted) for key, value in options.items()}
    result = function(*given, **named)
    leaves = tensors_in([given, list(named.values())])
    memory = {one.data_ptr() for one in leaves}
    found = [content(result), [], [one.data_ptr() in memory for one in tensors_in(result)]]
    results = [one for one in tensors_in(result) if one.requires_grad]
    if wanted and results:
        parts = [one.real if one.is_complex() else one for one in results]
        numbers = [torch.arange(1.0, 1 + x.numel(), dtype=x.dtype).reshape(tuple(x.shape)) for x in parts]
        sum((x * n).sum().double() for x, n in zip(parts, numbers, strict=True)).backward()
        found[1] = [None if one.grad is None else content(one.grad) for one in leaves]
    return found, [content(one)[-1] for one in leaves]


def attempt(function: Any, call: Sample, wanted: bool) -> Any:
    """The outcome of a call, or None where it raises."""
    try:
        return outcome(function, *call, wanted)
    except Exception:
        return None


def call_with(signature: inspect.Signature, values: dict[str, Any]) -> Sample:
    """A call with these values for the parameters of their names."""
    args: list[Any] = []
    options: dict[str, Any] = {}
    behind = False
    for key, one in signature.parameters.items():
        if key not in values:
            behind = True
        elif one.kind is one.VAR_POSITIONAL:
            args += values[key]
        elif one.kind is one.VAR_KEYWORD:
            options.update(values[key])
        elif one.kind is one.KEYWORD_ONLY or behind:
            options[key] = values[key]
        else:
            args.append(values[key])
    return args, options


def has_effect(function: Any, signature: inspect.Signature, key: str, known: Iterable[Any]) -> bool:
    """Whether another value for a parameter changes any sample call, or all other values raise."""
    worked = False
    for args, options, wanted, expected in known:
        try:
            bound = signature.bind(*args, **options).arguments
        except TypeError:
            continue
        default = signature.parameters[key].default
        given = bound.get(key, None if default is inspect.Parameter.empty else default)
        first = next(iter(tensors_in([args, list(options.values())])), None)
        for other in others(key, given, first):
            changed = call_with(signature, {**bound, key: other})
            usual, found = expected, attempt(function, changed, wanted)
            refused = type(other) is type(given) and isinstance(given, (bool, int, float))
            if found is None and refused:
                return True
            if found is None and wanted:  # there may be no gradient, but a result
                usual, found = attempt(function, (args, options), False), attempt(function, changed, False)
            if found is None:
                continue
            worked = True
            if found[0] != usual[0] or (not tensors_in(other) and found[1] != usual[1]):
                return True
    return not worked


class WorkingCalls:
    """The first sample calls that do not raise, with gradients and without, and what they give; made when asked for."""

    def __init__(self, name: str, function: Any, signature: inspect.Signature) -> None:
        self._made: list[Any] = []
        self._rest = itertools.islice(self._working(name, function, signature), SAMPLES_TRIED)

    @staticmethod
    def _working(name: str, function: Any, signature: inspect.Signature) -> Iterator[Any]:
        for args, options in sample_calls(name, signature):
            for wanted in (True, False):
                made = attempt(function, (args, options), wanted)
                if made is not None:
                    yield args, options, wanted, made
                    break

    def __iter__(self) -> Iterator[Any]:
        yield from self._made
        for one in self._rest:
            self._made.append(one)
            yield one


@functools.cache
def functions() -> dict[str, Any]:
    """The functions that compute tensors, each under one name; not those that take functions, modules and files."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for name, value in public_names.public().items():
        inner = inspect.unwrap(value)
        operation = type(value).__name__ == "Operation" and (name.startswith(SPACES) or "." not in name)
        operation = operation and name not in f"{ELSEWHERE} {DEVICES}".split()
        operation = operation and not name.startswith(tuple(SETTINGS.split()))
        installed = inner.__module__.startswith("twofold.static")  # by an import, for define-then-run
        if operation and not installed and id(inner) not in seen:
            seen.add(id(inner))
            found[name] = value
    return found


def parameters(signature: inspect.Signature) -> list[str]:
    """Those with a default: whatever ignores another one differs from its reference in ``tests/references``."""
    default = {key: one.default for key, one in signature.parameters.items()}
    return [key for key, value in default.items() if value is not inspect.Parameter.empty and key != "out"]


@functools.cache
def ignored() -> tuple[dict[tuple[str, str], str], list[str]]:
    """The parameters without effect, and the functions of which no sample call works.

    Nothing is fused: programs would be compiled for calls that are compared once.
    """
    dead, without = {}, []
    with torch.config.scoped(tier="unfused"):
        for name, function in functions().items():
            signature = inspect.signature(function)
            known = WorkingCalls(name, function, signature)
            for key in parameters(signature):
                if not any(True for _ in known):
                    without.append(name)
                    break
                if not has_effect(function, signature, key, known):
                    dead[name, key] = "no effect"
    return dead, without


@pytest.mark.filterwarnings("ignore")
def test_settings_are_as_before() -> None:
    before = torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()
    ignored()
    assert (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()) == before


@pytest.mark.filterwarnings("ignore")
def test_no_parameter_is_ignored() -> None:
    assert sorted(set(ignored()[0]) - set(REASONS)) == []


@pytest.mark.filterwarnings("ignore")
def test_no_reason_is_left_over() -> None:
    assert sorted(set(REASONS) - set(ignored()[0])) == []


@pytest.mark.filterwarnings("ignore")
def test_every_function_has_a_sample_call() -> None:
    assert ignored()[1] == []


def test_an_ignored_parameter_is_found() -> None:
    def scaled(input: Any, scale: float = 2.0, offset: float = 0.0) -> Any:
        return input * scale

    signature = inspect.signature(scaled)
    known = WorkingCalls("scaled", scaled, signature)
    assert has_effect(scaled, signature, "scale", known)
    assert not has_effect(scaled, signature, "offset", known)
