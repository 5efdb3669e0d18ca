"""Complex numbers: whole elements are moved as integers of their bits, arithmetic runs on their parts."""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.casts import Casts
from twofold.compiler.lower.emitter import Operand
from twofold.compiler.lower.values import Val, llvm_type
from twofold.dtypes import DType

_WORD = dtypes.uint64


def is_long(dtype: DType, lanes: int) -> bool:
    """Whether no vector instruction moves such elements, so that they are moved as two words each."""
    return lanes > 1 and dtype.itemsize > _WORD.itemsize


class Complex(Casts):
    """Taking complex elements apart and putting them together; the real part comes first."""

    def pack_complex(self, real: Val, imag: Val) -> Val:
        """The complex numbers with these parts, both float32 or both float64."""
        real, imag = map(self.settled, self._unify((real, imag)))
        assert real.dtype is not None
        return self._reread(self._side_by_side(real, imag), real.dtype.complex, real.lanes)

    def real_part(self, x: Val) -> Val:
        """The real parts of complex numbers."""
        assert x.dtype is not None
        return self._one_of_two(self._reread(x, x.dtype.real, 2 * x.lanes), 0)

    def imaginary_part(self, x: Val) -> Val:
        """The imaginary parts of complex numbers."""
        assert x.dtype is not None
        return self._one_of_two(self._reread(x, x.dtype.real, 2 * x.lanes), 1)

    def select(self, cond: Val, a: Operand, b: Operand) -> Val:
        """``a`` where ``cond`` is true, else ``b``."""
        x, y = self._unify((a, b))
        lanes = max(cond.lanes, x.lanes)
        if x.dtype is None or not is_long(x.dtype, lanes):
            return super().select(cond, a, b)
        words = [self.words(self.splat(value, lanes)) for value in (x, y)]
        chosen = super().select(self.mask_of_words(self.splat(cond, lanes)), *words)
        return self._reread(chosen, x.dtype, lanes)

    # Elements of which vector instructions move one half at a time

    def words(self, x: Val) -> Val:
        """The words of long elements, those of each side by side."""
        return self._reread(x, _WORD, 2 * x.lanes)

    def mask_of_words(self, mask: Val) -> Val:
        """A mask of long elements as one of their words."""
        return self._side_by_side(mask, mask)

    def _reread(self, x: Val, dtype: DType, lanes: int) -> Val:
        """The same bits as ``lanes`` elements of ``dtype``."""
        return self._pure(f"bitcast {x.typed} to {llvm_type(dtype, lanes)}", dtype, lanes)

    def _side_by_side(self, first: Val, second: Val) -> Val:
        """Each element of ``first`` followed by that of ``second``."""
        lanes = first.lanes
        if lanes > 1:
            order = ", ".join(f"i32 {k}, i32 {k + lanes}" for k in range(lanes))
            text = f"shufflevector {first.typed}, {second.typed}, <{2 * lanes} x i32> <{order}>"
            return self._pure(text, first.dtype, 2 * lanes)
        start = f"insertelement {llvm_type(first.dtype, 2)} poison, {first.typed}, i64 0"
        pair = self._pure(start, first.dtype, 2)
        return self._pure(f"insertelement {pair.typed}, {second.typed}, i64 1", first.dtype, 2)

    def _one_of_two(self, x: Val, which: int) -> Val:
        """The elements ``which``, ``which`` + 2, ..."""
        lanes = x.lanes // 2
        if lanes == 1:
            return self._pure(f"extractelement {x.typed}, i64 {which}", x.dtype, 1)
        order = ", ".join(f"i32 {2 * k + which}" for k in range(lanes))
        text = f"shufflevector {x.typed}, {x.type} poison, <{lanes} x i32> <{order}>"
        return self._pure(text, x.dtype, lanes)
