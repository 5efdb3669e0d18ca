"""What notebooks show: well-formed, bounded, with the values."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

import twofold as torch
import twofold.dynet as dy
import twofold.static as tf


def shown(thing: Any) -> ElementTree.Element:
    """What is shown, parsed; this raises for what is not well-formed."""
    return ElementTree.fromstring(f"<page>{thing._repr_html_()}</page>")


def cells(thing: Any, tag: str = "td") -> list[str]:
    return [one.text or "" for one in shown(thing).iter(tag)]


def text(thing: Any) -> str:
    return "".join(shown(thing).itertext())


def test_a_tensor_is_a_table() -> None:
    x = torch.tensor([[1.0, 2.5], [-3.0, float("nan")]], requires_grad=True)
    assert cells(x) == ["1", "2.5", "-3", "nan"]
    assert "float32 [2, 2] requires grad" in text(x)
    assert cells(torch.tensor(7)) == ["7"] and "int64 []" in text(torch.tensor(7))
    assert cells(torch.tensor([True, False])) == ["True", "False"]
    assert cells(torch.tensor([1.0 + 2.0j])) == ["1+2j"]


def test_a_large_tensor_shows_its_corners() -> None:
    x = torch.arange(3 * 100 * 50).reshape(3, 100, 50)
    found = cells(x)
    assert len(found) == 81 and found[0] == "0" and found[8] == "49" and found[-1] == str(100 * 50 - 1)
    assert "[3, 100, 50]" in text(x) and "at [0]" in text(x) and len(x._repr_html_()) < 5000


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (2, 0, 3)])
def test_an_empty_tensor(shape: tuple[int, ...]) -> None:
    x = torch.zeros(shape)
    assert not any(one.strip("…") for one in cells(x)) and str(list(shape)) in text(x)


def test_a_placeholder_has_no_values() -> None:
    with tf.Graph().as_default():
        found = tf.placeholder(tf.float32, [None, 2])._repr_html_()
    assert "[?, 2]" in found and "not yet bound" in found


def test_a_module_is_a_tree() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Sequential(torch.nn.ReLU()))
    tree = shown(model)
    assert len(list(tree.iter("details"))) == 2
    assert "0: Linear(in_features=3, out_features=4, bias=True) 16 parameters" in text(model)
    assert "1: Sequential" in text(model) and "0: ReLU" in text(model)
    wide = torch.nn.ModuleList(torch.nn.ReLU() for _ in range(1000))
    assert "801 more" in text(wide) and len(wide._repr_html_()) < 20000


def test_an_optimiser_is_a_table() -> None:
    first, second = torch.nn.Linear(3, 4), torch.nn.Linear(2, 1)
    groups = [{"params": first.parameters()}, {"params": second.parameters(), "lr": 0.5}]
    optimizer = torch.optim.SGD(groups, lr=0.25)
    rows = [[one.text or "" for one in row] for row in shown(optimizer).iter("tr")]
    assert ["parameters", "16", "3"] in rows and ["lr", "0.25", "0.5"] in rows
    assert text(optimizer).startswith("SGD")


def test_a_graph_is_a_tree_and_a_session_a_table_over_it() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        tf.layers.dense(x, 2, name="head")
        assert "no variable has a value" in text(session)
        session.run(tf.global_variables_initializer())
        rows = [[one.text or "" for one in row] for row in shown(session).iter("tr")]
        assert ["head/kernel:0", "float32", "[3, 2]"] in rows
        assert any((one.text or "").strip() == "head" for one in shown(graph).iter("summary"))
        assert "x: Placeholder float32(?, 3)" in text(graph) and text(graph) in text(session)
        for _ in range(500):
            tf.identity(x)
        assert "more" in text(graph) and len(graph._repr_html_()) < 40000


def test_a_variable_of_a_graph_shows_its_value_in_the_default_session() -> None:
    with tf.Graph().as_default():
        w = tf.Variable([1.5, 2.5], name="w")
        assert "<tf.Variable 'w:0' shape=(2,) dtype=float32_ref>, trainable, without a value here" in text(w)
        with tf.Session() as session:
            assert "without a value" in text(w)
            session.run(w.initializer)
            assert "float32 [2]" in text(w) and "2.5" in text(w) and "without" not in text(w)
        assert "without a value" in text(w)


def test_expressions_collections_and_trainers_of_dynet() -> None:
    assert cells(dy.inputVector([1.0, 2.5])) == ["1", "2.5"]
    m = dy.ParameterCollection()
    m.add_parameters((3, 2), name="w")
    m.add_lookup_parameters((5, 4), name="rows")
    trainer = dy.AdamTrainer(m, 0.5)
    assert cells(m) == ["/w", "(3, 2)", "6", "/rows", "(5, 4)", "20"]
    assert repr(m) == "<dynet.ParameterCollection '/': 26 numbers in 2 parameters>"
    assert repr(trainer) == f"<dynet.AdamTrainer of {m!r}, learning_rate=0.5>"
    assert "AdamTrainer" in text(trainer) and "26" in cells(trainer) and "0.5" in cells(trainer)
    with pytest.raises(ValueError, match=r"not of dimensions \(2,\)\. Add its numbers up first"):
        dy.inputVector([1.0, 2.0]).backward()
