"""TensorFlow's files of messages, by the public modules that have their names."""

from twofold.static.python.positions import enter

enter(
    __name__,
    {
        "framework.attr_value_pb2 framework.graph_pb2 framework.node_def_pb2 framework.summary_pb2": "",
        "framework.variable_pb2": "graph_def.meta_graph",
        "protobuf.config_pb2 protobuf.meta_graph_pb2": "graph_def.meta_graph",
        "protobuf.rewriter_config_pb2": "session.config",
        "example.example_pb2 example.feature_pb2": "train",
        "util.event_pb2": "",
    },
)
