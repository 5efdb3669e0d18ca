"""Docstrings of functions that are made from a table, and their examples."""

from __future__ import annotations

_START = "session.run(tf.global_variables_initializer())"
_START_LOCAL = "session.run(tf.local_variables_initializer())"

EXAMPLES = {
    "Sum": ("tf.reduce_sum([[1, 2], [3, 4]], axis=1)", "[3 7]"),
    "Mean": ("tf.reduce_mean([[1.0, 2.0], [3.0, 6.0]], axis=1)", "[1.5 4.5]"),
    "Prod": ("tf.reduce_prod([[1, 2], [3, 4]], axis=0)", "[3 8]"),
    "Max": ("tf.reduce_max([[1, 5], [7, 4]], axis=1)", "[5 7]"),
    "Min": ("tf.reduce_min([[1, 5], [7, 4]], axis=1)", "[1 4]"),
    "All": ("tf.reduce_all([[True, True], [True, False]], axis=1)", "[ True False]"),
    "Any": ("tf.reduce_any([[True, False], [False, False]], axis=1)", "[ True False]"),
    "LogSumExp": ("tf.reduce_logsumexp([1000.0, 1000.0])", "1000.6932"),
    "Variance": ("tf.math.reduce_variance([1.0, 2.0, 3.0, 6.0])", "3.5"),
    "Std": ("tf.math.reduce_std([1.0, 3.0])", "1.0"),
    "ArgMax": ("tf.argmax([[1, 5], [7, 4]], axis=1)", "[1 0]"),
    "ArgMin": ("tf.argmin([[1, 5], [7, 4]], axis=1)", "[0 1]"),
    "Cumsum": ("tf.cumsum([1, 2, 3])", "[1 3 6]"),
    "Cumprod": ("tf.cumprod([1, 2, 3, 4])", "[ 1 2 6 24]"),
    "segment_sum": ("tf.segment_sum([1, 2, 4], [0, 0, 1])", "[3 4]"),
    "segment_prod": ("tf.segment_prod([3, 2, 4], [0, 0, 1])", "[6 4]"),
    "segment_mean": ("tf.segment_mean([1.0, 2.0, 4.0], [0, 0, 1])", "[1.5 4. ]"),
    "segment_max": ("tf.segment_max([1, 2, 4], [0, 0, 1])", "[2 4]"),
    "segment_min": ("tf.segment_min([1, 2, 4], [0, 0, 1])", "[1 4]"),
    "unsorted_segment_sum": ("tf.unsorted_segment_sum([1, 2, 4], [1, 0, 1], 2)", "[2 5]"),
    "unsorted_segment_prod": ("tf.unsorted_segment_prod([3, 2, 4], [1, 0, 1], 2)", "[ 2 12]"),
    "unsorted_segment_mean": ("tf.unsorted_segment_mean([1.0, 2.0, 4.0], [1, 0, 1], 2)", "[2. 2.5]"),
    "unsorted_segment_max": ("tf.unsorted_segment_max([1, 2, 4], [1, 0, 1], 2)", "[2 4]"),
    "unsorted_segment_min": ("tf.unsorted_segment_min([1, 2, 4], [1, 0, 1], 2)", "[2 1]"),
    "unsorted_segment_sqrt_n": (
        "tf.unsorted_segment_sqrt_n([1.0, 2.0, 3.0], [1, 0, 0], 2)",
        "[3.535534 1. ]",
    ),
    "tensor_scatter_update": ("tf.tensor_scatter_update([1, 2, 3], [[2], [0]], [10, 20])", "[20 2 10]"),
    "tensor_scatter_add": ("tf.tensor_scatter_add([1, 2, 3], [[2], [0]], [10, 20])", "[21 2 13]"),
    "tensor_scatter_sub": ("tf.tensor_scatter_sub([1, 2, 3], [[2], [0]], [10, 20])", "[-19 2 -7]"),
    "max_pool": (
        'tf.squeeze(tf.nn.max_pool([[[[1.0], [3.0], [4.0], [2.0]]]], [1, 1, 2, 1], [1, 1, 2, 1], "VALID"))',
        "[3. 4.]",
    ),
    "avg_pool": (
        'tf.squeeze(tf.nn.avg_pool([[[[1.0], [3.0], [4.0], [2.0]]]], [1, 1, 2, 1], [1, 1, 2, 1], "VALID"))',
        "[2. 3.]",
    ),
    "max_pool3d": (
        'tf.shape(tf.nn.max_pool3d(tf.zeros([1, 4, 4, 4, 3]), [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME"))',
        "[1 2 2 2 3]",
    ),
    "avg_pool3d": (
        'tf.shape(tf.nn.avg_pool3d(tf.zeros([1, 4, 4, 4, 3]), [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME"))',
        "[1 2 2 2 3]",
    ),
    "max_pooling1d": ("tf.squeeze(tf.layers.max_pooling1d([[[1.0], [3.0], [4.0], [2.0]]], 2, 2))", "[3. 4.]"),
    "average_pooling1d": (
        "tf.squeeze(tf.layers.average_pooling1d([[[1.0], [3.0], [4.0], [2.0]]], 2, 2))",
        "[2. 3.]",
    ),
    "max_pooling2d": ("tf.squeeze(tf.layers.max_pooling2d([[[[1.0], [3.0]], [[4.0], [2.0]]]], 2, 2))", "4.0"),
    "average_pooling2d": (
        "tf.squeeze(tf.layers.average_pooling2d([[[[1.0], [3.0]], [[4.0], [2.0]]]], 2, 2))",
        "2.5",
    ),
    "max_pooling3d": ("tf.shape(tf.layers.max_pooling3d(tf.zeros([1, 4, 4, 4, 3]), 2, 2))", "[1 2 2 2 3]"),
    "average_pooling3d": (
        "tf.shape(tf.layers.average_pooling3d(tf.zeros([1, 4, 4, 4, 3]), 2, 2))",
        "[1 2 2 2 3]",
    ),
    "conv1d": (
        "made = tf.layers.conv1d(tf.zeros([2, 9, 3]), 8, 3, strides=2)",
        _START,
        "tf.shape(made)",
        "[2 4 8]",
    ),
    "conv2d": (
        'made = tf.layers.conv2d(tf.zeros([2, 9, 9, 3]), 8, 3, padding="same")',
        _START,
        "tf.shape(made)",
        "[2 9 9 8]",
    ),
    "conv3d": (
        "made = tf.layers.conv3d(tf.zeros([2, 5, 5, 5, 3]), 8, 3)",
        _START,
        "tf.shape(made)",
        "[2 3 3 3 8]",
    ),
    "mean_squared_error": ("tf.losses.mean_squared_error([1.0, 2.0], [1.0, 5.0])", "4.5"),
    "absolute_difference": ("tf.losses.absolute_difference([1.0, 2.0], [1.0, 5.0])", "1.5"),
    "hinge_loss": ("tf.losses.hinge_loss([1.0, 0.0], [0.5, 0.5])", "1.0"),
    "assert_equal": ("tf.assert_equal([1, 2], [1, 2])", "None"),
    "assert_less": ("tf.assert_less([1, 2], 3)", "None"),
    "assert_greater": ("tf.assert_greater([1, 2], 0)", "None"),
    "assert_less_equal": ("tf.assert_less_equal([1, 2], 2)", "None"),
    "assert_greater_equal": ("tf.assert_greater_equal([1, 2], 1)", "None"),
    "scatter_update": (
        "v = tf.Variable([1.0, 2.0])",
        _START,
        "tf.scatter_update(v, [0], [10.0])",
        "[10. 2.]",
    ),
    "scatter_add": ("v = tf.Variable([1.0, 2.0])", _START, "tf.scatter_add(v, [0], [10.0])", "[11. 2.]"),
    "scatter_sub": ("v = tf.Variable([1.0, 2.0])", _START, "tf.scatter_sub(v, [0], [10.0])", "[-9. 2.]"),
    "scatter_mul": ("v = tf.Variable([1.0, 2.0])", _START, "tf.scatter_mul(v, [0], [10.0])", "[10. 2.]"),
    "scatter_div": ("v = tf.Variable([1.0, 2.0])", _START, "tf.scatter_div(v, [0], [4.0])", "[0.25 2. ]"),
    "scatter_min": ("v = tf.Variable([1.0, 2.0])", _START, "tf.scatter_min(v, [0], [-1.0])", "[-1. 2.]"),
    "scatter_max": ("v = tf.Variable([1.0, 2.0])", _START, "tf.scatter_max(v, [0], [10.0])", "[10. 2.]"),
    "scatter_nd_update": (
        "v = tf.Variable([1.0, 2.0])",
        _START,
        "tf.scatter_nd_update(v, [[0]], [10.0])",
        "[10. 2.]",
    ),
    "scatter_nd_add": (
        "v = tf.Variable([1.0, 2.0])",
        _START,
        "tf.scatter_nd_add(v, [[0]], [10.0])",
        "[11. 2.]",
    ),
    "scatter_nd_sub": (
        "v = tf.Variable([1.0, 2.0])",
        _START,
        "tf.scatter_nd_sub(v, [[0]], [10.0])",
        "[-9. 2.]",
    ),
    "true_positives": (
        "value, update = tf.metrics.true_positives([True, False], [True, True])",
        _START_LOCAL,
        "update",
        "1.0",
    ),
    "true_negatives": (
        "value, update = tf.metrics.true_negatives([True, False], [True, False])",
        _START_LOCAL,
        "update",
        "1.0",
    ),
    "false_positives": (
        "value, update = tf.metrics.false_positives([True, False], [True, True])",
        _START_LOCAL,
        "update",
        "1.0",
    ),
    "false_negatives": (
        "value, update = tf.metrics.false_negatives([True, False], [False, True])",
        _START_LOCAL,
        "update",
        "1.0",
    ),
    "Dense": (
        "layer = tf.layers.Dense(5)",
        "made = layer(tf.zeros([2, 3]))",
        _START,
        "tf.shape(made)",
        "[2 5]",
    ),
    "BatchNormalization": (
        "made = tf.layers.BatchNormalization()(tf.zeros([2, 3]))",
        _START,
        "tf.shape(made)",
        "[2 3]",
    ),
    "Conv1D": ("made = tf.layers.Conv1D(8, 3)(tf.zeros([2, 9, 3]))", _START, "tf.shape(made)", "[2 7 8]"),
    "Conv2D": (
        "made = tf.layers.Conv2D(8, 3)(tf.zeros([2, 9, 9, 3]))",
        _START,
        "tf.shape(made)",
        "[2 7 7 8]",
    ),
    "Conv3D": (
        "made = tf.layers.Conv3D(8, 3)(tf.zeros([2, 5, 5, 5, 3]))",
        _START,
        "tf.shape(made)",
        "[2 3 3 3 8]",
    ),
    "Conv2DTranspose": (
        "made = tf.layers.Conv2DTranspose(8, 2, strides=2)(tf.zeros([2, 4, 4, 3]))",
        _START,
        "tf.shape(made)",
        "[2 8 8 8]",
    ),
    "SeparableConv2D": (
        "made = tf.layers.SeparableConv2D(8, 3)(tf.zeros([2, 4, 4, 3]))",
        _START,
        "tf.shape(made)",
        "[2 2 2 8]",
    ),
    "Flatten": ("tf.shape(tf.layers.Flatten()(tf.zeros([2, 3, 4])))", "[ 2 12]"),
    "Dropout": ("tf.layers.Dropout(0.5)(tf.constant([1.0, 2.0]))", "[1. 2.]"),
    "MaxPooling1D": ("tf.squeeze(tf.layers.MaxPooling1D(2, 2)([[[1.0], [3.0], [4.0], [2.0]]]))", "[3. 4.]"),
    "MaxPooling2D": ("tf.squeeze(tf.layers.MaxPooling2D(2, 2)([[[[1.0], [3.0]], [[4.0], [2.0]]]]))", "4.0"),
    "MaxPooling3D": ("tf.shape(tf.layers.MaxPooling3D(2, 2)(tf.zeros([1, 4, 4, 4, 3])))", "[1 2 2 2 3]"),
    "AveragePooling1D": (
        "tf.squeeze(tf.layers.AveragePooling1D(2, 2)([[[1.0], [3.0], [4.0], [2.0]]]))",
        "[2. 3.]",
    ),
    "AveragePooling2D": (
        "tf.squeeze(tf.layers.AveragePooling2D(2, 2)([[[[1.0], [3.0]], [[4.0], [2.0]]]]))",
        "2.5",
    ),
    "AveragePooling3D": (
        "tf.shape(tf.layers.AveragePooling3D(2, 2)(tf.zeros([1, 4, 4, 4, 3])))",
        "[1 2 2 2 3]",
    ),
    "sparse_segment_sum": ("tf.sparse_segment_sum([1, 2, 4], [0, 2], [0, 0])", "[5]"),
    "sparse_segment_mean": ("tf.sparse_segment_mean([1.0, 2.0, 4.0], [0, 2], [0, 0])", "[2.5]"),
    "sparse_segment_sqrt_n": ("tf.sparse_segment_sqrt_n([1.0, 2.0, 4.0], [0, 1], [0, 1])", "[1. 2.]"),
}
"""By the type of operation or the name: lines in a session, the last of which is run, and what it prints."""


def declared(text: str, type: str) -> str:
    """``text`` and the example of an operation of this type, if there is one.

    >>> declared("Running sums.", "Cumsum").splitlines()[-2:]
    ['...     print(session.run(tf.cumsum([1, 2, 3])))', '[1 3 6]']
    """
    if type not in EXAMPLES:
        return text
    *setup, expression, result = EXAMPLES[type]
    return "\n".join(
        (
            text,
            "",
            ">>> import twofold.static as tf",
            ">>> with tf.Graph().as_default(), tf.Session() as session:",
            *(f"...     {line}" for line in setup),
            f"...     print(session.run({expression}))",
            result,
        )
    )
