"""The Python array API standard, version 2024.12, on Twofold's tensors.

Names and meanings are the standard's (https://data-apis.org/array-api/2024.12); where PyTorch gives the same name
another meaning, the top-level package follows PyTorch and this one the standard.

>>> import twofold.array_api as xp
>>> x = xp.asarray([3.0, 1.0, 2.0])
>>> xp.sort(x, descending=True)
tensor([3., 2., 1.])
>>> x.__array_namespace__() is xp
True
"""

from math import e, inf, nan, pi

from twofold.array_api import fft, linalg
from twofold.array_api.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)  # fmt: skip
from twofold.array_api.data_types import (
    astype,
    broadcast_arrays,
    can_cast,
    finfo,
    iinfo,
    isdtype,
    result_type,
)
from twofold.array_api.elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    real,
    reciprocal,
    remainder,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
)
from twofold.array_api.info import __array_namespace_info__
from twofold.array_api.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from twofold.array_api.manipulation import (
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    unstack,
)  # fmt: skip
from twofold.array_api.searching import (
    argmax,
    argmin,
    argsort,
    count_nonzero,
    nonzero,
    searchsorted,
    sort,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    where,
)  # fmt: skip
from twofold.array_api.statistics import (
    all,
    any,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)  # fmt: skip
from twofold.dtypes import (
    bool_ as bool,
)
from twofold.dtypes import (
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip

__array_api_version__ = "2024.12"
newaxis = None

__all__ = [name for name in globals() if not name.startswith("_")]
