"""TensorFlow's files of optimisers and checkpoints, by the public modules that have their names."""

from twofold.static.python.positions import enter

enter(
    __name__,
    {
        "optimizer saver training training_util adam gradient_descent momentum rmsprop queue_runner": "train",
        "moving_averages": "optimizers.moving_averages",
        "session_run_hook basic_session_run_hooks monitored_session supervisor coordinator": "train",
        "checkpoint_management learning_rate_decay input queue_runner_impl": "train",
    },
)
