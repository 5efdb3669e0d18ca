"""Weights recomputed before every forward pass by a hook: the older forms of the parametrisations.

Their parameters are ``<name>_g`` and ``<name>_v``, or ``<name>_orig``, as in old files of states.
"""

from __future__ import annotations

from typing import Any, TypeVar

from twofold import _core
from twofold.frontend.sampling import randn
from twofold.nn.module import Module
from twofold.nn.parameter import Parameter
from twofold.nn.utils.parametrizations import as_matrix, output_axis
from twofold.ops.base import FUNCTIONS

Tensor = _core.Tensor
M = TypeVar("M", bound=Module)


class _Reweighting:
    """A hook before the forward pass; ``removed`` ends it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def attach(self, module: Module) -> None:
        """Compute the weight now and before every forward pass."""
        if any(type(hook) is type(self) and hook.name == self.name for hook in _hooks(module)):
            raise RuntimeError(f"Cannot register two {self.label} hooks on the same parameter {self.name}")
        parameter = getattr(module, self.name)
        del module._parameters[self.name]
        self.split(module, parameter)
        setattr(module, self.name, self.start(module))
        module.register_forward_pre_hook(self)

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module))

    def remove(self, module: Any) -> None:
        """Make the weight a parameter of the module again; the hook is left to whoever registered it."""
        weight = self.last(module).detach()
        delattr(module, self.name)
        for part in self.parts():
            delattr(module, part)
        module.register_parameter(self.name, Parameter(weight))

    label = ""

    def split(self, module: Any, parameter: Parameter) -> None:
        """Register what the weight is computed from."""
        raise NotImplementedError

    def compute(self, module: Any) -> Tensor:
        """The weight."""
        raise NotImplementedError

    def start(self, module: Any) -> Tensor:
        """The weight before the first forward pass."""
        return self.compute(module)

    def last(self, module: Any) -> Tensor:
        """The weight that stays when the hook is taken away."""
        return self.compute(module)

    def parts(self) -> tuple[str, ...]:
        """The names that ``split`` registered."""
        raise NotImplementedError


def _hooks(module: Module) -> list[Any]:
    return [hook for hook, *_ in module._forward_pre_hooks.values()]


def _detach(module: M, name: str, kind: type[_Reweighting]) -> M:
    for number, (hook, *_) in list(module._forward_pre_hooks.items()):
        if isinstance(hook, kind) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"{kind.label} of '{name}' not found in {module}")


class WeightNorm(_Reweighting):
    """``g * v / |v|``."""

    label = "weight_norm"

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = -1 if dim is None else dim

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """As ``weight_norm``, but gives the hook."""
        made = WeightNorm(name, dim)
        made.attach(module)
        return made

    def compute_weight(self, module: Any) -> Tensor:
        """The weight."""
        return self.compute(module)

    def parts(self) -> tuple[str, ...]:
        """Length and direction."""
        return self.name + "_g", self.name + "_v"

    def split(self, module: Any, parameter: Parameter) -> None:
        """The length and direction of the weight."""
        length, direction = self.parts()
        module.register_parameter(
            length, Parameter(FUNCTIONS["norm_except_dim"](parameter.detach(), 2, self.dim))
        )
        module.register_parameter(direction, Parameter(parameter.detach()))

    def compute(self, module: Any) -> Tensor:
        """The weight."""
        g, v = (getattr(module, part) for part in self.parts())
        return FUNCTIONS["_weight_norm"](v, g, self.dim)


class SpectralNorm(_Reweighting):
    """The weight over its largest singular value, which a power iteration (first v, then u) follows in training."""

    label = "spectral_norm"

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__(name)
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """As ``spectral_norm``, but gives the hook."""
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        made.attach(module)
        return made

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight with one row per position along ``dim``."""
        return as_matrix(weight, self.dim)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """The weight divided, after steps of the power iteration if ``do_power_iteration``."""
        return self._divided(module, do_power_iteration)

    def parts(self) -> tuple[str, ...]:
        """The weight itself and the two singular vectors."""
        return self.name + "_orig", self.name + "_u", self.name + "_v"

    def split(self, module: Any, parameter: Parameter) -> None:
        """The weight under another name, and random unit vectors."""
        own, *vectors = self.parts()
        module.register_parameter(own, parameter)
        matrix = as_matrix(parameter.detach(), self.dim)
        for name, size in zip(vectors, matrix.shape, strict=True):
            module.register_buffer(name, self._unit(randn(size, dtype=parameter.dtype)))

    def start(self, module: Any) -> Tensor:
        """The weight as it is: nothing is divided before the first forward pass."""
        return getattr(module, self.parts()[0]).data

    def _unit(self, vector: Tensor) -> Tensor:
        return FUNCTIONS["normalize"](vector, 2.0, 0, self.eps)

    def _iterate(self, matrix: Tensor, u: Tensor, v: Tensor) -> None:
        with _core.GradientMode(False):
            for _ in range(self.n_power_iterations):
                v.copy_(self._unit(matrix.mT @ u))
                u.copy_(self._unit(matrix @ v))

    def compute(self, module: Any) -> Tensor:
        """The weight divided; in training after steps of the power iteration."""
        return self._divided(module, module.training)

    def _divided(self, module: Any, iterates: bool) -> Tensor:
        weight, u, v = (getattr(module, part) for part in self.parts())
        matrix = as_matrix(weight, self.dim)
        if iterates:
            self._iterate(matrix, u, v)
            u, v = u.clone(), v.clone()  # a second forward pass writes to both before the backward pass
        return weight / (u * (matrix @ v)).sum()

    def last(self, module: Any) -> Tensor:
        """The weight divided, without a step of the iteration."""
        return self._divided(module, False)


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Learn the length ``<name>_g`` and the direction ``<name>_v`` of a weight apart.

    See ``parametrizations.weight_norm`` for the newer form.

    >>> import twofold as torch
    >>> layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 3))
    >>> [(name, value.shape) for name, value in layer.named_parameters()]
    [('bias', twofold.Size([3])), ('weight_g', twofold.Size([3, 1])), ('weight_v', twofold.Size([3, 2]))]
    """
    WeightNorm(name, dim).attach(module)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make the weight a parameter again; raises ValueError where it is none of ``weight_norm``.

    >>> import twofold as torch
    >>> layer = torch.nn.utils.remove_weight_norm(torch.nn.utils.weight_norm(torch.nn.Linear(2, 3)))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight']
    """
    return _detach(module, name, WeightNorm)


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a weight by its largest singular value; see ``parametrizations.spectral_norm`` for the newer form.

    >>> import twofold as torch
    >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 1))
    >>> y = layer(torch.ones(1, 3))
    >>> round(torch.linalg.matrix_norm(layer.weight, 2).item(), 4)
    1.0
    """
    SpectralNorm(name, n_power_iterations, output_axis(module, dim), eps).attach(module)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make the weight a parameter again; raises ValueError where it is none of ``spectral_norm``.

    >>> import twofold as torch
    >>> layer = torch.nn.utils.remove_spectral_norm(torch.nn.utils.spectral_norm(torch.nn.Linear(2, 3)))
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'weight']
    """
    return _detach(module, name, SpectralNorm)
