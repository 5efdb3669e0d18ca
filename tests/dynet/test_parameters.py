"""Collections, initialisers, files, softmax builders and settings."""

from __future__ import annotations

import collections
import json
import subprocess  # noqa: F401
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twofold.dynet as dy
from twofold import dynet_config
from twofold.dynet.options import from_arguments


@pytest.fixture(autouse=True)
def fresh_graph() -> None:
    dy.renew_cg()


def test_names() -> None:
    m = dy.ParameterCollection()
    assert [m.add_parameters(1).name(), m.add_lookup_parameters((2, 3)).name(), m.name()] == [
        "/_0",
        "/_1",
        "/",
    ]
    first, second, third = m.add_subcollection("a"), m.add_subcollection("a"), m.add_subcollection()
    assert [one.name() for one in (first, second, third)] == ["/a/", "/a_1/", "/_0/"]
    named = [first.add_parameters(2, name="x").name() for _ in range(2)]
    assert named == ["/a/x", "/a/x_1"]
    builder = dy.LSTMBuilder(1, 2, 3, second)
    assert builder.param_collection().name() == "/a_1/vanilla-lstm-builder/"
    assert [p.name() for p in m.parameters_list()][1:3] == named and len(m.lookup_parameters_list()) == 1
    assert m.parameter_count() == 1 + 6 + 4 + 12 * 2 + 12 * 3 + 12
    assert dy.ParameterCollection(first).name() == "/a/_0/"
    with pytest.raises(ValueError, match="slash"):
        m.add_parameters(1, name="a/b")


def largest(array: Any) -> float:
    return float(abs(array).max())


@pytest.mark.parametrize(
    ("dims", "scale"),
    [
        ((1000,), (3 / 1000) ** 0.5),
        ((100, 50), (6 / 150) ** 0.5),
        ((20, 10, 30), (9 / 60) ** 0.5),
        ((5, 5, 3, 40), (6 / (25 * 43)) ** 0.5),
    ],
)
def test_default_values(dims: tuple[int, ...], scale: float) -> None:
    assert 0.97 * scale < largest(dy.ParameterCollection().add_parameters(dims).as_array()) <= scale


def test_layers_of_no_units() -> None:
    m = dy.ParameterCollection()
    used = m.add_parameters(2, init=1)
    for dims in (0, (0, 3), (3, 3, 0, 4)):
        assert m.add_parameters(dims).as_array().size == 0
    assert m.add_lookup_parameters((3, 0), init=dy.GlorotInitializer(True)).as_array().size == 0
    dy.renew_cg()
    dy.sum_elems(used).backward()
    dy.SimpleSGDTrainer(m, 0.5).update()
    assert used.as_array().tolist() == [0.5, 0.5]


def test_default_values_of_tables() -> None:
    m = dy.ParameterCollection()
    scale = (6 / 210) ** 0.5
    assert 0.97 * scale < largest(m.add_lookup_parameters((200, 10)).as_array()) <= scale
    rows = m.add_lookup_parameters((200, 10), init=dy.GlorotInitializer(True, gain=2))
    assert 0.97 < largest(rows.as_array()) / (2 * (3 / 10) ** 0.5) <= 1


def test_initialisers(tmp_path: Path) -> None:
    m = dy.ParameterCollection()
    (tmp_path / "numbers").write_text("1 2 3\n4 5 6\n")
    from_file = m.add_parameters((2, 3), init=dy.FromFileInitializer(str(tmp_path / "numbers")))
    assert from_file.as_array().tolist() == [[1, 3, 5], [2, 4, 6]]
    array = np.arange(6.0).reshape(2, 3)
    assert (m.add_parameters((2, 3), init=dy.NumpyInitializer(array)).as_array() == array).all()
    assert (m.parameters_from_numpy(array).as_array() == array).all()
    assert (m.add_parameters((3, 3), init=dy.IdentityInitializer()).as_array() == np.eye(3)).all()
    orthogonal = m.add_parameters((5, 5), init=dy.SaxeInitializer(2)).as_array()
    np.testing.assert_allclose(orthogonal @ orthogonal.T, 4 * np.eye(5), atol=1e-5)
    normal = m.add_parameters(4000, init=dy.NormalInitializer(1, 4)).as_array()
    assert abs(normal.mean() - 1) < 0.2 and abs(normal.std() - 2) < 0.2
    assert 0.9 < largest(m.add_parameters(1000, init=dy.UniformInitializer(1)).as_array()) <= 1
    assert (m.add_parameters(3, init=dy.ConstInitializer(0.5)).as_array() == 0.5).all()
    assert 0.9 < largest(m.add_parameters(1000, init="uniform", scale=1).as_array()) <= 1
    assert abs(m.add_parameters(4000, init="normal", mean=3, std=2).as_array().mean() - 3) < 0.2
    assert abs(m.add_parameters((400, 10), init="he").as_array().std() - 20**-0.5) < 0.02
    for wrong in ("none", dy.NumpyInitializer(array.T), [1]):
        with pytest.raises(ValueError):
            m.add_parameters((2, 3), init=wrong)


def test_tables_take_arrays_of_rows() -> None:
    m = dy.ParameterCollection()
    rows = np.arange(24.0).reshape(4, 2, 3)
    assert (m.lookup_parameters_from_numpy(rows).as_array() == rows).all()
    assert m.add_lookup_parameters(5).shape() == (5, 1)
    with pytest.raises(ValueError, match="array of rows"):
        m.add_lookup_parameters((4, 2, 3), init=dy.NumpyInitializer(rows))


def test_values_are_changed() -> None:
    m = dy.ParameterCollection()
    p, table = m.add_parameters((2, 2), init=2), m.add_lookup_parameters((3, 2), init=0)
    p.scale(3)
    assert (p.as_array() == 6).all()
    p.set_value(np.array([[1, -5], [3, 9]]))
    p.clip_inplace(-1, 4)
    assert p.as_array().tolist() == [[1, -1], [3, 4]] and p.value().tolist() == p.as_array().tolist()
    p.zero()
    assert not p.as_array().any()
    table.init_row(1, [5, 6])
    table.init_from_array(np.array([[1, 2]]))
    assert table.as_array().tolist() == [[1, 2], [5, 6], [0, 0]] and len(table) == 3
    assert table.row_as_array(1).tolist() == [5, 6] and table.rows_as_array([1, 0]).tolist() == [
        [5, 6],
        [1, 2],
    ]
    assert [row.value() for row in table] == table.as_array().tolist()
    assert dy.tanh(table).dim() == ((2, 3), 1) and table.expr() is table
    with pytest.raises(ValueError, match="does not fit"):
        p.set_value(np.zeros(3))


def filled() -> tuple[dy.ParameterCollection, list[Any]]:
    m = dy.ParameterCollection()
    inner = m.add_subcollection("inner")
    return m, [
        m.add_parameters((2, 3)),
        m.add_lookup_parameters((4, 2, 3)),
        inner.add_parameters(2, name="b"),
    ]


@pytest.mark.parametrize("text", [False, True])
def test_files_of_collections(tmp_path: Path, text: bool) -> None:
    path = str(tmp_path / "model")
    (m, saved), (other, read) = filled(), filled()
    (m.write_to_textfile if text else m.save)(path)
    (other.populate_from_textfile if text else other.populate)(path)
    for one, two in zip(saved, read):
        np.testing.assert_allclose(one.as_array(), two.as_array(), rtol=1e-7)
    smaller = dy.ParameterCollection()
    smaller.add_parameters(2)
    smaller.populate(path, "/inner/")
    np.testing.assert_allclose(smaller.parameters_list()[0].as_array(), saved[2].as_array(), rtol=1e-7)
    with pytest.raises(ValueError, match="holds 2 Parameters"):
        smaller.populate(path)
    with pytest.raises(ValueError, match="has shape"):
        wrong = dy.ParameterCollection()
        wrong.add_parameters(3)
        wrong.populate(path, "/inner/")


@pytest.mark.parametrize("text", [False, True])
def test_files_of_parameters(tmp_path: Path, text: bool) -> None:
    path = str(tmp_path / "model")
    _, (p, table, b) = filled()
    write = "write_to_textfile" if text else "save"
    getattr(table, write)(path, "/X")
    getattr(p, write)(path, append=True)
    getattr(b, write)(path, append=True)
    other, (p2, table2, b2) = filled()
    b2.populate(path, "/inner/b")
    p2.populate(path, p.name())
    table2.populate(path, "/X")
    for one, two in ((p, p2), (table, table2), (b, b2)):
        np.testing.assert_allclose(one.as_array(), two.as_array(), rtol=1e-7)
    loaded = other.load_param(path, "/_0"), other.load_lookup_param(path, "/X")
    assert loaded[0].shape() == (2, 3) and loaded[1].shape() == (4, 2, 3)
    with pytest.raises(ValueError, match="holds no Parameter /Y"):
        p2.populate(path, "/Y")


def test_text_of_dynet(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(
        "#Parameter# /_0 {2,3} 194 FULL_GRAD\n"
        "+1.00000000e+00 +2.00000000e+00 +3.00000000e+00 +4.00000000e+00 +5.00000000e+00 +6.00000000e+00 \n"
        "+0.00000000e+00 +0.00000000e+00 +2.00000000e+00 +2.00000000e+00 +3.00000000e+00 +3.00000000e+00 \n"
        "#LookupParameter# /_1 {2,2} 65 ZERO_GRAD\n"
        "+1.00000000e+00 +2.00000000e+00 +3.00000000e+00 +4.00000000e+00 \n"
    )
    m = dy.ParameterCollection()
    p, table = m.add_parameters((2, 3)), m.add_lookup_parameters((2, 2))
    m.populate(str(path))
    assert p.as_array().tolist() == [[1, 3, 5], [2, 4, 6]] and table.as_array().tolist() == [[1, 2], [3, 4]]
    written = tmp_path / "written"
    table.write_to_textfile(str(written), "/_1")
    assert written.read_text() == "\n".join(path.read_text().split("\n")[3:])
    path.write_text("Parameter 1 2 3\n")
    with pytest.raises(ValueError):
        m.populate(str(path))


class Network:
    """A user's own class that is saved."""

    def __init__(self, model: Any, size: int, activation: Any) -> None:
        self.collection = model.add_subcollection()
        self.w = self.collection.add_parameters((size, size))
        self.spec = {"size": size}, [activation]
        self.activation = activation

    def param_collection(self) -> Any:
        return self.collection

    @staticmethod
    def from_spec(spec: Any, model: Any) -> Network:
        return Network(model, spec[0]["size"], spec[1][0])


def test_objects_are_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, Network.__module__, sys.modules.get(__name__) or Anything())
    base = str(tmp_path / "model")
    m = dy.ParameterCollection()
    things = [
        m.add_parameters((2, 3)),
        dy.LSTMBuilder(1, 2, 3, m, forget_bias=0.5),
        m.add_lookup_parameters((4, 2)),
        dy.BiRNNBuilder(1, 2, 4, m, dy.GRUBuilder),
        Network(m, 2, dy.tanh),
    ]
    dy.save(base, things)
    p, lstm, table, both, network = dy.load(base, dy.ParameterCollection())
    assert (p.as_array() == things[0].as_array()).all() and (table.as_array() == things[2].as_array()).all()
    assert lstm.spec == (1, 2, 3, False, 0.5) and network.activation is dy.tanh
    for one, two in ((things[1], lstm), (things[3], both), (things[4], network)):
        pairs = zip(one.param_collection().parameters_list(), two.param_collection().parameters_list())
        assert all((a.as_array() == b.as_array()).all() for a, b in pairs)
    with pytest.raises(TypeError, match="in a spec"):
        network.spec = iter(())
        dy.save(base, [network])


class Words:
    """What a spec may hold: an object with attributes."""

    def __init__(self) -> None:
        self.index = {"a": 0, ("b", 1): np.int64(1)}
        self.rows = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.counts, self.seen = collections.Counter("aab"), {1, 2}
        self.rest = collections.defaultdict(list, {"a": [1]})

    def size(self) -> int:
        return len(self.index)


class Restored(Network):
    """A user's own class of any spec."""

    @staticmethod
    def from_spec(spec: Any, model: Any) -> Any:
        made = Restored(model, 2, dy.tanh)
        made.spec = spec
        return made


def test_specs_hold_objects_and_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = Anything()
    monkeypatch.setitem(sys.modules, Network.__module__, sys.modules.get(__name__) or holder)
    network = Restored(dy.ParameterCollection(), 2, dy.tanh)
    network.spec = ["words", Words()]
    dy.save(str(tmp_path / "model"), [network])
    (found,) = dy.load(str(tmp_path / "model"), dy.ParameterCollection())
    kind, words = found.spec
    assert kind == "words" and type(words) is Words and words.size() == 2
    assert words.index == {"a": 0, ("b", 1): 1} and words.seen == {1, 2}
    assert type(words.counts) is collections.Counter and words.counts["a"] == 2
    assert words.rest == {"a": [1]} and words.rest["b"] == []
    assert words.rows.dtype == np.float32 and words.rows.tolist() == [[0, 1, 2], [3, 4, 5]]


class Anything:
    """A module of the user's."""

    Network = Network
    Words = Words
    Restored = Restored


def test_files_name_nothing_that_is_called(tmp_path: Path) -> None:
    (tmp_path / "model.meta").write_text(
        '{"twofold.dynet": [[{"name": ["antigravity", "from_spec"]}, null, "/"]]}'
    )
    (tmp_path / "model.data").write_bytes(b"")
    with pytest.raises(ValueError, match="import or define"):
        dy.load(str(tmp_path / "model"), dy.ParameterCollection())
    assert "antigravity" not in sys.modules
    (tmp_path / "model.meta").write_text(
        '{"twofold.dynet": [[{"object": [{"name": ["subprocess", "Popen"]}, {"dict": []}]}, null, "/"]]}'
    )
    with pytest.raises(ValueError, match="nothing but attributes"):
        dy.load(str(tmp_path / "model"), dy.ParameterCollection())
    (tmp_path / "model.meta").write_bytes(b"\x80\x04N.")
    with pytest.raises(ValueError, match="not saved by"):
        dy.load(str(tmp_path / "model"), dy.ParameterCollection())


WORDS = {f"w{i}": i for i in range(6)}


@pytest.mark.parametrize("name", ["Standard", "ClassFactored", "Hierarchical"])
def test_softmax_builders_give_probabilities(tmp_path: Path, name: str) -> None:
    clusters = tmp_path / "clusters"
    path = {"Hierarchical": ["0 0", "0 0", "0 1", "1", "1", "1"]}.get(name, list("aababc"))
    clusters.write_text("".join(f"{c} {w}\n" for c, w in zip(path, WORDS)))
    m = dy.ParameterCollection()
    make = getattr(dy, name + "SoftmaxBuilder")
    builder = make(3, 6, m) if name == "Standard" else make(3, str(clusters), WORDS, m)
    values = np.array([[1.0, 0.5], [-1, 2], [0.3, 0]])
    batch = dy.inputTensor(values, batched=True)
    x = dy.inputVector(values[:, 0])
    losses = [builder.neg_log_softmax(x, c).value() for c in range(6)]
    assert sum(np.exp(-one) for one in losses) == pytest.approx(1, rel=1e-5)
    found = builder.neg_log_softmax_batch(batch, [4, 1]).npvalue()
    second = builder.neg_log_softmax(dy.inputVector(values[:, 1]), 1).value()
    np.testing.assert_allclose(found, [[losses[4], second]], rtol=1e-5)
    if name != "Hierarchical":
        np.testing.assert_allclose(builder.full_log_distribution(x).npvalue(), -np.array(losses), rtol=1e-5)
    dy.reset_random_seed(5)
    counts = np.bincount([builder.sample(x) for _ in range(300)], minlength=6) / 300
    np.testing.assert_allclose(counts, np.exp(-np.array(losses)), atol=0.1)
    builder.neg_log_softmax(x, 2, update=False)
    assert builder.param_collection().name().endswith("softmax-builder/") or name == "Hierarchical"


def test_parts_of_class_factored_softmax(tmp_path: Path) -> None:
    clusters = tmp_path / "clusters"
    clusters.write_text("a w0\na w1\nb w2\n")
    builder = dy.ClassFactoredSoftmaxBuilder(
        2, str(clusters), {"w0": 0, "w1": 1, "w2": 2}, dy.ParameterCollection()
    )
    x = dy.inputVector([1, 2])
    outer, inner = (
        builder.class_log_distribution(x).npvalue(),
        builder.subclass_log_distribution(x, 0).npvalue(),
    )
    assert builder.neg_log_softmax(x, 1).value() == pytest.approx(-outer[0] - inner[1], rel=1e-5)
    assert builder.neg_log_softmax(x, 2).value() == pytest.approx(-outer[1], rel=1e-5)
    with pytest.raises(ValueError, match="one word"):
        builder.subclass_logits(x, 1)
    with pytest.raises(ValueError, match="each once"):
        dy.ClassFactoredSoftmaxBuilder(2, str(clusters), {"w0": 0, "w1": 2}, dy.ParameterCollection())


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynet_config, "_given", None)
    found = from_arguments(
        ["a", "--dynet-seed", "3", "--dynet_mem=512", "--dynet-l2", "0.1", "--other", "--dynet-viz"]
    )
    assert found == {"random_seed": 3, "mem": "512", "weight_decay": 0.1}
    with pytest.raises(ValueError, match="takes a number"):
        from_arguments(["--dynet-seed", "x"])
    dynet_config.set(random_seed=11, weight_decay=0.25)
    first = dy.random_normal(3).value()
    monkeypatch.setattr(sys, "argv", ["program", "--dynet-seed=11"])
    dy.init()
    assert dy.random_normal(3).value() == first and dynet_config.get()["seed"] == 11
    params = dy.DynetParams()
    params.set_weight_decay(0.5)
    dy.init_from_params(params)
    assert dy.ParameterCollection().get_weight_decay() == 0.5
    for wrong in ({"requested_gpus": 1}, {"shared_parameters": 1}):
        with pytest.raises(RuntimeError):
            dynet_config.set(**wrong)
    with pytest.raises(RuntimeError, match="GPU"):
        dynet_config.set_gpu()


def test_settings_are_found_beside_the_package_and_in_it():
    import twofold.dynet.dynet_config as inner

    assert inner is dynet_config is dy.dynet_config


def test_values_are_arrays_of_float64_as_those_of_dynet():
    model = dy.ParameterCollection()
    table, matrix = model.add_lookup_parameters((3, 2)), model.add_parameters((2, 2))
    dy.renew_cg()
    product = matrix * table[0]
    dy.sum_elems(product).backward(full=True)
    found = [
        product.npvalue(),
        product.gradient(),
        matrix.as_array(),
        matrix.grad_as_array(),
        (matrix + matrix).value(),
    ]
    found += [table.as_array(), table.grad_as_array(), table.row_as_array(0), table.rows_as_array([0, 1])]
    assert {one.dtype for one in found} == {np.dtype("float64")}
    assert json.loads(json.dumps(list(product.npvalue()))) == product.value()
