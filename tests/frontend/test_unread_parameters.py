"""No public function takes an argument and forgets it: every parameter is read, or stands below with the reason."""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import public_names

from twofold.static.api.signatures import takes

ONLY_SPEED = "chooses among ways to compute the same"
NO_DEVICE = "there is no other device, and PyTorch without one does the same"
ALWAYS = "asks for what always holds"
NOT_NEEDED = "part of the interface; this class computes the result from its other arguments"
HOOK = "is there for classes that derive from it, and does nothing"
SILENT = "progress is not printed; results are the same"
CHECKED = "numbers of rows are always checked"
RAISES = "the function always raises: it needs a device that there is not"

RUNS_PYTHON = "the function runs as Python in every call"
REASONS: dict[tuple[str, str], str] = {
    # ("function of the package, without the module", "parameter"): why it has no effect on the result
    ("Attention.build", "input_shape"): NOT_NEEDED,
    ("Bidirectional.compute_mask", "inputs"): NOT_NEEDED,
    ("CSVLogger.on_train_begin", "logs"): NOT_NEEDED,
    ("CSVLogger.on_train_end", "logs"): NOT_NEEDED,
    ("Callback.on_predict_batch_begin", "batch"): HOOK,
    ("Callback.on_predict_batch_begin", "logs"): HOOK,
    ("Callback.on_predict_batch_end", "batch"): HOOK,
    ("Callback.on_predict_batch_end", "logs"): HOOK,
    ("Callback.on_predict_begin", "logs"): HOOK,
    ("Callback.on_predict_end", "logs"): HOOK,
    ("Callback.on_test_batch_begin", "batch"): HOOK,
    ("Callback.on_test_batch_begin", "logs"): HOOK,
    ("Callback.on_test_batch_end", "batch"): HOOK,
    ("Callback.on_test_batch_end", "logs"): HOOK,
    ("Callback.on_test_begin", "logs"): HOOK,
    ("Callback.on_test_end", "logs"): HOOK,
    ("Layer.add_update", "inputs"): NOT_NEEDED,
    ("Layer.compute_mask", "inputs"): NOT_NEEDED,
    ("LearningRateScheduler.on_epoch_end", "epoch"): NOT_NEEDED,
    ("Metric.add_weight", "aggregation"): HOOK,
    ("Metric.add_weight", "synchronization"): HOOK,
    ("RNN.compute_mask", "inputs"): NOT_NEEDED,
    ("Recurrent.compute_mask", "inputs"): NOT_NEEDED,
    ("ReduceLROnPlateau.on_train_begin", "logs"): NOT_NEEDED,
    ("TensorBoard.__init__", "batch_size"): NOT_NEEDED,
    ("TensorBoard.__init__", "embeddings_layer_names"): NOT_NEEDED,
    ("TensorBoard.__init__", "embeddings_metadata"): NOT_NEEDED,
    ("TensorBoard.on_batch_end", "batch"): NOT_NEEDED,
    ("TensorBoard.on_train_begin", "logs"): NOT_NEEDED,
    ("TensorBoard.on_train_end", "logs"): NOT_NEEDED,
    ("TimeDistributed.compute_mask", "inputs"): NOT_NEEDED,
    ("Trained.evaluate", "max_queue_size"): ONLY_SPEED,
    ("Trained.evaluate", "use_multiprocessing"): ONLY_SPEED,
    ("Trained.evaluate", "workers"): ONLY_SPEED,
    ("Trained.fit", "max_queue_size"): ONLY_SPEED,
    ("Trained.fit", "use_multiprocessing"): ONLY_SPEED,
    ("Trained.fit", "workers"): ONLY_SPEED,
    ("Trained.predict", "max_queue_size"): ONLY_SPEED,
    ("Trained.predict", "use_multiprocessing"): ONLY_SPEED,
    ("Trained.predict", "workers"): ONLY_SPEED,
    ("_Attention.compute_mask", "inputs"): NOT_NEEDED,
    ("get_source_inputs", "layer"): NOT_NEEDED,
    ("get_source_inputs", "node_index"): NOT_NEEDED,
    ("of_merged", "inputs"): NOT_NEEDED,
    ("of_merged", "layer"): NOT_NEEDED,
    ("of_numbers", "mask"): NOT_NEEDED,
    ("rnn", "input_length"): ONLY_SPEED,
    ("rnn", "unroll"): ONLY_SPEED,
    ("argsort", "stable"): ALWAYS,
    ("sort", "stable"): ALWAYS,
    ("topk", "sorted"): ALWAYS,
    ("unique", "sorted"): ALWAYS,
    ("isin", "assume_unique"): ONLY_SPEED,
    ("_batch_norm_of_torch", "cudnn_enabled"): ONLY_SPEED,
    ("_instance_norm_of_torch", "cudnn_enabled"): ONLY_SPEED,
    ("jacobian", "vectorize"): ONLY_SPEED,
    ("hessian", "vectorize"): ONLY_SPEED,
    ("linear_cross_entropy", "options"): ONLY_SPEED,
    ("clip_grad_norm_", "foreach"): ONLY_SPEED,
    ("clip_grad_value_", "foreach"): ONLY_SPEED,
    ("clip_grads_with_norm_", "foreach"): ONLY_SPEED,
    ("get_total_norm", "foreach"): ONLY_SPEED,
    ("compile", "fullgraph"): ALWAYS,
    ("compile", "dynamic"): ONLY_SPEED,
    ("Module.compile", "fullgraph"): ONLY_SPEED,
    ("Module.compile", "dynamic"): ONLY_SPEED,
    ("Module.compile", "disable"): ONLY_SPEED,
    ("checkpoint", "use_reentrant"): ONLY_SPEED,
    ("get_device_states", "args"): NO_DEVICE,
    ("device_of.__init__", "obj"): NO_DEVICE,
    ("SparseTensor.copy_", "non_blocking"): NO_DEVICE,
    ("checkpoint", "preserve_rng_state"): ALWAYS,
    ("checkpoint", "debug"): "would describe an error that cannot occur",
    ("gradcheck", "nondet_tol"): ALWAYS,
    ("gradcheck", "check_undefined_grad"): ALWAYS,
    ("gradcheck", "check_grad_dtypes"): ALWAYS,
    ("gradcheck", "fast_mode"): ONLY_SPEED,
    ("lobpcg", "iK"): "steers an iteration, and all eigenvalues are computed without one",
    ("lobpcg", "niter"): "steers an iteration, and all eigenvalues are computed without one",
    ("lobpcg", "tol"): "steers an iteration, and all eigenvalues are computed without one",
    ("lobpcg", "ortho_iparams"): "steers an iteration, and all eigenvalues are computed without one",
    ("lobpcg", "ortho_fparams"): "steers an iteration, and all eigenvalues are computed without one",
    ("lobpcg", "ortho_bparams"): "steers an iteration, and all eigenvalues are computed without one",
    ("tridiagonal_solve", "partial_pivoting"): "rows are exchanged either way, which is at least as exact",
    ("gumbel_softmax", "eps"): "PyTorch has kept it without effect, too",
    ("set_flush_denormal", "mode"): "the result says that the setting is not supported, as in PyTorch",
    ("use_deterministic_algorithms", "mode"): ALWAYS,
    ("use_deterministic_algorithms", "warn_only"): ALWAYS,
    ("to", "non_blocking"): NO_DEVICE,
    ("copy_", "non_blocking"): NO_DEVICE,
    ("Module.to", "non_blocking"): NO_DEVICE,
    ("to_dense", "masked_grad"): "is about the gradient of a sparse tensor, and there are none",
    ("get_device", "input"): NO_DEVICE,
    ("compute_accidental_hits", "seed"): "TensorFlow keeps it without effect, too",
    ("readahead_file_path", "readahead"): ONLY_SPEED,
    ("_set_memory_growth", "enable"): NO_DEVICE,
    ("KMeans.__init__", "kmc2_chain_length"): "steers a way to begin that raises",
    ("Distribution.seen", "classes"): HOOK,
    **{("ScheduledOutputTrainingHelper.sample", key): NOT_NEEDED for key in ("outputs", "state", "time")},
    ("is_conj", "input"): ALWAYS,
    ("is_neg", "input"): ALWAYS,
    ("is_inference", "input"): ALWAYS,
    ("is_storage", "obj"): ALWAYS,
    ("autocast.__init__", "cache_enabled"): "equal casts in one trace are computed once in any case",
    ("current_accelerator", "check_available"): NO_DEVICE,
    ("is_bf16_supported", "including_emulation"): NO_DEVICE,
    ("memory_allocated", "device"): NO_DEVICE,
    ("manual_seed_all", "seed"): NO_DEVICE,
    ("DataParallel.__init__", "device_ids"): NO_DEVICE,
    ("DataParallel.__init__", "output_device"): NO_DEVICE,
    ("no_grad.__init__", "function"): "__new__ takes it",
    ("enable_grad.__init__", "function"): "__new__ takes it",
    ("Identity.__init__", "args"): "takes any arguments, as PyTorch's, so that it stands for any module",
    ("Identity.__init__", "kwargs"): "takes any arguments, as PyTorch's, so that it stands for any module",
    ("AffineTransform.log_abs_det_jacobian", "y"): NOT_NEEDED,
    ("CumulativeDistributionTransform.log_abs_det_jacobian", "y"): NOT_NEEDED,
    ("ExpTransform.log_abs_det_jacobian", "y"): NOT_NEEDED,
    ("ReshapeTransform.log_abs_det_jacobian", "y"): NOT_NEEDED,
    ("SigmoidTransform.log_abs_det_jacobian", "y"): NOT_NEEDED,
    ("SoftplusTransform.log_abs_det_jacobian", "y"): NOT_NEEDED,
    ("TanhTransform.log_abs_det_jacobian", "y"): NOT_NEEDED,
    ("CustomHelper.__init__", "sample_ids_shape"): "the shape is that of what sample_fn returns",
    ("GreedyEmbeddingHelper.next_inputs", "outputs"): NOT_NEEDED,
    ("GreedyEmbeddingHelper.next_inputs", "time"): NOT_NEEDED,
    ("Helper.sample", "state"): NOT_NEEDED,
    ("InferenceHelper.next_inputs", "outputs"): NOT_NEEDED,
    ("InferenceHelper.next_inputs", "time"): NOT_NEEDED,
    ("InferenceHelper.sample", "state"): NOT_NEEDED,
    ("InferenceHelper.sample", "time"): NOT_NEEDED,
    ("BeamSearchDecoder.__init__", "reorder_tensor_arrays"): "states that are tensor arrays raise",
    ("BeamSearchDecoder.finalize", "sequence_lengths"): "the state has the lengths of the beams",
    ("BeamSearchDecoder.step", "time"): NOT_NEEDED,
    ("Decoder.finalize", "sequence_lengths"): HOOK,
    ("FixedLengthRecordDataset.__init__", "buffer_size"): ONLY_SPEED,
    ("map_and_batch", "num_parallel_batches"): ONLY_SPEED,
    ("map_and_batch", "num_parallel_calls"): ONLY_SPEED,
    ("parallel_interleave", "buffer_output_elements"): ONLY_SPEED,
    ("parallel_interleave", "prefetch_input_elements"): ONLY_SPEED,
    ("parallel_interleave", "sloppy"): "allows an order that depends on time; there is one order",
    ("prefetch_to_device", "buffer_size"): ONLY_SPEED,
    ("prefetch_to_device", "device"): NO_DEVICE,
    ("Helper.sample", "time"): NOT_NEEDED,
    ("SampleEmbeddingHelper.sample", "state"): NOT_NEEDED,
    ("SampleEmbeddingHelper.sample", "time"): NOT_NEEDED,
    ("ScheduledEmbeddingTrainingHelper.sample", "state"): NOT_NEEDED,
    ("ScheduledEmbeddingTrainingHelper.sample", "time"): NOT_NEEDED,
    ("TrainingHelper.next_inputs", "outputs"): NOT_NEEDED,
    ("TrainingHelper.next_inputs", "sample_ids"): NOT_NEEDED,
    ("embed_sequence", "unique"): ONLY_SPEED,
    ("InputProjectionWrapper.__init__", "input_size"): "TensorFlow keeps it without effect, too",
    ("Session.reset", "containers"): "there are no remote containers",
    ("Session.reset", "config"): "there are no remote containers",
    ("RNNCell.build", "inputs_shape"): NOT_NEEDED,
    ("Dataset.map", "num_parallel_calls"): ONLY_SPEED,
    ("Dataset.prefetch", "buffer_size"): ONLY_SPEED,
    ("top_k", "sorted"): ALWAYS,
    ("Expression.backward", "full"): "``gradient`` finds the gradient of any expression in any case",
    ("renew_cg", "autobatching"): ONLY_SPEED,
    ("moments", "shift"): "TensorFlow keeps it without effect, too",
    ("gather", "validate_indices"): CHECKED,
    ("embedding_lookup", "validate_indices"): CHECKED,
    ("TensorArray.__init__", "clear_after_read"): "frees memory early, which the memory plan does",
    ("TFRecordDataset.__init__", "buffer_size"): ONLY_SPEED,
    ("TextLineDataset.__init__", "buffer_size"): ONLY_SPEED,
    ("parse_example", "example_names"): "names examples in messages of errors, which count them",
    ("parse_single_example", "example_names"): "names the example in messages of errors, and there is one",
    ("parse_single_sequence_example", "example_name"): "names the row in messages of errors, and there is one",
    ("set_difference", "validate_indices"): ONLY_SPEED,
    ("set_intersection", "validate_indices"): ONLY_SPEED,
    ("set_size", "validate_indices"): ONLY_SPEED,
    ("set_union", "validate_indices"): ONLY_SPEED,
    ("TestCase.cached_session", "use_gpu"): NO_DEVICE,
    ("TestCase.session", "use_gpu"): NO_DEVICE,
    ("VocabularyProcessor.fit", "unused_y"): "TensorFlow keeps it without effect, too",
    ("VocabularyProcessor.fit_transform", "unused_y"): "TensorFlow keeps it without effect, too",
    ("numpy_input_fn", "num_threads"): ONLY_SPEED,
    ("numpy_input_fn", "queue_capacity"): ONLY_SPEED,
    ("FileWriter.add_graph", "global_step"): "a graph has no step in TensorBoard",
    ("register_session_run_conversion_functions", "feed_function_for_partial_run"): (
        "what a partial run feeds is what feed_function names"
    ),
    ("Saver.__init__", "name"): "a saver has no operations",
    ("Saver.__init__", "sharded"): "all variables are on one device, and make one shard",
    ("Saver.__init__", "restore_sequentially"): ONLY_SPEED,
    ("Saver.save", "strip_default_attrs"): "the graph is written without attributes",
    ("is_gpu_available", "cuda_only"): NO_DEVICE,
    ("is_gpu_available", "min_cuda_compute_capability"): NO_DEVICE,
    ("Message.SerializeToString", "deterministic"): "equal messages always give the same bytes",
    ("Message.WhichOneof", "group"): "a message has one group of alternatives",
    ("ComputedOperation.run", "feed_dict"): "computed before, from values",
    ("ComputedOperation.run", "session"): "computed before, without a session",
    ("function", "autograph"): RUNS_PYTHON,
    ("function", "experimental_attributes"): RUNS_PYTHON,
    ("function", "experimental_autograph_options"): RUNS_PYTHON,
    ("function", "experimental_compile"): ONLY_SPEED,
    ("function", "experimental_follow_type_hints"): RUNS_PYTHON,
    ("function", "experimental_implements"): RUNS_PYTHON,
    ("function", "experimental_relax_shapes"): ONLY_SPEED,
    ("function", "jit_compile"): ONLY_SPEED,
    ("function", "reduce_retracing"): ONLY_SPEED,
    ("import_graph_def", "producer_op_list"): "defaults of attributes are those of the published schema",
    ("colocate_with", "op"): NO_DEVICE,
    ("colocate_with", "ignore_existing"): NO_DEVICE,
    ("group_norm", "mean_close_to_zero"): "is about rounding alone",
    ("Exporter.wants", "eval_result"): HOOK,
    ("Exporter.wants", "is_the_final_export"): HOOK,
    ("BestExporter.wants", "is_the_final_export"): NOT_NEEDED,
    ("FinalExporter.wants", "eval_result"): NOT_NEEDED,
    ("make_early_stopping_hook", "estimator"): NOT_NEEDED,
    ("CrossShardOptimizer.__init__", "reduction"): "one shard is its own sum and mean",
    ("TPUEstimator.__init__", "eval_on_tpu"): NO_DEVICE,
    ("TPUEstimator.__init__", "export_to_cpu"): NO_DEVICE,
    ("TPUEstimator.__init__", "export_to_tpu"): NO_DEVICE,
    ("initialize_system", "embedding_config"): RAISES,
    ("initialize_system", "job"): RAISES,
    ("shutdown_system", "job"): RAISES,
    ("rewrite", "computation"): RAISES,
    ("rewrite", "inputs"): RAISES,
    ("rewrite", "options"): RAISES,
    ("Graph.container", "container_name"): "names where resources live between sessions, which share none",
    ("container", "container_name"): "names where resources live between sessions, which share none",
    ("experimental_jit_scope", "compile_ops"): ONLY_SPEED,
    ("experimental_jit_scope", "separate_compiled_gradients"): ONLY_SPEED,
    ("export_meta_graph", "clear_extraneous_savers"): "a saver has no operations",
    ("export_meta_graph", "strip_default_attrs"): "the graph is written without default attributes",
    ("SessionManager.__init__", "recovery_wait_secs"): "is for waiting for other processes, and there are none",
    ("Supervisor.__init__", "recovery_wait_secs"): "is for waiting for other processes, and there are none",
    ("Supervisor.__init__", "local_init_run_options"): NO_DEVICE,
    ("NeverTriggerTimer.should_trigger_for_step", "step"): ALWAYS,
    ("SessionRunHook.after_create_session", "session"): NOT_NEEDED,
    ("SessionRunHook.end", "session"): NOT_NEEDED,
    ("SummarySaverHook.end", "session"): NOT_NEEDED,
    ("CheckpointSaverListener.after_save", "session"): NOT_NEEDED,
    ("CheckpointSaverListener.before_save", "session"): NOT_NEEDED,
    ("CheckpointSaverListener.end", "session"): NOT_NEEDED,
    ("Callback.on_batch_begin", "batch"): HOOK,
    ("Callback.on_batch_end", "batch"): HOOK,
    ("Callback.on_epoch_begin", "epoch"): HOOK,
    ("Callback.on_epoch_end", "epoch"): HOOK,
    ("Callback.on_batch_begin", "logs"): HOOK,
    ("Callback.on_batch_end", "logs"): HOOK,
    ("Callback.on_epoch_begin", "logs"): HOOK,
    ("Callback.on_epoch_end", "logs"): HOOK,
    ("Callback.on_train_begin", "logs"): HOOK,
    ("Callback.on_train_end", "logs"): HOOK,
    ("EarlyStopping.on_train_begin", "logs"): NOT_NEEDED,
    ("LearningRateScheduler.on_epoch_begin", "logs"): NOT_NEEDED,
    ("Dataset.interleave", "num_parallel_calls"): ONLY_SPEED,
    ("KeyValueTensorInitializer.__init__", "name"): "names an operation, and keys and values have their own",
    ("LinearOperator.adjoint", "name"): "names operations, and an adjoint declares none before it is used",
    ("LinearOperatorAdjoint.adjoint", "name"): "names operations, and there is none",
    (
        "LinearOperatorScaledIdentity.__init__",
        "assert_proper_shapes",
    ): "shapes are checked as lines are declared, and what is left when it runs",
    ("Lambda.__init__", "output_shape"): "inferred from what the function returns",
    ("Layer.build", "input_shape"): NOT_NEEDED,
    ("count", "writer"): NOT_NEEDED,
    ("result", "refs"): NOT_NEEDED,
    ("Model.summary", "line_length"): "changes only how the table is printed, whose columns fit their texts",
    ("Model.summary", "positions"): "changes only how the table is printed, whose columns fit their texts",
}  # fmt: skip

STATIC_REASONS: dict[str, str] = {
    "noinline": ONLY_SPEED,
    "compiled": ONLY_SPEED,
    "separate_compiled_gradients": ONLY_SPEED,
    # parameter of any function of twofold.static: why it has no effect on the result
    "parallel_iterations": ONLY_SPEED,
    "swap_memory": ONLY_SPEED,
    "experimental_use_pfor": ONLY_SPEED,
    "colocate_gradients_with_ops": NO_DEVICE,
    "colocate_with_first_write_call": NO_DEVICE,
    "colocate_with_primary": NO_DEVICE,
    "session_config": NO_DEVICE,
    "gate_gradients": "all gradients are computed before any update",
    "aggregation_method": ONLY_SPEED,
    "use_locking": "no run sees half of an update",
    "use_cudnn_on_gpu": NO_DEVICE,
    "a_is_sparse": ONLY_SPEED,
    "b_is_sparse": ONLY_SPEED,
    "optimize": ONLY_SPEED,
    "infer_shape": "sizes are inferred either way, and a step of another size raises",
    "shared_name": "names a resource to other processes, and there are none",
    "partition_info": "tells of the whole of a part, on which few first values depend",
    "bytes_per_string_element": "variables hold no strings",
    "max_wait_secs": "is for waiting for other processes, and there are none",
    "coord": NOT_NEEDED,
    "delay_secs": "is for waiting for other processes, and there are none",
    "is_chief": "there is one process",
    "num_tokens": "is for waiting for other processes, and there are none",
    "num_cores": ONLY_SPEED,
    "gpu_memory_fraction": NO_DEVICE,
    "log_device_placement": NO_DEVICE,
    "evaluation_master": NO_DEVICE,
    "log_progress": "there is one line in the log either way",
    "strip_default_attrs": "there are no default attributes in messages",
    "run_context": NOT_NEEDED,
    "run_values": NOT_NEEDED,
    "global_step_value": NOT_NEEDED,
}


def loaded(code: types.CodeType) -> set[str]:
    """The names of local variables that a function reads, those of functions inside it included."""
    found: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF")):
            found.update(step.argval if isinstance(step.argval, tuple) else (step.argval,))
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found |= loaded(inner)
    return found


def only_raises(code: types.CodeType) -> bool:
    return not any(step.opname.startswith(("RETURN", "YIELD")) for step in dis.get_instructions(code))


def unread(function: types.FunctionType) -> list[str]:
    """The parameters that nothing in a function reads; one that only raises needs none."""
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    own = set(code.co_varnames[:count]) - {"self", "cls"} - loaded(code)
    if "locals" in code.co_names:  # all are kept by their names, by which something near must read them
        own -= texts_near(function.__module__)
    return [] if only_raises(code) else sorted(name for name in own if not name.startswith("_"))


def found_in(names: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {
        (function.__qualname__, parameter): f"{name} ({function.__module__})"
        for function, name in public_names.functions(names).items()
        for parameter in [*unread(function), *getattr(function, "unused", ())]
    }


def texts_of(code: types.CodeType) -> set[str]:
    """The strings, the attributes and the names of parameters in a module's code."""
    found = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *code.co_names}
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            found |= texts_of(one)
        elif isinstance(one, (str, tuple)):
            found.update({one} if isinstance(one, str) else {part for part in one if isinstance(part, str)})
    return found


@functools.cache
def texts_in(module: str) -> set[str]:
    path = sys.modules[module].__file__
    assert path is not None
    return texts_of(compile(Path(path).read_text(), path, "exec"))


@functools.cache
def texts_near(module: str) -> set[str]:
    """Those of a module and of the modules of the static face and of optimizers that it imports something from."""
    values = list(vars(sys.modules[module]).values())
    near = {getattr(value, "__module__", None) or getattr(value, "__name__", "") for value in values}
    modules = {module, *[one for one in near if str(one).startswith(("twofold.static.", "twofold.optim."))]}
    return set().union(*[texts_in(one) for one in modules if getattr(sys.modules.get(one), "__file__", None)])


def unread_options(function: Any, home: str) -> list[str]:
    """The parameters that a function takes as ``**options`` and that no module near its own names."""
    body = inspect.unwrap(function)
    takes_all = inspect.CO_VARKEYWORDS | inspect.CO_VARARGS  # with both it is a row that renames parameters
    if (
        not isinstance(body, types.FunctionType)
        or body.__code__.co_flags & takes_all != inspect.CO_VARKEYWORDS
    ):
        return []
    own = set(body.__code__.co_varnames[: body.__code__.co_argcount])
    options = set(inspect.signature(function).parameters) - own - {"self"}
    kept = [one for one in inspect.signature(body).parameters.values() if one.kind is one.VAR_KEYWORD]
    left = options - {one.name for one in kept} - texts_near(body.__module__) - texts_near(home)
    # some are put together, such as those of the initializer of each variable
    parts = texts_near(body.__module__)
    return sorted(
        name for name in left if not {name.rpartition("_")[2], "_" + name.rpartition("_")[2]} & parts
    )


def with_options(names: dict[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Functions, and the initialisers of classes, whose parameters are a table or a text; and their modules."""
    for name, value in names.items():
        made = vars(value).get("__init__") if isinstance(value, type) else value
        if made is not None and hasattr(made, "__signature__"):
            yield name, made, value.__module__


FOUND = found_in(public_names.public())
FOUND_STATIC = found_in(public_names.static())
OPTIONS = list(with_options(public_names.static()))
UNREAD_OPTIONS = {
    (name.rpartition(".")[2], option) for name, made, home in OPTIONS for option in unread_options(made, home)
}


def has_reason(key: tuple[str, str]) -> bool:
    return key in REASONS or key[1] in STATIC_REASONS


def test_every_parameter_is_read() -> None:
    assert {key: where for key, where in FOUND.items() if key not in REASONS} == {}


def test_every_parameter_of_static_is_read() -> None:
    assert {key: where for key, where in FOUND_STATIC.items() if not has_reason(key)} == {}


def test_every_option_of_static_is_read() -> None:
    """No option in a table or a text of parameters is forgotten."""
    assert len(OPTIONS) > 300
    assert {key for key in UNREAD_OPTIONS if not has_reason(key)} == set()


def test_no_reason_is_left_over() -> None:
    assert set(REASONS) - set(FOUND) - set(FOUND_STATIC) - UNREAD_OPTIONS == set()
    assert set(STATIC_REASONS) - {parameter for _, parameter in FOUND_STATIC} == set()


@pytest.mark.parametrize("source", ["lambda x, device: x", "lambda x, *rest: x", "lambda x, **more: x"])
def test_a_forgotten_parameter_is_found(source: str) -> None:
    assert len(unread(eval(source))) == 1


def test_a_forgotten_setting_is_found() -> None:
    def initialize(lr: float, forgotten_by_everything: bool) -> Any:
        return locals()

    initialize.__module__ = "twofold.optim.sgd"
    assert unread(initialize) == ["forgotten_by_everything"]


def test_a_forgotten_option_is_found() -> None:
    made = takes("axis=0, forgotten_by_all=None")(lambda **options: options["axis"])
    assert [name.startswith("forgotten") for name in unread_options(made, __name__)] == [True]


def test_a_parameter_read_by_an_inner_function_counts() -> None:
    assert unread(lambda x: lambda: x) == []
