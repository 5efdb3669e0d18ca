"""Normalisation layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.errors import ArgumentError
from twofold.frontend.creation import CREATION, tensor
from twofold.frontend.options import check_device
from twofold.nn import functional, init
from twofold.nn.layers import new_parameter
from twofold.nn.module import Module
from twofold.runtime.tracing import message

Tensor = _core.Tensor
F: Any = functional


def _sizes(normalized_shape: Any) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(Module):
    """Normalisation over the last axes, ``normalized_shape``, with a weight and a bias for each element.

    >>> import twofold as torch
    >>> norm = torch.nn.LayerNorm(2)
    >>> norm(torch.tensor([[1.0, 3.0], [5.0, 9.0]])).detach()
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            self.register_parameter(
                name, new_parameter(*self.normalized_shape, dtype=dtype) if wanted else None
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights 1, biases 0."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """The input normalised; raises ShapeError where its last sizes are not ``normalized_shape``."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Sizes and settings."""
        shown = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return f"{shown}, bias={self.bias is not None}"


class RMSNorm(Module):
    """``x / sqrt(mean(x**2) + eps) * weight`` over the last axes.

    >>> import twofold as torch
    >>> torch.nn.RMSNorm(2, elementwise_affine=False)(torch.tensor([1.0, 7.0]))
    tensor([0.2000, 1.4000])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter(
            "weight", new_parameter(*self.normalized_shape, dtype=dtype) if elementwise_affine else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """The input normalised."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Sizes and settings."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalisation of each sample over groups of channels.

    >>> import twofold as torch
    >>> torch.nn.GroupNorm(2, 4)(torch.tensor([[1.0, 3.0, 5.0, 9.0]])).detach()
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        check_device(device)
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, new_parameter(num_channels, dtype=dtype) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights 1, biases 0."""
        if self.affine:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """The input normalised."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Sizes and settings."""
        shown = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return f"{shown}, bias={self.bias is not None}"


class _BatchNorm(Module):
    """Batch normalisation per channel (axis 1), with running statistics for evaluation."""

    _version = 2
    axes: tuple[int, ...]
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        check_device(device)
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, new_parameter(num_features, dtype=dtype) if wanted else None)
        tracked = track_running_stats
        self.register_buffer(
            "running_mean", CREATION["zeros"](num_features, dtype=dtype) if tracked else None
        )
        self.register_buffer("running_var", CREATION["ones"](num_features, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0) if tracked else None)
        self.reset_parameters()

    def _load_from_state_dict(  # type: ignore[override]
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *lists: Any
    ) -> None:
        # states of version 1 do not count batches
        key = f"{prefix}num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.num_batches_tracked is not None:
            state_dict.setdefault(key, self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *lists)

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batches seen."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Set statistics, weights and biases back."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self.axes:
            wanted = " or ".join(f"{count}D" for count in self.axes)
            what = f"expected {wanted} input (got {input.ndim}D input)"
            raise ValueError(message(what, f"Reshape it for {type(self).__name__}.", input=input))

    def forward(self, input: Tensor) -> Tensor:
        """The input normalised; in training the running statistics follow."""
        self._check_input_dim(input)
        mean, variance, training, momentum = self.running_mean, self.running_var, self.training, self.momentum
        if training and not self.track_running_stats:
            mean = variance = None
        elif training and self.num_batches_tracked is not None:
            with _core.GradientMode(False):
                self.num_batches_tracked += 1
            if momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked.item())
        return F.batch_norm(
            input,
            mean,
            variance,
            self.weight,
            self.bias,
            training or mean is None,
            0.0 if momentum is None else momentum,
            self.eps,
        )

    def extra_repr(self) -> str:
        """Sizes and settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of ``(batch, channels)`` or ``(batch, channels, length)``.

    >>> import twofold as torch
    >>> norm = torch.nn.BatchNorm1d(1)
    >>> norm(torch.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    >>> norm.running_mean
    tensor([0.2000])
    """

    axes = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of ``(batch, channels, height, width)``.

    >>> import twofold as torch
    >>> norm = torch.nn.BatchNorm2d(3)
    >>> norm(torch.randn(4, 3, 5, 5)).shape, norm.weight.shape
    (twofold.Size([4, 3, 5, 5]), twofold.Size([3]))
    """

    axes = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of ``(batch, channels, depth, height, width)``.

    >>> import twofold as torch
    >>> torch.nn.BatchNorm3d(3)(torch.randn(4, 3, 2, 5, 5)).shape
    twofold.Size([4, 3, 2, 5, 5])
    """

    axes = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over all processes, of which there is one: that of the batch.

    >>> import twofold as torch
    >>> norm = torch.nn.SyncBatchNorm(1)
    >>> norm(torch.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """

    axes = (2, 3, 4, 5)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module itself, whose normalisations see the whole batch; there are no groups of processes."""
        if process_group is not None:
            raise ArgumentError("a process_group", "Leave it out: there is one process.")
        return module


class _InstanceNorm(_BatchNorm):
    """Every channel of every sample normalised by its own statistics."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """The input normalised; in training the running statistics follow, if they are kept."""
        self._check_input_dim(input)
        single = input.ndim == self.axes[0]
        batch = input.unsqueeze(0) if single else input
        if self.affine and batch.shape[1] != self.num_features:
            what = f"expected input's size at dim={0 if single else 1} to match num_features ({self.num_features})"
            fix = f"Give {self.num_features} channels, or make the module for {batch.shape[1]}."
            raise ValueError(
                message(f"{what}, but got: {batch.shape[1]}", fix, input=input, weight=self.weight)
            )
        made = F.instance_norm(
            batch,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return made.squeeze(0) if single else made


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of ``(batch, channels, length)`` or ``(channels, length)``.

    >>> import twofold as torch
    >>> torch.nn.InstanceNorm1d(2)(torch.tensor([[[1.0, 3.0], [5.0, 9.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """

    axes = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of ``(batch, channels, height, width)`` or one image.

    >>> import twofold as torch
    >>> torch.nn.InstanceNorm2d(1)(torch.tensor([[[1.0, 3.0]]])).round(decimals=3).tolist()
    [[[-1.0, 1.0]]]
    """

    axes = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of ``(batch, channels, depth, height, width)`` or one volume.

    >>> import twofold as torch
    >>> torch.nn.InstanceNorm3d(3)(torch.randn(4, 3, 2, 5, 5)).shape
    twofold.Size([4, 3, 2, 5, 5])
    """

    axes = (4, 5)


class LocalResponseNorm(Module):
    """The input over a power of the sum of squares in ``size`` neighbouring channels.

    >>> import twofold as torch
    >>> torch.nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)(torch.ones(1, 3, 1)).flatten()
    tensor([0.3333, 0.2500, 0.3333])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """The input normalised."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Size and settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """``LocalResponseNorm`` over an odd number of channels around each of ``(batch, channels, height, width)``.

    As many on either side as fit into ``size``; an even size means one less, but squares are divided by ``size``.
    PyTorch never takes the square of the first channel out of its running sum again, so from the channel on that
    the first is no neighbour of, its results differ from this formula.

    >>> import twofold as torch
    >>> torch.nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(torch.ones(1, 3, 1, 1)).flatten()
    tensor([0.3333, 0.2500, 0.3333])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """The input normalised."""
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        width = (self.size + 1) // 2 * 2 - 1
        return F.local_response_norm(input, width, self.alpha * width / self.size, self.beta, float(self.k))

    def extra_repr(self) -> str:
        """Size and settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
