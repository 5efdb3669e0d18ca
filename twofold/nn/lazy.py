"""Layers that find out the number of their input features from the first input.

Such a layer holds parameters without elements; the first call gives them their sizes in place, so that an
optimiser made before keeps them, and turns the layer into the plain one.
"""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.frontend.options import check_device
from twofold.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from twofold.nn.layers import Linear, new_parameter
from twofold.nn.module import Module
from twofold.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from twofold.nn.parameter import Buffer, Parameter
from twofold.ops.docstrings import shown
from twofold.ops.signatures import shows

Tensor = _core.Tensor


class UninitializedTensorMixin:
    """What parameters and buffers whose shapes are not known yet have in common."""

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give the parameter or buffer its shape."""
        raise NotImplementedError(f"{type(self).__name__} has no way to get its shape: define materialize.")


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; ``materialize`` gives it one.

    >>> import twofold as torch
    >>> weight = torch.nn.UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> weight.shape
    twofold.Size([2, 3])
    """

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        """A parameter without elements."""
        check_device(device)
        return super().__new__(cls, new_parameter(0, dtype=dtype), requires_grad)

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give the parameter its shape, and leave the values to ``reset_parameters``."""
        check_device(device)
        self._share_storage(new_parameter(*shape, dtype=dtype or self.dtype).detach())
        self.__class__ = Parameter  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<UninitializedParameter>"


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet; ``materialize`` gives it one.

    >>> import twofold as torch
    >>> mean = torch.nn.UninitializedBuffer()
    >>> mean.materialize(3)
    >>> mean.shape
    twofold.Size([3])
    """

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        """A buffer without elements."""
        check_device(device)
        made = super().__new__(cls, new_parameter(0, dtype=dtype).detach(), persistent=persistent)
        made.requires_grad_(requires_grad)
        return made

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give the buffer its shape, and leave the values to the module."""
        check_device(device)
        sizes = (shape,) if isinstance(shape, int) else shape
        self._share_storage(new_parameter(*sizes, dtype=dtype or self.dtype).detach())
        self.__class__ = Buffer  # type: ignore[assignment]


class LazyModuleMixin:
    """Base, before ``Module``, of modules that find out the shapes of parameters from the first input.

    A class says by ``initialize_parameters``, which gets the arguments of the first call, how its
    ``UninitializedParameter`` get their shapes and values. After that call a module is of the class
    ``cls_to_become``, if there is one.

    >>> import twofold as torch
    >>> class Scale(torch.nn.modules.lazy.LazyModuleMixin, torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.UninitializedParameter()
    ...     def initialize_parameters(self, x):
    ...         if self.has_uninitialized_params():
    ...             self.factor.materialize(x.shape[-1:])
    ...             torch.nn.init.ones_(self.factor)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> layer = Scale()
    >>> layer(torch.zeros(2, 3)).shape, layer.factor.shape
    (twofold.Size([2, 3]), twofold.Size([3]))
    """

    cls_to_become: type[Module] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        module: Any = self
        self._initialize_hook = module.register_forward_pre_hook(_infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give parameters their shapes and values; every such module defines it."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}: define it to materialize parameters."
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        module: Any = self
        members = (*module._parameters.values(), *module._buffers.values())
        return any(isinstance(value, UninitializedTensorMixin) for value in members)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        module: Any = self
        for name, member in (*module._parameters.items(), *module._buffers.items()):
            found = state_dict.get(prefix + name)
            is_known = isinstance(found, Tensor) and not isinstance(found, UninitializedTensorMixin)
            if is_known and isinstance(member, UninitializedTensorMixin):
                member.materialize(tuple(found.shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)  # type: ignore[misc]


def _infer_parameters(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Before the first call of a lazy module: let it find out its shapes."""
    module._initialize_hook.remove()
    del module._initialize_hook
    if not isinstance(module, LazyModuleMixin):  # a state has completed it
        return
    module.initialize_parameters(*args, **kwargs)
    if not isinstance(module, LazyModuleMixin):
        return
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {type(module).__name__} has not been fully initialized")
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become  # type: ignore[assignment]


class _Lazy(LazyModuleMixin, Module):
    """What all these layers share: ``complete`` is the plain layer, ``sized`` its attribute to find out."""

    complete: type[Module]
    sized: str

    def _undo(self) -> None:
        """Forget the sizes of the parameters, which were made for no features."""
        for name, parameter in self._parameters.items():
            if parameter is not None and (name == "weight" or not parameter.numel()):
                self._parameters[name] = UninitializedParameter(
                    parameter.requires_grad, dtype=parameter.dtype
                )

    def reset_parameters(self) -> None:
        """Sample new parameters, as soon as they have shapes."""
        if not self.has_uninitialized_params() and getattr(self, self.sized):
            self.complete.reset_parameters(self)  # type: ignore[attr-defined]

    def features_of(self, input: Tensor) -> int:
        """The number of features of an input."""
        raise NotImplementedError

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of parameters and buffers, once the number of features is known."""
        raise NotImplementedError

    def initialize_parameters(self, input: Tensor) -> None:
        """Give the parameters the sizes that ``input`` asks for."""
        if self.has_uninitialized_params():
            self._initialize(self.features_of(input))

    def _initialize(self, features: int) -> None:
        setattr(self, self.sized, features)
        for name, shape in self.shapes().items():
            member = self._parameters.get(name)
            if isinstance(member, UninitializedParameter):
                member.materialize(shape)
        self.reset_parameters()
        self.__class__ = self.complete  # type: ignore[assignment]

    def forward(self, *inputs: Any) -> Any:
        """What the plain layer computes, after the first input gave the parameters their sizes."""
        self.initialize_parameters(inputs[0])
        return self.forward(*inputs)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        complete = self.complete
        for name in ("weight", "running_mean"):
            found = state_dict.get(prefix + name)
            if self.has_uninitialized_params() and isinstance(found, Tensor) and found.numel():
                self._initialize(self.features_of_weight(found))
                break
        complete._load_from_state_dict(self, state_dict, prefix, *rest)

    def features_of_weight(self, weight: Tensor) -> int:
        """The number of features that a weight belongs to."""
        raise NotImplementedError


class LazyLinear(_Lazy, Linear):
    """``Linear`` whose ``in_features`` is the last size of the first input.

    >>> import twofold as torch
    >>> layer = torch.nn.LazyLinear(2)
    >>> layer(torch.ones(5, 3)).shape, layer
    (twofold.Size([5, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    complete = Linear
    sized = "in_features"

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, bias, device, dtype)
        self.out_features = out_features
        self._undo()

    def features_of(self, input: Tensor) -> int:
        """The last size."""
        return int(input.shape[-1])

    def features_of_weight(self, weight: Tensor) -> int:
        """The number of columns."""
        return int(weight.shape[1])

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of weight and bias."""
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}


class _LazyConvolution(_Lazy):
    sized = "in_channels"
    axes: int
    transposed: bool
    out_channels: int
    in_channels: int
    groups: int
    kernel_size: tuple[int, ...]

    def __init__(self, out_channels: int, kernel_size: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(0, out_channels, kernel_size, *args, **kwargs)
        self._undo()

    def features_of(self, input: Tensor) -> int:
        """The size of the axis of channels."""
        if input.ndim not in (self.axes + 1, self.axes + 2):
            raise RuntimeError(
                f"Expected {self.axes + 1}D (unbatched) or {self.axes + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {list(input.shape)}"
            )
        return int(input.shape[-self.axes - 1])

    def features_of_weight(self, weight: Tensor) -> int:
        """The number of filters' channels."""
        return int(weight.shape[0] if self.transposed else weight.shape[1] * self.groups)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of weight and bias; raises ValueError where the groups do not divide the channels."""
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        weight = (first, second // self.groups, *self.kernel_size)
        return {"weight": weight, "bias": (self.out_channels,)}


class _LazyNorm(_Lazy):
    sized = "num_features"
    axes: tuple[int, ...]
    num_features: int

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                self._parameters[name] = UninitializedParameter(dtype=parameter.dtype)

    def has_uninitialized_params(self) -> bool:
        """Whether the number of features is unknown."""
        return not self.num_features

    def reset_parameters(self) -> None:
        """Set statistics, weights and biases back, as soon as they have shapes."""
        if self.num_features:
            self.complete.reset_parameters(self)  # type: ignore[attr-defined]

    def features_of(self, input: Tensor) -> int:
        """The size of the axis of channels."""
        self._check_input_dim(input)
        single = issubclass(self.complete, (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d))
        return int(input.shape[0 if single and input.ndim == self.axes[0] else 1])

    def features_of_weight(self, weight: Tensor) -> int:
        """The number of weights."""
        return int(weight.shape[0])

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of weight and bias; the statistics get theirs, too."""
        size = (self.num_features,)
        for name in ("running_mean", "running_var"):
            buffer = self._buffers[name]
            if buffer is not None:
                buffer._share_storage(new_parameter(*size, dtype=buffer.dtype).detach())
        return {"weight": size, "bias": size}


def _lazy(complete: type[Module], base: type[_Lazy]) -> type[Any]:
    """The lazy form of a layer."""
    parameter = "num_features" if base is _LazyNorm else "in_channels"
    name = f"Lazy{complete.__name__}"
    sizes = ", 4" * int(name[-2])
    doc = shown(
        f"``{complete.__name__}`` whose ``{parameter}`` is the number of channels of the first input.",
        f">>> layer = torch.nn.{name}({'' if base is _LazyNorm else '2, 1'})",
        f">>> y = layer(torch.ones(5, 3{sizes}))",
        f">>> layer.{parameter}, type(layer).__name__",
        f"(3, {complete.__name__!r})",
    )
    made: Any = type(name, (base, complete), {"complete": complete, "__doc__": doc, "__module__": __name__})

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super(made, self).__init__(*args, **kwargs)

    shown_like = base.__init__ if base is _LazyNorm else complete.__init__
    made.__init__ = shows(__init__, shown_like, without=(parameter,))
    return made


LazyConv1d, LazyConv2d, LazyConv3d, LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(layer, _LazyConvolution)
    for layer in (Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
)
(
    LazyBatchNorm1d,
    LazyBatchNorm2d,
    LazyBatchNorm3d,
    LazyInstanceNorm1d,
    LazyInstanceNorm2d,
    LazyInstanceNorm3d,
) = (
    _lazy(layer, _LazyNorm)
    for layer in (BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
)
