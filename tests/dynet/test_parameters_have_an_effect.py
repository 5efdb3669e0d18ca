"""Another value for a parameter of ``dy`` changes values, gradients or updates, or raises: none is ignored."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import io
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import twofold.dynet as dy

CALLS = """
dy.AdadeltaTrainer(m)
dy.AdagradTrainer(m)
dy.AdamTrainer(m)
dy.AmsgradTrainer(m)
dy.CyclicalSGDTrainer(m)
dy.EGTrainer(simplex)
dy.MomentumSGDTrainer(m)
dy.RMSPropTrainer(m)
dy.SimpleSGDTrainer(m)
m.add_parameters((3, 2), dy.GlorotInitializer())
m.add_parameters((3, 2), dy.NormalInitializer())
m.add_parameters((3, 3), dy.SaxeInitializer())
dy.GlorotInitializer()
m.add_lookup_parameters((3, 2), dy.GlorotInitializer())
dy.NormalInitializer()
dy.SaxeInitializer()
m.add_parameters((3, 2))
m.add_parameters((3, 2), "normal")
m.add_parameters((3, 2), "uniform")
m.add_lookup_parameters((3, 2))
m.add_lookup_parameters((3, 2), "normal")
m.add_lookup_parameters((3, 2), "uniform")
m.parameters_from_numpy(numpy.ones((3, 2)))
m.lookup_parameters_from_numpy(numpy.ones((3, 2)))
m.add_subcollection()
dy.LSTMBuilder(1, 4, 3, m)
dy.VanillaLSTMBuilder(1, 4, 3, m)
dy.SparseLSTMBuilder(1, 4, 3, m)
dy.BiRNNBuilder(2, 4, 6, m, dy.GRUBuilder)
dy.StandardSoftmaxBuilder(4, 3, m)
softmax.full_logits(v)
softmax.full_log_distribution(v)
softmax.neg_log_softmax(v, 1)
softmax.neg_log_softmax_batch(v, [1, 0])
dy.renew_cg()
w.expr()
dy.concatenate([W, W])
dy.constant((3,), 0.5)
dy.conv2d(image, filters, (1, 1))
dy.conv2d_bias(image, filters, k, (1, 1))
dy.maxpooling2d(image, (2, 2), (2, 2))
dy.cumsum(W)
dy.elu(v - 0.5)
dy.silu(v)
dy.fold_rows(M)
dy.hinge(v, 1)
dy.hinge_batch(dy.concatenate_to_batch([v, v * 2]), [1, 2])
dy.hinge_dim(M, [1, 2, 0, 3, 1])
dy.huber_distance(v * 3, v)
dy.inputTensor(numpy.arange(6.0).reshape(2, 3))
dy.inputTensorTranspose(numpy.arange(6.0).reshape(2, 3))
dy.sparse_inputTensor(([0, 1], [1, 2]), [3.0, 4.0], (2, 3))
dy.inputVector([1.0, 2.0])
dy.scalarInput(2.0)
dy.vecInput(3)
dy.one_hot(3, 1)
dy.kmax_pooling(M, 2)
dy.log_softmax(v)
dy.logsumexp_dim(M)
dy.lookup(table, 1)
dy.lookup_batch(table, [0, 2])
dy.max_dim(M)
dy.min_dim(M)
dy.mean_dim(M, [0], False)
dy.moment_dim(M, [0], 2, False)
dy.std_dim(M, [0], False)
dy.sum_dim(M, [0])
dy.sum_dim(dy.concatenate_to_batch([M, M * 2]), [0])
dy.ones((2, 3))
dy.zeros((2, 3))
dy.zeroes((2, 3))
dy.pairwise_rank_loss(v, v * 2)
dy.pick(M, 1)
dy.pick_batch(dy.concatenate_to_batch([M, M * 2]), [1, 2])
dy.pick_range(M, 0, 2)
dy.random_bernoulli((40,), 0.5)
dy.random_gumbel((4,))
dy.random_normal((4,))
dy.random_uniform((4,), 0.0, 1.0)
dy.reshape(dy.concatenate_to_batch([v, v]), (8,), 1)
dy.scale_gradient(v)
dy.softmax(M)
dy.transpose(T, (1, 0, 2))
dy.vanilla_lstm_gates(v, h, Wx, Wh, b)
dy.vanilla_lstm_gates_concat([v], h, Wx, Wh, b)
dy.vanilla_lstm_gates_dropout(v, h, Wx, Wh, b, v, h)
dy.vanilla_lstm_gates_dropout_concat([v], h, Wx, Wh, b, v, h)
M.tensor_value().argmax()
M.tensor_value().topk()
M.tensor_value().categorical_sample_log_prob()
""".strip().splitlines()
REASONS: dict[tuple[str, str], str] = {
    ("inputTensor", "reusable_expr"): "lets other numbers be assigned, which has tests of its own",
}
ELSE: dict[str, list[Any]] = {
    "dim": [0, 1],
    "d": [1, 0, [1], 2],
    "dims": [(1, 0, 2), (2, 1, 0), (0, 2, 1)],
    "init": ["saxe", 0.5],
    "name": ["another"],
    "device": ["CPU", "GPU:0"],
    "batch_size": [2],
    "restrict": [[0, 2]],
    "builder_layers": [[]],
}
"""Other values for parameters of these names."""
SHAPES: dict[str, tuple[int, ...]] = {
    "v": (4,), "k": (3,), "W": (3, 4), "M": (4, 5), "T": (2, 3, 4), "Wx": (8, 4), "Wh": (8, 2), "b": (8,), "h": (2,),
    "image": (6, 5, 2), "filters": (3, 2, 2, 3),
}  # fmt: skip


def space() -> dict[str, Any]:
    """What the calls name, in a new graph: parameters with the same values each time."""
    dy.reset_random_seed(3)
    dy.renew_cg()
    random = numpy.random.default_rng(1)
    given = dy.ParameterCollection()
    found: dict[str, Any] = {"dy": dy, "numpy": numpy, "m": dy.ParameterCollection(), "given": given}
    for name, shape in SHAPES.items():
        found[name] = given.parameters_from_numpy(random.uniform(0.1, 0.9, shape)) * 1
    found["w"] = found["m"].parameters_from_numpy(random.uniform(0.1, 0.9, (3,)))
    found["table"] = given.lookup_parameters_from_numpy(random.uniform(0.1, 0.9, (3, 4)))
    found["softmax"] = dy.StandardSoftmaxBuilder(4, 3, given)
    found["simplex"] = dy.ParameterCollection()
    found["simplex"].parameters_from_numpy(numpy.array([0.25, 0.25, 0.5]))
    return found


def content(made: Any, names: dict[str, Any], collection: Any) -> Any:
    """What tells a result from another one: values, gradients, and what trainers and builders do."""
    if isinstance(made, (dy.Parameters, dy.LookupParameters)):
        return made.name(), made.as_array().tolist()
    if isinstance(made, dy.Expression):
        value = made.npvalue()
        numbers = dy.inputTensor(
            numpy.arange(1.0, 1 + value.size).reshape(value.shape), batched=made.dim()[1] > 1
        )
        dy.sum_batches(dy.sum_elems(dy.cmult(made, numbers))).backward()
        grads = [one.grad_as_array().tolist() for one in names["given"].parameters_list()]
        grads += [
            numpy.asarray(one.grad_as_array()).tolist() for one in names["given"].lookup_parameters_list()
        ]
        grads += [one.grad_as_array().tolist() for one in names["m"].parameters_list()]
        return made.dim(), value.tolist(), grads
    if isinstance(made, dy.Trainer):
        updated = collection.parameters_list()[0]
        for k in range(1, 5):
            dy.renew_cg()
            dy.squared_norm(updated * float(k)).backward()
            made.update()
        return updated.as_array().tolist()
    if isinstance(made, dy.ParameterCollection):
        return made.name()
    if hasattr(made, "initial_state") or hasattr(made, "transduce"):
        start = made.initial_state() if hasattr(made, "initial_state") else made
        rows = start.transduce([names["v"], names["v"] * 2])
        return [row.npvalue().tolist() for row in rows], len(collection.parameters_list())
    if isinstance(made, dy.StandardSoftmaxBuilder):
        return made.full_logits(names["v"]).npvalue().tolist(), len(collection.parameters_list())
    if type(made).__name__.endswith("Initializer"):
        tables = names["m"].add_parameters((3, 5), made), names["m"].add_lookup_parameters((3, 5), made)
        return [table.as_array().tolist() for table in tables]
    if type(made).__name__ == "ComputationGraph":
        with contextlib.suppress(Exception):
            return (dy.log(names["v"] * 0.0) * 0.0).npvalue().tolist()
        return "refused"
    return str(made)


def outcome(text: str, changed: dict[str, Any]) -> Any:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    names = space()
    value = lambda part: eval(compile(ast.Expression(part), "call", "eval"), names)
    function = value(node.func)
    args = [value(one) for one in node.args]
    bound = inspect.signature(function).bind(
        *args, **{one.arg: value(one.value) for one in node.keywords if one.arg}
    )
    bound.arguments.update(changed)
    collection = next((one for one in args if isinstance(one, dy.ParameterCollection)), names["m"])
    with contextlib.redirect_stderr(io.StringIO()):
        return content(function(*bound.args, **bound.kwargs), names, collection)


def attempt(text: str, changed: dict[str, Any]) -> Any:
    try:
        return outcome(text, changed)
    except Exception:
        return None


def signature_of(text: str) -> tuple[str, inspect.Signature]:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    function = eval(compile(ast.Expression(node.func), "call", "eval"), space())
    return ast.unparse(node.func).rpartition(".")[2], inspect.signature(function)


def others(key: str, given: Any) -> Iterator[Any]:
    yield from ELSE.get(key, ())
    if isinstance(given, bool):
        yield not given
    elif isinstance(given, (int, float)):
        yield from (given + 1, given * 0.5 + 0.05, given * 2 + 3)
    elif given is None:
        yield from (1, 0.25, True)


def has_effect(text: str, key: str, default: Any) -> bool:
    """Whether another value for a parameter changes a call, or all other values raise."""
    usual, worked = attempt(text, {}), False
    usual = outcome(text, {}) if usual is None else usual  # raises
    for other in others(key, default):
        if type(other) is type(default) and other == default:
            continue
        found = attempt(text, {key: other})
        if found is not None and found != usual:
            return True
        if found is None and isinstance(default, (bool, int, float)) and type(other) is type(default):
            return True
        if found is None and key == "device":  # another one than the only one
            return True
        worked = worked or found is not None
    return not worked


@functools.cache
def ignored() -> set[tuple[str, str]]:
    found: dict[tuple[str, str], bool] = {}
    for text in CALLS:
        name, signature = signature_of(text)
        for key, one in signature.parameters.items():
            if one.default is not one.empty:
                found[name, key] = found.get((name, key), False) or has_effect(text, key, one.default)
    return {pair for pair, effect in found.items() if not effect}


@pytest.mark.filterwarnings("ignore")
def test_no_parameter_is_ignored() -> None:
    assert sorted(ignored() - set(REASONS)) == []


@pytest.mark.filterwarnings("ignore")
def test_no_reason_is_left_over() -> None:
    assert sorted(set(REASONS) - ignored()) == []


def test_every_function_with_defaults_has_a_sample_call() -> None:
    called = {signature_of(text)[0] for text in CALLS}
    for name in dir(dy):
        function = getattr(dy, name)
        if name.startswith("_") or not inspect.isfunction(function) or name in ELSEWHERE.split():
            continue
        defaults = [
            one for one in inspect.signature(function).parameters.values() if one.default is not one.empty
        ]
        assert not defaults or name in called, name


ELSEWHERE = "dump_cg print_graphviz forward values npvalues init"
"""They raise always, have a file of tests of their own, or start what runs already."""


def test_an_ignored_parameter_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled(x: Any, scale: float = 2.0, offset: float = 0.0) -> Any:
        return x * scale

    monkeypatch.setattr(dy, "scaled", scaled, raising=False)
    assert has_effect("dy.scaled(v)", "scale", 2.0)
    assert not has_effect("dy.scaled(v)", "offset", 0.0)
