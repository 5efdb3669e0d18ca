"""Arithmetic, comparison, selection and lane operations on scalars and 16-lane vectors."""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.emitter import Emitter, Operand
from twofold.compiler.lower.values import LANES, Val, llvm_type, suffix
from twofold.dtypes import DType

_FLOAT_COMPARE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "roundeven"}
_REDUCTIONS = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "and": "and_", "or": "or_"}


def _need_float(x: Val) -> DType:
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"needs float32 or float64, got {x.dtype}; cast first")
    return x.dtype


def _is_number(x: Val) -> bool:
    """Whether a float is a constant and not NaN."""
    return x.is_constant and "0x7FF8" not in x.ref


def _need_integer(x: Val) -> DType:
    if x.dtype is None or x.dtype.kind not in "iu":
        raise TypeError(f"needs an integer dtype, got {x.dtype}")
    return x.dtype


def _need_number(x: Val) -> DType:
    if x.dtype is None or x.dtype.kind in "bc" or x.dtype in (dtypes.float16, dtypes.bfloat16):
        raise TypeError(f"no arithmetic on {x.dtype}; cast first")
    return x.dtype


class Arithmetic(Emitter):
    """Element-wise operations; strict IEEE 754: nothing is reassociated or contracted."""

    def _binary(self, opcode: str, a: Val, b: Val) -> Val:
        return self._pure(f"{opcode} {a.type} {a.ref}, {b.ref}", a.dtype, a.lanes)

    def _float_or_int(self, name: str, a: Operand, b: Operand) -> Val:
        x, y = self._unify((a, b))
        return self._computed(self._binary("f" + name if _need_number(x).kind == "f" else name, x, y))

    def add(self, a: Operand, b: Operand) -> Val:
        """a + b; integers wrap."""
        return self._float_or_int("add", a, b)

    def sub(self, a: Operand, b: Operand) -> Val:
        """a - b; integers wrap."""
        return self._float_or_int("sub", a, b)

    def mul(self, a: Operand, b: Operand) -> Val:
        """a * b; integers wrap."""
        return self._float_or_int("mul", a, b)

    def div(self, a: Operand, b: Operand) -> Val:
        """a / b of floats.

        Raises TypeError for integers (use idiv or floor_div).
        """
        x, y = self._unify((a, b))
        _need_float(x)
        return self._computed(self._binary("fdiv", x, y))

    def fma(self, a: Operand, b: Operand, c: Operand) -> Val:
        """a * b + c of floats, rounded once."""
        x, y, z = self._unify((a, b, c))
        dtype = _need_float(x)
        name = f"llvm.fma.{suffix(dtype, x.lanes)}"
        return self._computed(self._intrinsic(name, dtype, x.lanes, (x, y, z)))

    def scale(self, a: Val, exponent: Val) -> Val:
        """a * 2**exponent of sixteen float32, rounded once, for integral ``exponent``.

        Only where the processor has an instruction for it, see ``target.scales_by_powers``.
        """
        nothing, (a, exponent) = self.const(0, dtypes.float32, LANES), self._unify((a, exponent))
        operands = (a, exponent, nothing, "i16 -1", "i32 4")  # in all lanes, rounding as elsewhere
        name = "llvm.x86.avx512.mask.scalef.ps.512"
        return self._computed(self._intrinsic(name, dtypes.float32, LANES, operands))

    def neg(self, a: Val) -> Val:
        """-a; the sign bit of floats is flipped, integers wrap."""
        if _need_number(a).kind == "f":
            return self._from(self._pure(f"fneg {a.type} {a.ref}", a.dtype, a.lanes), a)
        return self.sub(0, a)

    def abs(self, a: Val) -> Val:
        """|a|; the smallest signed integer wraps to itself."""
        dtype = _need_number(a)
        if dtype.kind == "f":
            name = f"llvm.fabs.{suffix(dtype, a.lanes)}"
            return self._from(self._intrinsic(name, dtype, a.lanes, (a,)), a)
        if dtype.kind == "u":
            return a
        return self._intrinsic(f"llvm.abs.{suffix(dtype, a.lanes)}", dtype, a.lanes, (a, "i1 false"))

    def copysign(self, magnitude: Operand, sign: Operand) -> Val:
        """``magnitude`` with the sign bit of ``sign``."""
        x, y = self._unify((magnitude, sign))
        dtype = _need_float(x)
        name = f"llvm.copysign.{suffix(dtype, x.lanes)}"
        return self._from(self._intrinsic(name, dtype, x.lanes, (x, y)), x, y)

    def sqrt(self, a: Val) -> Val:
        """The square root, correctly rounded."""
        dtype = _need_float(a)
        return self._computed(self._intrinsic(f"llvm.sqrt.{suffix(dtype, a.lanes)}", dtype, a.lanes, (a,)))

    def _round(self, kind: str, a: Val) -> Val:
        if a.dtype is not None and a.dtype.kind in "iu":
            return a
        dtype = _need_float(a)
        name = f"llvm.{_ROUNDING[kind]}.{suffix(dtype, a.lanes)}"
        return self._computed(self._intrinsic(name, dtype, a.lanes, (a,)))

    def floor(self, a: Val) -> Val:
        """The largest integer not above ``a``; integers pass."""
        return self._round("floor", a)

    def ceil(self, a: Val) -> Val:
        """The smallest integer not below ``a``; integers pass."""
        return self._round("ceil", a)

    def trunc(self, a: Val) -> Val:
        """``a`` rounded toward zero; integers pass."""
        return self._round("trunc", a)

    def rint(self, a: Val) -> Val:
        """The nearest integer, halves to even; integers pass."""
        return self._round("rint", a)

    def cmp(self, kind: str, a: Operand, b: Operand) -> Val:
        """Comparison "eq ne lt le gt ge" giving bool; with a NaN only "ne" is true."""
        x, y = self._unify((a, b))
        assert x.dtype is not None
        if x.dtype.kind == "f":
            if x.dtype.itemsize == 2:
                raise TypeError(f"no comparison of {x.dtype}; cast first")
            return self._pure(f"fcmp {_FLOAT_COMPARE[kind]} {x.type} {x.ref}, {y.ref}", dtypes.bool_, x.lanes)
        sign = "" if kind in ("eq", "ne") else "s" if x.dtype.kind == "i" else "u"
        return self._pure(f"icmp {sign}{kind} {x.type} {x.ref}, {y.ref}", dtypes.bool_, x.lanes)

    def is_nan(self, a: Val) -> Val:
        """Whether each element is NaN."""
        _need_float(a)
        return self._pure(f"fcmp uno {a.type} {a.ref}, {a.ref}", dtypes.bool_, a.lanes)

    def select(self, cond: Val, a: Operand, b: Operand) -> Val:
        """``a`` where ``cond`` is true, else ``b``."""
        if cond.dtype is not dtypes.bool_:
            raise TypeError(f"a condition must be bool, got {cond.dtype}")
        x, y = self._unify((a, b))
        lanes = max(cond.lanes, x.lanes)
        x, y = self.splat(x, lanes), self.splat(y, lanes)
        if cond.lanes < lanes:
            cond = self.splat(cond, lanes)
        if x.ref == y.ref:
            return x
        return self._from(self._pure(f"select {cond.typed}, {x.typed}, {y.typed}", x.dtype, lanes), x, y)

    def settled(self, x: Val) -> Val:
        """``x`` with the NaNs that arithmetic made replaced by the canonical one: positive, quiet, no payload."""
        if not x.open_nan or x.ref in self._limited:
            return x
        assert x.dtype is not None
        if x.dtype.itemsize == 2:
            infinity = 0x7C00 if x.dtype is dtypes.float16 else 0x7F80
            magnitude = self.and_(self.bitcast(x, dtypes.int16), 0x7FFF)
            is_nan = self.cmp("gt", magnitude, infinity)
        else:
            is_nan = self.is_nan(x)
        nan = self.const(float("nan"), x.dtype, x.lanes)
        return self._pure(f"select {is_nan.typed}, {nan.typed}, {x.typed}", x.dtype, x.lanes)

    def opened(self, x: Val) -> Val:
        """``x`` as the result of arithmetic, whatever it was made by."""
        return self._computed(Val(x.ref, x.dtype, x.lanes))

    def _extreme(self, kind: str, a: Operand, b: Operand) -> Val:
        x, y = self._unify((a, b))
        assert x.dtype is not None
        if x.dtype.kind == "b":
            return self.or_(x, y) if kind == "gt" else self.and_(x, y)
        is_float = x.dtype.kind == "f"
        is_limit = _is_number(y) or (isinstance(b, Val) and b.lanes < x.lanes)
        if is_float and is_limit and not x.is_constant:
            return self._limit(kind, x, y, None if _is_number(y) else b)
        chosen = self.select(self.cmp(kind, x, y), x, y)
        if not is_float:
            return chosen
        # the select already passes a NaN in y; one in x must be put back
        return self._computed(chosen if _is_number(x) else self.select(self.is_nan(x), x, chosen))

    def _limit(self, kind: str, x: Val, limit: Val, bound: Operand | None) -> Val:
        """The larger or smaller of ``x`` and what is the same in all lanes: a constant, or the scalar ``bound``.

        NaNs become the canonical one. In a chain of limits all look for NaNs in what the first one limits, so that
        only the last one need select.
        """
        bare, source, earlier = self._limited.get(x.ref, (x, x, None))
        if not isinstance(bound, Val):
            bound = earlier
        elif earlier is not None:
            bound = self.select(self.is_nan(earlier), earlier, bound)
        chosen = self.select(self.cmp(kind, bare, limit), bare, limit)
        beside = source if bound is None else self.splat(bound, x.lanes)
        is_nan = self._pure(f"fcmp uno {source.typed}, {beside.ref}", dtypes.bool_, x.lanes)
        nan = self.const(float("nan"), x.dtype, x.lanes)  # type: ignore[arg-type]
        result = self._computed(self.select(is_nan, nan, chosen))
        self._limited[result.ref] = chosen, source, bound
        return result

    def minimum(self, a: Operand, b: Operand) -> Val:
        """The smaller; NaN if either is NaN; of zeros with two signs, ``b``."""
        return self._extreme("lt", a, b)

    def maximum(self, a: Operand, b: Operand) -> Val:
        """The larger; NaN if either is NaN; of zeros with two signs, ``b``."""
        return self._extreme("gt", a, b)

    def _logic(self, opcode: str, a: Operand, b: Operand) -> Val:
        x, y = self._unify((a, b))
        if x.dtype is not dtypes.bool_:
            _need_integer(x)
        return self._binary(opcode, x, y)

    def and_(self, a: Operand, b: Operand) -> Val:
        """Bitwise and of bools or integers."""
        return self._logic("and", a, b)

    def or_(self, a: Operand, b: Operand) -> Val:
        """Bitwise or of bools or integers."""
        return self._logic("or", a, b)

    def xor(self, a: Operand, b: Operand) -> Val:
        """Bitwise exclusive or of bools or integers."""
        return self._logic("xor", a, b)

    def not_(self, a: Val) -> Val:
        """Bitwise complement of a bool or integer."""
        return self.xor(a, True if a.dtype is dtypes.bool_ else -1)

    def shl(self, a: Operand, count: Operand) -> Val:
        """a << count; 0 for a count outside [0, width)."""
        x, n = self._unify((a, count))
        dtype = _need_integer(x)
        width = dtype.itemsize * 8
        if not isinstance(count, Val) and 0 <= count < width:
            return self._binary("shl", x, n)
        inside = self._pure(
            f"icmp ult {n.type} {n.ref}, {self.const(width, dtype, n.lanes).ref}", dtypes.bool_, n.lanes
        )
        # an oversized count is poison, so it is replaced before the shift, not after
        return self.select(inside, self._binary("shl", x, self.select(inside, n, 0)), 0)

    def shr(self, a: Operand, count: Operand) -> Val:
        """a >> count, keeping the sign; for a count outside [0, width) the sign fill (0 or -1)."""
        x, n = self._unify((a, count))
        dtype = _need_integer(x)
        width = dtype.itemsize * 8
        opcode = "ashr" if dtype.kind == "i" else "lshr"
        if not isinstance(count, Val) and 0 <= count < width:
            return self._binary(opcode, x, n)
        inside = self._pure(
            f"icmp ult {n.type} {n.ref}, {self.const(width, dtype, n.lanes).ref}", dtypes.bool_, n.lanes
        )
        if dtype.kind == "i":
            return self._binary(opcode, x, self.select(inside, n, width - 1))
        return self.select(inside, self._binary(opcode, x, self.select(inside, n, 0)), 0)

    def count_ones(self, a: Val) -> Val:
        """How many bits of an int64 scalar are set."""
        return self._intrinsic("llvm.ctpop.i64", dtypes.int64, 1, (self.index(a),))

    def trailing_zeros(self, a: Val) -> Val:
        """The position of the lowest bit that is set, of an int64 scalar other than 0."""
        return self._intrinsic("llvm.cttz.i64", dtypes.int64, 1, (self.index(a), "i1 true"))

    def bitcast(self, x: Val, dtype: DType) -> Val:
        """The same bits read as ``dtype``.

        Raises TypeError if the sizes differ.
        """
        assert x.dtype is not None
        if x.dtype.itemsize != dtype.itemsize or "b" in (x.dtype.kind, dtype.kind):
            if x.dtype is dtype:
                return x
            raise TypeError(f"cannot read the bits of {x.dtype} as {dtype}")
        kind = llvm_type(dtype, x.lanes)
        if kind == x.type:
            return Val(x.ref, dtype, x.lanes)
        return self._pure(f"bitcast {x.typed} to {kind}", dtype, x.lanes)

    def mulhi_u32(self, a: Operand, b: Operand) -> Val:
        """The high 32 bits of the 64-bit product of two uint32."""
        x, y = self._unify((a, b), dtypes.uint32)
        wide = llvm_type(dtypes.uint64, x.lanes)
        xw, yw = (self._pure(f"zext {v.typed} to {wide}", dtypes.uint64, v.lanes) for v in (x, y))
        high = self.shr(self.mul(xw, yw), 32)
        return self._pure(f"trunc {high.typed} to {x.type}", dtypes.uint32, x.lanes)

    def iota(self, start: Val | int = 0) -> Val:
        """The 16-lane int64 vector start, start+1, ..., start+15."""
        steps = Val("<" + ", ".join(f"i64 {k}" for k in range(LANES)) + ">", dtypes.int64, LANES)
        if not isinstance(start, Val):
            return Val("<" + ", ".join(f"i64 {start + k}" for k in range(LANES)) + ">", dtypes.int64, LANES)
        return self.add(steps, self.splat(self.index(start)))

    def lane_mask(self, remaining: Val | int) -> Val:
        """The 16-lane bool vector lane < remaining."""
        count = self.minimum(self.index(remaining), LANES)
        narrow = self._pure(f"trunc {count.typed} to i32", dtypes.int32, 1)
        lanes = Val("<" + ", ".join(f"i32 {k}" for k in range(LANES)) + ">", dtypes.int32, LANES)
        mask = self.cmp("lt", lanes, self.splat(narrow))
        self._counts[mask.ref] = count
        return mask

    def extract(self, x: Val, lane: int | Val) -> Val:
        """One lane as a scalar."""
        where = self.index(lane)
        return self._from(self._pure(f"extractelement {x.typed}, i64 {where.ref}", x.dtype, 1), x)

    def zip_lanes(self, a: Val, b: Val) -> tuple[Val, Val]:
        """The lanes of two vectors in turn, as two vectors: a0 b0 a1 b1 ..."""
        halves = []
        for start in (0, LANES // 2):
            lanes = [lane for k in range(start, start + LANES // 2) for lane in (k, LANES + k)]
            picked = ", ".join(f"i32 {lane}" for lane in lanes)
            text = f"shufflevector {a.typed}, {b.typed}, <{LANES} x i32> <{picked}>"
            halves.append(self._from(self._pure(text, a.dtype, LANES), a, b))
        return halves[0], halves[1]

    def reversed_lanes(self, x: Val) -> Val:
        """The lanes of a vector from the last to the first."""
        lanes = ", ".join(f"i32 {lane}" for lane in reversed(range(x.lanes)))
        text = f"shufflevector {x.typed}, {x.type} poison, <{x.lanes} x i32> <{lanes}>"
        return self._from(self._pure(text, x.dtype, x.lanes), x)

    def pushed_lanes(self, x: Val, first: Val) -> Val:
        """The scalar ``first``, then the lanes of a vector but its last."""
        before = self.splat(first, x.lanes)
        lanes = ", ".join(f"i32 {lane}" for lane in (x.lanes, *range(x.lanes - 1)))
        text = f"shufflevector {x.typed}, {before.typed}, <{x.lanes} x i32> <{lanes}>"
        return self._from(self._pure(text, x.dtype, x.lanes), x, first)

    def even_lanes(self, low: Val, high: Val) -> Val:
        """Lanes 0, 2, 4, ... of two vectors side by side."""
        lanes = ", ".join(f"i32 {2 * k}" for k in range(low.lanes))
        text = f"shufflevector {low.typed}, {high.typed}, <{low.lanes} x i32> <{lanes}>"
        return self._from(self._pure(text, low.dtype, low.lanes), low, high)

    def insert(self, x: Val, value: Operand, lane: int | Val) -> Val:
        """``x`` with one lane replaced."""
        assert x.dtype is not None
        scalar = value if isinstance(value, Val) else self.const(value, x.dtype)
        text = f"insertelement {x.typed}, {scalar.typed}, i64 {self.index(lane).ref}"
        return self._from(self._pure(text, x.dtype, x.lanes), x, scalar)

    def identity(self, kind: str, dtype: DType) -> Val:
        """The scalar that changes nothing under the reduction "sum prod max min and or"."""
        if kind in ("sum", "or"):
            return self.const(0, dtype)
        if kind in ("prod", "and"):
            return self.const(-1 if kind == "and" and dtype.kind != "b" else 1, dtype)
        if dtype.kind == "b":
            return self.const(kind == "min", dtype)
        if dtype.kind == "f":
            return self.const(float("-inf") if kind == "max" else float("inf"), dtype)
        signed = dtype.kind == "i"
        width = dtype.itemsize * 8 - signed
        low, high = (-(1 << width) if signed else 0), (1 << width) - 1
        return self.const(low if kind == "max" else high, dtype)

    def combine(self, kind: str, a: Operand, b: Operand) -> Val:
        """One step of the reduction "sum prod max min and or"."""
        return getattr(self, _REDUCTIONS[kind])(a, b)

    def reduce_lanes(self, kind: str, vec: Val, mask: Val | None = None) -> Val:
        """Combine the lanes by the fixed tree (i, i+8), (i, i+4), (i, i+2), (0, 1), without masked lanes."""
        assert vec.dtype is not None
        if mask is not None:
            vec = self.select(mask, vec, self.identity(kind, vec.dtype))
        # an LLVM reduction may pick its own tree, so the shuffles are spelled out
        width = vec.lanes
        while width > 2:
            half = width // 2
            low, high = (
                self._pure(
                    f"shufflevector {vec.typed}, {vec.type} poison, <{half} x i32> <"
                    + ", ".join(f"i32 {k}" for k in range(start, start + half))
                    + ">",
                    vec.dtype,
                    half,
                )
                for start in (0, half)
            )
            vec, width = self.combine(kind, low, high), half
        return self.combine(kind, self.extract(vec, 0), self.extract(vec, 1)) if width == 2 else vec

    def call_library(self, name: str, *operands: Val) -> Val:
        """Call the C library function ``name`` of float32 or float64 on every lane.

        The name must be that of a pure function, such as ``lgamma`` of float64.
        """
        args = self._unify(operands)
        dtype = _need_float(args[0])
        if args[0].lanes == 1:
            return self._computed(self._intrinsic(name, dtype, 1, args))
        result = Val("poison", dtype, args[0].lanes)
        for lane in range(args[0].lanes):
            scalars = [self.extract(x, lane) for x in args]
            result = self.insert(result, self._computed(self._intrinsic(name, dtype, 1, scalars)), lane)
        return result
