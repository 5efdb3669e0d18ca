"""Graphs, tensors and operations, as in ``twofold.static``."""

from twofold.static.api.namespaces import look_up

__getattr__, __dir__ = look_up(
    __name__,
    {
        "api.op_functions": "convert_to_tensor",
        "autodiff.indexed_slices": "IndexedSlices",
        "functions.custom_gradients": "NoGradient NotDifferentiable RegisterGradient",
        "graph.collection_keys": "GraphKeys",
        "graph.collection_messages": """get_collection_proto_type get_from_proto_function get_to_proto_function
            register_proto_function""",
        "graph.graph": "Graph Operation Tensor get_default_graph get_default_session reset_default_graph",
        "graph.scopes": "colocate_with control_dependencies device init_scope name_scope op_scope",
        "session.conversions": "register_tensor_conversion_function",
        "": "add_to_collection add_to_collections get_collection get_collection_ref",
    },
)
