"""Functions whose parameters are rows of names, and modules that are tables of names."""

from __future__ import annotations

import inspect
from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.signatures import arguments, signature
from twofold.static.api.op_functions import operation


def test_a_row_is_a_signature():
    row = signature("units, rate=0.5, *, training, seed=None")
    assert [(one.name, one.default, one.kind.name) for one in row.parameters.values()] == [
        ("units", inspect.Parameter.empty, "POSITIONAL_OR_KEYWORD"),
        ("rate", 0.5, "POSITIONAL_OR_KEYWORD"),
        ("training", inspect.Parameter.empty, "KEYWORD_ONLY"),
        ("seed", None, "KEYWORD_ONLY"),
    ]
    given = arguments("dense", row, [4], {"training": True})
    assert given == {"units": 4, "rate": 0.5, "training": True, "seed": None}
    with pytest.raises(TypeError, match="dense: missing a required .*'units'"):
        arguments("dense", row, [], {"training": True})


@pytest.mark.parametrize("row", ["x, name=None", "x, y, z, name=None"])
def test_a_row_with_other_names_than_its_body_is_refused(row):
    def body(x: Any, y: Any) -> Any:
        return x

    with pytest.raises(TypeError, match="in the row or the body alone"):
        operation("Body", row=signature(row))(body)


def test_former_names_and_unused_parameters_of_a_row():
    image, kernel = numpy.ones([1, 3, 1], "float32"), numpy.ones([2, 1, 1], "float32")
    with tf.Graph().as_default(), tf.Session() as session:
        first = tf.nn.conv1d(image, kernel, 1, "VALID", True, name="made")
        second = tf.nn.conv1d(input=image, filters=kernel, stride=1, padding="VALID")
        assert first.op.name == "made" and first.op.type == "Conv1D"
        assert session.run([first, second])[1].ravel().tolist() == [2.0, 2.0]
        assert tf.nn.moments([[1.0, 3.0]], [1], None, "own", True)[0].shape.as_list() == [1, 1]
        with pytest.raises(ValueError, match="input"):
            tf.nn.conv1d(image, kernel, 1, "VALID", input=image)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("contrib.rnn", "GRUCell static_rnn"),
        ("io", "decode_csv parse_tensor"),
        ("math", "reduce_sum bincount"),
    ],
)
def test_an_import_of_all_takes_the_names_of_a_table(module, names):
    found: dict[str, Any] = {}
    exec(f"from twofold.static.{module} import *", found)
    assert all(callable(found[name]) for name in names.split())
    assert not [name for name in found if name.startswith("_") and name != "__builtins__"]


def test_one_number_is_the_stride_or_dilation_of_all_axes():
    image, kernel = numpy.ones([1, 4, 4, 1], "float32"), numpy.ones([2, 2, 1, 1], "float32")
    with tf.Graph().as_default(), tf.Session() as session:
        strided = tf.nn.convolution(image, kernel, strides=2)
        assert strided.op.name == "convolution"
        assert session.run(strided).tolist() == numpy.full([1, 2, 2, 1], 4.0).tolist()
        assert session.run(tf.nn.convolution(image, kernel, dilation_rate=3)).ravel().tolist() == [4.0]


@pytest.mark.parametrize(("layout", "axes"), [("NHWC", (0, 1, 2)), ("NCHW", (0, 2, 1))])
def test_conv1d_takes_the_layouts_of_images(layout, axes):
    line = numpy.arange(8, dtype="float32").reshape(1, 4, 2)
    kernel = numpy.array([[[1.0], [10.0]], [[100.0], [1000.0]]], "float32")
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.nn.conv1d(line.transpose(axes), kernel, 1, "VALID", data_format=layout))
    assert found.transpose(axes).ravel().tolist() == [3210.0, 5432.0, 7654.0]


@pytest.mark.parametrize("given", [{}, {"axes": [0], "other": 1}])
def test_errors_of_arguments_name_the_function(given):
    with tf.Graph().as_default(), pytest.raises(TypeError, match="moments: .*'(axes|other)'"):
        tf.nn.moments(numpy.ones([2, 2], "float32"), **given)


def test_parameters_that_are_left_out_are_named():
    image, kernel = numpy.ones([1, 3, 3, 1], "float32"), numpy.ones([1, 1, 1, 1], "float32")
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="a filter is missing"):
            tf.nn.conv2d(image, strides=1, padding="SAME")
        with pytest.raises(ValueError, match="output_shape is missing"):
            tf.nn.conv2d_transpose(image, kernel, strides=1)
        for padding in ({}, {"padding": "FULL"}):
            with pytest.raises(ValueError, match="padding"):
                tf.image.extract_image_patches(image, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], **padding)
