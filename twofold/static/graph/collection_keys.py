"""Names of the standard collections of a graph."""

from __future__ import annotations

from twofold.static.graph.docstrings import example


@example("print(tf.GraphKeys.TRAINABLE_VARIABLES)", "trainable_variables")
class GraphKeys:
    """Names of the standard collections."""

    GLOBAL_VARIABLES = "variables"
    VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    SUMMARIES = "summaries"
    LOSSES = "losses"
    REGULARIZATION_LOSSES = "regularization_losses"
    UPDATE_OPS = "update_ops"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    TRAIN_OP = "train_op"
    GLOBAL_STEP = "global_step"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    SAVERS = "savers"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    SUMMARY_OP = "summary_op"
    ASSET_FILEPATHS = "asset_filepaths"
    CONCATENATED_VARIABLES = "concatenated_variables"
    COND_CONTEXT = "cond_context"
    EVAL_STEP = "eval_step"
    LOCAL_RESOURCES = "local_resources"
    METRIC_VARIABLES = "metric_variables"
    RESOURCES = "resources"
    SAVEABLE_OBJECTS = "saveable_objects"
    TRAINABLE_RESOURCE_VARIABLES = "trainable_resource_variables"
    WHILE_CONTEXT = "while_context"
