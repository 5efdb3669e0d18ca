"""Flags, files and checks."""

import numpy
import pytest

import twofold.static as tf
from twofold.static.platform import flags as flag_file


def test_flags(monkeypatch):
    flags = flag_file.Flags()
    monkeypatch.setattr(flag_file, "FLAGS", flags)
    tf.app.flags.DEFINE_string("name", "digits", "What to read.")
    tf.app.flags.DEFINE_float("rate", 0.1, "")
    tf.flags.DEFINE_integer("steps", 10, "")
    tf.flags.DEFINE_boolean("train", True, "")
    tf.flags.DEFINE_bool("fast", False, "")
    tf.flags.DEFINE_list("sizes", ["1"], "")
    monkeypatch.setattr("sys.argv", ["program", "--rate=0.5", "--notrain", "--fast", "--sizes=2,3", "rest"])
    assert (flags.name, flags.rate, flags.steps, flags.train, flags.fast) == ("digits", 0.5, 10, False, True)
    assert flags.sizes == ["2", "3"]
    flags.steps = 3
    assert flags.steps == 3
    with pytest.raises(AttributeError, match="--other is not defined"):
        getattr(flags, "other")  # noqa: B009
    with pytest.raises(ValueError, match="--rate is defined twice"):
        tf.flags.DEFINE_float("rate", 0.1, "")
    seen = []
    with pytest.raises(SystemExit):
        tf.app.run(seen.append, ["program", "--steps=4", "more"])
    assert seen == [["program", "more"]]


def test_flags_by_the_names_of_arguments(monkeypatch):
    flags = flag_file.Flags()
    monkeypatch.setattr(flag_file, "FLAGS", flags)
    monkeypatch.setattr("sys.argv", ["program", "--rate=0.5"])
    tf.flags.DEFINE_float(name="rate", default=0.1, help="How far a step goes.")
    tf.flags.DEFINE_integer(flag_name="steps", default_value=10, docstring="How many steps.")
    tf.flags.DEFINE_boolean("train", default=True, help="")
    tf.flags.DEFINE_enum(name="kind", default="a", enum_values=["a", "b"], help="")
    assert (flags.rate, flags.steps, flags.train, flags.kind) == (0.5, 10, True, "a")
    with pytest.raises(TypeError, match="'name' is given twice"):
        tf.flags.DEFINE_integer(flag_name="more", name="less", default=1)


def test_files(tmp_path):
    folder = str(tmp_path / "a" / "b")
    tf.gfile.MakeDirs(folder)
    with tf.gfile.GFile(f"{folder}/x.txt", "w") as file:
        file.write("one\ntwo\n")
    with tf.gfile.Open(f"{folder}/x.txt") as file:
        assert file.readline() == "one\n" and list(file) == ["two\n"] and file.size() == 8
    tf.gfile.Copy(f"{folder}/x.txt", f"{folder}/y.txt")
    assert tf.gfile.ListDirectory(folder) == ["x.txt", "y.txt"]
    assert tf.gfile.Glob(f"{folder}/y*") == [f"{folder}/y.txt"]
    with pytest.raises(FileExistsError, match="overwrite"):
        tf.gfile.Rename(f"{folder}/x.txt", f"{folder}/y.txt")
    tf.gfile.DeleteRecursively(folder)
    assert not tf.gfile.Exists(folder) and tf.gfile.IsDirectory(str(tmp_path))


CHECKS = {
    "assert_positive": ((1.0,), (0.0,)),
    "assert_negative": ((-1.0,), (0.0,)),
    "assert_non_negative": ((0.0,), (-1.0,)),
    "assert_non_positive": ((0.0,), (1.0,)),
    "assert_near": ((1.0, 1.0 + 1e-7), (1.0, 1.1)),
    "assert_none_equal": ((1.0, 2.0), (2.0, 2.0)),
}


@pytest.mark.parametrize("name", CHECKS)
def test_checks_of_values(name):
    good, bad = CHECKS[name]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        check = getattr(tf, name)(x, *[numpy.float32(value) for value in good[1:]])
        with tf.control_dependencies([check]):
            y = tf.identity(x)
        assert session.run(y, {x: [good[0]]}) == numpy.float32(good[0])
        other = getattr(tf, name)(x, *[numpy.float32(value) for value in bad[1:]], message="look here")
        with pytest.raises(tf.errors.InvalidArgumentError, match="look here"):
            session.run(other, {x: [bad[0]]})


def test_checks_of_what_is_known():
    with tf.Graph().as_default(), tf.Session() as session:
        x, unknown = tf.zeros([2, 3]), tf.placeholder(tf.float32)
        tf.assert_rank(x, 2)
        tf.assert_rank_at_least(x, 1)
        tf.assert_type(x, tf.float32)
        tf.assert_integer(tf.constant(1))
        assert tf.assert_scalar(tf.constant(1.0)).get_shape().ndims == 0
        with pytest.raises(ValueError, match="is not of rank 1"):
            tf.assert_rank(x, 1)
        with pytest.raises(ValueError, match="is not of rank 0"):
            tf.assert_scalar(x)
        with pytest.raises(TypeError, match="not of int32"):
            tf.assert_type(x, tf.int32)
        with pytest.raises(TypeError, match="not of integers"):
            tf.assert_integer(x)
        later = tf.assert_rank_at_least(unknown, 2)
        session.run(later, {unknown: [[1.0]]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="assert_rank_at_least"):
            session.run(later, {unknown: [1.0]})


def test_flags_where_older_programs_look_for_them():
    flags = flag_file.Flags()
    flags.define("rate", 0.5, None, float)
    flags.parse(["--rate", "0.25"])
    assert getattr(flags, "__flags") == vars(flags)["__flags"] == {"rate": 0.25}
    flags.rate = 0.75
    assert vars(flags)["__flags"] == {"rate": 0.75}


def test_flags_that_are_checked_when_a_program_starts(monkeypatch):
    flags = flag_file.Flags()
    monkeypatch.setattr(flag_file, "FLAGS", flags)
    tf.flags.DEFINE_string("data", None, "")
    tf.flags.DEFINE_integer("steps", "4", "")
    tf.flags.DEFINE_multi_string("kind", ["a"], "")
    tf.flags.DEFINE_multi_integer("size", None, "")
    tf.flags.mark_flag_as_required("data")
    tf.flags.register_validator("steps", lambda steps: steps > 0, "too few")
    with pytest.raises(SystemExit, match="--data=None: Flag --data must have a value"):
        tf.app.run(lambda argv: 0, ["program"])
    with pytest.raises(SystemExit, match="--steps=0: too few"):
        tf.app.run(lambda argv: 0, ["program", "--data=x", "--steps=0"])
    with pytest.raises(SystemExit) as ended:
        tf.app.run(lambda argv: argv, ["program", "--data=x", "--kind=b", "--kind", "c", "rest"])
    assert ended.value.code == ["program", "rest"]
    assert (flags.data, flags.steps, flags.kind, flags.size) == ("x", 4, ["b", "c"], None)
    assert flags(["p", "--data=y", "--size=3"]) == ["p"] and flags.is_parsed()
    assert (flags["data"].value, flags["size"].value, flags.kind) == ("y", [3], ["a"])
    assert sorted(flags) == ["data", "kind", "size", "steps"] and "other" not in flags
    flags.set_default("steps", 9)
    assert flags(["p", "--data=y"]) == ["p"] and flags.steps == 9
    with pytest.raises(AttributeError, match="--other is not defined"):
        tf.flags.mark_flags_as_required(["other"])


@pytest.mark.parametrize("mode", ["w", "wb"])
def test_files_take_text_and_bytes_in_each_mode(tmp_path, mode):
    with tf.gfile.GFile(str(tmp_path / "f"), mode) as file:
        file.write("ä")
        file.write("ö".encode())
    with tf.gfile.GFile(str(tmp_path / "f"), mode.replace("w", "r")) as file:
        assert file.read() == ("äö".encode() if "b" in mode else "äö")


def test_unknown_flags_are_left_or_refused() -> None:
    flags = flag_file.Flags()
    flags.define("steps", 5, "How many steps.", int)
    assert flags(["run.py", "--steps=7", "--other=1", "rest"], known_only=True) == [
        "run.py",
        "--other=1",
        "rest",
    ]
    assert flags.steps == 7 and flags([]) == []
    with pytest.raises(ValueError, match="--other=1 is not defined"):
        flags(["run.py", "--other=1"])


def test_files_have_their_later_names(tmp_path):
    files = tf.io.gfile
    files.makedirs(f"{tmp_path}/a/b")
    with files.GFile(f"{tmp_path}/a/x.txt", "w") as file:
        file.write("hello")
        assert file.tell() == 5
    with files.GFile(f"{tmp_path}/a/x.txt") as file:
        file.seek(3)
        assert file.read() == "lo"
    assert files.stat(f"{tmp_path}/a/x.txt").length == 5 and files.stat(str(tmp_path)).is_directory
    assert files.glob([f"{tmp_path}/a/*.txt", f"{tmp_path}/a/b"]) == [
        f"{tmp_path}/a/b",
        f"{tmp_path}/a/x.txt",
    ]
    files.copy(f"{tmp_path}/a/x.txt", f"{tmp_path}/a/b/y.txt")
    assert files.listdir(f"{tmp_path}/a") == ["b", "x.txt"] and files.isdir(f"{tmp_path}/a/b")
    files.rmtree(f"{tmp_path}/a")
    assert not files.exists(f"{tmp_path}/a")
