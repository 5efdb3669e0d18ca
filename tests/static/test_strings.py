"""Tensors of strings: constants, feeds, fetches, functions of them, and what carries them."""

import copy
import pickle

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_constants_feeds_and_fetches(session):
    given = tf.placeholder(tf.string, [None])
    hello = tf.constant("Hello")
    assert hello.dtype is tf.string and hello.dtype.name == "string" and hello.shape.as_list() == []
    assert session.run({"a": hello, "b": [hello]}) == {"a": b"Hello", "b": [b"Hello"]}
    for value in (["a", "bc"], [b"a", b"bc"], numpy.array(["a", "bc"]), numpy.array([b"a", "bc"], object)):
        found = session.run(given, {given: value})
        assert found.dtype == object and found.tolist() == [b"a", b"bc"]
    assert session.run(given, {given: []}).shape == (0,)
    assert session.run(hello, {hello: "fed"}) == b"fed"
    assert session.run(tf.constant(b"zero\0")) == b"zero\0"


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda dtype: pickle.loads(pickle.dumps(dtype))]
)
def test_dtypes_are_copied_as_themselves(copied):
    for dtype in (tf.string, tf.float32, tf.bool):
        assert copied(dtype) is dtype


def test_a_sum_of_strings_is_their_concatenation(session):
    hello, names = tf.constant("Hello"), tf.placeholder(tf.string, [None])
    fed = {names: ["you", "World"]}
    assert session.run(hello + tf.constant(" World!")) == b"Hello World!"
    assert session.run("<" + names + ">", fed).tolist() == [b"<you>", b"<World>"]
    assert session.run(tf.add(hello, names, name="both"), fed).tolist() == [b"Helloyou", b"HelloWorld"]
    assert tf.get_default_graph().get_operation_by_name("both")


def test_what_only_moves_or_compares_elements_takes_strings(session):
    x = tf.placeholder(tf.string, [None])
    fed = {x: ["a", "b", "a"]}
    cases = [
        (tf.gather(x, [2, 1]), [b"a", b"b"]),
        (tf.reshape(x, [3, 1]), [[b"a"], [b"b"], [b"a"]]),
        (tf.concat([x, ["z"]], 0), [b"a", b"b", b"a", b"z"]),
        (tf.stack([x, x])[1], [b"a", b"b", b"a"]),
        (tf.tile(x[:1], [2]), [b"a", b"a"]),
        (tf.where([True, False, True], x, ["p", "q", "r"]), [b"a", b"q", b"a"]),
        (tf.equal(x, "a"), [True, False, True]),
        (tf.not_equal(x, x[::-1]), [False, False, False]),
        (tf.cond(tf.equal(x[0], "a"), lambda: x, lambda: x[::-1]), [b"a", b"b", b"a"]),
        (tf.size(x), 3),
    ]
    for tensor, expected in cases:
        assert session.run(tensor, fed).tolist() == expected


def test_functions_of_strings(session):
    words = tf.constant(["one", "three"])
    cases = [
        (tf.string_join(["<", words, ">"], separator="-"), [b"<-one->", b"<-three->"]),
        (tf.as_string([True, False]), [b"true", b"false"]),
        (tf.as_string([1, 23], width=4, fill="0"), [b"0001", b"0023"]),
        (tf.as_string([1.5, 2.0], scientific=True, precision=2), [b"1.50e+00", b"2.00e+00"]),
        (tf.string_to_number(["7", "-2"], tf.int32), [7, -2]),
        (tf.strings.length(words), [3, 5]),
        (tf.substr(words, [0, 1], [2, 3]), [b"on", b"hre"]),
        (tf.decode_raw([b"\1\0\2\0"], tf.int16), [[1, 2]]),
        (tf.decode_raw([b"\0\1"], tf.int16, little_endian=False), [[1]]),
        (tf.sparse_tensor_to_dense(tf.string_split(["a,b", ",c"], ","), ""), [[b"a", b"b"], [b"c", b""]]),
        (tf.py_func(lambda x: x[::-1], [words], tf.string), [b"three", b"one"]),
    ]
    for tensor, expected in cases:
        assert session.run(tensor).tolist() == expected
    with pytest.raises(ValueError, match="spells no float32"):
        session.run(tf.string_to_number("one"))


def test_shapes_of_results_are_those_that_operands_broadcast_to(session):
    lines, one = tf.placeholder(tf.string), tf.constant(["a"])
    parts = tf.substr("hello", [0, 1], [2, 2])
    joined = tf.string_join([one, tf.constant(["x", "y", "z"])])
    assert parts.shape.as_list() == [2] and session.run(parts).tolist() == [b"he", b"el"]
    assert joined.shape.as_list() == [3] and session.run(joined).tolist() == [b"ax", b"ay", b"az"]
    assert tf.string_join([one, tf.placeholder(tf.string, [None])]).shape.as_list() == [None]
    (first, second) = tf.decode_csv(lines, [[0], [""]])
    assert first.shape.dims is None
    found = session.run([first, second], {lines: ["1,a", "2,b"]})
    assert found[0].tolist() == [1, 2] and found[1].tolist() == [b"a", b"b"]


def test_edit_distances_of_fed_strings(session):
    address = tf.sparse_placeholder(tf.string)
    words = ["bear", "beer"]
    wanted = tf.SparseTensor(
        [[0, k, j] for k in range(2) for j in range(4)], [c for word in words for c in word], [1, 2, 4]
    )
    found = tf.SparseTensorValue([[0, k, j] for k in range(2) for j in range(4)], list("bearbear"), [1, 2, 4])
    distance = tf.edit_distance(address, wanted, normalize=True)
    assert session.run(distance, {address: found}).tolist() == [[0.0, 0.25]]


def test_strings_in_variables_queues_and_datasets(session):
    name = tf.Variable("before")
    session.run(name.initializer)
    assert session.run(tf.assign(name, "after")) == b"after" == session.run(name)
    queue = tf.FIFOQueue(3, [tf.string], shapes=[[]])
    session.run(queue.enqueue_many([[b"a\0", b"b"]]))
    assert session.run(queue.dequeue_many(2)).tolist() == [b"a\0", b"b"]
    data = tf.data.Dataset.from_tensor_slices((["a", "b"], [1, 2])).map(lambda a, b: (a + "x", b)).batch(2)
    text, number = session.run(data.make_one_shot_iterator().get_next())
    assert text.tolist() == [b"ax", b"bx"] and number.tolist() == [1, 2]
    made = tf.data.Dataset.from_generator(lambda: ["p", "q"], tf.string).make_one_shot_iterator().get_next()
    assert session.run(made) == b"p"


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda s: s * s, "not string"),
        (lambda s: s + 1, "string and a Python int have no common dtype"),
        (lambda s: s + tf.constant(1), "no common dtype"),
        (lambda s: tf.cast(s, tf.int32), "string cannot be cast to int32"),
        (lambda s: tf.reduce_sum(s), "not string"),
        (lambda s: s < s, "not string"),
        (lambda s: tf.string_join([1, s]), "among strings"),
    ],
)
def test_what_counts_refuses_strings(session, declare, message):
    with pytest.raises((TypeError, ValueError), match=message):
        declare(tf.constant("x"))


def test_numbers_are_not_fed_for_strings(session):
    given = tf.placeholder(tf.string, [1])
    for value in ([1], numpy.array([3]), 5):
        with pytest.raises((TypeError, ValueError)):
            session.run(given, {given: value})
    with pytest.raises((TypeError, ValueError)):
        tf.constant(["a", 1])


def test_the_table_gives_up_the_oldest_strings_but_no_constants():
    from twofold.static.graph import string_table

    table = string_table.StringTable()
    constant = table.index_of(b"kept", constant=True)
    first = table.index_of(b"first")
    kept, string_table._MOST = string_table._MOST, 10
    try:
        for k in range(20):
            table.index_of(b"%d" % k)
        assert table.string_at(constant) == b"kept" and table.string_at(table.index_of(b"19")) == b"19"
        with pytest.raises(ValueError, match="no longer kept"):
            table.string_at(first)
    finally:
        string_table._MOST = kept


def test_loops_over_strings():
    letters = numpy.array(["T", "e", "n\0"])
    with tf.Graph().as_default(), tf.Session() as session:
        sums = tf.scan(lambda a, x: a + x, letters)
        last = tf.foldl(lambda a, x: tf.string_join([a, x]), tf.constant([b"T", b"e", b"n\0"]))
        marked = tf.map_fn(lambda x: tf.string_join([x, "!"]), tf.constant(["a", "b"]))
        found = session.run([sums, last, marked])
    assert found[0].tolist()[:2] == [b"T", b"Te"]
    assert (found[1], found[2].tolist()) == (b"Ten\0", [b"a!", b"b!"])


def test_empty_strings_stand_for_zeros(session):
    given = tf.placeholder(tf.string, [None])
    assert session.run(tf.zeros_like(given), {given: ["a", "b"]}).tolist() == [b"", b""]
    assert session.run([tf.zeros([1, 2], tf.string), tf.fill([2], "a")])[0].tolist() == [[b"", b""]]
    assert session.run(tf.fill([2], "a")).tolist() == session.run(tf.fill([2], tf.constant("a"))).tolist()
    with pytest.raises(TypeError, match="Expected string, but got 1"):
        tf.ones_like(tf.constant(["a"]))
    with pytest.raises(TypeError):
        tf.ones([2], tf.string)


def test_strings_are_joined_along_axes_in_their_order(session):
    letters = [[["a", "b"], ["c", "d"]], [["e", "f"], ["g", "h"]]]
    wanted = {  # as TensorFlow 2.21 computes them
        (0,): [[b"ae", b"bf"], [b"cg", b"dh"]],
        (0, 2): [b"aebf", b"cgdh"],
        (2, 0): [b"abef", b"cdgh"],
    }
    for axes, found in wanted.items():
        assert session.run(tf.reduce_join(letters, list(axes))).tolist() == found
    assert session.run(tf.reduce_join(letters)) == b"abcdefgh"
    kept = tf.reduce_join(letters, 1, separator="-", keepdims=True)
    assert kept.shape == (2, 1, 2) and session.run(kept)[0].tolist() == [[b"a-c", b"b-d"]]
    assert tf.reduce_join(tf.placeholder(tf.string, [None, 2]), -1).shape.as_list() == [None]


def test_functions_of_each_string(session):
    assert session.run(tf.string_strip([" a b\n", "\tc "])).tolist() == [b"a b", b"c"]
    found = session.run([tf.strings.upper("aB"), tf.strings.lower("aB")])
    assert found == [b"AB", b"ab"]
    first = tf.regex_replace("a1b22", "([0-9])(.)", r"<\2\0\1>", replace_global=False)
    assert session.run(first) == b"a<b1b1>22"
    assert session.run(tf.decode_base64(tf.encode_base64([b"\xfb\xff", b"a"]))).tolist() == [
        b"\xfb\xff",
        b"a",
    ]
    assert session.run(tf.encode_base64(b"\xfb\xff", pad=True)) == b"-_8="
