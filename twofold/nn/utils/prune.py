"""Pruning: before each forward pass a parameter is ``<name>_orig`` times ``<name>_mask``, a buffer of zeros and ones.

What masks keep is chosen once, when a method is applied; of a tensor that is pruned again, among what was kept.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from operator import index
from typing import Any, ClassVar, TypeVar

from twofold import _core
from twofold.frontend.sampling import rand
from twofold.nn.module import Module
from twofold.ops.base import normalize_axis, ops

Tensor = _core.Tensor
M = TypeVar("M", bound=Module)


def _check_shape(scores: Tensor | None, tensor: Tensor, what: str) -> Tensor:
    """``scores``, or without them the tensor itself."""
    if scores is None:
        return tensor
    if scores.shape != tensor.shape:
        raise AssertionError(
            f"importance_scores should have the same shape as {what}, got {scores.shape} vs {tensor.shape}"
        )
    return scores


class BasePruningMethod(ABC):
    """A way to choose what is kept of a tensor; subclasses define ``compute_mask`` and ``PRUNING_TYPE``.

    ``PRUNING_TYPE`` says what a method chooses among where a tensor is pruned again: "unstructured" among the elements
    that are left, "structured" among the slices along ``dim`` of which something is left, "global" among all.

    >>> import twofold as torch
    >>> from twofold.nn.utils import prune
    >>> class Negative(prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...
    ...     def compute_mask(self, t, default_mask):
    ...         return default_mask * (t >= 0)
    >>> Negative().prune(torch.tensor([1.0, -2.0, 3.0]))
    tensor([1., -0., 3.])
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str | None = None

    def __call__(self, module: Any, inputs: Any) -> None:
        """Compute the tensor from its parts, as the hook before a forward pass."""
        setattr(module, str(self._tensor_name), self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of what is kept of ``t``, of which ``default_mask`` was kept so far."""

    def apply_mask(self, module: Any) -> Tensor:
        """The pruned tensor of a module that the method was applied to."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        whole = getattr(module, self._tensor_name + "_orig")
        return ops.multiply(getattr(module, self._tensor_name + "_mask").to(whole.dtype), whole)

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter of a module, now and before each forward pass.

        Args:
            module: The module.
            name: The name of the parameter.
            args: What the method is made with.
            importance_scores: What the method looks at in place of the values of the parameter.
            kwargs: What the method is made with.

        Returns:
            The method, or the container of all that were applied to the parameter.
        """
        method = _joined(module, name, cls(*args, **kwargs))
        tensor = getattr(module, name)
        scores = _check_shape(importance_scores, tensor, f"parameter {name} of {module}")
        again = isinstance(method, PruningContainer)
        kept = getattr(module, f"{name}_mask") if again else ops.ones_like(tensor)
        mask = method.compute_mask(scores.detach(), default_mask=kept.detach().clone())
        if not again:
            module.register_parameter(f"{name}_orig", tensor)
            del module._parameters[name]
        else:
            _take_hook(module, name)
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """A tensor times its mask, without a module.

        Args:
            t: The tensor.
            default_mask: What was kept so far; without, all.
            importance_scores: What the method looks at in place of the values.
        """
        scores = _check_shape(importance_scores, t, "tensor t")
        kept = ops.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=kept)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor the parameter; what was pruned stays zero but is trained again."""
        pruned, name = self.apply_mask(module), str(self._tensor_name)
        if hasattr(module, name):
            delattr(module, name)
        parameter = module._parameters.pop(f"{name}_orig")
        parameter.data = pruned.detach()
        del module._buffers[f"{name}_mask"]
        setattr(module, name, parameter)


def _hooks_on(module: Any, name: str | None = None) -> list[tuple[int, BasePruningMethod]]:
    """The methods applied to one parameter of a module, or to any, with the numbers of their hooks."""
    hooks = ((key, entry[0]) for key, entry in module._forward_pre_hooks.items())
    return [
        (key, hook)
        for key, hook in hooks
        if isinstance(hook, BasePruningMethod) and name in (None, hook._tensor_name)
    ]


def _take_hook(module: Any, name: str) -> None:
    """Take the hooks of one parameter away."""
    for key, _ in _hooks_on(module, name):
        del module._forward_pre_hooks[key]


def _joined(module: Any, name: str, method: BasePruningMethod) -> BasePruningMethod:
    """A method for a parameter; where others were applied to it, the container of all of them."""
    method._tensor_name = name
    found = _hooks_on(module, name)
    if len(found) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
        )
    if not found:
        return method
    before = found[0][1]
    made = PruningContainer(*(before if isinstance(before, PruningContainer) else (before,)))
    made.add_pruning_method(method)
    return made


class PruningContainer(BasePruningMethod):
    """The methods that were applied to one tensor, in order; the last one chooses among what the others kept.

    >>> import twofold as torch
    >>> from twofold.nn.utils import prune
    >>> layer = torch.nn.Linear(4, 1)
    >>> prune.l1_unstructured(prune.l1_unstructured(layer, "weight", 2), "weight", 1).weight_mask.sum()
    tensor(1.)
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method for the same tensor; raises TypeError for something else, ValueError for another tensor."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to "
                f"PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """What the last method keeps of what ``default_mask`` kept."""
        method = self._pruning_methods[-1]
        if method.PRUNING_TYPE == "global":
            left: Any = (slice(None),) * t.ndim
        elif method.PRUNING_TYPE == "unstructured":
            left = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
                )
            axis = normalize_axis(method.dim, t.ndim)
            others = [other for other in range(t.ndim) if other != axis]
            left = [slice(None)] * t.ndim
            left[axis] = default_mask.sum(others) != 0
            left = tuple(left)
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(t.dtype)
        mask = mask.clone() if mask is default_mask else mask
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(t.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, and makes the parameter and the mask that pruning makes."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """``default_mask``."""
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:  # type: ignore[override]
        """Apply it to a parameter."""
        return super().apply(module, name)


class _Partial(BasePruningMethod):
    """Prunes a number of elements or slices: ``amount``, or that share of all."""

    def __init__(self, amount: Any) -> None:
        if not isinstance(amount, numbers.Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if not 0 <= float(amount) <= (float("inf") if isinstance(amount, numbers.Integral) else 1.0):
            raise ValueError(
                f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
            )
        self.amount: float = index(amount) if isinstance(amount, numbers.Integral) else float(amount)

    def _count(self, size: int) -> int:
        """How many of ``size`` are pruned; raises ValueError for more than there are."""
        amount = self.amount
        if not isinstance(amount, int):
            return round(float(amount) * size)
        if amount > size:
            raise ValueError(
                f"amount={amount} should be smaller than the number of parameters to prune={size}"
            )
        return amount


class _Unstructured(_Partial):
    """Prunes the elements with the least scores."""

    PRUNING_TYPE = "unstructured"

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """``default_mask`` without the elements that are pruned."""
        count = self._count(t.numel())
        if not count:
            return default_mask.clone()
        least = ops.topk(self._scores(t).reshape(-1), count, largest=False).indices
        return default_mask.reshape(-1).index_fill(0, least, 0).reshape(default_mask.shape)


class RandomUnstructured(_Unstructured):
    """Prunes elements at random.

    Args:
        amount: How many, or as a float which share of all.
    """

    def _scores(self, t: Tensor) -> Tensor:
        return rand(t.numel())

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> Any:  # type: ignore[override]
        """Apply it to a parameter."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements of least magnitude.

    Args:
        amount: How many, or as a float which share of all.
    """

    def _scores(self, t: Tensor) -> Tensor:
        return ops.abs(t)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, importance_scores: Tensor | None = None
    ) -> Any:
        """Apply it to a parameter."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(_Partial):
    """Prunes the slices along ``dim`` with the least scores."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _scores(self, t: Tensor, axis: int) -> Tensor:
        """One for each slice."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """``default_mask`` without the slices that are pruned."""
        if t.ndim <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.ndim} dims"
            )
        if not -t.ndim <= self.dim < t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        axis = self.dim % t.ndim
        count = self._count(t.shape[axis])
        if not count:
            return default_mask
        least = ops.topk(self._scores(t, axis), count, largest=False).indices
        kept = ops.ones(t.shape[axis], dtype=default_mask.dtype).index_fill(0, least, 0)
        return default_mask * kept.reshape([-1 if k == axis else 1 for k in range(t.ndim)])


class RandomStructured(_Structured):
    """Prunes slices along an axis at random.

    Args:
        amount: How many, or as a float which share of all.
        dim: The axis.
    """

    def _scores(self, t: Tensor, axis: int) -> Tensor:
        return rand(t.shape[axis])

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        """Apply it to a parameter."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the slices along an axis with the least norms.

    Args:
        amount: How many, or as a float which share of all.
        n: The order of the norm, as ``p`` of ``norm``.
        dim: The axis.
    """

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor, axis: int) -> Tensor:
        return ops.norm(t, self.n, [other for other in range(t.ndim) if other != axis])

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
    ) -> Any:
        """Apply it to a parameter."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask has zeros for.

    Args:
        mask: The mask, of the shape of the tensor.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """``default_mask`` times the mask."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"the mask of shape {tuple(self.mask.shape)} does not fit a tensor of shape {tuple(default_mask.shape)}"
            )
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Tensor) -> Any:  # type: ignore[override]
        """Apply it to a parameter."""
        return super().apply(module, name, mask=mask)


def identity(module: M, name: str) -> M:
    """Make the parameter and mask of pruning, and prune nothing.

    >>> import twofold as torch
    >>> layer = torch.nn.utils.prune.identity(torch.nn.Linear(2, 1), "bias")
    >>> [name for name, _ in layer.named_parameters()], layer.bias_mask
    (['weight', 'bias_orig'], tensor([1.]))
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: M, name: str, amount: Any) -> M:
    """Prune elements of a parameter at random.

    Args:
        module: The module.
        name: The name of the parameter.
        amount: How many elements, or as a float which share of all.

    >>> import twofold as torch
    >>> layer = torch.nn.utils.prune.random_unstructured(torch.nn.Linear(2, 3), "weight", 0.5)
    >>> (layer.weight == 0).sum()
    tensor(3)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: M, name: str, amount: Any, importance_scores: Tensor | None = None) -> M:
    """Prune the elements of least magnitude of a parameter.

    Args:
        module: The module.
        name: The name of the parameter.
        amount: How many elements, or as a float which share of all.
        importance_scores: What counts in place of the values.

    >>> import twofold as torch
    >>> layer = torch.nn.Linear(3, 1)
    >>> layer.weight.data = torch.tensor([[3.0, -1.0, 2.0]])
    >>> torch.nn.utils.prune.l1_unstructured(layer, "weight", 1).weight_mask
    tensor([[1., 0., 1.]])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: M, name: str, amount: Any, dim: int) -> M:
    """Prune slices of a parameter along an axis at random.

    Args:
        module: The module.
        name: The name of the parameter.
        amount: How many slices, or as a float which share of all.
        dim: The axis.

    >>> import twofold as torch
    >>> layer = torch.nn.utils.prune.random_structured(torch.nn.Linear(2, 3), "weight", 1, dim=1)
    >>> (layer.weight == 0).sum()
    tensor(3)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: M, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
) -> M:
    """Prune the slices of a parameter along an axis with the least norms.

    Args:
        module: The module.
        name: The name of the parameter.
        amount: How many slices, or as a float which share of all.
        n: The order of the norm.
        dim: The axis.
        importance_scores: What norms are of, in place of the values.

    >>> import twofold as torch
    >>> layer = torch.nn.Linear(2, 2)
    >>> layer.weight.data = torch.tensor([[3.0, 1.0], [1.0, 1.0]])
    >>> torch.nn.utils.prune.ln_structured(layer, "weight", 1, n=2, dim=0).weight_mask
    tensor([[1., 1.],
            [0., 0.]])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one.

    Args:
        parameters: Modules with names of parameters.
        pruning_method: A class of methods that choose single elements, such as ``L1Unstructured``.
        importance_scores: What counts in place of the values, for some of the parameters.
        kwargs: What the method is made with.

    >>> import twofold as torch
    >>> from twofold.nn.utils import prune
    >>> one, two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    >>> prune.global_unstructured([(one, "weight"), (two, "weight")], prune.L1Unstructured, amount=3)
    >>> one.weight_mask.sum() + two.weight_mask.sum()
    tensor(3.)
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if not isinstance(importance_scores, (dict, type(None))):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    listed, given = list(parameters), importance_scores or {}
    tensors = [getattr(module, name) for module, name in listed]
    scores = [given.get(one, tensor) for one, tensor in zip(listed, tensors)]
    masks = [
        getattr(module, f"{name}_mask", None) if hasattr(module, f"{name}_mask") else ops.ones_like(tensor)
        for (module, name), tensor in zip(listed, tensors)
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} '
            f"of type {method.PRUNING_TYPE}"
        )
    joined = lambda parts: ops.cat([part.detach().reshape(-1) for part in parts])
    mask = PruningContainer(method).compute_mask(joined(scores), joined(masks))
    start = 0
    for (module, name), tensor in zip(listed, tensors):
        end = start + tensor.numel()
        custom_from_mask(module, name, mask[start:end].reshape(tensor.shape))
        start = end


def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Prune what a mask has zeros for.

    Args:
        module: The module.
        name: The name of the parameter.
        mask: The mask, of the shape of the parameter.

    >>> import twofold as torch
    >>> layer = torch.nn.utils.prune.custom_from_mask(torch.nn.Linear(2, 2), "bias", torch.tensor([0, 1]))
    >>> (layer.bias == 0).tolist()
    [True, False]
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: M, name: str) -> M:
    """Make the pruned tensor the parameter again; raises ValueError for one that is not pruned.

    >>> import twofold as torch
    >>> from twofold.nn.utils import prune
    >>> layer = prune.remove(prune.random_unstructured(torch.nn.Linear(2, 1), "weight", 1), "weight")
    >>> [name for name, _ in layer.named_parameters()], (layer.weight == 0).sum()
    (['bias', 'weight'], tensor(1))
    """
    found = _hooks_on(module, name)
    if not found:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    found[0][1].remove(module)
    _take_hook(module, name)
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of one below it, is pruned.

    >>> import twofold as torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> torch.nn.utils.prune.is_pruned(layer)
    False
    """
    return any(_hooks_on(one) for one in module.modules())
