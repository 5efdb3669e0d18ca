"""Compiled programs have the bits of their operations one by one; where one has not, its line is named and shown."""

from __future__ import annotations

import inspect
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from tests.debug import wrong_compiler
from twofold import dynet, nn
from twofold.debug import verification
from twofold.debug.recording import recorded
from twofold.errors import ArgumentError, VerificationError

Build = Callable[[], tuple[Any, Any]]


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


def mlp() -> tuple[Any, Any]:
    return nn.Sequential(nn.Linear(7, 11), nn.Tanh(), nn.Dropout(0.3), nn.Linear(11, 3)), torch.randn(5, 7)


def convolutional() -> tuple[Any, Any]:
    layers = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 2, stride=2)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(36, 3)), torch.randn(3, 2, 6, 6)


def transformer() -> tuple[Any, Any]:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    return nn.Sequential(layer, nn.Linear(8, 3)), torch.randn(2, 5, 8)


def lstm() -> tuple[Any, Any]:
    return Lstm(), torch.randn(3, 4, 6)


MODELS = [mlp, convolutional, transformer, lstm]


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[verification.Run]]:
    """The runs that were compared."""
    seen: list[verification.Run] = []
    check = verification.check

    def noted(run: verification.Run, directory: Any = None) -> None:
        seen.append(run)
        check(run, directory)

    monkeypatch.setattr(verification, "check", noted)
    yield seen


@pytest.mark.parametrize("build", MODELS)
def test_training_steps(build: Build, checked: list[verification.Run]) -> None:
    torch.manual_seed(0)
    model, x = build()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        with torch.debug.verify():
            loss = (model(x) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        losses.append(loss.item())
    assert losses[0] != losses[2]
    called = {entry[2].name for run in checked for entry in run.entries}
    assert {"pullback", "adam_parameter"} <= called


@pytest.mark.parametrize("build", MODELS)
def test_compiled_functions(build: Build, checked: list[verification.Run]) -> None:
    torch.manual_seed(0)
    model, x = build()
    model.eval()
    with torch.no_grad():
        wanted = model(x)
        found = torch.compile(lambda one: model(one), verify=True)(x)
    assert len(checked) == 1 and found.tolist() == wanted.tolist()


def declared_mlp(x: Any) -> Any:
    return tf.layers.dense(tf.layers.dense(x, 11, activation=tf.tanh), 3)


def declared_convolutional(x: Any) -> Any:
    found = tf.layers.conv2d(tf.reshape(x, [-1, 6, 6, 1]), 4, 3)
    found = tf.nn.relu(tf.layers.batch_normalization(found, training=True))
    return tf.layers.max_pooling2d(found, 2, 2)


def declared_attention(x: Any) -> Any:
    q, k, v = (tf.layers.dense(x, 6) for _ in range(3))
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 6**0.5), v)


def declared_lstm(x: Any) -> Any:
    return tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(5), x, dtype=tf.float32)[0]


@pytest.mark.parametrize("build", [declared_mlp, declared_convolutional, declared_attention, declared_lstm])
def test_training_steps_of_sessions(build: Callable[[Any], Any], checked: list[verification.Run]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [2, 3, 12])
        loss = tf.reduce_mean(tf.square(build(x)))
        step = tf.train.AdamOptimizer(0.01).minimize(loss)
        session.run(tf.global_variables_initializer())
        feed = {x: numpy.linspace(-1, 1, 72, dtype="float32").reshape(2, 3, 12)}
        losses = [session.run([loss, step], feed, verify=True)[0] for _ in range(3)]
    assert losses[2] < losses[0] and len(checked) == 3
    assert "pullback" in {entry[2].name for entry in checked[0].entries}


def test_a_compiled_function_that_runs_as_plain_python(checked: list[verification.Run]) -> None:
    x = torch.ones(3, requires_grad=True)
    torch.compile(verify=True)(lambda one: (one * 2).exp())(x).sum().backward()
    assert [entry[2].name for run in checked for entry in run.entries] == ["multiply", "exp"]


def test_variables_and_random_numbers_of_a_session(checked: list[verification.Run]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable([1.0, 2.0])
        loss = tf.reduce_sum(tf.square(w) * tf.random_uniform([2]))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer(), verify=True)
        losses = [session.run([loss, step], verify=True)[0] for _ in range(3)]
        assert len(set(losses)) == 3 and len(checked) >= 3
        assert session.run(w).tolist() != [1.0, 2.0]
        with pytest.raises(ArgumentError, match="both debug and verify"):
            session.run(w, debug=True, verify=True)


def test_trees_that_run_in_batches(checked: list[verification.Run]) -> None:
    model = dynet.ParameterCollection()
    w, leaf = model.add_parameters((4, 8)), model.add_lookup_parameters((5, 4))
    trainer = dynet.SimpleSGDTrainer(model, 0.1)

    def node(tree: Any) -> Any:
        if isinstance(tree, int):
            return leaf[tree]
        return dynet.tanh(w * dynet.concatenate([node(one) for one in tree]))

    trees = [((0, 1), (2, (3, 4))), (4, (1, 0)), ((2, 2), 1), (((0, 3), 1), 2)]
    for _ in range(3):
        dynet.renew_cg()
        with torch.debug.verify():
            loss = dynet.esum([dynet.squared_norm(node(tree)) for tree in trees])
            loss.value()
            loss.backward()
            trainer.update()
    assert sum(entry[2].name == "tanh" for run in checked for entry in run.entries) >= 27


def test_functions_of_the_program_are_called_once(checked: list[verification.Run]) -> None:
    calls = []
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])

        def seen(array: Any) -> Any:
            calls.append(array.copy())
            return array + 1

        y = tf.py_func(seen, [x * 2.0], tf.float32)
        y.set_shape([2])
        assert session.run(tf.exp(y) * 0, {x: [1.0, 2.0]}, verify=True).tolist() == [0.0, 0.0]
    assert len(calls) == 1 and checked


def network(x: Any, w: Any) -> Any:
    hidden = torch.sin(x * 1.5)
    mixed = torch.cos(hidden @ w)  # the wrong one
    return (mixed * 3).sum(1) - hidden.sum(1)


@pytest.fixture(params=["always", "where it is inside"])
def planted(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A compiler that computes the sine for the cosine; also only where its value is not returned."""
    wrong_compiler.plant(monkeypatch, request.param == "always")
    yield request.param
    wrong_compiler.remove()


def by_run(x: Any, w: Any, path: Path) -> None:
    with torch.debug.verify(path):
        network(x, w).tolist()


def compiled(x: Any, w: Any, path: Path) -> None:
    torch.compile(network, verify=True)(x, w)


def by_session(x: Any, w: Any, path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, x.shape)
        session.run(network(fed, w), {fed: x.numpy()}, verify=True)


@pytest.mark.parametrize("face", [by_run, compiled, by_session])
def test_a_wrong_program_is_found(face: Any, planted: str, tmp_path: Path, capsys: Any) -> None:
    # sizes of this test alone: the wrong programs stay in the process
    size = 19 + 2 * [by_run, compiled, by_session].index(face) + (planted != "always")
    x = torch.tensor(numpy.linspace(0.1, 2, 3 * size, dtype="float32").reshape(3, size))
    w = torch.tensor(numpy.linspace(-1, 1, 4 * size, dtype="float32").reshape(size, 4))
    with pytest.raises(VerificationError) as caught:
        face(x, w, tmp_path)
    error = caught.value
    last = traceback.extract_tb(error.__traceback__)[-1]
    lines, first = inspect.getsourcelines(network)
    position = next(k for k, line in enumerate(lines) if "# the wrong one" in line)
    if planted == "always":
        assert (last.name, last.lineno) == ("network", first + position)
        product = numpy.sin(x.numpy() * numpy.float32(1.5)) @ w.numpy()
        numpy.testing.assert_allclose(error.compiled.numpy(), numpy.sin(product), atol=1e-5)
        numpy.testing.assert_allclose(error.alone.numpy(), numpy.cos(product), atol=1e-5)
    else:  # what reads it is the first value that somebody can see
        assert (last.name, last.lineno) == ("network", first + position + 1)
    assert error.script is not None
    with pytest.raises(SystemExit) as left:
        runpy.run_path(error.script, run_name="__main__")
    assert left.value.code == 1
    shown = capsys.readouterr().out
    assert f"differs at index {list(error.index)}" in shown
    environment = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parents[1])}
    done = subprocess.run([sys.executable, error.script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and done.stdout == "no difference\n", done.stderr  # where nothing is planted


def test_a_result_that_no_program_gives_again() -> None:
    with recorded() as tape:
        (torch.ones(3) * 2.5).tolist()
    run = verification.Run(*tape[-1])
    wrong = [(number, torch.tensor([2.5, 2.5, 2.0])) for number, _ in run.results]
    with pytest.raises(VerificationError, match=r"gives 2.0 at index \[2\], alone 2.5") as caught:
        verification.check(run._replace(results=wrong))
    assert caught.value.script is None


def test_nan_payloads_are_not_compared_and_signs_of_zero_are() -> None:
    quiet, other = numpy.array([0x7FC00000, 0x7FC00001], "uint32").view("float32")
    one, two = (torch.tensor(numpy.array([value, 0.0], "float32")) for value in (quiet, other))
    assert verification.difference(one, two) is None
    assert verification.difference(one, torch.tensor([float("nan"), -0.0])) == (1,)
    assert verification.difference(torch.tensor([1 + 2j]), torch.tensor([1 + 3j])) == (0,)


def test_values_written_in_scripts(tmp_path: Path, capsys: Any) -> None:
    """Half types, infinities, integers, loops of attributes and gradients come back as they were."""
    x = torch.tensor([[1.5, -2.0], [float("inf"), 0.25]], requires_grad=True)
    with recorded() as tape:
        y = (x.to(torch.bfloat16).float() * float("inf")).masked_fill(x > 1, 2.0).sum(1)
        z = torch.softmax(torch.randn(2, 2) + x.transpose(0, 1), -1)[torch.tensor([1, 0])]
        (gradient,) = torch.autograd.grad(z.sum() + y.sum() * 0, x, allow_unused=True)
        gradient.tolist()
    runs = [verification.Run(*run) for run in tape]
    assert runs
    for number, run in enumerate(runs):
        calls = list(range(len(run.entries)))
        culprit = verification.Culprit(calls[-1], None, "fused", calls)
        path = verification.write_script(run, calls, {}, culprit, tmp_path / str(number))
        assert path is not None
        runpy.run_path(path, run_name="__main__")
        made = runpy.run_path(path)["program"]()
        alone = verification._Check(run).values
        assert [verification.difference(*pair) for pair in zip(made, alone)] == [None] * len(calls)
    assert capsys.readouterr().out == "no difference\n" * 2 * len(runs)
