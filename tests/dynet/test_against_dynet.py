"""Values, gradients and updates against DyNet itself, on the same weights, where it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold.dynet as ours

pytest.importorskip("_dynet", reason="compares with DyNet")  # a folder of tests may be called dynet
theirs: Any = importlib.import_module("dynet")

RANDOM = np.random.RandomState(5)
SHAPES: dict[str, Any] = {
    "v": (4,),
    "w": (4,),
    "k": (3,),
    "W": (3, 4),
    "M": (4, 5),
    "S": (4, 4),
    "T": (3, 4, 5),
    "one": (1,),
    "g8": (8,),
    "Wx": (8, 4),
    "Wh": (8, 2),
    "h": (2,),
    "image": (6, 5, 2),
    "filters": (3, 2, 2, 3),
}
ARRAYS = {name: RANDOM.uniform(0.1, 0.9, shape) for name, shape in SHAPES.items()}
ARRAYS["S"] = ARRAYS["S"] + 2 * np.eye(4)

Case = Callable[[Any, dict[str, Any]], Any]

OF_ONE = """
tanh exp square sqrt abs erf cube log lgamma log_sigmoid logistic rectify softsign selu elu silu sin cos tan
asin acos atan sinh cosh asinh atanh softmax log_softmax sparsemax sum_elems mean_elems std_elems squared_norm l2_norm
"""

CASES: dict[str, Case] = {
    "sum": lambda d, x: x["v"] + x["w"] - x["v"] * 2 + 1 + (-x["w"]),
    "product": lambda d, x: x["W"] * x["M"],
    "bias on columns": lambda d, x: d.colwise_add(x["M"], x["v"]),
    "affine": lambda d, x: d.affine_transform([x["k"], x["W"], x["v"], x["W"], x["w"]]),
    "quotient": lambda d, x: d.cdiv(x["v"], x["w"]),
    "power": lambda d, x: d.pow(x["v"], x["one"]),
    **{name: lambda d, x, name=name: getattr(d, name)(x["v"]) for name in OF_ONE.split()},
    "logsumexp": lambda d, x: d.logsumexp([x["v"], x["w"]]),
    "logsumexp_dim": lambda d, x: d.logsumexp_dim(x["M"], 1),
    "emax": lambda d, x: d.emax([x["v"], x["w"]]),
    "average": lambda d, x: d.average([x["v"], x["w"]]),
    "bmax": lambda d, x: d.bmax(x["v"], x["w"]) + d.bmin(x["v"], x["w"]) * 3,
    "dot": lambda d, x: d.dot_product(x["v"], x["w"]),
    "squared_distance": lambda d, x: d.squared_distance(x["v"], x["w"]),
    "l1_distance": lambda d, x: d.l1_distance(x["v"], x["w"]),
    "huber_distance": lambda d, x: d.huber_distance(x["v"], x["w"] * 4),
    "binary_log_loss": lambda d, x: d.binary_log_loss(x["v"], d.nobackprop(x["w"])),
    "pairwise_rank_loss": lambda d, x: d.pairwise_rank_loss(x["one"], x["one"] * 0.5, 1.0),
    "poisson_loss": lambda d, x: d.poisson_loss(x["one"], 3),
    "hinge": lambda d, x: d.hinge(x["v"], 2),
    "pickneglogsoftmax": lambda d, x: d.pickneglogsoftmax(x["v"], 2),
    "trace_of_product": lambda d, x: d.trace_of_product(x["M"], x["M"]),
    "inverse": lambda d, x: d.inverse(x["S"]),
    "logdet": lambda d, x: d.logdet(x["S"]),
    "layer_norm": lambda d, x: d.layer_norm(x["v"], x["w"], x["v"]),
    "weight_norm": lambda d, x: d.weight_norm(x["W"], x["one"]),
    "circ_conv": lambda d, x: d.circ_conv(x["v"], x["w"]) + d.circ_corr(x["v"], x["w"]),
    "transpose": lambda d, x: d.transpose(x["M"]) * x["S"],
    "transpose of three": lambda d, x: d.transpose(x["T"], [2, 0, 1]),
    "reshape": lambda d, x: d.reshape(x["T"], (10, 6)),
    "concatenate": lambda d, x: d.concatenate([x["v"], x["k"]]),
    "concatenate_cols": lambda d, x: d.concatenate_cols([x["v"], x["w"]]),
    "concatenate along 1": lambda d, x: d.concatenate([x["M"], x["S"]], d=1),
    "pick": lambda d, x: d.pick(x["M"], 2, 1),
    "pick_range": lambda d, x: d.pick_range(x["M"], 1, 3),
    "select_rows": lambda d, x: d.select_rows(x["M"], [2, 0]),
    "select_cols": lambda d, x: d.select_cols(x["M"], [4, 1]),
    "strided_select": lambda d, x: d.strided_select(x["M"], [2, 3], [0, 1], [4, 5]),
    "sum_dim": lambda d, x: d.sum_dim(x["T"], [0, 2]),
    "mean_dim": lambda d, x: d.mean_dim(x["T"], [1], False),
    "std_dim": lambda d, x: d.std_dim(x["T"], [1], False),
    "moment_dim": lambda d, x: d.moment_dim(x["T"], [1], 2, False),
    "cumsum": lambda d, x: d.cumsum(x["M"], 1),
    "max_dim": lambda d, x: d.max_dim(x["M"], 1) + d.min_dim(x["M"], 1),
    "fold_rows": lambda d, x: d.fold_rows(x["M"], 2),
    "kmh_ngram": lambda d, x: d.kmh_ngram(x["M"], 2),
    "filter1d_narrow": lambda d, x: d.filter1d_narrow(x["M"], d.strided_select(x["S"], [1, 1], [0, 0], [4, 2])),
    "kmax_pooling": lambda d, x: d.kmax_pooling(x["M"], 2, 1),
    "conv2d": lambda d, x: d.conv2d(x["image"], x["filters"], [1, 1]),
    "conv2d, padded": lambda d, x: d.conv2d_bias(x["image"], x["filters"], x["k"], [2, 1], is_valid=False),
    "maxpooling2d": lambda d, x: d.maxpooling2d(x["image"], [2, 2], [2, 2]),
    "gates": lambda d, x: d.vanilla_lstm_gates(x["v"], x["h"], x["Wx"], x["Wh"], x["g8"]),
    "gates of two": lambda d, x: d.vanilla_lstm_gates_concat(
        [d.pick_range(x["v"], 0, 1), d.pick_range(x["v"], 1, 4)], x["h"], x["Wx"], x["Wh"], x["g8"]
    ),
    "gates, masked": lambda d, x: d.vanilla_lstm_gates_dropout(
        x["v"], x["h"], x["Wx"], x["Wh"], x["g8"], x["w"], x["h"]
    ),
    "gates of two, masked": lambda d, x: d.vanilla_lstm_gates_dropout_concat(
        [d.pick_range(x["v"], 0, 1), d.pick_range(x["v"], 1, 4)],
        x["h"], x["Wx"], x["Wh"], x["g8"], x["w"], x["h"],
    ),
    "cell": lambda d, x: d.vanilla_lstm_c(x["h"], x["g8"]),
    "output": lambda d, x: d.vanilla_lstm_h(x["h"], x["g8"]),
}  # fmt: skip


def computed(library: Any, case: Case) -> tuple[Any, dict[str, Any]]:
    library.renew_cg()
    m = library.ParameterCollection()
    given = {name: m.parameters_from_numpy(array) for name, array in ARRAYS.items()}
    made = case(library, given)
    value = made.npvalue()
    weights = library.inputTensor(np.cos(np.arange(value.size)).reshape(value.shape, order="F"))
    size = (value.size,)
    loss = library.dot_product(library.reshape(made, size), library.reshape(weights, size))
    loss.backward()
    return value, {name: p.grad_as_array() for name, p in given.items()}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    value, gradients = computed(ours, CASES[name])
    wanted, wanted_gradients = computed(theirs, CASES[name])
    np.testing.assert_allclose(value, wanted.reshape(value.shape), 1e-4, 1e-5)
    for parameter, gradient in gradients.items():
        np.testing.assert_allclose(gradient, wanted_gradients[parameter], 1e-4, 1e-5, err_msg=parameter)


BUILDERS = [
    "SimpleRNNBuilder", "GRUBuilder", "LSTMBuilder", "VanillaLSTMBuilder", "CoupledLSTMBuilder", "FastLSTMBuilder",
    "CompactVanillaLSTMBuilder",
]  # fmt: skip


def transduced(library: Any, name: str, values: list[Any] | None) -> tuple[list[Any], list[Any], list[Any]]:
    library.renew_cg()
    m = library.ParameterCollection()
    builder = getattr(library, name)(2, 3, 4, m)
    parameters = m.parameters_list()
    given = [p.as_array() for p in parameters] if values is None else values
    for parameter, value in zip(parameters, given):
        parameter.set_value(value)
    inputs = [library.inputVector(np.sin(np.arange(3) + i)) for i in range(4)]
    outputs = builder.initial_state().transduce(inputs)
    values_of_outputs = [one.npvalue() for one in outputs]
    library.squared_norm(library.esum(outputs)).backward()
    return given, values_of_outputs, [p.grad_as_array() for p in parameters]


@pytest.mark.parametrize("name", BUILDERS)
def test_builders(name: str) -> None:
    values, wanted, wanted_gradients = transduced(theirs, name, None)
    _, found, gradients = transduced(ours, name, values)
    for one, other in zip(found + gradients, wanted + wanted_gradients):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


TRAINERS = [
    "SimpleSGDTrainer", "CyclicalSGDTrainer", "MomentumSGDTrainer", "AdagradTrainer", "AdadeltaTrainer",
    "RMSPropTrainer", "AdamTrainer", "AmsgradTrainer",
]  # fmt: skip


def trained(library: Any, name: str, sparse: bool) -> list[Any]:
    m = library.ParameterCollection()
    w = m.parameters_from_numpy(ARRAYS["W"])
    table = m.lookup_parameters_from_numpy(ARRAYS["M"].T)
    unused = m.lookup_parameters_from_numpy(ARRAYS["M"].T)
    trainer = getattr(library, name)(m)
    trainer.set_sparse_updates(sparse)
    for step in range(5):
        library.renew_cg()
        rows = [table[step % 3], table[step % 3], library.lookup(unused, 1) if step == 2 else table[4]]
        loss = library.squared_norm(w * library.esum(rows)) * (1 + 10 * step)
        loss.backward()
        trainer.update()
    return [w.as_array(), table.as_array(), unused.as_array()]


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("name", TRAINERS)
def test_trainers(name: str, sparse: bool) -> None:
    for found, wanted in zip(trained(ours, name, sparse), trained(theirs, name, sparse)):
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)
