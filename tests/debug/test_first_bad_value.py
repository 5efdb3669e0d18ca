"""The first value that is not finite is named by its line, in networks with one thing wrong."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from tests.core.in_child import run
from twofold import _core, nn
from twofold.errors import AnomalyError
from twofold.nn import functional as F

NAN, INF = float("nan"), float("inf")


class Norm(nn.Module):
    """A layer norm with a mistake that can be planted."""

    def __init__(self, size: int, wrong: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.wrong = wrong

    def forward(self, x: Any) -> Any:
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        if self.wrong == "no epsilon":
            return (x * 0 - (x * 0).mean(-1, keepdim=True)) / (variance * 0).sqrt()  # bug: no epsilon
        if self.wrong == "root of a negative":
            return centred / (variance - 1e3).sqrt()  # bug: root of a negative
        if self.wrong == "cubed scale":
            return centred * (self.weight * 1e15) ** 3  # bug: cubed scale
        return centred / (variance + 1e-5).sqrt() * self.weight


class Attention(nn.Module):
    def __init__(self, size: int, wrong: str) -> None:
        super().__init__()
        self.qkv = nn.Linear(size, 3 * size)
        self.wrong = wrong

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-1, -2)
        mask = torch.full((x.shape[1], x.shape[1]), -INF).triu(1)
        if self.wrong == "masked row":
            mask = torch.full((x.shape[1], x.shape[1]), -INF)
            return torch.softmax(scores + mask, -1) @ v  # bug: masked row
        if self.wrong == "own softmax":
            powers = (scores * 0 + 200.0).exp()  # bug: own softmax
            return powers / powers.sum(-1, keepdim=True) @ v
        if self.wrong == "zero sum":
            weights = torch.relu(scores * 0)
            return weights / weights.sum(-1, keepdim=True) @ v  # bug: zero sum
        if self.wrong == "log of weights":
            weights = torch.softmax(scores + mask, -1)
            entropy = (weights * weights.log()).sum()  # bug: log of weights
            return weights @ v + entropy
        return torch.softmax(scores + mask, -1) @ v


class Block(nn.Module):
    def __init__(self, size: int, wrong: str) -> None:
        super().__init__()
        self.norm, self.attention = Norm(size, wrong), Attention(size, wrong)
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)
        self.wrong = wrong

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm(x))
        hidden = self.up(x)
        if self.wrong == "half overflow":
            hidden = (hidden * 0 + 7e4).half().float()  # bug: half overflow
        return x + self.down(F.gelu(hidden))


class Transformer(nn.Module):
    def __init__(self, wrong: str = "") -> None:
        super().__init__()
        self.table = nn.Embedding(7, 8)
        self.blocks = nn.ModuleList([Block(8, ""), Block(8, wrong)])
        self.out = nn.Linear(8, 7)
        self.wrong = wrong

    def forward(self, x: Any) -> Any:
        hidden = self.table(x)
        if self.wrong == "bad table":
            hidden = hidden / torch.zeros(8)  # bug: bad table
        for block in self.blocks:
            hidden = block(hidden)
        logits = self.out(hidden)
        if self.wrong == "log of softmax":
            return -(torch.softmax(logits * 1e4, -1)).log().sum()  # bug: log of softmax
        if self.wrong == "gradient of norm":
            return logits.sum() + torch.sqrt((hidden * 0).square().sum())  # bug: gradient of norm
        return F.cross_entropy(logits.reshape(-1, 7), x.reshape(-1))


class Residual(nn.Module):
    def __init__(self, planes: int, wrong: str = "") -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(planes, planes, 3, padding=1, bias=False), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False), nn.BatchNorm2d(planes)
        self.wrong = wrong

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.bn1(self.conv1(x)))
        if self.wrong == "scaled up":
            y = y * 1e30 * 1e30  # bug: scaled up
        y = self.bn2(self.conv2(y))
        if self.wrong == "power":
            y = (y - 100.0).pow(0.5)  # bug: power
        if self.wrong == "difference":
            y = y + (x.abs() + 1).log() * INF - INF  # bug: difference
        if self.wrong == "in backward":
            y = y + torch.sqrt(torch.relu(y) * 0)  # bug: in backward
        return torch.relu(x + y)


class ResNet(nn.Module):
    """ResNet-18's stages with few planes."""

    def __init__(self, wrong: str = "") -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.blocks = nn.Sequential(*[Residual(4, wrong if k == 5 else "") for k in range(8)])
        self.head = nn.Linear(4, 3)
        self.wrong = wrong

    def forward(self, x: Any) -> Any:
        if self.wrong == "normalised input":
            x = (x - x.mean()) / (x * 0).std()  # bug: normalised input
        y = self.blocks(self.stem(x)).mean((2, 3))
        if self.wrong == "cosine":
            y = y * 0
            y = y / y.norm(dim=1, keepdim=True)  # bug: cosine
        logits = self.head(y)
        if self.wrong == "label":
            return (-torch.log_softmax(logits, -1) * torch.log(logits * 0)).sum()  # bug: label
        return F.cross_entropy(logits, torch.tensor([0, 2]))


class Cell(nn.Module):
    def __init__(self, wrong: str) -> None:
        super().__init__()
        self.gates = nn.Linear(8, 16)
        self.wrong = wrong

    def forward(self, x: Any, state: tuple[Any, Any], step: int) -> tuple[Any, Any]:
        h, c = state
        i, f, g, o = self.gates(torch.cat([x, h], -1)).chunk(4, -1)
        if self.wrong == "gate" and step == 3:
            f = 1 / (f * 0)  # bug: gate
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        if self.wrong == "exponential gate":
            c = c * torch.exp(i * 0 + 60.0)  # bug: exponential gate
        if self.wrong == "inverse" and step == 2:
            c = torch.acos(c + 5.0)  # bug: inverse
        return o.sigmoid() * c.tanh() if self.wrong != "exponential gate" else c, c


class Lstm(nn.Module):
    def __init__(self, wrong: str = "") -> None:
        super().__init__()
        self.cell, self.out = Cell(wrong), nn.Linear(4, 1)
        self.wrong = wrong

    def forward(self, x: Any) -> Any:
        h = c = torch.zeros(2, 4)
        for step in range(6):
            h, c = self.cell(x[:, step], (h, c), step)
        y = self.out(h)
        if self.wrong == "perplexity":
            return torch.exp(y.square().sum() * 0 + 1e3)  # bug: perplexity
        if self.wrong == "rate":
            return y.sum() + (h * 0).pow(0.5).sum()  # bug: rate
        return y.square().mean()


PIXELS, WORDS, SERIES = (2, 3, 6, 6), (2, 5), (2, 6, 4)
CASES = [
    *[(Transformer, WORDS, wrong) for wrong in (
        "no epsilon", "root of a negative", "cubed scale", "masked row", "own softmax", "zero sum", "log of weights",
        "half overflow", "bad table", "log of softmax", "gradient of norm",
    )],
    *[(ResNet, PIXELS, wrong) for wrong in (
        "scaled up", "power", "difference", "in backward", "normalised input", "cosine", "label",
    )],
    *[(Lstm, SERIES, wrong) for wrong in ("gate", "exponential gate", "inverse", "perplexity", "rate")],
]  # fmt: skip


def data(size: tuple[int, ...]) -> Any:
    return torch.randint(0, 7, size) if size == WORDS else torch.randn(*size)


def planted_line(wrong: str) -> str:
    source = inspect.getsource(inspect.getmodule(planted_line))  # type: ignore[arg-type]
    (line,) = [line.strip() for line in source.splitlines() if line.endswith(f"# bug: {wrong}")]
    return line


def train(model: Any, x: Any) -> float:
    for parameter in model.parameters():
        parameter.grad = None
    loss = model(x)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= 0.01 * parameter.grad
    return loss.item()


@contextmanager
def on_tier(name: str) -> Iterator[None]:
    _core.set_tier(name)
    try:
        yield
    finally:
        _core.set_tier("auto")


@pytest.mark.parametrize("tier", ["unfused", "auto", "fused"])
@pytest.mark.parametrize(("build", "size", "wrong"), CASES, ids=[case[2] for case in CASES])
def test_the_planted_line_is_named(
    build: Callable[[str], Any], size: tuple[int, ...], wrong: str, tier: str
) -> None:
    torch.manual_seed(0)
    model, x = build(wrong), data(size)
    with on_tier(tier), pytest.raises(AnomalyError) as caught, torch.detect_anomaly():
        for _ in range(3):
            train(model, x)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == planted_line(wrong)


@pytest.mark.parametrize("build", [Transformer, ResNet, Lstm])
def test_nothing_is_named_where_nothing_is_wrong(build: Callable[[], Any]) -> None:
    torch.manual_seed(0)
    size = {Transformer: WORDS, ResNet: PIXELS, Lstm: SERIES}[build]  # type: ignore[index]
    model, x = build(), data(size)
    with torch.detect_anomaly():
        losses = [train(model, x) for _ in range(4)]
    torch.manual_seed(0)
    model, x = build(), data(size)
    assert losses == [train(model, x) for _ in range(4)]


KINDS = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]


@pytest.mark.parametrize("made", ["x / x", "1 / x", "-1 / x"])
@pytest.mark.parametrize("index", [0, 15, 16, 40, 66])
@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_kernels_tell_what_they_store(dtype: Any, index: int, made: str) -> None:
    values = numpy.ones(67, numpy.float32)
    finite = torch.tensor(values).to(dtype)
    values[index] = 0.0
    given = torch.tensor(values).to(dtype)
    finite._realise(), given._realise()

    def run(x: Any) -> Any:
        y = eval(made)
        (y * 1)._realise()
        return y

    with on_tier("fused"), torch.detect_anomaly():
        for _ in range(2):
            run(finite)
        with pytest.raises(AnomalyError):
            run(given)


def test_what_a_bad_value_is_computed_from_is_not_overwritten_by_a_result() -> None:
    def root(first: float) -> list[float]:
        x = torch.tensor([first, 4.0], requires_grad=True)
        (torch.sqrt(x) * 2).sum().backward()
        gradient: list[float] = x.grad.tolist()
        return gradient

    with on_tier("fused"), torch.detect_anomaly():
        for _ in range(3):
            root(1.0)
        with pytest.raises(AnomalyError, match="backward pass of sqrt.* a division of 2 by zero"):
            root(0.0)


@pytest.mark.parametrize("shape", [(3, 4, 5), (70, 33, 65), (1, 64, 256)])
def test_products_tell_what_they_store(shape: tuple[int, int, int]) -> None:
    rows, depth, columns = shape
    x, w = torch.ones(rows, depth), torch.ones(depth, columns)
    big = torch.ones(rows, depth)
    big[-1, -1] = 3e38
    w[-1, -1] = 2.0
    for value in (x, w, big):
        value._realise()
    with on_tier("fused"), torch.detect_anomaly():
        for _ in range(2):
            (x @ w).numpy(), (x @ w).relu().numpy()
        for run in (lambda: (big @ w).numpy(), lambda: (big @ w).relu().numpy()):
            with pytest.raises(AnomalyError, match="matmul"):
                run()


def dense(optimizer: Any) -> Callable[[Any], None]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 8))
    steps = optimizer(model.parameters())

    def step(x: Any) -> None:
        steps.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        steps.step()
        loss.item()

    step.weight = model[0].weight  # type: ignore[attr-defined]
    step.optimizer = steps  # type: ignore[attr-defined]
    return step


OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, 0.01),
    "Adam": lambda parameters: torch.optim.Adam(parameters, 0.01),
}


def test_parameters_are_updated_in_place_all_the_same() -> None:
    program = """
import twofold as torch
from twofold import _core

_core.set_tier("fused")
model = torch.nn.Linear(1000, 1000, bias=False)
steps, x = torch.optim.SGD(model.parameters(), 1e-3), torch.randn(1, 1000)

def peak():
    for _ in range(4):
        steps.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        steps.step()
        loss.item()
    return torch.stats().pool_peak

outside = peak()
with torch.detect_anomaly():
    print(peak() - outside)
"""
    assert int(run(program)) < 4_000_000  # bytes of the parameter


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_update_that_overflows_is_named_though_it_wrote_over_what_it_read(name: str) -> None:
    step, x = dense(OPTIMIZERS[name]), torch.randn(16, 32)
    with on_tier("fused"), torch.detect_anomaly():
        for _ in range(4):
            step(x)
        step.optimizer.param_groups[0]["lr"] = 1e39  # type: ignore[attr-defined]
        with pytest.raises(AnomalyError) as caught:
            step(x)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "steps.step()"


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_nothing_is_written_over_before_a_bad_gradient_is_found(name: str) -> None:
    step, x = dense(OPTIMIZERS[name]), torch.randn(16, 32)
    bad = x.clone()
    bad[3, 5] = INF
    with on_tier("fused"), torch.detect_anomaly():
        for _ in range(4):
            step(x)
        with pytest.raises(AnomalyError, match="matmul|linear") as caught:
            step(bad)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "loss = model(x).square().mean()"
    found = step.weight.detach().numpy()  # type: ignore[attr-defined]
    step = dense(OPTIMIZERS[name])
    for given in (x, x, x, x, bad):
        step(given)
    assert numpy.array_equal(found, step.weight.detach().numpy(), equal_nan=True)  # type: ignore[attr-defined]


def test_why() -> None:
    x = torch.tensor([1.0, 0.0])
    for reason, call in {
        "log(0)": lambda: x.log(),
        "a division of 2 by zero": lambda: 2 / x,
        "overflow of exp(100)": lambda: (x * 100).exp(),
        "a difference of infinities: inf - inf": lambda: (x + INF) - (x + INF),
        "a product of zero and infinity: 0 * inf": lambda: x * (x + INF),
        "sqrt(-1) is not defined": lambda: (x - 1).sqrt(),
    }.items():
        with pytest.raises(AnomalyError) as caught, torch.detect_anomaly():
            call().tolist()
        assert reason in str(caught.value)


def test_given_infinity_and_what_nobody_sees_are_no_anomaly() -> None:
    x = torch.tensor([1.0, 0.0])
    with torch.detect_anomaly():
        seen = torch.where(x > 0, x.log(), x).tolist()  # the assertion would hold the logarithm
        assert seen == [0.0, 0.0]
        for _ in range(2):
            assert (x.masked_fill(x > 0, -INF)).tolist() == [-INF, 0.0]
            assert torch.softmax(x.masked_fill(x > 0, -INF), 0).tolist() == [0.0, 1.0]
        assert F.pad(x, (1, 1), value=INF).tolist()[0] == INF


def test_a_session_and_a_loop_body() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        start = tf.placeholder(tf.float32, [])

        def body(i: Any, x: Any) -> Any:
            taken = tf.log(x - 1.0)
            return i + 1, taken

        made = tf.while_loop(lambda i, x: i < 2, body, [tf.constant(0), start])
        assert len(session.run(made, {start: 20.0})) == 2
        with torch.detect_anomaly():
            assert session.run(made, {start: 20.0})[0] == 2
            with pytest.raises(AnomalyError, match=r"log\(-1\) is not defined") as caught:
                session.run(made, {start: 2.0})
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "taken = tf.log(x - 1.0)"


@pytest.mark.parametrize("tier", ["unfused", "fused"])
def test_the_gradient_of_a_loop_without_a_known_count_in_sizes_with_one_plan(tier: str) -> None:
    with on_tier(tier), tf.Graph().as_default(), tf.Session() as session:
        x, most = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [])
        step = lambda i, rows: (i + 1, tf.sqrt(rows))
        rows = tf.while_loop(lambda i, _: i < most, step, [0, x])[1]
        made = tf.gradients(rows, x)[0]
        feeds = [
            {x: numpy.full(n, 4.0, numpy.float32), most: count} for n, count in ((3, 2), (5, 9), (7, 20))
        ]
        before = [session.run(made, feed) for feed in feeds]
        with torch.detect_anomaly():
            for feed, wanted in zip(feeds, before):
                assert session.run(made, feed).tobytes() == wanted.tobytes()
                with pytest.raises(AnomalyError):
                    session.run(made, {x: feed[x] * 0.0, most: feed[most]})
        for feed, wanted in zip(feeds, before):
            assert session.run(made, feed).tobytes() == wanted.tobytes()


def test_nan_that_came_in_is_named_where_it_is_read() -> None:
    with pytest.raises(AnomalyError, match="of NaN that came in") as caught, torch.detect_anomaly():
        x = torch.tensor([1.0, NAN])
        y = x * 2
        (y + 1).tolist()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "y = x * 2"


def test_checks_of_a_whole_graph_end_at_the_line_of_the_tensor() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        y = tf.log(x)
        z = y * 0.0
        check = tf.add_check_numerics_ops()
        session.run(check, {x: [1.0, 2.0]})
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run([check, z], {x: [1.0, 0.0]})
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "y = tf.log(x)"


NUMBER, NUMBERS = [], [None]
CHECKED = {
    "tf.gradients(tf.sqrt(x), [x])[0]": (NUMBERS, [0.0, 1.0], "a division of 1 by zero"),
    "tf.gradients(tf.cond(x[0] > 0, lambda: tf.sqrt(x), lambda: tf.sqrt(x * 0.0)), [x])[0]": (NUMBERS, [-1.0], "zero"),
    "tf.while_loop(lambda k, h: k < 5, lambda k, h: (k + 1, tf.log(h)), [0, x])[1]": (NUMBER, 2.0, r"log\(-0.36"),
    "tf.cond(x > 1, lambda: tf.log(x), lambda: tf.log(x - 1.0))": (NUMBER, 0.0, r"log\(-1\)"),
    "tf.cond(x > 1, lambda: tf.assign(v, x), lambda: tf.assign(v, 1.0 / x))": (NUMBER, 0.0, "1 by zero"),
    "tf.map_fn(lambda row: tf.reduce_sum(tf.log(row)), x)": ([None, 2], [[1.0, 1.0], [0.0, 1.0]], r"log\(0\)"),
    "tf.scan(lambda total, row: total / row, x, 1.0)": (NUMBERS, [1.0, 0.0], "1 by zero"),
    "tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), x, dtype=tf.float32)[0]": (
        [None, 3, 1], [[[1.0], [NAN], [1.0]]], "NaN that came in"
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", CHECKED)
def test_checks_of_a_graph_look_into_its_loops_choices_and_gradients(program: str) -> None:
    shape, values, reason = CHECKED[program]
    with tf.Graph().as_default(), tf.Session() as session:
        x, v = tf.placeholder(tf.float32, shape), tf.Variable(1.0)
        result = eval(program, {"tf": tf, "x": x, "v": v})
        check = tf.add_check_numerics_ops()
        session.run(tf.global_variables_initializer())
        session.run([check, result], {x: numpy.full_like(values, 1e30, "float32")})
        with pytest.raises(tf.errors.InvalidArgumentError, match=reason) as caught:
            session.run([check, result], {x: values})
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == "<string>"


def test_infinity_that_a_graph_gives_itself_fails_its_check() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.constant([1.0, float("inf")], name="mask")
        with pytest.raises(tf.errors.InvalidArgumentError, match="'mask:0' .* is not finite"):
            session.run(tf.add_check_numerics_ops())


def passes_over(loss_of: Callable[[Any], Any], shape: tuple[int, ...]) -> tuple[str, str]:
    """What is said of a second pass over leaves whose first one left NaN, and at which line."""
    w = torch.zeros(*shape, requires_grad=True)
    (w.sqrt() * 0).sum().backward()
    assert numpy.isnan(w.grad.tolist()).all()
    with pytest.raises(AnomalyError) as caught, torch.detect_anomaly():
        loss_of(w).backward()
        w.grad.tolist()
    return str(caught.value), traceback.extract_tb(caught.value.__traceback__)[-1].line or ""


@pytest.mark.parametrize(
    ("loss_of", "shape"),
    [
        (lambda w: (w * 2).sum(), (3,)),  # added
        (lambda w: (w * torch.ones(4, 3)).sum(), (3,)),  # a sum of rows
        (lambda w: (torch.ones(4, 3) @ w).sum(), (3, 2)),  # a product
        (
            lambda w: torch.nn.functional.embedding(torch.tensor([0, 1, 0]), w).sum(),
            (3, 2),
        ),  # rows of a table
        (
            lambda w: torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4), w).sum(),
            (2, 1, 3, 3),
        ),  # a convolution
    ],
)
def test_nan_of_an_earlier_pass_is_not_blamed_on_this_one(loss_of: Callable[[Any], Any], shape: Any) -> None:
    said, line = passes_over(loss_of, shape)
    assert said.startswith("backward: .grad held nan at index") and "before this pass" in said
    assert line == "loss_of(w).backward()"


def test_the_way_back_may_be_longer_than_the_stack_is_deep() -> None:
    program = """
import threading
import twofold as torch

def overflow():
    x = torch.tensor([1.0]) / torch.tensor([0.0])
    for _ in range(20_000):
        x = x + 1.0
    try:
        with torch.detect_anomaly():
            x.tolist()
    except torch.errors.AnomalyError as error:
        print(str(error)[:50])

threading.stack_size(512 << 10)
thread = threading.Thread(target=overflow)
thread.start()
thread.join()
"""
    assert run(program).startswith("divide: the first value that is not finite: inf")


def test_in_a_body_the_value_of_the_line_is_told() -> None:
    def body(i: Any, v: Any) -> Any:
        w = 1.0 / (v - 2.0)
        return i + 1, v + w * 0.0 + 1.0

    start = torch.tensor(0), torch.tensor(0.0)
    told = pytest.raises(AnomalyError, match="finite: inf, a division of 1 by zero")
    with told as caught, torch.detect_anomaly():
        torch.while_loop(lambda i, v: i < 4, body, start)[1].item()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "w = 1.0 / (v - 2.0)"


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_the_gradient_of_what_is_computed_again_names_its_operand(use_reentrant: bool) -> None:
    def inner(x: Any) -> Any:
        h = x * 2
        return h.sqrt()

    x = torch.zeros(3, requires_grad=True)
    with pytest.raises(AnomalyError, match="backward pass of sqrt") as caught, torch.detect_anomaly():
        torch.utils.checkpoint.checkpoint(inner, x, use_reentrant=use_reentrant).sum().backward()
        x.grad.tolist()  # type: ignore[union-attr]
    line = inner.__code__.co_firstlineno
    assert traceback.extract_tb(caught.value.__traceback__)[-1].lineno == line + 2
    name = f"{__file__.rpartition('/')[2]}:{line + 1}"
    assert f"  h: float32[3] [0. 0. 0.], made at {name}" in caught.value.__notes__[0]


def test_the_operation_in_a_branch_is_named_whose_gradient_is_nan() -> None:
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(AnomalyError, match="Function 'SqrtBackward' returned nan"), torch.detect_anomaly():
        torch.cond(x.detach().sum() > 0, lambda v: (v * 0).sqrt(), lambda v: v, (x,)).sum().backward()
        x.grad.tolist()  # type: ignore[union-attr]
