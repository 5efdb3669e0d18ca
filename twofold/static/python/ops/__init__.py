"""TensorFlow's files of operations, by the public modules that have their names."""

from twofold.static.python.positions import enter
from twofold.static.recurrent import rnn_cell as rnn_cell

enter(
    __name__,
    {
        "init_ops": "initializers",
        "array_ops clip_ops data_flow_ops functional_ops linalg_ops math_ops random_ops": "",
        "check_ops io_ops parsing_ops partitioned_variables state_ops string_ops tensor_array_ops": "",
        "constant_op standard_ops logging_ops special_math_ops confusion_matrix histogram_ops": "",
        "gradients custom_gradient": "",
        "control_flow_ops": "control_flow.dependencies control_flow.switches",
        "gen_array_ops gen_math_ops gen_state_ops gradients_impl variable_scope variables sparse_ops script_ops": "",
        "gen_control_flow_ops gen_logging_ops gen_resource_variable_ops template": "",
        "control_flow_util": "control_flow",
        "resource_variable_ops": "variables.variable",
        "gradient_checker": "platform.testing",
        "map_fn": "control_flow.map_scan",
        "nn_ops nn nn_impl gen_nn_ops embedding_ops candidate_sampling_ops ctc_ops": "nn",
        "rnn": "recurrent.rnn python.ops",
        "rnn_cell_impl": "recurrent.rnn_cell contrib.rnn",
        "image_ops gen_image_ops": "image",
        "metrics metrics_impl": "metrics",
        "losses losses.losses losses.losses_impl": "losses",
        "lookup_ops": "lookup",
        "seq2seq": "contrib.legacy_seq2seq",
        "distributions.distributions distributions.normal": "distributions",
    },
)
