"""Autocast regions beside PyTorch's own: dtypes of results, and losses of trainings."""

import sys
import warnings
from pathlib import Path

import numpy
import pytest

import twofold

sys.path.insert(0, str(Path(__file__).parents[1] / "frontend"))

from autocast_cases import CASES, REGIONS, found
from test_autocast import train

torch = pytest.importorskip("torch")


def test_the_recorded_dtypes_are_those_of_the_installed_pytorch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert {
            source: tuple(found(torch, source, *region) for region in REGIONS) for source in CASES
        } == CASES


def mlp(torch):
    nn = torch.nn
    return nn.Sequential(nn.Linear(12, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))


def cnn(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 4),
    )


@pytest.mark.parametrize(("make", "shape"), [(mlp, (32, 12)), (cnn, (32, 3, 8, 8))])
def test_trainings_have_losses_close_to_those_of_pytorch(make, shape):
    random = numpy.random.default_rng(0)
    x, target = random.normal(size=shape).astype(numpy.float32), random.integers(0, 4, 32)
    torch.manual_seed(4)  # from some weights the first steps overshoot, and roundings decide how far
    theirs, ours = make(torch), make(twofold)
    ours.load_state_dict({name: twofold.tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    wanted = train(torch, theirs, torch.tensor(x), torch.tensor(target))
    losses = train(twofold, ours, twofold.tensor(x), twofold.tensor(target))
    print(make.__name__, "largest difference of losses:", numpy.abs(numpy.subtract(losses, wanted)).max())
    numpy.testing.assert_allclose(losses, wanted, atol=0.02, rtol=0.02)
    assert losses[-1] < 0.8 * losses[0]
