"""Gradients under PyTorch's module name, and a check of gradients by differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy

from twofold import _core
from twofold.autograd import anomaly, forward_ad, function, functional, graph
from twofold.autograd.anomaly import detect_anomaly, set_detect_anomaly
from twofold.autograd.function import Function
from twofold.errors import ArgumentError
from twofold.frontend.creation import from_numpy, tensor
from twofold.frontend.grad_fn import tensors_of
from twofold.frontend.gradients import (
    backward_all,
    enable_grad,
    grad,
    inference_mode,
    keeps_graph,
    no_grad,
    set_grad_enabled,
)
from twofold.lazy import other_files as _other_files
from twofold.ops.base import ops
from twofold.tracebacks import guard_namespace as _guard_namespace

Tensor = _core.Tensor

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "anomaly",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def __getattr__(name: str) -> Any:
    if name == "profiler":  # stands on what stands on this package
        return import_module(f"{__name__}.profiler")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of the sum of ``tensors`` to ``.grad`` of their leaves; see ``Tensor.backward``."""
    roots = tensors_of(tensors)
    given = grad_variables if grad_tensors is None else grad_tensors
    if given is None:
        given = (None,) * len(roots)
    seeds = (given,) if isinstance(given, Tensor) else tuple(given)
    if len(seeds) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(seeds)} gradients")
    backward_all(roots, seeds, keeps_graph(retain_graph, create_graph), create_graph, inputs)


class _VariableType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        """``data`` itself, or a leaf with its value if ``requires_grad`` is wanted of it."""
        if requires_grad and not data.requires_grad:
            data = data.detach()
            data.requires_grad = True
        return data


class Variable(metaclass=_VariableType):
    """PyTorch's older name: ``Variable(tensor)`` is the tensor, and every tensor is an instance."""


class GradcheckError(RuntimeError):
    """A gradient differs from the differences of its function."""


def _outputs(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Tensor]:
    found = function(*inputs)
    return [found] if isinstance(found, Tensor) else list(found)


def _on_parts(function: Callable[..., Any], given: list[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """A function and its inputs with pairs of real and imaginary parts in place of complex numbers."""
    complex_ = [isinstance(one, Tensor) and one.requires_grad and one.dtype.kind == "c" for one in given]
    parts = [
        ops.view_as_real(one.detach()).clone().requires_grad_() if flag else one
        for one, flag in zip(given, complex_, strict=True)
    ]

    def made(*values: Any) -> list[Tensor]:
        whole = [
            ops.view_as_complex(one) if flag else one for one, flag in zip(values, complex_, strict=True)
        ]
        found = _outputs(function, whole)
        return [ops.view_as_real(one) if one.dtype.kind == "c" else one for one in found]

    return made, parts


def _differences(
    function: Callable[..., Any], inputs: list[Any], position: int, eps: float
) -> list[numpy.ndarray]:
    """Per output the matrix of central differences in input ``position``: a row for each input element."""
    values = inputs[position].detach().numpy().astype(numpy.float64)
    rows: list[list[numpy.ndarray]] = []
    for index in numpy.ndindex(values.shape):
        ends = []
        for side in (eps, -eps):
            moved = values.copy()
            moved[index] += side
            shifted = tensor(moved, dtype=inputs[position].dtype, requires_grad=True)
            results = _outputs(function, [*inputs[:position], shifted, *inputs[position + 1 :]])
            ends.append([one.detach().numpy().astype(numpy.float64).ravel() for one in results])
        rows.append([(high - low) / (2 * eps) for high, low in zip(*ends, strict=True)])
    return [numpy.array([row[k] for row in rows]) for k in range(len(rows[0]) if rows else 0)]


def _jacobian(output: Tensor, wanted: Tensor) -> numpy.ndarray:
    columns = []
    for k in range(output.numel()):
        seed = numpy.zeros(output.numel(), output.dtype.numpy)
        seed[k] = 1
        direction = from_numpy(seed.reshape(tuple(output.shape)))
        (found,) = grad(output, wanted, direction, retain_graph=True, allow_unused=True)
        columns.append(
            numpy.zeros(wanted.numel())
            if found is None
            else found.detach().numpy().astype(numpy.float64).ravel()
        )
    return numpy.array(columns).T.reshape(wanted.numel(), output.numel())


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of ``func`` agree with central differences, for all inputs that require grad.

    Give float64 or complex128 inputs; of complex ones the gradients of both parts are compared. Raises GradcheckError
    where they do not agree, or returns False without ``raise_exception``. Gradients have the same bits each time,
    always the dtype of their input, and exist as zeros where they are undefined, so ``nondet_tol``,
    ``check_grad_dtypes`` and ``check_undefined_grad`` have nothing to find; ``fast_mode`` has no effect. Raises
    ArgumentError for checks that are not made: batched and forward ones.

    >>> import twofold as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(lambda x: (x * x).sin(), (x,))
    True
    """
    wanted = (check_batched_grad, check_batched_forward_grad, check_forward_ad, not check_backward_ad, masked)
    if any(wanted):
        raise ArgumentError(
            "gradcheck: only dense gradients of the backward pass are checked",
            "Leave out check_batched_grad, check_batched_forward_grad, check_forward_ad and masked.",
        )
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    positions = [k for k, one in enumerate(given) if isinstance(one, Tensor) and one.requires_grad]
    if not positions:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    func, given = _on_parts(func, given)
    for position in positions:
        expected = _differences(func, given, position, eps)
        for number, output in enumerate(_outputs(func, given)):
            found = _jacobian(output, given[position])
            if expected and numpy.allclose(found, expected[number], rtol, atol):
                continue
            if not expected:
                continue
            if raise_exception:
                raise GradcheckError(
                    f"Jacobian mismatch for output {number} with respect to input {position},\n"
                    f"numerical:{expected[number]}\nanalytical:{found}\n"
                )
            return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the second derivatives of ``func`` agree with differences of its gradients.

    The gradients are weighted by ``grad_outputs``, or by random ones. Otherwise as ``gradcheck``, whose options it
    takes.

    >>> import twofold as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(lambda x: (x * x).sin(), (x,))
    True
    """
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    outputs = [output for output in _outputs(func, given) if output.requires_grad]
    if grad_outputs is None:
        generator = numpy.random.default_rng(0)
        seeds = [
            from_numpy(generator.normal(size=tuple(one.shape)).astype(one.dtype.numpy)) for one in outputs
        ]
    else:
        seeds = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    for seed in seeds:
        seed.requires_grad = True

    def gradients(*values: Any) -> tuple[Tensor, ...]:
        own = values[: len(given)]
        roots = [output for output in _outputs(func, own) if output.requires_grad]
        targets = [value for value in own if isinstance(value, Tensor) and value.requires_grad]
        found = grad(roots, targets, values[len(given) :], create_graph=True, allow_unused=True)
        return tuple(one for one in found if one is not None and one.requires_grad)

    return gradcheck(
        gradients,
        [*given, *seeds],
        eps,
        atol,
        rtol,
        raise_exception,
        nondet_tol,
        check_undefined_grad,
        check_grad_dtypes,
        check_batched_grad,
        fast_mode=fast_mode,
        masked=masked,
    )


_guard_namespace(globals())

_other_files(
    __name__,
    {
        "anomaly_mode": "detect_anomaly set_detect_anomaly",
        "grad_mode": "enable_grad inference_mode no_grad set_grad_enabled",
        "gradcheck": "GradcheckError gradcheck gradgradcheck",
        "variable": "Variable",
    },
)
