"""TensorFlow's files of graphs, by the public modules that have their names."""

from twofold.static.python.framework import graph_util as graph_util
from twofold.static.python.framework import ops as ops
from twofold.static.python.positions import enter

enter(
    __name__,
    {
        "constant_op dtypes importer op_def_registry sparse_tensor": "",
        "function": "functions.defun",
        "random_seed": "random",
        "errors errors_impl": "errors",
        "tensor_shape": "graph.tensor_shape",
        "tensor_util": "python.tensor_util",
        "graph_io": "train",
        "test_util": "platform.testing",
    },
)
