"""Trainers against their rules in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold.dynet as dy

Rule = Callable[[Any, Any, list[Any], int], Any]


def descent(x: Any, g: Any, s: list[Any], step: int) -> Any:
    return x - 0.05 * g


def momentum(x: Any, g: Any, s: list[Any], step: int) -> Any:
    s[0] = 0.8 * s[0] - 0.05 * g
    return x + s[0]


def adagrad(x: Any, g: Any, s: list[Any], step: int) -> Any:
    s[0] = s[0] + g * g
    return x - 0.05 * g / np.sqrt(s[0] + 1e-3)


def adadelta(x: Any, g: Any, s: list[Any], step: int) -> Any:
    s[0] = 0.9 * s[0] + 0.1 * g * g
    delta = -g * np.sqrt(s[1] + 1e-4) / np.sqrt(s[0] + 1e-4)
    s[1] = 0.9 * s[1] + 0.1 * delta * delta
    return x + delta


def rmsprop(x: Any, g: Any, s: list[Any], step: int) -> Any:
    s[0] = 0.8 * s[0] + 0.2 * g * g
    return x - 0.05 * g / np.sqrt(s[0] + 1e-3)


def adam(x: Any, g: Any, s: list[Any], step: int) -> Any:
    s[0] = 0.8 * s[0] + 0.2 * g
    s[1] = 0.9 * s[1] + 0.1 * g * g
    rate = 0.05 * math.sqrt(1 - 0.9**step) / (1 - 0.8**step)
    return x - rate * s[0] / (np.sqrt(s[1]) + 1e-2)


def amsgrad(x: Any, g: Any, s: list[Any], step: int) -> Any:
    s[0] = 0.8 * s[0] + 0.2 * g
    s[1] = 0.9 * s[1] + 0.1 * g * g
    s[2] = np.maximum(s[2], s[1])
    rate = 0.05 * math.sqrt(1 - 0.9**step) / (1 - 0.8**step)
    return x - rate * s[0] / (np.sqrt(s[2]) + 1e-2)


TRAINERS: dict[str, tuple[Any, Rule]] = {
    "SimpleSGD": (lambda m: dy.SimpleSGDTrainer(m, 0.05), descent),
    "MomentumSGD": (lambda m: dy.MomentumSGDTrainer(m, 0.05, 0.8), momentum),
    "Adagrad": (lambda m: dy.AdagradTrainer(m, 0.05, 1e-3), adagrad),
    "Adadelta": (lambda m: dy.AdadeltaTrainer(m, 1e-4, 0.9), adadelta),
    "RMSProp": (lambda m: dy.RMSPropTrainer(m, 0.05, 1e-3, 0.8), rmsprop),
    "Adam": (lambda m: dy.AdamTrainer(m, 0.05, 0.8, 0.9, 1e-2), adam),
    "Amsgrad": (lambda m: dy.AmsgradTrainer(m, 0.05, 0.8, 0.9, 1e-2), amsgrad),
}
W, TABLE = np.linspace(-1, 1, 6).reshape(2, 3), np.linspace(-1, 1, 8).reshape(4, 2) + 0.05


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("threshold", [0.5, 0])
@pytest.mark.parametrize("name", TRAINERS)
def test_updates(name: str, threshold: float, sparse: bool) -> None:
    make, rule = TRAINERS[name]
    m = dy.ParameterCollection()
    w, table = m.parameters_from_numpy(W), m.lookup_parameters_from_numpy(TABLE)
    trainer = make(m)
    trainer.set_clip_threshold(threshold)
    trainer.set_sparse_updates(sparse)
    x, rows = W.copy(), TABLE.copy()
    state, row_state = [np.zeros_like(x)] * 3, [np.zeros_like(rows)] * 3
    for step in range(1, 6):
        dy.renew_cg()
        position, vector = step % 3, np.array([1.0, step, -1.0])
        dy.squared_norm(w * dy.inputVector(vector) + table[position]).backward()
        trainer.update()
        error = 2 * (x @ vector + rows[position])
        g, row_g = np.outer(error, vector), np.zeros_like(rows)
        row_g[position] = error
        norm = np.sqrt((g**2).sum() + (row_g**2).sum())
        scale = min(1, threshold / norm) if threshold else 1
        x = rule(x, g * scale, state, step)
        old, old_state = rows, list(row_state)
        rows = rule(rows, row_g * scale, row_state, step)
        if sparse:
            touched = (np.arange(4) == position)[:, None]
            rows = np.where(touched, rows, old)
            row_state = [np.where(touched, new, before) for new, before in zip(row_state, old_state)]
    np.testing.assert_allclose(w.as_array(), x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(table.as_array(), rows, rtol=1e-4, atol=1e-5)


def test_exponentiated_gradients() -> None:
    m = dy.ParameterCollection()
    p = m.parameters_from_numpy(np.array([0.2, 0.3, 0.5]))
    trainer = dy.EGTrainer(m, 0.1, 0.5)
    x, velocity, g = np.array([0.2, 0.3, 0.5]), np.zeros(3), np.array([1.0, -1.0, 0.5])
    for _ in range(3):
        dy.renew_cg()
        dy.dot_product(p, dy.inputVector(g)).backward()
        trainer.update()
        velocity = 0.5 * velocity - 0.1 * g
        x = x * np.exp(velocity) / (x * np.exp(velocity)).sum()
    np.testing.assert_allclose(p.as_array(), x, rtol=1e-5)


def test_cyclical_rates() -> None:
    m = dy.ParameterCollection()
    p = m.add_parameters(1, init=1)
    trainer = dy.CyclicalSGDTrainer(m, 0.01, 0.11, 2, 0.5)
    rates = [trainer.learning_rate]
    for _ in range(5):
        dy.renew_cg()
        dy.square(p).backward()
        trainer.update()
        rates.append(trainer.learning_rate)
    expected = [0.01, 0.01, 0.01 + 0.05 * 0.5, 0.01 + 0.1 * 0.25, 0.01 + 0.05 * 0.125, 0.01]
    np.testing.assert_allclose(rates, expected, rtol=1e-6)


def step(m: dy.ParameterCollection, p: Any, trainer: dy.Trainer) -> float:
    dy.renew_cg()
    dy.sum_elems(p * 1).backward()
    trainer.update()
    return float(p.as_array().ravel()[0])


def test_what_is_not_updated_stays() -> None:
    m = dy.ParameterCollection()
    p, q = m.add_parameters(1, init=1), m.add_parameters(1, init=1)
    p.set_updated(False)
    trainer = dy.SimpleSGDTrainer(m, 0.5)
    assert step(m, p, trainer) == 1 and not p.is_updated()
    p.set_updated(True)
    trainer.update()
    assert p.as_array() == 0.5 and q.as_array() == 1


def test_some_parameters_are_updated() -> None:
    m = dy.ParameterCollection()
    p, q, table = (
        m.add_parameters(1, init=1),
        m.add_parameters(1, init=1),
        m.add_lookup_parameters((2, 1), init=1),
    )
    (p + q + table[0]).backward()
    dy.SimpleSGDTrainer(m, 0.5).update_subset([1], [0])
    assert (p.as_array(), q.as_array()) == (1, 0.5) and table.as_array().tolist() == [[0.5], [1]]


def test_rates_restarts_and_decay() -> None:
    m = dy.ParameterCollection()
    p = m.add_parameters(1, init=1)
    trainer = dy.MomentumSGDTrainer(m, 0.1, 0.5)
    assert step(m, p, trainer) == pytest.approx(0.9)
    assert step(m, p, trainer) == pytest.approx(0.75)
    trainer.restart(0.2)
    assert trainer.learning_rate == 0.2 and step(m, p, trainer) == pytest.approx(0.55)
    trainer.set_learning_rate(0)
    m.set_weight_decay(0.1)
    trainer.restart()
    assert step(m, p, trainer) == pytest.approx(0.55 * 0.9) and m.get_weight_decay() == 0.1
    with pytest.raises(ValueError):
        m.set_weight_decay(-1)


def test_status(capsys: pytest.CaptureFixture[str]) -> None:
    m = dy.ParameterCollection()
    p = m.add_parameters(100, init=1)
    trainer = dy.AdamTrainer(m)
    assert trainer.get_clip_threshold() == 5 and trainer.whoami() == "AdamTrainer"
    for _ in range(2):
        step(m, p, trainer)
    trainer.status()
    trainer.status()
    trainer.update_epoch(1.0)
    shown = capsys.readouterr().err
    assert "[lr=0.001 clips=2 updates=2]" in shown and "[lr=0.001 clips=0 updates=0]" in shown
    trainer.set_clip_threshold(-1)
    assert trainer.get_clip_threshold() == 0


def test_bad_gradients_are_refused() -> None:
    m = dy.ParameterCollection()
    p = m.add_parameters(1, init=0)
    dy.renew_cg()
    dy.log(p).backward()
    with pytest.raises(RuntimeError, match="gradient is bad: inf"):
        dy.SimpleSGDTrainer(m).update()


@pytest.mark.parametrize("name", ["SimpleSGDTrainer", "MomentumSGDTrainer", "AdamTrainer", "EGTrainer"])
def test_bad_gradients_change_no_parameter(name: str) -> None:
    m = dy.ParameterCollection()
    m.set_weight_decay(0.1)
    p, table = m.add_parameters(2, init=2.0), m.lookup_parameters_from_numpy(np.ones((3, 2)))
    trainer = getattr(dy, name)(m)
    dy.renew_cg()
    loss = dy.cmult(p, dy.log(dy.inputVector([0.0, 1.0]))) + table[1]
    dy.sum_elems(loss).backward()
    with pytest.raises(RuntimeError, match="gradient is bad: inf"):
        trainer.update()
    assert (p.as_array() == 2).all() and (table.as_array() == 1).all()
    dy.renew_cg()
    dy.sum_elems(dy.square(p)).backward()
    trainer.update()
    assert np.isfinite(p.as_array()).all() and (p.as_array() != 2.0).all()


@pytest.mark.parametrize("name", ["AdamTrainer", "MomentumSGDTrainer"])
def test_dense_updates_change_rows_without_a_gradient(name: str) -> None:
    rows = np.arange(1.0, 7.0).reshape(3, 2)
    m = dy.ParameterCollection()
    table = m.lookup_parameters_from_numpy(rows)
    weights = [m.parameters_from_numpy(row) for row in rows]  # the same rows, as parameters of their own
    trainer = getattr(dy, name)(m)
    trainer.set_sparse_updates(False)
    trainer.set_clip_threshold(-1)
    for used in (0, 2, 0):
        dy.renew_cg()
        if used == 0:
            loss = dy.squared_norm(table[0]) + dy.squared_norm(weights[0])
        else:
            loss = dy.squared_norm(dy.esum([table[2], table[2]])) + dy.squared_norm(weights[2] * 2)
        loss.backward()
        trainer.update()
    np.testing.assert_allclose(table.as_array(), [one.as_array() for one in weights], 1e-6)
    assert not np.array_equal(table.as_array()[2], rows[2]) and np.array_equal(table.as_array()[1], rows[1])
