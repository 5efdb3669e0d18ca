"""Options of sessions and runs: what has an effect here has it, what has none warns once, the rest is refused."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.signatures import parameters

_warned: set[str] = set()


def warn_once(what: str, why: str) -> None:
    """Warn that something has no effect, the first time in a process that it is met."""
    if what not in _warned:
        _warned.add(what)
        warnings.warn(f"{what} has no effect: {why}, at {here()}.", UserWarning, stacklevel=3)


class _Message:
    """Fields with defaults, as in a protocol buffer; other names raise ValueError, as TensorFlow's do."""

    _fields: dict[str, Any] = {}
    _parts: dict[str, type] = {}

    def __init__(self, **fields: Any) -> None:
        for name, part in self._parts.items():
            object.__setattr__(self, name, part())
        for name, value in fields.items():
            if name not in self._fields and name not in self._parts:
                raise ValueError(
                    f'Protocol message {type(self).__name__} has no "{name}" field, at {here()}. '
                    f"It has {', '.join([*self._fields, *self._parts])}."
                )
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        try:
            default = type(self)._fields[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}") from None
        if isinstance(default, (dict, list)):
            object.__setattr__(self, name, default.copy())
            return self.__dict__[name]
        return default

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._fields and name not in self._parts:
            raise AttributeError(
                f"Assignment not allowed (no field '{name}' in protocol message object {type(self).__name__})"
            )
        object.__setattr__(self, name, value)

    def given(self, start: str = "") -> dict[str, Any]:
        """The fields that are not as they were, by their dotted names."""
        found = {
            f"{start}{name}": value
            for name, value in self.__dict__.items()
            if name not in self._parts and value != self._fields[name]
        }
        for name in self._parts:
            found.update(getattr(self, name).given(f"{start}{name}."))
        return found


class GPUOptions(_Message):
    """Options of graphics processors, of which there are none here: they warn."""

    _fields = parameters(
        "allow_growth=False, per_process_gpu_memory_fraction=0.0, visible_device_list='', "
        "allocator_type='', deferred_deletion_bytes=0, polling_active_delay_usecs=0, "
        "polling_inactive_delay_msecs=0, force_gpu_compatible=False"
    )


class OptimizerOptions(_Message):
    """Options of TensorFlow's optimisers of graphs; Twofold's need none."""

    _fields = parameters(
        "opt_level=0, global_jit_level=0, do_common_subexpression_elimination=False, "
        "do_constant_folding=False, do_function_inlining=False"
    )
    L0, L1 = -1, 0
    DEFAULT, OFF, ON_1, ON_2 = 0, -1, 1, 2


class RewriterConfig(_Message):
    """What TensorFlow changes in graphs before it runs them; Twofold's are always optimised."""

    DEFAULT, ON, OFF, AGGRESSIVE = 0, 1, 2, 3
    DEFAULT_MEM_OPT, NO_MEM_OPT, MANUAL, HEURISTICS = 0, 1, 2, 3
    _fields = parameters(
        "layout_optimizer=0, constant_folding=0, shape_optimization=0, remapping=0, arithmetic_optimization=0, "
        "dependency_optimization=0, loop_optimization=0, function_optimization=0, debug_stripper=0, "
        "scoped_allocator_optimization=0, pin_to_host_optimization=0, memory_optimization=0, "
        "disable_model_pruning=False, disable_meta_optimizer=False, meta_optimizer_iterations=0, min_graph_nodes=0, "
        "optimizers=[]"
    )


class GraphOptions(_Message):
    """Options of the graph; ``optimizer_options`` among them."""

    _fields = parameters(
        "build_cost_model=0, build_cost_model_after=0, infer_shapes=False, place_pruned_graph=False, "
        "enable_bfloat16_sendrecv=False, timeline_step=0"
    )
    _parts = {"optimizer_options": OptimizerOptions, "rewrite_options": RewriterConfig}


class ConfigProto(_Message):
    """Options of a session.

    ``allow_soft_placement`` lets the processor stand for devices that are not there, ``log_device_placement`` shows
    where operations are, ``intra_op_parallelism_threads`` sets the number of threads of the process. A timeout raises
    ArgumentError when a session is made; every other option that is set warns once that it has no effect.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
    ...     with tf.device("/gpu:0"):
    ...         x = tf.constant(1.0)
    ...     print(session.run(x))
    1.0
    """

    _fields = parameters(
        "allow_soft_placement=False, log_device_placement=False, intra_op_parallelism_threads=0, "
        "inter_op_parallelism_threads=0, use_per_session_threads=False, device_count={}, "
        "device_filters=[], placement_period=0, operation_timeout_in_ms=0, isolate_session_state=False"
    )
    _parts = {"gpu_options": GPUOptions, "graph_options": GraphOptions}

    def enter(self) -> None:
        """Do what the options say, once for each session."""
        given = self.given()
        if given.pop("operation_timeout_in_ms", 0):
            what = f"Session: operations have no timeouts, and operation_timeout_in_ms is set, at {here()}"
            raise ArgumentError(what, "Leave it out.")
        threads = given.pop("intra_op_parallelism_threads", 0)
        if threads:
            _core.set_threads(int(threads))
        for name in ("allow_soft_placement", "log_device_placement"):
            given.pop(name, None)
        if given.get("device_count") and set(given["device_count"].items()) <= {("GPU", 0), ("CPU", 1)}:
            del given["device_count"]
        for name in given:
            warn_once(f"ConfigProto.{name}", "there is one processor, and graphs are always optimised")


class RunOptions(_Message):
    """Options of one run: a trace that is asked for goes to the run's metadata, a timeout raises ArgumentError."""

    _fields = parameters(
        "trace_level=0, timeout_in_ms=0, inter_op_thread_pool=0, output_partition_graphs=False, "
        "report_tensor_allocations_upon_oom=False"
    )
    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = 0, 1, 2, 3


class NodeExecStats(_Message):
    """What one operation took in one run, in microseconds."""

    _fields = parameters(
        "node_name='', all_start_micros=0, op_start_rel_micros=0, op_end_rel_micros=0, "
        "all_end_rel_micros=0, timeline_label='', thread_id=0"
    )


class DeviceStepStats(_Message):
    """What a device did in one run."""

    _fields = {"device": "", "node_stats": []}


class StepStats(_Message):
    """What the devices did in one run."""

    _fields = {"dev_stats": []}


class RunMetadata(_Message):
    """The profile of a run with ``RunOptions(trace_level=tf.RunOptions.FULL_TRACE)``, in ``step_stats``.

    Kernels compute several operations at once: an operation begins with the first kernel that computes it, and takes
    its part of the time of all.
    """

    _fields = {"cost_graph": None, "partition_graphs": []}
    _parts = {"step_stats": StepStats}

    def SerializeToString(self) -> bytes:
        """The profile as the protocol buffer message of TensorFlow."""
        from twofold.event_files import step_stats

        return step_stats([(one.device, one.node_stats) for one in self.step_stats.dev_stats])


def merged_options(all_options: Sequence[RunOptions]) -> RunOptions:
    """Options of a run that several ask for: of each field the highest value."""
    return RunOptions(
        **{
            name: max([default, *(getattr(one, name) for one in all_options)])
            for name, default in RunOptions._fields.items()
        }
    )


def traces_run(options: Any, run_metadata: Any) -> bool:
    """Whether a run is to be traced; raises or warns where its options ask for what is not to be had."""
    if options is not None:
        if not isinstance(options, RunOptions):
            raise TypeError(
                f"run: options of type {type(options).__name__}, at {here()}. Give tf.RunOptions."
            )
        given = options.given()
        if given.pop("timeout_in_ms", 0):
            raise ArgumentError(f"run: runs have no timeouts, at {here()}", "Leave timeout_in_ms out.")
        given.pop("trace_level", None)
        for name in given:
            warn_once(f"RunOptions.{name}", "there is one processor, and one program for a run")
    if run_metadata is not None and not isinstance(run_metadata, RunMetadata):
        raise TypeError(
            f"run: run_metadata of type {type(run_metadata).__name__}, at {here()}. Give tf.RunMetadata()."
        )
    return options is not None and options.trace_level > 0 and run_metadata is not None
