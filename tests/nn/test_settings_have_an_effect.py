"""Every setting of a layer reaches the computation: another value gives another result."""

from __future__ import annotations

import inspect
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import nn

G = numpy.random.default_rng(12)


def real(*shape: int) -> Any:
    return torch.tensor(G.normal(size=shape))


def unit(*shape: int) -> Any:
    return torch.tensor(G.uniform(0.05, 0.95, shape))


def classes(high: int, *shape: int) -> Any:
    return torch.tensor(G.integers(0, high, shape))


def signs(*shape: int) -> Any:
    return torch.tensor(G.integers(0, 2, shape) * 2.0 - 1)


def distance(a: Any, b: Any) -> Any:
    return (a - b).abs().sum(-1)


SIDES = torch.tensor([1.0, -1.0, -1.0, 1.0, -1.0])
FAR = real(5, 4)
TRIPLET = (real(5, 4), FAR + 0.1 * real(5, 4), FAR)  # the second is nearer to the third than the first is
WEIGHT = torch.tensor(numpy.array([0.5, 2.0, 1.0, 3.0]))
REDUCED = {"reduction": ("sum", "none")}
POOLED = {"stride": (1,), "padding": (1,), "ceil_mode": (True,)}
IMAGES = {1: real(2, 2, 7), 2: real(2, 2, 7, 6), 3: real(1, 2, 5, 7, 6)}
Case = tuple[tuple[Any, ...], dict[str, tuple[Any, ...]], tuple[Any, ...]]
LOSSES: dict[str, Case] = {
    "BCELoss": ((), {"weight": (unit(3, 4),), **REDUCED}, (unit(3, 4), unit(3, 4))),
    "BCEWithLogitsLoss": (
        (),
        {"weight": (unit(3, 4),), "pos_weight": (WEIGHT,), **REDUCED},
        (real(3, 4), unit(3, 4)),
    ),
    "CosineEmbeddingLoss": ((), {"margin": (-0.9,), **REDUCED}, (real(5, 4), real(5, 4), SIDES)),
    "CrossEntropyLoss": (
        (),
        {"weight": (WEIGHT,), "ignore_index": (2,), "label_smoothing": (0.3,), **REDUCED},
        (real(6, 4), torch.tensor([0, 1, 2, 3, 2, 1])),
    ),
    "GaussianNLLLoss": (
        (),
        {"full": (True,), "eps": (5.0,), **REDUCED},
        (real(3, 4), real(3, 4), unit(3, 4)),
    ),
    "HingeEmbeddingLoss": ((), {"margin": (3.0,), **REDUCED}, (unit(3, 4), signs(3, 4))),
    "HuberLoss": ((), {"delta": (0.2,), **REDUCED}, (real(3, 4), real(3, 4))),
    "KLDivLoss": (
        (),
        {"log_target": (True,), "reduction": ("sum", "none", "batchmean")},
        (real(3, 4), unit(3, 4)),
    ),
    "L1Loss": ((), REDUCED, (real(3, 4), real(3, 4))),
    "MSELoss": ((), REDUCED, (real(3, 4), real(3, 4))),
    "MarginRankingLoss": ((), {"margin": (0.7,), **REDUCED}, (real(5), real(5), SIDES)),
    "MultiLabelMarginLoss": ((), REDUCED, (real(2, 4), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 2]]))),
    "MultiLabelSoftMarginLoss": ((), {"weight": (WEIGHT,), **REDUCED}, (real(3, 4), unit(3, 4).round())),
    "MultiMarginLoss": (
        (),
        {"p": (2,), "margin": (0.3,), "weight": (WEIGHT,), **REDUCED},
        (real(5, 4), classes(4, 5)),
    ),
    "NLLLoss": (
        (),
        {"weight": (WEIGHT,), "ignore_index": (2,), **REDUCED},
        (real(6, 4), torch.tensor([0, 1, 2, 3, 2, 1])),
    ),
    "PoissonNLLLoss": (
        (),
        {"log_input": (False,), "full": (True,), **REDUCED},
        (unit(3, 4), torch.tensor(G.integers(0, 6, (3, 4)) * 1.0)),
    ),
    "SmoothL1Loss": ((), {"beta": (0.2, 0.0), **REDUCED}, (real(3, 4), real(3, 4))),
    "SoftMarginLoss": ((), REDUCED, (real(3, 4), signs(3, 4))),
    "TripletMarginLoss": (
        (),
        {"margin": (3.0,), "p": (1.0,), "eps": (0.1,), "swap": (True,), **REDUCED},
        TRIPLET,
    ),
    "TripletMarginWithDistanceLoss": (
        (),
        {"distance_function": (distance,), "margin": (3.0,), "swap": (True,), **REDUCED},
        TRIPLET,
    ),
    "CTCLoss": (
        (),
        {"blank": (2,), **REDUCED},
        (
            real(6, 2, 4).log_softmax(2),
            torch.tensor([[1, 3], [3, 1]]),
            torch.tensor([6, 5]),
            torch.tensor([2, 2]),
        ),
    ),
}
LAYERS: dict[str, Case] = {
    "CELU": ((), {"alpha": (0.3,)}, (real(5),)),
    "ELU": ((), {"alpha": (0.3,)}, (real(5),)),
    "GELU": ((), {"approximate": ("tanh",)}, (real(5),)),
    "GLU": ((), {"dim": (0,)}, (real(4, 4),)),
    "Hardshrink": ((), {"lambd": (0.1,)}, (real(9),)),
    "Hardtanh": ((), {"min_val": (-0.2,), "max_val": (0.2,)}, (real(9),)),
    "LeakyReLU": ((), {"negative_slope": (0.3,)}, (real(9),)),
    "PReLU": ((), {"init": (0.5,)}, (real(9),)),
    "Softplus": ((), {"beta": (2.0,), "threshold": (0.1,)}, (real(9),)),
    "Softshrink": ((), {"lambd": (0.1,)}, (real(9),)),
    "Softmax": ((0,), {"dim": (1,)}, (real(3, 4),)),
    "Softmin": ((0,), {"dim": (1,)}, (real(3, 4),)),
    "LogSoftmax": ((0,), {"dim": (1,)}, (real(3, 4),)),
    "Flatten": ((), {"start_dim": (2,), "end_dim": (1,)}, (real(2, 3, 4),)),
    "CosineSimilarity": ((), {"dim": (0,), "eps": (9.0,)}, (real(3, 4), real(3, 4))),
    "PairwiseDistance": ((), {"p": (1.0,), "eps": (0.1,), "keepdim": (True,)}, (real(3, 4), real(3, 4))),
    "LocalResponseNorm": ((3,), {"alpha": (0.3,), "beta": (2.0,), "k": (2.0,)}, (real(2, 5, 3),)),
    "CrossMapLRN2d": ((3,), {"alpha": (0.3,), "beta": (2.0,), "k": (2.0,)}, (real(2, 5, 3, 3),)),
    "LayerNorm": ((4,), {"eps": (0.5,)}, (real(3, 4),)),
    "RMSNorm": ((4,), {"eps": (0.5,)}, (real(3, 4),)),
    "GroupNorm": ((2, 4), {"eps": (0.5,)}, (real(3, 4, 5),)),
    "BatchNorm1d": ((4,), {"eps": (0.5,)}, (real(3, 4),)),
    "BatchNorm2d": ((2,), {"eps": (0.5,)}, (IMAGES[2],)),
    "InstanceNorm1d": ((2,), {"eps": (0.5,)}, (IMAGES[1],)),
    "InstanceNorm2d": ((2,), {"eps": (0.5,)}, (IMAGES[2],)),
    "Unfold": ((2,), {"dilation": (2,), "padding": (1,), "stride": (2,)}, (IMAGES[2],)),
    "Upsample": ((None, 2.0, "bilinear"), {"align_corners": (True,), "mode": ("bicubic",)}, (IMAGES[2],)),
    **{
        f"MaxPool{n}d": ((3,), {**POOLED, "dilation": (2,), "return_indices": (True,)}, (IMAGES[n],))
        for n in (1, 2, 3)
    },
    **{f"AvgPool{n}d": ((3,), POOLED, (IMAGES[n],)) for n in (1, 2, 3)},
    **{
        f"LPPool{n}d": ((2, 3), {"stride": (1,), "ceil_mode": (True,)}, (IMAGES[n].abs(),)) for n in (1, 2, 3)
    },
    **{
        f"Conv{n}d": (
            (2, 4, 3),
            {"stride": (2,), "padding": (1,), "dilation": (2,), "groups": (2,), "bias": (False,)},
            (IMAGES[n],),
        )
        for n in (1, 2, 3)
    },
    **{
        f"ConvTranspose{n}d": (
            (2, 4, 3),
            {"stride": (2,), "padding": (1,), "dilation": (2,), "groups": (2,), "bias": (False,)},
            (IMAGES[n],),
        )
        for n in (1, 2, 3)
    },
}
CASES = LOSSES | LAYERS
SETTINGS = [
    (name, key, value) for name, case in CASES.items() for key, values in case[1].items() for value in values
]


def result(name: str, fixed: tuple[Any, ...], options: dict[str, Any], inputs: tuple[Any, ...]) -> list[Any]:
    """What the layer gives, with parameters that do not depend on the options."""
    signature = dict(zip(parameters(name), fixed))
    torch.manual_seed(0)
    layer = getattr(nn, name)(**(signature | options)).double()
    found = layer(*inputs)
    return [one.detach().numpy() for one in (found if isinstance(found, tuple) else (found,))]


def parameters(name: str) -> list[str]:
    return list(inspect.signature(getattr(nn, name)).parameters)


@pytest.mark.parametrize(
    ("name", "key", "value"), SETTINGS, ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_setting_has_an_effect(name: str, key: str, value: Any) -> None:
    fixed, _, inputs = CASES[name]
    usual, other = result(name, fixed, {}, inputs), result(name, fixed, {key: value}, inputs)
    same = len(usual) == len(other) and all(
        a.shape == b.shape and numpy.allclose(a, b, rtol=1e-7, equal_nan=True) for a, b in zip(usual, other)
    )
    assert not same, f"{name}({key}={value!r}) gives what {name}() gives"
