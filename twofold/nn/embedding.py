"""Tables of rows as layers."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.frontend.options import check_device
from twofold.nn import functional, init
from twofold.nn.layers import new_parameter
from twofold.nn.module import Module
from twofold.nn.parameter import Parameter

Tensor = _core.Tensor
F: Any = functional


class _Table(Module):
    """A table ``weight [num_embeddings, embedding_dim]`` and what is done to it."""

    weight: Tensor

    def __init__(
        self,
        rows: int,
        columns: int,
        padding_idx: int | None,
        weight: Tensor | None,
        frozen: bool,
        dtype: Any,
    ) -> None:
        super().__init__()
        if padding_idx is not None:
            if not -rows <= padding_idx < rows:
                raise AssertionError(
                    f"Padding_idx must be within num_embeddings: {padding_idx} is not one of {rows} rows. "
                    f"Give one from {-rows} to {rows - 1}."
                )
            padding_idx %= rows
        self.num_embeddings = rows
        self.embedding_dim = columns
        self.padding_idx = padding_idx
        if weight is None:
            self.weight = new_parameter(rows, columns, dtype=dtype)
            self.weight.requires_grad = not frozen
            self.reset_parameters()
        else:
            if list(weight.shape) != [rows, columns]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(weight, requires_grad=not frozen)

    def reset_parameters(self) -> None:
        """Sample new rows from the standard normal distribution; the padding is zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with _core.GradientMode(False):
                self.weight[self.padding_idx] = 0

    def _settings(self, *defaults: tuple[str, Any]) -> str:
        shown = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, default in defaults:
            value = getattr(self, name)
            if value != default:
                shown += f", {name}={value!r}"
        return shown


class Embedding(_Table):
    """A row of ``weight`` for each number; row ``padding_idx`` starts as zeros and receives no gradient.

    ``sparse`` makes ``.grad`` of the table a sparse tensor, and lets ``SparseAdam`` take it. In either case the
    gradient of a large table is kept as the rows that were looked up, until something reads it whole, and steps of
    ``SGD``, ``Adagrad`` and ``SparseAdam`` touch these rows only. See ``nn.functional.embedding`` for the others.

    >>> import twofold as torch
    >>> torch.nn.Embedding(10, 3)(torch.tensor([[1, 2], [4, 9]])).shape
    twofold.Size([2, 2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, dtype)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        """The rows at ``input``."""
        plain = self.padding_idx is None and self.max_norm is None
        if plain and not self.scale_grad_by_freq and not self.sparse:
            return F.lookup(input, self.weight)
        more = (self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        return F.embedding(input, self.weight, self.padding_idx, *more)

    def extra_repr(self) -> str:
        """Sizes and all settings that differ from the defaults."""
        return self._settings(
            ("padding_idx", None),
            ("max_norm", None),
            ("norm_type", 2),
            ("scale_grad_by_freq", False),
            ("sparse", False),
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An embedding with given rows, by default not trained."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze
        )


class EmbeddingBag(_Table):
    """The sum, mean or maximum of the rows of each bag of numbers; see ``nn.functional.embedding_bag``.

    >>> import twofold as torch
    >>> bag = torch.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bag(torch.tensor([1, 2, 4, 5]), torch.tensor([0, 3])).shape
    twofold.Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, False, dtype)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """One row for each bag."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Sizes, mode and all settings that differ from the defaults."""
        return self._settings(
            ("max_norm", None),
            ("norm_type", 2),
            ("scale_grad_by_freq", False),
            ("mode", None),
            ("padding_idx", None),
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Bags of given rows, by default not trained."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        more = (norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx)
        made = cls(rows, columns, max_norm, *more)
        made.weight.requires_grad = not freeze
        return made
