"""Regions in which operations choose the dtypes of their operands, as PyTorch's on the CPU."""

import sys
import threading
from pathlib import Path

import pytest

import twofold as torch
from twofold.ir.op import REGISTRY

sys.path.insert(0, str(Path(__file__).parent))

from autocast_cases import CASES, REGIONS, found

F = torch.nn.functional
X = torch.arange(16, dtype=torch.float32).reshape(4, 4) / 16


@pytest.mark.parametrize("source", CASES)
def test_dtypes_of_results_are_those_of_pytorch(source):
    assert tuple(found(torch, source, *region) for region in REGIONS) == CASES[source]


def test_entries_name_one_of_the_policies():
    named = {op.autocast for op in REGISTRY.values()}
    assert named == {"", "lower", "float32", "widest"}


def test_a_product_is_that_of_the_cast_operands():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = X @ X
    assert torch.equal(inside, X.bfloat16() @ X.bfloat16())
    assert (X @ X).dtype is torch.float32


def test_regions_nest():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.autocast("cpu", enabled=False):
            assert (X @ X).dtype is torch.float32 and not torch.is_autocast_enabled("cpu")
        with torch.autocast("cpu", dtype=torch.float16):
            assert (X @ X).dtype is torch.float16
            assert torch.get_autocast_dtype("cpu") is torch.float16
        assert (X @ X).dtype is torch.bfloat16 and torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is torch.bfloat16


def test_one_object_may_be_entered_again_inside_itself():
    region = torch.autocast("cpu")
    with region as entered, region:
        assert entered is region
    assert not torch.is_autocast_enabled("cpu")


def test_what_held_before_holds_again_after_an_exception():
    with pytest.raises(ZeroDivisionError), torch.autocast("cpu", dtype=torch.float16):
        1 / 0  # noqa: B018
    with pytest.raises(ValueError), torch.autocast("cpu"):
        X @ torch.ones(3)
    assert not torch.is_autocast_enabled("cpu") and (X @ X).dtype is torch.float32


def test_an_error_inside_a_region_leaves_the_region_on():
    with torch.autocast("cpu"):
        for wrong in (
            lambda: X @ torch.ones(3),
            lambda: F.mse_loss(X, torch.ones(3, 3)),
            lambda: torch.inverse(X[:2]),
        ):
            with pytest.raises((ValueError, RuntimeError)):
                wrong()
            assert (X @ X).dtype is torch.bfloat16


def test_decorated_functions():
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def product(a):
        """Doc."""
        return a @ a

    @torch.autocast("cpu", enabled=False)
    def plain(a):
        return a @ a

    assert product(X).dtype is torch.bfloat16 and product.__doc__ == "Doc."
    with torch.autocast("cpu"):
        assert plain(X).dtype is torch.float32


def test_the_older_name_and_the_module():
    with torch.cpu.amp.autocast(dtype=torch.float16):
        assert (X @ X).dtype is torch.float16
    with torch.amp.autocast("cpu"):
        assert (X @ X).dtype is torch.bfloat16


def test_other_threads_are_outside():
    seen = []
    with torch.autocast("cpu"):
        thread = threading.Thread(
            target=lambda: seen.append(((X @ X).dtype, torch.is_autocast_enabled("cpu")))
        )
        thread.start()
        thread.join()
    assert seen == [(torch.float32, False)]


def test_the_state_is_set_without_a_region():
    torch.set_autocast_dtype("cpu", torch.float16)
    torch.set_autocast_enabled("cpu", True)
    try:
        assert (X @ X).dtype is torch.float16
        with torch.autocast("cpu"):
            assert torch.get_autocast_dtype("cpu") is torch.float16
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.set_autocast_dtype("cpu", torch.bfloat16)
    with pytest.raises(ValueError, match="Use 'cpu' with bfloat16 or float16"):
        torch.set_autocast_dtype("cpu", torch.float32)


def test_dtypes_and_devices_that_are_not_supported():
    with pytest.warns(UserWarning, match="target dtype twofold.float64 is not supported. Disabling"):
        region = torch.autocast("cpu", dtype=torch.float64)
    with region:
        assert (X @ X).dtype is torch.float32
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'toaster'"):
        torch.autocast("toaster")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(torch.bfloat16)


def test_a_region_of_another_device_changes_nothing():
    with torch.autocast("cpu"), torch.autocast("cuda", enabled=False):
        assert (X @ X).dtype is torch.bfloat16
    with torch.autocast("cuda"):
        assert (X @ X).dtype is torch.float32 and not torch.is_autocast_enabled("cpu")


def test_gradients_have_the_dtype_of_the_parameters():
    weight = torch.ones(4, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = F.linear(X, weight)
        loss = F.mse_loss(y, X)
    assert y.dtype is torch.bfloat16 and loss.dtype is torch.float32
    loss.backward()
    assert weight.grad.dtype is torch.float32 and bool((weight.grad != 0).all())


def test_integers_wide_floats_and_numbers_stay():
    with torch.autocast("cpu"):
        counts = torch.tensor([[1, 2], [3, 4]])
        assert (counts @ counts).dtype is torch.int64
        assert (X.double() @ X.double()).dtype is torch.float64
        assert torch.addmm(X, X, X, beta=0.5, alpha=2.0).dtype is torch.bfloat16


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_take_what_other_layers_give(kind):
    layer, cell, first = (
        getattr(torch.nn, kind)(4, 3, 2),
        getattr(torch.nn, f"{kind}Cell")(4, 3),
        torch.nn.Linear(4, 4),
    )
    narrow, wide = torch.bfloat16, torch.float32
    with torch.autocast("cpu"):
        sequence, _ = layer(first(X)[:, None])
        assert layer(X[:, None])[0].dtype is (wide if kind == "GRU" else narrow)
        state = cell(X)
        last = cell(X, state)
    assert sequence.dtype is narrow
    assert (last[0] if kind == "LSTM" else last).dtype is (narrow if kind == "RNN" else wide)
    sequence.sum().backward()
    assert all(parameter.grad.dtype is wide for parameter in layer.parameters())


def test_a_compiled_function_is_declared_for_each_state():
    @torch.compile
    def product(a):
        return a @ a

    assert product(X).dtype is torch.float32
    with torch.autocast("cpu"):
        assert product(X).dtype is torch.bfloat16
        with torch.autocast("cpu", dtype=torch.float16):
            assert product(X).dtype is torch.float16
    assert product(X).dtype is torch.float32


def test_a_checkpoint_computes_again_as_inside_the_region():
    weight = torch.ones(4, 4, requires_grad=True)
    with torch.autocast("cpu"):
        y = torch.utils.checkpoint.checkpoint(lambda w: F.linear(X, w).sin(), weight)
        plain = F.linear(X, weight).sin()
    assert y.dtype is torch.bfloat16 and torch.equal(y, plain)
    (wanted,) = torch.autograd.grad(plain.float().sum(), weight)
    y.float().sum().backward()
    assert torch.equal(weight.grad, wanted)


def test_declared_graphs_cast_too():
    import twofold.static as tf

    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, (2, 2))
        with torch.autocast("cpu"):
            y = x @ x
        assert y.dtype == torch.bfloat16 and (x @ x).dtype == torch.float32


def train(torch, model, x, target, steps=25):
    """The losses of a training in a region of bfloat16."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_training_step_that_repeats_is_predicted():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    losses = train(torch, model, X, torch.tensor([0, 1, 2, 3]))
    assert losses[-1] < losses[0] and all(p.dtype is torch.float32 for p in model.parameters())
