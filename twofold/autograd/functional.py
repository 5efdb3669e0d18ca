"""Derivatives of a function at a point: Jacobians, Hessians and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.frontend.gradients import grad
from twofold.frontend.transforms import ones_of
from twofold.func import jacfwd, jacrev
from twofold.func import jvp as push_forward
from twofold.func import vjp as pull_back
from twofold.ops.base import ops

Tensor = _core.Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple(value: Any, what: str, name: str) -> tuple[Tensor, ...]:
    values = (value,) if isinstance(value, Tensor) else tuple(value)
    for position, one in enumerate(values):
        if not isinstance(one, Tensor):
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the value at index "
                f"{position} has type {type(one).__name__}."
            )
    return values


def _as_tuple(
    inp: Any, arg_name: str = "inputs", fn_name: str = "as_tuple"
) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether ``inp`` is a tuple, and its tensors; programs with Jacobians of their own call it.

    >>> import twofold as torch
    >>> torch.autograd.functional._as_tuple(torch.ones(1), "inputs", "jacobian")
    (False, (tensor([1.]),))
    """
    return isinstance(inp, tuple), _tuple(inp, arg_name, fn_name)


def _tuple_postprocess(res: Any, to_unpack: bool | tuple[bool, bool]) -> Any:
    """``res`` as it is where ``to_unpack``, what ``_as_tuple`` said, is true, else its one element; two for two levels.

    >>> import twofold as torch
    >>> torch.autograd.functional._tuple_postprocess(((1, 2),), (False, True))
    (1, 2)
    """
    if not isinstance(to_unpack, tuple):
        return res if to_unpack else res[0]
    outer, inner = to_unpack
    parts = res if inner else tuple(part[0] for part in res)
    return parts if outer else parts[0]


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """``inputs`` without what they were computed from, unless ``create_graph``; of nested tuples each.

    >>> import twofold as torch
    >>> torch.autograd.functional._grad_postprocess((torch.ones(1, requires_grad=True),), False)
    (tensor([1.]),)
    """
    if create_graph:
        return inputs
    return (
        inputs.detach()
        if isinstance(inputs, Tensor)
        else tuple(_grad_postprocess(one, False) for one in inputs)
    )


def _construct_standard_basis_for(
    tensors: tuple[Tensor, ...], tensor_numels: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """Columns of the identity matrix with a row for each element of all tensors: for each tensor those of its elements.

    ``tensor_numels`` has the number of elements of each tensor. Raises AssertionError where these are not as many
    as tensors, or none.

    >>> import twofold as torch
    >>> torch.autograd.functional._construct_standard_basis_for((torch.ones(1), torch.ones(2)), (1, 2))[1]
    tensor([[0., 0.],
            [1., 0.],
            [0., 1.]])
    """
    if len(tensors) != len(tensor_numels) or not tensors:
        raise AssertionError(
            f"{len(tensors)} tensors with {len(tensor_numels)} numbers of elements. Give one for each."
        )
    rows, start, columns = sum(tensor_numels), 0, []
    for tensor, count in zip(tensors, tensor_numels):
        columns.append(ops.eye(rows, rows, dtype=tensor.dtype)[:, start : start + count])
        start += count
    return tuple(columns)


def _like(given: Any, single: bool) -> Any:
    return given[0] if single else tuple(given)


class _Problem:
    """A function with its inputs and outputs as tuples, whatever form the caller uses."""

    def __init__(
        self, name: str, func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool
    ) -> None:
        self.name, self.function, self.create = name, func, create_graph
        self.single_input = isinstance(inputs, Tensor)
        self.single_output = False
        given = _tuple(inputs, "inputs", name)
        self.inputs = given if create_graph else tuple(value.detach() for value in given)
        if strict:
            self._check_strictly()

    def call(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The function from tensors to a tuple of tensors."""
        found = self.function(*inputs)
        self.single_output = isinstance(found, Tensor)
        return _tuple(found, "outputs of the user-provided function", self.name)

    def scalar(self, *inputs: Tensor) -> Tensor:
        """The function, whose one output has one element."""
        found = self.call(*inputs)
        if len(found) != 1 or found[0].numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {self.name} should contain a single element"
            )
        return found[0].reshape(())

    def finished(self, tree: Any) -> Any:
        """Results, without a graph unless it was asked for."""
        if isinstance(tree, tuple):
            return tuple(self.finished(one) for one in tree)
        return tree if self.create else tree.detach()

    def directions(self, given: Any, like: tuple[Tensor, ...], what: str) -> tuple[Tensor, ...]:
        """The vector given, or one of a single element."""
        if given is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise RuntimeError(
                    f"{self.name}: the vector v can only be None if the {what} is one tensor with a single element."
                )
            return (ones_of(like[0]),)
        values = _tuple(given, "v", self.name)
        if len(values) != len(like) or any(
            v.shape != one.shape for v, one in zip(values, like, strict=False)
        ):
            raise RuntimeError(
                f"{self.name}: v must have the shapes of the {what}, {[one.type_ for one in like]}, not "
                f"{[v.type_ for v in values]}."
            )
        return values

    def _check_strictly(self) -> None:
        starts = tuple(value.detach().requires_grad_() for value in self.inputs)
        for i, output in enumerate(self.call(*starts)):
            found: Any = [None] * len(starts)
            if output.requires_grad:
                found = grad(output, starts, ones_of(output), retain_graph=True, allow_unused=True)
            for j, part in enumerate(found):
                if part is None:
                    raise RuntimeError(
                        f"Output {i} of the user-provided function is independent of input {j}. This is not allowed "
                        "in strict mode."
                    )


def _mode(what: str, strategy: str) -> Callable[..., Any]:
    """The transform of that name; raises ValueError for another."""
    modes: dict[str, Callable[..., Any]] = {"reverse-mode": jacrev, "forward-mode": jacfwd}
    if strategy not in modes:
        raise ValueError(f'{what} is {strategy!r}. Use "reverse-mode" or "forward-mode".')
    return modes[strategy]


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of ``func`` at ``inputs``, a tensor or tuple; one tensor for each pair of output and input.

    It is always computed in one batched pass. ``strict`` raises RuntimeError for an output that does not depend
    on an input.

    >>> import twofold as torch
    >>> torch.autograd.functional.jacobian(lambda x: x**2, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    mode = _mode("jacobian: strategy", strategy)
    problem = _Problem("jacobian", func, inputs, create_graph, strict)
    rows = mode(problem.call, tuple(range(len(problem.inputs))))(*problem.inputs)
    found = tuple(_like(row, problem.single_input) for row in rows)
    return problem.finished(_like(found, problem.single_output))


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of ``func``, whose result has one element; one tensor for each pair of inputs.

    >>> import twofold as torch
    >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    problem = _Problem("hessian", func, inputs, create_graph, strict)
    outer = _mode("hessian: outer_jacobian_strategy", outer_jacobian_strategy)
    positions = tuple(range(len(problem.inputs)))
    rows = outer(jacrev(problem.scalar, positions), positions)(*problem.inputs)
    found = tuple(_like(row, problem.single_input) for row in rows)
    return problem.finished(_like(found, problem.single_input))


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output of ``func``, and ``v`` times its Jacobian; ``v`` has the form of the output.

    >>> import twofold as torch
    >>> torch.autograd.functional.vjp(torch.exp, torch.zeros(2), torch.tensor([1.0, 2.0]))
    (tensor([1., 1.]), tensor([1., 2.]))
    """
    problem = _Problem("vjp", func, inputs, create_graph, strict)
    outputs, pull = pull_back(problem.call, *problem.inputs)
    found = pull(problem.directions(v, outputs, "output"))
    return (
        problem.finished(_like(outputs, problem.single_output)),
        problem.finished(_like(found, problem.single_input)),
    )


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output of ``func``, and its Jacobian times ``v``; ``v`` has the form of the inputs.

    >>> import twofold as torch
    >>> torch.autograd.functional.jvp(torch.exp, torch.zeros(2), torch.tensor([1.0, 2.0]))
    (tensor([1., 1.]), tensor([1., 2.]))
    """
    problem = _Problem("jvp", func, inputs, create_graph, strict)
    ways = problem.directions(v, problem.inputs, "input")
    outputs, pushed = push_forward(problem.call, problem.inputs, ways)
    return (
        problem.finished(_like(outputs, problem.single_output)),
        problem.finished(_like(pushed, problem.single_output)),
    )


def _gradient(problem: _Problem) -> Callable[..., tuple[Tensor, ...]]:
    """The gradient of the problem's function, with its value beside it."""

    def gradient(*inputs: Tensor) -> tuple[Any, ...]:
        output, pull = pull_back(problem.scalar, *inputs)
        return (*pull(ones_of(output)), output)

    return gradient


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output of ``func``, and its Hessian times ``v``, by forward mode over reverse mode.

    >>> import twofold as torch
    >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    problem = _Problem("hvp", func, inputs, create_graph, strict)
    ways = problem.directions(v, problem.inputs, "input")
    values, pushed = push_forward(_gradient(problem), problem.inputs, ways)
    return problem.finished(values[-1]), problem.finished(_like(pushed[:-1], problem.single_input))


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output of ``func``, and ``v`` times its Hessian, by reverse mode over reverse mode.

    >>> import twofold as torch
    >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    problem = _Problem("vhp", func, inputs, create_graph, strict)
    ways = problem.directions(v, problem.inputs, "input")
    values, pull = pull_back(_gradient(problem), *problem.inputs)
    found = pull((*ways, ones_of(values[-1]) * 0))
    return problem.finished(values[-1]), problem.finished(_like(found, problem.single_input))
