"""One bug planted in a line: the last frame of the traceback is that line, however the program is declared."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from twofold import _core, dynet, nn
from twofold.nn import functional as F

Bug = Callable[..., Any]


def shapes_of_matmul(x: Any, i: Any) -> Any:
    return x @ torch.ones(5, 2)  # bug


def shapes_of_sum(x: Any, i: Any) -> Any:
    y = x + torch.ones(7)  # bug
    return y


def axis_of_sum(x: Any, i: Any) -> Any:
    return x.sum(4)  # bug


def axis_of_softmax(x: Any, i: Any) -> Any:
    return torch.softmax(x, 3)  # bug


def sizes_of_reshape(x: Any, i: Any) -> Any:
    return x.reshape(5, 7)  # bug


def sizes_of_cat(x: Any, i: Any) -> Any:
    return torch.cat([x, torch.ones(2, 2)])  # bug


def dtypes_of_matmul(x: Any, i: Any) -> Any:
    return x @ x.T.double()  # bug


def floats_as_index(x: Any, i: Any) -> Any:
    return torch.take(x, x)  # bug


def permutation(x: Any, i: Any) -> Any:
    return x.permute(0, 0)  # bug


def module_in_a_module(x: Any, i: Any) -> Any:
    inner = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    outer = nn.Sequential(inner, nn.Linear(9, 2))
    return outer(x)  # bug


def channels(x: Any, i: Any) -> Any:
    return nn.Conv2d(4, 2, 3)(x.reshape(1, 1, 2, 3))  # bug


def loss_shapes(x: Any, i: Any) -> Any:
    return F.cross_entropy(x, torch.zeros(9).long())  # bug


def index_out_of_range(x: Any, i: Any) -> Any:
    y = x * 2
    picked = y[i]  # bug
    return picked + 1


def gather_out_of_range(x: Any, i: Any) -> Any:
    return torch.gather(x, 0, i.reshape(1, 2)) * 2  # bug


def embedding_out_of_range(x: Any, i: Any) -> Any:
    return F.embedding(i, x).sum()  # bug


def class_out_of_range(x: Any, i: Any) -> Any:
    loss = F.cross_entropy(x, i)  # bug
    return loss * 2


def index_select_in_a_function(x: Any, i: Any) -> Any:
    def inner(y: Any) -> Any:
        return torch.index_select(y, 0, i)  # bug

    return inner(x + 1).sum()


def singular(x: Any, i: Any) -> Any:
    square = torch.eye(2) * (7 - i[1])
    inverse = torch.linalg.inv(square)  # bug
    return inverse + 1


class Rows(nn.Module):
    def forward(self, x: Any, i: Any) -> Any:
        return torch.take_along_dim(x, i.reshape(2, 1), 1)  # bug


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = Rows()

    def forward(self, x: Any, i: Any) -> Any:
        return self.rows(x * 2, i) + 1


def index_in_a_module_of_a_module(x: Any, i: Any) -> Any:
    return Outer()(x, i)


AT_ONCE: list[Bug] = [
    shapes_of_matmul, shapes_of_sum, axis_of_sum, axis_of_softmax, sizes_of_reshape, sizes_of_cat, dtypes_of_matmul,
    floats_as_index, permutation, module_in_a_module, channels, loss_shapes,
]  # fmt: skip
LATER: list[Bug] = [
    index_out_of_range, gather_out_of_range, embedding_out_of_range, class_out_of_range, index_select_in_a_function,
    singular, index_in_a_module_of_a_module,
]  # fmt: skip
X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def last_line(action: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as caught:
        action()
    return str(traceback.extract_tb(caught.value.__traceback__)[-1].line)


def planted(bug: Any) -> str:
    where = Rows if bug is index_in_a_module_of_a_module else bug
    (line,) = [line.strip() for line in inspect.getsource(where).splitlines() if "# bug" in line]
    return line


def observed(call: Callable[..., Any], index: list[int]) -> Any:
    return call(torch.tensor(X), torch.tensor(index)).tolist()


@pytest.mark.parametrize("way", ["deferred", "eager", "repeated", "fused", "compile"])
@pytest.mark.parametrize("bug", [*AT_ONCE, *LATER], ids=lambda bug: bug.__name__)
def test_define_by_run(bug: Bug, way: str) -> None:
    call = torch.compile(bug) if way == "compile" else bug
    before = _core.set_eager(way == "eager")
    if way == "fused":
        _core.set_tier("fused")
    try:
        for _ in range(3 if bug in LATER and way != "deferred" else 0):
            observed(call, [0, 1])
            torch.wait_for_compiler()
        assert last_line(lambda: observed(call, [0, 7])) == planted(bug)
    finally:
        _core.set_eager(before)
        _core.set_tier("auto")


def run(build: Callable[[], tuple[Any, dict[Any, Any]]]) -> str:
    with tf.Graph().as_default(), tf.Session() as session:

        def both() -> None:
            fetch, feeds = build()
            session.run(fetch, feeds)

        return last_line(both)


def test_sessions() -> None:
    def broadcast() -> Any:
        x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
        z = x * y  # bug: broadcast
        return z, {x: [1.0, 2.0], y: [1.0, 2.0, 3.0]}

    def declared() -> Any:
        x = tf.placeholder(tf.float32, [2, 3])
        return tf.matmul(x, tf.ones([4, 2])), {x: X}  # bug: declared

    def index() -> Any:
        x = tf.placeholder(tf.int64, [2])
        y = tf.gather(tf.constant([1.0, 2.0]), x)  # bug: index
        return y + 1.0, {x: [0, 9]}

    def carry_shape() -> Any:
        def body(i: Any, x: Any) -> Any:
            return i + 1, tf.reduce_sum(x)  # bug: carry shape

        return tf.while_loop(lambda i, x: i < 3, body, [tf.constant(0), tf.zeros([3])]), {}

    def carry_dtype() -> Any:
        def body(i: Any, x: Any) -> Any:
            return i + 1, tf.cast(x, tf.int32)  # bug: carry dtype

        return tf.while_loop(lambda i, x: i < 3, body, [tf.constant(0), tf.zeros([3])]), {}

    def body_index() -> Any:
        def body(i: Any, x: Any) -> Any:
            taken = tf.gather(tf.constant([1.0, 2.0]), i)  # bug: body index
            return i + 1, x + taken

        return tf.while_loop(lambda i, x: i < 3, body, [tf.constant(0), tf.constant(0.0)]), {}

    def py_func() -> Any:
        def host(x: Any) -> Any:
            return numpy.float32(1 // int(x))  # bug: py_func

        return tf.py_func(host, [tf.constant(0.0)], tf.float32), {}

    def py_func_dtype() -> Any:
        y = tf.py_func(lambda x: x.astype("float64"), [tf.constant(0.0)], tf.float32)  # bug: py_func_dtype
        return y + 1.0, {}

    def assertion() -> Any:
        x = tf.placeholder(tf.float32, [])
        with tf.control_dependencies([tf.Assert(x > 0.0, [x])]):  # bug: assertion
            return tf.identity(x), {x: -1.0}

    for build in (
        broadcast, declared, index, carry_shape, carry_dtype, body_index, py_func, py_func_dtype, assertion,
    ):  # fmt: skip
        line = run(build)
        assert line.endswith(
            f"# bug: {build.__name__.replace('_', ' ') if 'py' not in build.__name__ else build.__name__}"
        )


def test_a_missing_feed_and_a_variable_without_a_value_end_at_the_run() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, v = tf.placeholder(tf.float32, []), tf.Variable(1.0)
        y = x * v
        for feeds in ({}, {x: 1.0}):
            with pytest.raises(Exception) as caught:
                session.run(y, feeds)
            assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "session.run(y, feeds)"


def test_functions_given_to_the_library() -> None:
    x = torch.ones(3, requires_grad=True)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            return cotangent @ torch.ones(7)  # bug: custom function

    assert last_line(lambda: Twice.apply(x).sum().backward()).endswith("# bug: custom function")

    def hook(gradient: Any) -> Any:
        return gradient.reshape(5)  # bug: hook

    y = x * 2
    y.register_hook(hook)
    assert last_line(lambda: y.sum().backward()).endswith("# bug: hook")

    def late(gradient: Any) -> Any:
        return gradient * gradient[torch.tensor([9])]  # bug: late hook

    z = x * 2
    z.register_hook(late)

    def observe() -> None:
        z.sum().backward()
        assert x.grad is not None
        x.grad.tolist()

    assert last_line(observe).endswith("# bug: late hook")

    def body(i: Any, total: Any) -> Any:
        return i + 1, total.reshape(1)  # bug: carry

    start = torch.tensor(0), torch.tensor(0.0)
    assert last_line(lambda: torch.while_loop(lambda i, total: i < 3, body, start)).endswith("# bug: carry")


def test_dynet() -> None:
    def shapes() -> None:
        dynet.renew_cg()
        w, x = dynet.inputTensor([[1.0, 2.0]]), dynet.inputVector([1.0, 2.0, 3.0])
        (w * x).npvalue()  # bug: shapes

    def pick() -> None:
        dynet.renew_cg()
        x = dynet.inputVector([1.0, 2.0])
        dynet.pick(x, 5).value()  # bug: pick

    assert last_line(shapes).endswith("# bug: shapes")
    assert last_line(pick).endswith("# bug: pick")
