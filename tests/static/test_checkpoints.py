"""Checkpoints in TensorFlow's files: what is written is read, by TensorFlow too; what is damaged is said to be."""

import os
import sys

import numpy
import pytest

import twofold.static as tf
from twofold import crc32c, protobuf
from twofold.dtypes import ALL, float32
from twofold.static.saving import tensor_bundle


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def every_dtype():
    random = numpy.random.default_rng(0)
    shapes = [(), (3,), (2, 0), (2, 3, 4)]
    return {
        f"scope/{dtype.name}": (
            dtype,
            random.integers(0, 2, shapes[k % 4]).astype(dtype.numpy)
            if dtype.kind == "b"
            else random.integers(0, 100, shapes[k % 4]).astype(dtype.numpy),
        )
        for k, dtype in enumerate(ALL)
    }


def test_every_dtype_and_shape_comes_back(tmp_path):
    tensors = every_dtype()
    tensor_bundle.write_bundle(str(tmp_path / "a"), tensors)
    found = tensor_bundle.read_bundle(str(tmp_path / "a"))
    assert found.keys() == tensors.keys()
    for name, (dtype, array) in tensors.items():
        assert found[name][0] is dtype and found[name][1].shape == array.shape
        assert found[name][1].tobytes() == array.tobytes()


def test_three_files_beside_a_directory_of_the_name(session, tmp_path):
    (tmp_path / "model").mkdir()
    variable = tf.Variable([1.0, 2.0], name="v")
    session.run(variable.initializer)
    saver = tf.train.Saver()
    path = saver.save(session, str(tmp_path / "model"))
    files = {"checkpoint", "model", "model.index", "model.meta", "model.data-00000-of-00001"}
    assert set(os.listdir(tmp_path)) == files
    assert tf.train.latest_checkpoint(str(tmp_path)) == path and tf.train.checkpoint_exists(path)
    session.run(variable.assign([5.0, 5.0]))
    saver.restore(session, path)
    assert session.run(variable).tolist() == [1.0, 2.0]


def test_an_older_checkpoint_of_the_name_stays_until_the_new_one_is_complete(session, tmp_path, monkeypatch):
    variable = tf.Variable(1.0, name="v")
    session.run(variable.initializer)
    saver, path = tf.train.Saver(), str(tmp_path / "model")
    saver.save(session, path)
    session.run(variable.assign(2.0))
    monkeypatch.setattr(tensor_bundle, "_table", lambda entries: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        saver.save(session, path)
    saver.restore(session, path)
    assert session.run(variable) == 1.0
    monkeypatch.undo()
    session.run(variable.assign(3.0))
    for _ in range(3):
        saver.save(session, path)
    session.run(variable.assign(0.0))
    saver.restore(session, path)
    assert session.run(variable) == 3.0
    assert len([name for name in os.listdir(tmp_path) if ".data-" in name]) == 1


def test_relative_paths_in_the_state_file_start_at_its_directory(session, tmp_path, monkeypatch):
    """The expected lines were written by TensorFlow 1.15.5; a directory that was moved is still read."""
    monkeypatch.chdir(tmp_path)
    variable = tf.Variable(1.0, name="v")
    session.run(variable.initializer)
    os.mkdir("models")
    assert tf.train.Saver().save(session, "models/m", 3, write_meta_graph=False) == "models/m-3"
    assert (tmp_path / "models/checkpoint").read_text().split("\n")[0] == 'model_checkpoint_path: "m-3"'
    os.rename("models", "moved")
    assert tf.train.latest_checkpoint("moved") == "moved/m-3"
    assert tf.train.generate_checkpoint_state_proto("/a", "/a/m").model_checkpoint_path == "/a/m"
    assert tf.train.generate_checkpoint_state_proto("a", "a/m").model_checkpoint_path == "m"


def test_what_is_kept(session, tmp_path):
    step = tf.Variable(0, name="step")
    session.run(step.initializer)
    saver = tf.train.Saver(max_to_keep=2, pad_step_number=True, save_relative_paths=True)
    for k in range(4):
        saver.save(session, str(tmp_path / "m"), global_step=k, write_meta_graph=False)
    found = {name.partition(".")[0] for name in os.listdir(tmp_path)} - {"checkpoint"}
    assert found == {"m-00000002", "m-00000003"}
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert [os.path.basename(path) for path in state.all_model_checkpoint_paths] == [
        "m-00000002",
        "m-00000003",
    ]
    assert (tmp_path / "checkpoint").read_text().startswith('model_checkpoint_path: "m-00000003"\n')
    often = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=-1.0)
    for k in range(3):
        often.save(session, str(tmp_path / "often"), global_step=k)
    assert sum(name.startswith("often") and name.endswith(".index") for name in os.listdir(tmp_path)) == 3


def test_what_is_kept_of_what_another_saver_wrote(session, tmp_path):
    def saved(before):
        saver = tf.train.Saver(max_to_keep=2)
        before(saver)
        path = saver.save(session, str(tmp_path / "m"), global_step=3)
        return saver.last_checkpoints, [k for k in range(4) if tf.train.checkpoint_exists(f"{path[:-1]}{k}")]

    step = tf.Variable(0, name="step")
    session.run(step.initializer)
    old = [tf.train.Saver().save(session, str(tmp_path / "m"), global_step=k) for k in range(3)]
    last, there = saved(lambda saver: saver.set_last_checkpoints(old[:2]))
    assert (last, there) == ([old[1], last[-1]], [0, 1, 2, 3])
    _, there = saved(lambda saver: saver.set_last_checkpoints_with_time([(path, 1e12) for path in old[:2]]))
    assert there == [0, 1, 2, 3]
    _, there = saved(lambda saver: saver.recover_last_checkpoints([str(tmp_path / "none"), *old[:2]]))
    assert there == [1, 2, 3]
    _, there = saved(lambda saver: saver.set_last_checkpoints_with_time([(path, 0.0) for path in old[1:]]))
    assert there == [2, 3]


def test_another_shape_or_dtype(session, tmp_path):
    with tf.Graph().as_default(), tf.Session() as other:
        tf.Variable([[1.0, 2.0]], name="v").initializer.run(session=other)
        path = tf.train.Saver().save(other, str(tmp_path / "m"))
    flat = tf.Variable([0.0, 0.0], name="v")
    tf.train.Saver({"v": flat}, reshape=True).restore(session, path)
    assert session.run(flat).tolist() == [1.0, 2.0]
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=r"\[1,2\]"):
        tf.train.Saver({"v": flat}).restore(session, path)
    whole = tf.Variable([0, 0], name="whole")
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="float32"):
        tf.train.Saver({"v": whole}).restore(session, path)


@pytest.mark.parametrize("ending", [".index", ".data-00000-of-00001"])
def test_damage_is_told(session, tmp_path, ending):
    variable = tf.Variable(numpy.arange(50.0), name="v")
    session.run(variable.initializer)
    path = tf.train.Saver().save(session, str(tmp_path / "m"))
    whole = (tmp_path / ("m" + ending)).read_bytes()
    random = numpy.random.default_rng(1)
    for _ in range(60):
        broken = bytearray(whole)
        if random.random() < 0.3:
            del broken[int(random.integers(len(broken))) :]
        else:
            broken[int(random.integers(len(broken)))] ^= 1 << int(random.integers(8))
        (tmp_path / ("m" + ending)).write_bytes(bytes(broken))
        try:
            tf.train.Saver().restore(session, path)
        except ValueError as error:
            assert "damaged" in str(error) or "no variable" in str(error)
        assert numpy.array_equal(session.run(variable), numpy.arange(50.0))


def test_what_is_missing_is_told(session, tmp_path):
    v, x = tf.Variable([1.0, 2.0], name="v"), tf.Variable(1.0, name="x")
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver([v]).save(session, str(tmp_path / "m"))
    with pytest.raises(ValueError, match="there is no checkpoint"):
        tf.train.Saver().restore(session, str(tmp_path / "missing"))
    with pytest.raises(tf.errors.NotFoundError, match="has no variable 'x'"):
        tf.train.Saver([x]).restore(session, path)
    (tmp_path / "other.index").write_bytes(b"text")
    with pytest.raises(RuntimeError, match="the index is no table"):
        tf.train.Saver().restore(session, str(tmp_path / "other"))


def test_arguments_that_are_not_offered_raise(session, tmp_path):
    variable = tf.Variable(1.0)
    for option in ({"saver_def": 1}, {"builder": 1}, {"filename": "x"}, {"write_version": 1}):
        with pytest.raises(ValueError, match=next(iter(option))):
            tf.train.Saver([variable], **option)
    with pytest.raises(ValueError, match="no variables"):
        tf.train.Saver([])
    assert tf.train.Saver([], allow_empty=True)
    with pytest.raises(TypeError):
        tf.train.Saver([variable], nonsense=1)


def test_checksums_of_every_length():
    random = numpy.random.default_rng(2)
    assert crc32c.crc32c(b"123456789") == 0xE3069283  # RFC 3720
    for size in (0, 1, 8, 4096 * 17 - 1, 4096 * 17, 4096 * 20 + 5):
        data = random.bytes(size)
        assert crc32c.crc32c(data) == crc32c._update(0xFFFFFFFF, data) ^ 0xFFFFFFFF


def test_graph_messages(session):
    a = tf.placeholder(tf.float32, name="a")
    with tf.control_dependencies([tf.no_op(name="before")]):
        tf.exp(a, name="b")
    graph = session.graph.as_graph_def()
    assert [(node.name, node.op, node.input) for node in graph.node] == [
        ("a", "Placeholder", []),
        ("before", "NoOp", []),
        ("b", "Exp", ["a", "^before"]),
    ]
    content = list(protobuf.fields(graph.SerializeToString()))
    nodes = [dict(protobuf.fields(node)) for field, node in content if field == 1]
    assert [node[1] for node in nodes] == [b"a", b"before", b"b"]
    assert str(graph).startswith('node {\n  name: "a"\n  op: "Placeholder"\n  attr {\n')


def test_tensorflow_reads_ours_and_we_read_tensorflow_s(tmp_path):
    if "tensorflow" not in sys.modules:
        pytest.importorskip("tensorflow", reason="compares with TensorFlow")
    tensorflow = sys.modules["tensorflow"]
    ours = {name: value for name, value in every_dtype().items() if value[0].numpy.name == value[0].name}
    tensor_bundle.write_bundle(str(tmp_path / "ours"), ours)
    tensor_bundle.write_bundle(str(tmp_path / "ours"), ours)  # a second time: the other data file
    reader = tensorflow.train.load_checkpoint(str(tmp_path / "ours"))
    for name, (_, array) in ours.items():
        found = numpy.asarray(reader.get_tensor(name))
        assert found.tobytes() == array.tobytes() and found.shape == array.shape
    v1 = tensorflow.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        for k in range(40):
            v1.get_variable(
                f"layer{k}/w", initializer=numpy.full((3, k), k, numpy.float32), use_resource=False
            )
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(tmp_path / "theirs"))
    found = tensor_bundle.read_bundle(str(tmp_path / "theirs"))
    assert len(found) == 40 and found["layer7/w"][0] is float32
    assert numpy.array_equal(found["layer7/w"][1], numpy.full((3, 7), 7.0))


TRAINED = {
    "w": [0.568545937538147, -2.025786876678467],
    "optimizer/beta1_power": 0.6560999155044556,
    "optimizer/beta2_power": 0.9960060715675354,
    "w/Adam": [0.654224157333374, 3.6148784160614014],
    "w/Adam_1": [0.01858731545507908, 0.5294451713562012],
    "w/RMSProp": [1.0983335971832275, 3.01690673828125],
    "w/RMSProp_1": [0.14083099365234375, -0.46009862422943115],
    "w/RMSProp_2": [0.13560885190963745, -0.274705708026886],
}
"""What TensorFlow 2.21 (``tf.compat.v1``) kept after three steps of Adam and one of RMSProp, by its names."""


def test_training_goes_on_from_a_checkpoint_of_tensorflow(tmp_path):
    path = str(tmp_path / "model")
    tensor_bundle.write_bundle(
        path, {name: (tf.float32, numpy.array(value, "f")) for name, value in TRAINED.items()}
    )
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable([1.0, -2.0], name="w")
        with tf.name_scope("optimizer"):
            adam = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w * w * w))
            second = tf.train.RMSPropOptimizer(0.1, centered=True, momentum=0.5).minimize(
                tf.reduce_sum(w * w)
            )
        saver = tf.train.Saver()
        saver.restore(session, path)
        saver.save(session, str(tmp_path / "ours"), write_meta_graph=False)
        session.run(adam)  # TensorFlow's 1 - beta2_power of float32 has five digits here
        numpy.testing.assert_allclose(session.run(w), [0.47832009196281433, -2.1256892681121826], rtol=5e-6)
        session.run(second)
        numpy.testing.assert_allclose(session.run(w), [0.3162802457809448, -1.7707695960998535], rtol=5e-6)
    written = tensor_bundle.read_bundle(str(tmp_path / "ours"))
    assert TRAINED.keys() == written.keys()
    for name, value in TRAINED.items():
        numpy.testing.assert_allclose(written[name][1], value, rtol=1e-6)


@pytest.mark.parametrize("steps", [0, 1, 500, 5000])
def test_steps_are_found_in_powers(tmp_path, steps):
    bases = {"beta1_power": 0.9, "beta2_power": 0.999}
    powers = {name: numpy.cumprod(numpy.full(steps + 1, base, "f"))[-1] for name, base in bases.items()}
    slots = {name: numpy.array([1.0], "f") for name in ("w", "w/Adam", "w/Adam_1")}
    path = str(tmp_path / "model")
    tensor_bundle.write_bundle(
        path, {name: (tf.float32, numpy.asarray(value)) for name, value in {**powers, **slots}.items()}
    )
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable([1.0], name="w")
        optimizer = tf.train.AdamOptimizer(0.1, formulation="pytorch")
        optimizer.minimize(w * w)
        tf.train.Saver().restore(session, path)
        assert [session.run(one) for one in optimizer.variables() if one.dtype is tf.int64] == [steps]


def test_a_checkpoint_is_looked_into_without_a_graph(session, tmp_path):
    value = numpy.arange(6, dtype=numpy.int64).reshape(2, 3)
    tf.Variable(value, name="a/v"), tf.Variable(2.5, name="w")
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(session, str(tmp_path / "model"))
    for found in (tf.train.NewCheckpointReader(path), tf.train.load_checkpoint(str(tmp_path))):
        assert found.get_variable_to_shape_map() == {"a/v": [2, 3], "w": []}
        assert found.get_variable_to_dtype_map() == {"a/v": tf.int64, "w": tf.float32}
        assert found.has_tensor("w") and not found.has_tensor("v")
        assert found.get_tensor("a/v").tolist() == value.tolist()
        with pytest.raises(tf.errors.NotFoundError, match="'v'.*a/v"):
            found.get_tensor("v")
    assert tf.train.list_variables(path) == [("a/v", [2, 3]), ("w", [])]
    assert tf.train.load_variable(path, "w:0") == 2.5
    with pytest.raises(ValueError, match="no checkpoint"):
        tf.train.load_checkpoint(str(tmp_path / "other"))
