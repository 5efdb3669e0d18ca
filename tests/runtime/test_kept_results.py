"""What depends on weights alone is computed once, until a weight changes by whatever means."""

import ctypes
import gc
import mmap

import numpy
import pytest

import twofold as torch
from tests.core.test_templates import tier
from twofold import _core, nn
from twofold.compiler.linking import Trace, compile_outlined
from twofold.config import config

KEPT = "kept results"


def model(width=96):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(80, width), nn.Tanh(), nn.Linear(width, 80), nn.Tanh(), nn.Linear(80, 33))


def given(number):
    return torch.tensor(numpy.random.default_rng(number).standard_normal((70, 80)).astype("float32"))


def expected(made, x):
    """The same in float64, by NumPy."""
    value = x.numpy().astype("float64")
    for layer in made:
        if isinstance(layer, nn.Tanh):
            value = numpy.tanh(value)
        else:
            weight, bias = (part.detach().clone().numpy() for part in (layer.weight, layer.bias))
            value = value @ weight.astype("float64").T + bias
    return value


def run(made, runs=6, first=0):
    """Runs until results are kept; compares all of them."""
    for number in range(first, first + runs):
        x = given(number)
        with torch.no_grad(), tier("fused"):
            found = made(x).numpy()
        numpy.testing.assert_allclose(found, expected(made, x), rtol=2e-5, atol=2e-5)


@pytest.fixture
def kept():
    """How many programs keep results, beyond those that did before."""
    gc.collect()
    before = _core.statistics()[KEPT]
    return lambda: _core.statistics()[KEPT] - before


def test_packed_weights_are_kept_and_dropped_with_what_they_are_of(kept):
    made = model(width=90)
    run(made)
    assert kept() == 1
    del made
    gc.collect()
    assert kept() == 0


def test_a_layout_that_pays_if_it_is_kept_is_chosen_where_nothing_is_differentiated():
    x = torch.tensor(numpy.random.default_rng(0).random((37, 768), "float32"))
    weight = torch.tensor(numpy.ones((3072, 768), "float32"), requires_grad=True)
    for grows in (False, True):
        with torch.set_grad_enabled(grows), tier("fused"):
            torch.relu(x @ weight.T).sum().item()
        trace = Trace.of(_core.describe_executable(_core.last_executable()))
        assert trace.infers is not grows
        (packed,) = [one for one in compile_outlined(trace).schedule.instructions if one.name == "pack"]
        kind, number = packed.buffers[0]
        # 37 columns would fill 37 of 48 lanes
        assert kind == "input" and trace.input_types[number].shape == ((37, 768) if grows else (3072, 768))


def by_optimizer(made):
    optimizer = torch.optim.SGD(made.parameters(), lr=0.5)
    made(given(90)).sum().backward()
    optimizer.step()


def by_data(made):
    made[2].weight.data.mul_(1.5)


def by_no_grad(made):
    with torch.no_grad():
        made[2].weight[3] = 7.0


def by_copy(made):
    made.load_state_dict({name: 0.5 * value for name, value in made.state_dict().items()})


def by_array(made):
    made[0].weight.detach().numpy()[:] *= -1


def by_pointer(made):
    weight = made[2].weight
    array = numpy.full(weight.numel(), 0.25, "float32")
    ctypes.memmove(weight.data_ptr(), array.ctypes.data, array.nbytes)


def by_replacement(made):
    made[4].weight = nn.Parameter(torch.ones(33, 80))


CHANGES = [by_optimizer, by_data, by_no_grad, by_copy, by_array, by_pointer, by_replacement]


@pytest.mark.parametrize("change", CHANGES)
def test_a_weight_that_changes_is_noticed(change, kept):
    made = model(width=96 + 2 * CHANGES.index(change))
    run(made)
    assert kept() == 1
    change(made)
    run(made, first=20)
    change(made)
    run(made, 2, first=40)


def test_an_array_that_is_kept_and_written_to_is_noticed():
    made = model(width=114)
    array = made[0].weight.detach().numpy()
    run(made)
    for _ in range(3):
        array *= 0.5
        run(made, 2)


def test_an_address_that_was_handed_out_is_never_trusted(kept):
    made = model(width=116)
    address = made[2].weight.data_ptr()
    run(made)
    array = numpy.full(made[2].weight.numel(), 0.25, "float32")
    ctypes.memmove(address, array.ctypes.data, array.nbytes)
    run(made, 2)
    assert kept() <= 1


def test_frozen_weights_are_kept_once_other_inputs_have_changed(kept):
    made = model(width=112).requires_grad_(False)
    run(made)
    assert kept() == 1


def test_data_that_happen_to_be_the_same_are_not_taken_for_weights(kept):
    made, x = model(width=128).requires_grad_(False), given(0)
    with tier("fused"):
        for _ in range(8):
            made(x).numpy()
    assert kept() == 0


def test_weights_that_change_in_each_step_are_not_kept(kept):
    made = model(width=144)
    optimizer = torch.optim.SGD(made.parameters(), lr=1e-3)
    with tier("fused"):
        for number in range(8):
            loss = made(given(number)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
    assert kept() == 0


def test_the_budget_of_caches_bounds_what_is_kept(kept):
    made = model(width=160)
    with config.scoped(cache_bytes=1 << 12):
        run(made)
        assert kept() == 0


def test_training_and_evaluation_in_turn_have_the_same_bits_as_without_keeping():
    def losses(name):
        with tier(name):
            made, found = model(width=176), []
            optimizer = torch.optim.SGD(made.parameters(), lr=1e-2)
            for _ in range(3):
                for number in range(4):
                    loss = made(given(number)).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                for number in range(8):
                    with torch.no_grad():
                        found.append(made(given(number)).square().mean().item())
            return found

    assert losses("fused") == losses("unfused")


def test_memory_that_processes_share_is_never_trusted(kept):
    made = model(width=192)
    for parameter in made.parameters():
        array = parameter.detach().numpy()
        mapped = numpy.frombuffer(mmap.mmap(-1, array.nbytes), array.dtype).reshape(array.shape)
        mapped[...] = array
        parameter.data = torch.from_numpy(mapped)
    del array, mapped
    run(made)
    assert kept() == 0


def test_variables_of_a_session_are_kept_until_they_are_assigned(kept):
    import twofold.static as tf

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [70, 80])
        weight = tf.Variable(numpy.random.default_rng(0).standard_normal((200, 80)).astype("float32"))
        y = tf.tanh(tf.matmul(x, weight, transpose_b=True))
        assign = weight.assign(weight * 0.5)
        session.run(tf.global_variables_initializer())
        with tier("fused"):
            for turn in range(3):
                for number in range(8):
                    fed = given(number).numpy()
                    values = numpy.asarray(session.run(weight)).astype("float64")
                    found = session.run(y, {x: fed})
                    numpy.testing.assert_allclose(found, numpy.tanh(fed @ values.T), rtol=1e-5, atol=1e-5)
                assert kept() == 1, turn
                session.run(assign)


def test_what_a_constant_and_a_weight_determine_is_kept():
    torch.manual_seed(0)
    made = nn.LSTM(200, 200)  # its recurrent weight is padded with a constant
    gc.collect()
    before = torch.stats().caches[KEPT].bytes
    expected, found = set(), set()
    for number in range(8):
        x = torch.tensor(numpy.random.default_rng(number).standard_normal((9, 1, 200)).astype("float32"))
        with torch.no_grad():
            with tier("unfused"):
                expected.add(made(x)[0].numpy().tobytes())
            with tier("fused"):
                found.add(made(x)[0].numpy().tobytes())
    assert found == expected
    recurrent = made.weight_hh_l0.numel() * 4
    assert torch.stats().caches[KEPT].bytes - before >= 2 * recurrent
