"""Gradients of large tables that nobody reads are kept as the rows they are sums of."""

import copy
import pickle
import threading

import numpy as np
import pytest

import twofold as torch
from twofold import _core

ROWS, WIDTH = 3000, 8
F = torch.nn.functional


@pytest.fixture
def fused_only():
    """From its call on nothing runs one by one."""
    yield lambda: _core.set_tier("fused")
    _core.set_tier("auto")


def drawn():
    return np.random.default_rng(3).standard_normal((ROWS, WIDTH)).astype(np.float32)


def dense(positions, factor=2.0):
    found = np.zeros((ROWS, WIDTH), np.float32)
    table = drawn()
    for position in positions:
        found[position] += np.float32(factor) * table[position]
    return found


def looked_up(positions, w, sparse=False):
    rows = F.embedding(torch.tensor(positions), w, sparse=sparse)
    return (rows * rows).sum()


def test_a_gradient_is_what_it_was_when_it_is_read_later():
    w = torch.tensor(drawn(), requires_grad=True)
    looked_up([1, 5, 1], w).backward()
    _core.flush()
    with torch.no_grad():
        w.mul_(7)
    _core.flush()
    np.testing.assert_array_equal(w.grad.numpy(), dense([1, 5, 1]))
    np.testing.assert_array_equal((w.grad + 1).numpy(), dense([1, 5, 1]) + 1)


def test_the_index_may_change_once_it_was_used():
    memory = np.array([1, 5, 1])
    positions = torch.from_numpy(memory)
    w = torch.tensor(drawn(), requires_grad=True)
    rows = F.embedding(positions, w)
    (rows * rows).sum().backward()
    _core.flush()
    memory[:] = 9
    positions.fill_(8)
    np.testing.assert_array_equal(w.grad.numpy(), dense([1, 5, 1]))


def test_gradients_of_several_passes_add_up():
    w = torch.tensor(drawn(), requires_grad=True)
    expected = np.zeros((ROWS, WIDTH), np.float32)
    for turn in range(20):  # more than are deferred together
        looked_up([turn, turn // 2], w).backward()
        _core.flush()
        expected += dense([turn, turn // 2])
    np.testing.assert_array_equal(w.grad.numpy(), expected)


def test_a_gradient_is_changed_in_place():
    w = torch.tensor(drawn(), requires_grad=True)
    looked_up([1, 5], w).backward()
    _core.flush()
    w.grad.mul_(3)
    w.grad[7] = 1
    expected = dense([1, 5]) * np.float32(3)
    expected[7] = 1
    np.testing.assert_array_equal(w.grad.numpy(), expected)


def test_a_gradient_becomes_a_leaf():
    w = torch.tensor(drawn(), requires_grad=True)
    looked_up([1, 5], w).backward()
    _core.flush()
    gradient = w.grad
    gradient.requires_grad_()
    (gradient * 2).sum().backward()
    assert gradient.grad.tolist() == [[2.0] * WIDTH] * ROWS
    assert torch.nn.Parameter(w.grad.detach()).shape == (ROWS, WIDTH)


def test_gradients_of_gradients_are_not_deferred():
    w = torch.tensor(drawn(), requires_grad=True)
    (gradient,) = torch.autograd.grad(looked_up([1, 5], w), w, create_graph=True)
    _core.flush()
    (second,) = torch.autograd.grad((gradient * gradient).sum(), w)
    np.testing.assert_allclose(second.numpy(), dense([1, 5], 8.0), rtol=1e-6)


def test_a_gradient_is_copied_and_kept_in_files():
    w = torch.tensor(drawn(), requires_grad=True)
    looked_up([1, 5], w).backward()
    _core.flush()
    again = copy.deepcopy(w)
    for gradient in (again.grad, pickle.loads(pickle.dumps(w.grad))):
        np.testing.assert_array_equal(gradient.numpy(), dense([1, 5]))


def test_limited_norms_are_those_of_dense_gradients():
    w = torch.tensor(drawn(), requires_grad=True)
    looked_up([1, 5], w).backward()
    _core.flush()
    norm = torch.nn.utils.clip_grad_norm_([w], 0.5)
    np.testing.assert_allclose(norm.item(), np.linalg.norm(dense([1, 5])), rtol=1e-6)
    np.testing.assert_allclose(w.grad.numpy(), dense([1, 5]) * (0.5 / norm.item()), rtol=1e-5)


def test_another_thread_reads_a_gradient():
    w = torch.tensor(drawn(), requires_grad=True)
    looked_up([1, 5], w).backward()
    _core.flush()
    found = []
    thread = threading.Thread(target=lambda: found.append((w.grad * 2).numpy()))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], dense([1, 5]) * 2)
    np.testing.assert_array_equal(w.grad.numpy(), dense([1, 5]))


def test_a_wrong_index_is_told_when_the_gradient_is_read():
    w = torch.tensor(drawn(), requires_grad=True)
    looked_up([1, ROWS], w).backward()
    with pytest.raises(IndexError, match=f"index {ROWS} is outside"):
        w.grad.sum().item()


@pytest.mark.parametrize(
    "make",
    [
        lambda w: torch.optim.SGD([w], lr=0.1),
        lambda w: torch.optim.SGD([w], lr=0.1, momentum=0.9),
        lambda w: torch.optim.SGD([w], lr=0.1, weight_decay=0.1, maximize=True),
        lambda w: torch.optim.Adam([w], lr=0.1),
        lambda w: torch.optim.Adagrad([w], lr=0.1),
        lambda w: torch.optim.SparseAdam([w], lr=0.1),
    ],
)
def test_steps_have_the_same_bits_when_gradients_are_read(make):
    def trained(reads):
        w = torch.tensor(drawn(), requires_grad=True)
        optimizer = make(w)
        for turn in range(6):
            optimizer.zero_grad(set_to_none=turn % 2 == 0)
            looked_up([turn, 7, turn], w, isinstance(optimizer, torch.optim.SparseAdam)).backward()
            if reads:
                w.grad.to_dense().numpy()
            optimizer.step()
            torch.wait_for_compiler()
        return w.detach().numpy()

    np.testing.assert_array_equal(trained(True), trained(False))


def test_a_repeated_step_keeps_its_prediction():
    w = torch.tensor(drawn(), requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for turn in range(8):
        if turn == 5:
            before = _core.statistics()
        optimizer.zero_grad()
        looked_up([turn, 7], w).backward()
        optimizer.step()
    after = _core.statistics()
    assert after["predicted_flushes"] > before["predicted_flushes"]
    assert after["other_flushes"] == before["other_flushes"]


@pytest.mark.parametrize(
    "make",
    [
        lambda w: torch.optim.SGD([w], lr=0.1),
        lambda w: torch.optim.Adagrad([w], lr=0.1),
        lambda w: torch.optim.SparseAdam([w], lr=0.1),
    ],
)
def test_a_compiled_step_needs_no_second_table(make, fused_only):
    w = torch.zeros(20_000, 64).requires_grad_()
    optimizer = make(w)
    for turn in range(8):
        optimizer.zero_grad()
        looked_up([turn, 7] * 16, w, isinstance(optimizer, torch.optim.SparseAdam)).backward()
        if turn == 5:
            fused_only()
            _core.reset_peak()
            before = _core.statistics()["pool_in_use_bytes"]
        optimizer.step()
    assert _core.statistics()["pool_peak_bytes"] - before < w.nbytes // 8


LOOKUPS = {
    "embedding": lambda w, k: F.embedding(k, w),
    "embedding with padding": lambda w, k: F.embedding(k, w, padding_idx=1),
    "embedding of a matrix": lambda w, k: F.embedding(k.reshape(2, -1), w),
    "bags": lambda w, k: F.embedding_bag(k.reshape(4, -1), w),
    "bags of sums with padding": lambda w, k: F.embedding_bag(k.reshape(4, -1), w, mode="sum", padding_idx=1),
    "index": lambda w, k: w[k],
    "index_select": lambda w, k: w.index_select(0, k),
    "two lookups": lambda w, k: F.embedding(k, w) * F.embedding(k + 1, w),
    "scaled by frequency": lambda w, k: F.embedding(k, w, scale_grad_by_freq=True),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_steps_of_every_kind_of_lookup(name, fused_only):
    w = torch.zeros(20_000, 64).requires_grad_()
    expected = torch.zeros(20_000, 64).requires_grad_()
    optimizers = [torch.optim.SGD([table], lr=0.1) for table in (w, expected)]
    for turn in range(6):
        positions = torch.tensor([turn, 7, 3, turn] * 2)
        for table, optimizer in zip((w, expected), optimizers, strict=True):
            optimizer.zero_grad()
            ((LOOKUPS[name](table, positions) - 1) ** 2).sum().backward()
            if table is expected:
                table.grad.numpy()
                optimizer.step()
                continue
            if turn == 5:
                fused_only()
                _core.reset_peak()
                before = _core.statistics()["pool_in_use_bytes"]
            optimizer.step()
            if turn == 5:
                assert _core.statistics()["pool_peak_bytes"] - before < w.nbytes // 8
    np.testing.assert_array_equal(w.detach().numpy(), expected.detach().numpy())
