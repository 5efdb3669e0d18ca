"""Estimators for tensor processing units, which train on this machine: ``tf.contrib.tpu`` with ``use_tpu=False``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import refuse
from twofold.static.arrays.shape_ops import identity
from twofold.static.control_flow.dependencies import group
from twofold.static.errors import UnimplementedError
from twofold.static.estimator.estimator import Estimator
from twofold.static.estimator.spec import EstimatorSpec, ModeKeys
from twofold.static.estimator.spec import RunConfig as _RunConfig
from twofold.static.graph.docstrings import example
from twofold.static.optimizers.optimizer import Optimizer
from twofold.static.python.positions import enter
from twofold.static.train.monitored_session import Scaffold

_NO_UNIT = "Give use_tpu=False, or use tf.estimator."


def _no_unit(what: str) -> NoReturn:
    raise UnimplementedError(f"{what}: there is no tensor processing unit, at {here()}. {_NO_UNIT}")


class InputPipelineConfig:
    """Where the input of several units is made, which changes nothing on one machine."""

    PER_SHARD_V1, PER_HOST_V1, PER_HOST_V2, BROADCAST, SLICED = 1, 2, 3, 4, 5


class TPUConfig(NamedTuple):
    """How units are used; without any, it changes nothing."""

    iterations_per_loop: int = 2
    num_shards: int | None = None
    num_cores_per_replica: int | None = None
    per_host_input_for_training: Any = True
    tpu_job_name: str | None = None
    initial_infeed_sleep_secs: int | None = None
    input_partition_dims: Any = None
    eval_training_input_configuration: Any = InputPipelineConfig.PER_HOST_V1
    experimental_host_call_every_n_steps: int = 1


class RunConfig(_RunConfig):
    """How a ``TPUEstimator`` runs: that of ``tf.estimator``, and what only units need.

    Args:
        tpu_config: A ``TPUConfig``.
        evaluation_master, master, cluster: Where the units are; without any they stay None or empty.
        **kwargs: The arguments of ``tf.estimator.RunConfig``.
    """

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name, value in (
            ("master", master),
            ("evaluation_master", evaluation_master),
            ("cluster", cluster),
        ):
            if value:
                _no_unit(f"RunConfig with {name}={value!r}")
        self.tpu_config = tpu_config or TPUConfig()
        self.cluster, self.evaluation_master = None, ""

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with other values for some."""
        config = kwargs.pop("tpu_config", self.tpu_config)
        return RunConfig(config, **vars(super().replace(**kwargs)))


class TPUEstimatorSpec(NamedTuple):
    """What the model function of a ``TPUEstimator`` returns.

    ``eval_metrics`` is a function and its tensors, a list or a dict, which gives the metrics by name; ``scaffold_fn`` a
    function that makes the ``Scaffold``; ``host_call`` a function and its tensors, which is called for training.
    The rest is that of ``tf.estimator.EstimatorSpec``.
    """

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metrics: Any = None
    export_outputs: Any = None
    scaffold_fn: Callable[[], Scaffold] | None = None
    host_call: Any = None
    training_hooks: Any = None
    evaluation_hooks: Any = None
    prediction_hooks: Any = None

    def as_estimator_spec(self) -> EstimatorSpec:
        """The same as estimators have it: metrics are declared, and the host's work is done with each step."""
        train_op = self.train_op
        if self.mode == ModeKeys.TRAIN and self.host_call is not None:
            train_op = group(train_op, _called(self.host_call))
        return EstimatorSpec(
            self.mode,
            self.predictions,
            self.loss,
            train_op,
            _called(self.eval_metrics) if self.eval_metrics is not None else None,
            self.export_outputs,
            training_hooks=self.training_hooks,
            scaffold=None if self.scaffold_fn is None else self.scaffold_fn(),
            evaluation_hooks=self.evaluation_hooks,
            prediction_hooks=self.prediction_hooks,
        )


def _called(given: tuple[Callable[..., Any], Any]) -> Any:
    function, tensors = given
    return function(**tensors) if isinstance(tensors, Mapping) else function(*tensors)


@example(
    "model = lambda features, mode, params: tf.contrib.tpu.TPUEstimatorSpec(mode, predictions=features * 2)",
    "rows = lambda params: tf.data.Dataset.range(3).batch(params['batch_size'])",
    "config = tf.contrib.tpu.RunConfig()",
    "made = tf.contrib.tpu.TPUEstimator(model, None, config, use_tpu=False, train_batch_size=2, predict_batch_size=3)",
    "print(made.config.tpu_config.iterations_per_loop)",
    "2",
)
class TPUEstimator(Estimator):
    """An estimator whose functions find the size of a batch in ``params["batch_size"]``.

    Args:
        model_fn: A function that returns a ``TPUEstimatorSpec`` or an ``EstimatorSpec``.
        model_dir, config, params, warm_start_from: See ``tf.estimator.Estimator``.
        use_tpu: Must be False: there is no tensor processing unit.
        train_batch_size, eval_batch_size, predict_batch_size: The sizes; the functions find none where it is None.
        batch_axis: How units share a batch; must be None.
        eval_on_tpu, export_to_tpu, export_to_cpu: For units; they change nothing without any.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: Any = None,
        config: _RunConfig | None = None,
        params: Any = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Sequence[int] | None = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
    ) -> None:
        if use_tpu:
            _no_unit("TPUEstimator with use_tpu=True")
        refuse("TPUEstimator", batch_axis=batch_axis)
        if params is not None and "batch_size" in params:
            what = f"TPUEstimator: batch_size is among params, at {here()}"
            raise ArgumentError(what, "Give train_batch_size and its kin.")
        super().__init__(model_fn, model_dir, config or RunConfig(), params, warm_start_from)
        sizes = (train_batch_size, eval_batch_size, predict_batch_size)
        self._sizes = dict(zip((ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT), sizes))

    def _params_for(self, mode: str) -> dict[str, Any]:
        size = self._sizes[mode]
        return self.params if size is None else {**self.params, "batch_size": size}


@example(
    "w = tf.Variable(1.0)",
    "step = tf.contrib.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.25)).minimize(w * w)",
    "session.run(tf.global_variables_initializer())",
    "session.run(step)",
    "w",
    "0.5",
)
class CrossShardOptimizer(Optimizer):
    """An optimiser whose gradients are summed over units, of which there is one here: it is as the optimiser given.

    Args:
        opt: The optimiser.
        reduction: How the losses of units are put together; of one loss each way gives the same.
        name: The name.
        group_assignment: Which units sum together; must be None.
    """

    def __init__(
        self,
        opt: Optimizer,
        reduction: str = "weighted_mean",
        name: str = "CrossShardOptimizer",
        group_assignment: Any = None,
    ) -> None:
        refuse("CrossShardOptimizer", group_assignment=group_assignment)
        super().__init__(False, name)
        self._inner = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Those of the optimiser."""
        return self._inner.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The update of the optimiser."""
        return self._inner.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """What the optimiser keeps."""
        return self._inner.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The names of what the optimiser keeps."""
        return self._inner.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        """The variables of the optimiser."""
        return self._inner.variables()


def cross_replica_sum(x: Any, group_assignment: Any = None, name: str | None = None) -> Any:
    """The sum of a tensor over all units: itself, as there is one; ``group_assignment`` must be None."""
    refuse("cross_replica_sum", group_assignment=group_assignment)
    return identity(x, name=name)


def initialize_system(embedding_config: Any = None, job: str | None = None) -> NoReturn:
    """Raises UnimplementedError: there is no tensor processing unit."""
    _no_unit("initialize_system")


def shutdown_system(job: str | None = None) -> NoReturn:
    """Raises UnimplementedError: there is no tensor processing unit."""
    _no_unit("shutdown_system")


def rewrite(computation: Callable[..., Any], inputs: Any = None, **options: Any) -> NoReturn:
    """Raises UnimplementedError: there is no tensor processing unit."""
    _no_unit("rewrite")


enter(
    __name__,
    {
        "python.tpu.tpu_config python.tpu.tpu_estimator python.tpu.tpu_optimizer python.tpu.tpu_context": "contrib.tpu",
        "python.ops.tpu_ops python.tpu.tpu": "contrib.tpu",
    },
)
