"""Linear layers, embeddings, dropout, and changes of shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.frontend.options import check_device
from twofold.frontend.sampling import dropout
from twofold.nn import functional, init
from twofold.nn.module import Module
from twofold.nn.parameter import Parameter

Tensor = _core.Tensor
F: Any = functional


def new_parameter(*size: int, dtype: Any = None) -> Parameter:
    """A parameter of a size, for ``reset_parameters`` to fill."""
    return Parameter(CREATION["empty"](*size, dtype=dtype))


class Identity(Module):
    """Returns its input; takes any arguments and forgets them.

    >>> import twofold as torch
    >>> torch.nn.Identity(54, unused=True)(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(Module):
    """``input @ weight.T + bias``, with weights of shape ``(out_features, in_features)``.

    Both are sampled uniformly from ``[-b, b)`` with ``b = 1 / sqrt(in_features)``.

    >>> import twofold as torch
    >>> torch.nn.Linear(3, 2)(torch.ones(5, 3)).shape
    twofold.Size([5, 2])
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        check_device(device)
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = new_parameter(out_features, in_features, dtype=dtype)
        if bias:
            self.bias = new_parameter(out_features, dtype=dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sample new parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """``input @ weight.T + bias``."""
        bias = self.bias
        if bias is None:
            return F.linear_without_bias(input, self.weight)
        return F.linear_with_bias(input, self.weight, bias)

    def extra_repr(self) -> str:
        """Sizes and bias."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """``Linear`` under the name that PyTorch gives the last layer of its attention."""


class Bilinear(Module):
    """``input1.T @ weight[o] @ input2 + bias[o]`` for each output ``o``.

    >>> import twofold as torch
    >>> torch.nn.Bilinear(2, 3, 4)(torch.ones(5, 2), torch.ones(5, 3)).shape
    twofold.Size([5, 4])
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = new_parameter(out_features, in1_features, in2_features, dtype=dtype)
        if bias:
            self.bias = new_parameter(out_features, dtype=dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sample new parameters."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """The bilinear form of both inputs."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes and bias."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Probability and whether it works in place."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, zero each element with probability ``p`` and scale the others by ``1 / (1 - p)``.

    >>> import twofold as torch
    >>> dropout, x = torch.nn.Dropout(0.5), torch.ones(100)
    >>> sorted(set(dropout(x).tolist()))
    [0.0, 2.0]
    >>> dropout.eval()(x).sum()
    tensor(100.)
    """

    def forward(self, input: Tensor) -> Tensor:
        """The input with elements dropped."""
        return dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """In training, zero whole channels of ``(batch, channels, length)``.

    >>> import twofold as torch
    >>> channels = torch.nn.Dropout1d()(torch.ones(1, 50, 3))[0]
    >>> (channels == channels[:, :1]).all()
    tensor(True)
    """

    def forward(self, input: Tensor) -> Tensor:
        """The input with channels dropped."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """In training, zero whole channels of ``(batch, channels, height, width)``.

    >>> import twofold as torch
    >>> channels = torch.nn.Dropout2d()(torch.ones(1, 50, 2, 2)).reshape(50, 4)
    >>> (channels == channels[:, :1]).all()
    tensor(True)
    """

    def forward(self, input: Tensor) -> Tensor:
        """The input with channels dropped."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """In training, zero whole channels of ``(batch, channels, depth, height, width)``.

    >>> import twofold as torch
    >>> channels = torch.nn.Dropout3d()(torch.ones(1, 50, 2, 2, 2)).reshape(50, 8)
    >>> (channels == channels[:, :1]).all()
    tensor(True)
    """

    def forward(self, input: Tensor) -> Tensor:
        """The input with channels dropped."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance behind ``SELU``.

    >>> import twofold as torch
    >>> torch.nn.AlphaDropout().eval()(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The input with elements dropped."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """``AlphaDropout`` of whole channels of ``(batch, channels, ...)``.

    >>> import twofold as torch
    >>> channels = torch.nn.FeatureAlphaDropout()(torch.ones(1, 50, 3))[0]
    >>> (channels == channels[:, :1]).all()
    tensor(True)
    """

    def forward(self, input: Tensor) -> Tensor:
        """The input with channels dropped."""
        return F.feature_alpha_dropout(input, self.p, self.training)


class Flatten(Module):
    """Makes the axes from ``start_dim`` to ``end_dim`` one.

    >>> import twofold as torch
    >>> torch.nn.Flatten()(torch.zeros(2, 3, 5)).shape
    twofold.Size([2, 15])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The input flattened."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Makes axis ``dim`` several of the sizes ``unflattened_size``.

    >>> import twofold as torch
    >>> torch.nn.Unflatten(1, (3, 5))(torch.zeros(2, 15)).shape
    twofold.Size([2, 3, 5])
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        sizes = unflattened_size if isinstance(unflattened_size, (tuple, list)) else (unflattened_size,)
        if sizes is not unflattened_size or not all(isinstance(size, int) for size in sizes):
            raise TypeError(
                f"Unflatten: unflattened_size is {unflattened_size!r}. Give a tuple of whole numbers."
            )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """The input unflattened."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Axis and sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class CosineSimilarity(Module):
    """The cosine of the angle between two tensors along ``dim``.

    >>> import twofold as torch
    >>> torch.nn.CosineSimilarity()(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([0.6000])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The cosine similarity."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The ``p``-norm of ``x1 - x2 + eps`` along the last axis.

    >>> import twofold as torch
    >>> torch.nn.PairwiseDistance()(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The distance."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
