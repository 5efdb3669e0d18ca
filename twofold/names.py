"""What packages import when it is first used, by package and module; written by tools/index.py."""

NAMES: dict[str, dict[str, str]] = {
    "twofold": {
        "twofold": (
            "_C _VF __config__ _dynamo _inductor _subclasses _utils accelerator amp array_api autograd "
            "backends compiler cpu cuda debug distributed distributions dynet dynet_config fft files func "
            "functional futures fx hub jit library linalg masked multiprocessing nn onnx optim overrides "
            "profiler quasirandom random return_types safetensors serialization signal sparse special "
            "storage testing torch_version types utils version xpu"
        ),
        "twofold.amp": (
            "GradScaler autocast get_autocast_dtype is_autocast_enabled set_autocast_dtype "
            "set_autocast_enabled"
        ),
        "twofold.amp.autocast_mode": (
            "get_autocast_cpu_dtype get_autocast_gpu_dtype is_autocast_cpu_enabled"
        ),
        "twofold.compiler.requests": "wait_for_compiler",
        "twofold.debug.anomaly": "detect_anomaly",
        "twofold.debug.draw": "draw",
        "twofold.debug.explain": "explain",
        "twofold.debug.profile": "profile",
        "twofold.debug.summary": "summary",
        "twofold.frontend.batch_norm_statistics": (
            "batch_norm=_batch_norm_of_torch _batch_norm_with_update _native_batch_norm_legit "
            "native_batch_norm native_group_norm native_layer_norm instance_norm=_instance_norm_of_torch"
        ),
        "twofold.frontend.checks": (
            "SymBool SymFloat SymInt _assert_async _check _check_index _check_is_size "
            "_check_not_implemented _check_tensor_all _check_tensor_all_with _check_type _check_value "
            "_check_with sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum"
        ),
        "twofold.frontend.control": "associative_scan cond map scan switch while_loop",
        "twofold.frontend.display": "set_printoptions",
        "twofold.frontend.foreach": (
            "_foreach_norm _foreach_max _foreach_clone _foreach_mm _foreach_copy_ _foreach_zero_ "
            "_foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_asin _foreach_asin_ "
            "_foreach_atan _foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_cos _foreach_cos_ "
            "_foreach_cosh _foreach_cosh_ _foreach_erf _foreach_erf_ _foreach_erfc _foreach_erfc_ "
            "_foreach_exp _foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor _foreach_floor_ "
            "_foreach_frac _foreach_frac_ _foreach_lgamma _foreach_lgamma_ _foreach_log _foreach_log_ "
            "_foreach_log10 _foreach_log10_ _foreach_log1p _foreach_log1p_ _foreach_log2 _foreach_log2_ "
            "_foreach_neg _foreach_neg_ _foreach_reciprocal _foreach_reciprocal_ _foreach_round "
            "_foreach_round_ _foreach_rsqrt _foreach_rsqrt_ _foreach_sigmoid _foreach_sigmoid_ "
            "_foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh _foreach_sinh_ "
            "_foreach_sqrt _foreach_sqrt_ _foreach_tan _foreach_tan_ _foreach_tanh _foreach_tanh_ "
            "_foreach_trunc _foreach_trunc_ _foreach_add _foreach_add_ _foreach_sub _foreach_sub_ "
            "_foreach_mul _foreach_mul_ _foreach_div _foreach_div_ _foreach_pow _foreach_pow_ "
            "_foreach_maximum _foreach_maximum_ _foreach_minimum _foreach_minimum_ _foreach_clamp_max "
            "_foreach_clamp_max_ _foreach_clamp_min _foreach_clamp_min_ _foreach_addcmul _foreach_addcmul_ "
            "_foreach_addcdiv _foreach_addcdiv_ _foreach_lerp _foreach_lerp_"
        ),
        "twofold.frontend.function": "compile",
        "twofold.frontend.low_rank": "lobpcg pca_lowrank svd_lowrank",
        "twofold.frontend.storage": "TypedStorage UntypedStorage",
        "twofold.frontend.windows": (
            "bartlett_window blackman_window hamming_window hann_window kaiser_window"
        ),
        "twofold.func": "vmap",
        "twofold.futures": "Future",
        "twofold.jit": "TensorType",
        "twofold.nn.functional": "bilinear celu_ rrelu rrelu_ selu_ threshold_",
        "twofold.nn.functional_embedding": "embedding=embedding_of_torch",
        "twofold.nn.functional_pooling": "adaptive_max_pool1d=adaptive_max_pool1d_of_torch",
        "twofold.nn.losses_of_torch": (
            "binary_cross_entropy_with_logits=binary_cross_entropy_with_logits_of_torch "
            "kl_div=kl_div_of_torch"
        ),
        "twofold.nn.recurrent_of_torch": "gru lstm rnn_relu rnn_tanh",
        "twofold.runtime.batching": "no_batching",
        "twofold.runtime.statistics": "stats",
        "twofold.serialization": "load save",
        "twofold.sparse.coordinates": "sparse_coo_tensor spmm",
        "twofold.version": "__version__",
    },
    "twofold.debug": {
        "twofold.debug.declarations": "declaring",
        "twofold.debug.stepping": "run",
        "twofold.debug.stops": "breakpoint",
        "twofold.debug.stories": "Story story",
        "twofold.debug.values": "record value",
        "twofold.debug.verification": "verify",
    },
    "twofold.profiler": {
        "twofold.profiler.averages": "FunctionEvent FunctionEventAvg",
        "twofold.profiler.profiler": (
            "ProfilerAction ProfilerActivity profile record_function schedule supported_activities "
            "tensorboard_trace_handler"
        ),
    },
    "twofold.static": {
        "twofold.static": (
            "bitwise compat config contrib data debugging distributions dtypes errors estimator examples "
            "feature_column graph_util image initializers io keras layers linalg lookup losses manip math "
            "metrics nest nn python_io quantization queue random resource_loader saved_model sequence sets "
            "signal sparse spectral strings summary train version"
        ),
        "twofold.static.api.op_functions": "is_tensor=is_tensor_like",
        "twofold.static.arrays.creation": (
            "zeros_like ones_like fill zeros ones eye range diag diag_part matrix_diag matrix_diag_part "
            "broadcast_to matrix_band_part pad top_k"
        ),
        "twofold.static.arrays.reordering": (
            "reverse_sequence space_to_depth depth_to_space space_to_batch_nd batch_to_space_nd "
            "space_to_batch batch_to_space roll sort argsort searchsorted invert_permutation meshgrid "
            "batch_gather unravel_index strided_slice"
        ),
        "twofold.static.arrays.segments": (
            "segment_sum segment_prod segment_mean segment_max segment_min unsorted_segment_sum "
            "unsorted_segment_prod unsorted_segment_mean unsorted_segment_max unsorted_segment_min "
            "unsorted_segment_sqrt_n scatter_nd tensor_scatter_update tensor_scatter_nd_update "
            "tensor_scatter_add tensor_scatter_nd_add tensor_scatter_sub tensor_scatter_nd_sub "
            "sparse_segment_sum sparse_segment_mean sparse_segment_sqrt_n"
        ),
        "twofold.static.arrays.selection": (
            "where select boolean_mask unique_with_counts unique setdiff1d listdiff dynamic_partition "
            "dynamic_stitch count_nonzero confusion_matrix bincount histogram_fixed_width"
        ),
        "twofold.static.arrays.shape_ops": (
            "concat_v2=concat placeholder placeholder_with_default identity ensure_shape repeat reshape "
            "shape size rank transpose matrix_transpose expand_dims squeeze concat stack parallel_stack "
            "pack unstack unpack split tile slice gather gather_nd one_hot reverse reverse_v2 sequence_mask "
            "shape_n identity_n broadcast_static_shape broadcast_dynamic_shape"
        ),
        "twofold.static.autodiff.clipping": (
            "clip_by_value clip_by_norm clip_by_average_norm global_norm clip_by_global_norm"
        ),
        "twofold.static.autodiff.gradients": "AggregationMethod UnconnectedGradients gradients hessians",
        "twofold.static.autodiff.indexed_slices": "IndexedSlices IndexedSlicesValue",
        "twofold.static.contrib": "tpu",
        "twofold.static.control_flow.conditional": "case cond switch_case",
        "twofold.static.control_flow.dependencies": "group no_op tuple=tuple_",
        "twofold.static.control_flow.map_scan": "foldl foldr map_fn scan",
        "twofold.static.control_flow.tensor_array": "TensorArray",
        "twofold.static.control_flow.while_loop": "while_loop",
        "twofold.static.data.epochs": "PriorityQueue count_up_to",
        "twofold.static.data.example_parsing": (
            "FixedLenFeature FixedLenSequenceFeature VarLenFeature parse_example parse_single_example"
        ),
        "twofold.static.data.queues": (
            "FIFOQueue PaddingFIFOQueue RandomShuffleQueue QueueBase=FIFOQueue"
        ),
        "twofold.static.data.readers": (
            "FixedLengthRecordReader IdentityReader TextLineReader TFRecordReader WholeFileReader "
            "decode_csv ReaderBase=Reader"
        ),
        "twofold.static.data.sequence_parsing": "parse_single_sequence_example",
        "twofold.static.debugging": (
            "assert_equal assert_less assert_less_equal assert_greater assert_greater_equal "
            "assert_none_equal assert_positive assert_negative assert_non_negative assert_non_positive "
            "is_non_decreasing is_strictly_increasing is_numeric_tensor assert_near assert_rank "
            "assert_rank_at_least assert_rank_in assert_proper_iterable assert_scalar assert_type "
            "assert_integer verify_tensor_all_finite check_numerics add_check_numerics_ops"
        ),
        "twofold.static.eager.gradient_tape": (
            "enable_eager_execution disable_eager_execution executing_eagerly GradientTape TensorSpec "
            "function"
        ),
        "twofold.static.errors": "OpError",
        "twofold.static.functions.custom_gradients": (
            "NoGradient NotDifferentiable RegisterGradient custom_gradient grad_pass_through recompute_grad"
        ),
        "twofold.static.functions.host_calls": "Assert Print numpy_function py_func py_function",
        "twofold.static.functions.printing": "print=print_",
        "twofold.static.graph.collections": (
            "add_to_collection add_to_collections get_collection get_collection_ref"
        ),
        "twofold.static.graph.devices": "DeviceSpec",
        "twofold.static.graph.scopes": (
            "control_dependencies name_scope op_scope device container colocate_with init_scope"
        ),
        "twofold.static.graph.tensor_shape": "dimension_at_index dimension_value",
        "twofold.static.graph_def.importer": "import_graph_def",
        "twofold.static.graph_def.meta_graph": "MetaGraphDef",
        "twofold.static.graph_util": "make_ndarray make_tensor_proto",
        "twofold.static.image.transformations": "extract_image_patches random_crop",
        "twofold.static.initializers": (
            "constant_initializer glorot_normal_initializer glorot_uniform_initializer identity_initializer "
            "ones_initializer orthogonal_initializer random_normal_initializer random_uniform_initializer "
            "truncated_normal_initializer uniform_unit_scaling_initializer variance_scaling_initializer "
            "zeros_initializer"
        ),
        "twofold.static.linalg": (
            "adjoint cholesky matrix_determinant det logdet matrix_exponential expm self_adjoint_eigvals "
            "eigvalsh matrix_inverse matrix_square_root sqrtm matrix_solve matrix_triangular_solve "
            "cholesky_solve solve triangular_solve self_adjoint_eig eigh svd qr norm fft fft2d fft3d ifft "
            "ifft2d ifft3d rfft irfft matvec slogdet log_matrix_determinant matrix_set_diag set_diag "
            "matrix_solve_ls lstsq"
        ),
        "twofold.static.lookup": "initialize_all_tables tables_initializer",
        "twofold.static.math": (
            "div_no_nan=divide_no_nan inv abs negative neg sign square sqrt rsqrt reciprocal exp expm1 log "
            "log1p sin cos tan asin acos atan sinh cosh tanh sigmoid log_sigmoid softplus erf erfc floor "
            "ceil round rint is_nan is_inf is_finite logical_not stop_gradient subtract sub multiply mul "
            "realdiv floordiv floor_div floormod mod truncatediv truncatemod pow atan2 equal not_equal less "
            "less_equal greater greater_equal logical_and logical_or logical_xor maximum minimum add "
            "squared_difference truediv divide div divide_no_nan reduce_sum reduce_prod reduce_mean "
            "reduce_max reduce_min reduce_all reduce_any reduce_logsumexp reduce_variance reduce_std argmax "
            "arg_max argmin arg_min matmul batch_matmul tensordot einsum add_n accumulate_n cumsum cumprod "
            "cast to_float to_double to_int32 to_int64 to_complex64 to_complex128 to_bfloat16 linspace "
            "lin_space trace cross acosh asinh atanh lgamma digamma igamma igammac zeta complex conj angle "
            "polygamma real imag bitcast saturate_cast scalar_mul lbeta cumulative_logsumexp"
        ),
        "twofold.static.nn.activations": "softmax",
        "twofold.static.platform": "logging=logs test=testing",
        "twofold.static.platform.file_io": "gfile",
        "twofold.static.platform.flags": "app flags",
        "twofold.static.platform.logs": "get_logger",
        "twofold.static.protobuf.graph_def": "AttrValue GraphDef NodeDef",
        "twofold.static.protobuf.summary": "Event HistogramProto Summary",
        "twofold.static.python.tensor_util": "get_static_value=constant_value",
        "twofold.static.quantization": (
            "fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient "
            "fake_quant_with_min_max_vars fake_quant_with_min_max_vars_gradient "
            "fake_quant_with_min_max_vars_per_channel fake_quant_with_min_max_vars_per_channel_gradient"
        ),
        "twofold.static.random": (
            "get_seed multinomial random_gamma random_normal random_poisson random_shuffle random_uniform "
            "set_random_seed truncated_normal"
        ),
        "twofold.static.recurrent": "rnn_cell",
        "twofold.static.session.config": (
            "ConfigProto GPUOptions GraphOptions OptimizerOptions RunMetadata RunOptions"
        ),
        "twofold.static.session.conversions": "register_tensor_conversion_function",
        "twofold.static.sparse": (
            "SparseTensorValue SparseTensor sparse_placeholder sparse_to_dense sparse_tensor_to_dense "
            "sparse_tensor_dense_matmul sparse_softmax sparse_add sparse_reduce_sum sparse_reorder "
            "sparse_reshape sparse_transpose sparse_retain edit_distance string_split"
        ),
        "twofold.static.sparse_rearranging": (
            "sparse_fill_empty_rows sparse_concat sparse_slice sparse_split sparse_reset_shape sparse_merge "
            "sparse_to_indicator sparse_reduce_max sparse_maximum sparse_minimum"
        ),
        "twofold.static.strings.hash_buckets": "string_to_hash_bucket_fast",
        "twofold.static.strings.serialized": "decode_compressed parse_tensor serialize_tensor",
        "twofold.static.strings.string_functions": (
            "as_string decode_base64 decode_raw encode_base64 matching_files read_file reduce_join "
            "regex_replace string_join string_strip string_to_number substr write_file"
        ),
        "twofold.static.summary": (
            "histogram_summary=histogram image_summary=image merge_summary=merge "
            "merge_all_summaries=merge_all scalar_summary=scalar"
        ),
        "twofold.static.variables.initialization": (
            "is_variable_initialized report_uninitialized_variables assert_variables_initialized"
        ),
        "twofold.static.variables.partitioned": (
            "PartitionedVariable fixed_size_partitioner min_max_variable_partitioner "
            "variable_axis_size_partitioner"
        ),
        "twofold.static.variables.resources": (
            "disable_resource_variables enable_resource_variables resource_variables_enabled"
        ),
        "twofold.static.variables.scatter_updates": (
            "scatter_update scatter_add scatter_sub scatter_mul scatter_div scatter_min scatter_max "
            "scatter_nd_update scatter_nd_add scatter_nd_sub"
        ),
        "twofold.static.variables.synchronization": "VariableAggregation VariableSynchronization",
        "twofold.static.variables.variable": (
            "Variable all_variables assign assign_add assign_sub global_variables "
            "global_variables_initializer initialize_all_variables initialize_local_variables "
            "initialize_variables local_variables local_variables_initializer model_variables "
            "moving_average_variables trainable_variables variables_initializer"
        ),
        "twofold.static.variables.variable_scope": (
            "AUTO_REUSE VariableScope get_local_variable get_variable get_variable_scope make_template "
            "no_regularizer variable_creator_scope variable_op_scope variable_scope"
        ),
    },
    "twofold.static.contrib": {
        "twofold.static": "keras lookup saved_model signal",
        "twofold.static.contrib": (
            "cluster_resolver compiler crf cudnn_rnn data distributions eager estimator factorization "
            "framework image layers learn legacy_seq2seq losses metrics opt predictor rnn seq2seq slim "
            "staging stateless tensorboard tpu training util"
        ),
    },
    "twofold.static.contrib.learn": {
        "twofold.static.contrib.learn": "datasets monitors python learn_runner=experiment",
        "twofold.static.contrib.learn.estimators": (
            "DNNClassifier DNNLinearCombinedClassifier DNNLinearCombinedRegressor DNNRegressor Estimator "
            "LinearClassifier LinearRegressor MetricSpec ModelFnOps RunConfig SKCompat "
            "infer_real_valued_columns_from_input infer_real_valued_columns_from_input_fn"
        ),
        "twofold.static.contrib.learn.experiment": "Experiment",
        "twofold.static.estimator": "io=inputs",
    },
    "twofold.static.data": {
        "twofold.static.contrib": "experimental=data",
        "twofold.static.data.datasets": "Dataset",
        "twofold.static.data.file_datasets": "FixedLengthRecordDataset TextLineDataset TFRecordDataset",
        "twofold.static.data.iterators": (
            "Iterator make_one_shot_iterator make_initializable_iterator get_output_types get_output_shapes"
        ),
        "twofold.static.data.options": "Options",
    },
    "twofold.static.estimator": {
        "twofold.static.contrib": "tpu",
        "twofold.static.contrib.estimator": (
            "make_early_stopping_hook stop_if_higher_hook stop_if_lower_hook stop_if_no_decrease_hook "
            "stop_if_no_increase_hook"
        ),
        "twofold.static.estimator": "export inputs",
        "twofold.static.estimator.canned": (
            "DNNClassifier DNNLinearCombinedClassifier DNNLinearCombinedRegressor DNNRegressor "
            "LinearClassifier LinearRegressor"
        ),
        "twofold.static.estimator.estimator": "Estimator",
        "twofold.static.estimator.exporters": "BestExporter Exporter FinalExporter LatestExporter",
        "twofold.static.estimator.spec": "EstimatorSpec ModeKeys RunConfig",
        "twofold.static.estimator.training": "EvalSpec TrainSpec train_and_evaluate",
        "twofold.static.saving.warm_start": "WarmStartSettings",
        "twofold.static.train.session_hooks": (
            "NanLossDuringTrainingError LoggingTensorHook StopAtStepHook CheckpointSaverListener "
            "CheckpointSaverHook SummarySaverHook StepCounterHook NanTensorHook GlobalStepWaiterHook "
            "FinalOpsHook FeedFnHook"
        ),
        "twofold.static.train.session_run_hook": (
            "SecondOrStepTimer SessionRunArgs SessionRunContext SessionRunHook SessionRunValues"
        ),
    },
    "twofold.static.feature_column": {
        "twofold.static.feature_column.declared": (
            "bucketized_column categorical_column_with_hash_bucket categorical_column_with_identity "
            "categorical_column_with_vocabulary_file categorical_column_with_vocabulary_list crossed_column "
            "embedding_column indicator_column numeric_column shared_embedding_columns "
            "weighted_categorical_column"
        ),
        "twofold.static.feature_column.layers": "input_layer linear_model make_parse_example_spec",
    },
    "twofold.static.image": {
        "twofold.static.image.boxes": "crop_and_resize non_max_suppression resize_area",
        "twofold.static.image.colors": (
            "rgb_to_grayscale grayscale_to_rgb rgb_to_hsv rgb_to_yuv yuv_to_rgb rgb_to_yiq yiq_to_rgb "
            "hsv_to_rgb adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation "
            "random_brightness random_contrast random_hue random_saturation"
        ),
        "twofold.static.image.distorted_boxes": "draw_bounding_boxes sample_distorted_bounding_box",
        "twofold.static.image.files": (
            "decode_jpeg decode_and_crop_jpeg decode_png decode_bmp decode_gif decode_image encode_jpeg "
            "encode_png extract_jpeg_shape is_jpeg"
        ),
        "twofold.static.image.glimpses": "extract_glimpse",
        "twofold.static.image.patches": (
            "adjust_jpeg_quality combined_non_max_suppression extract_patches non_max_suppression_overlaps "
            "non_max_suppression_padded non_max_suppression_with_scores resize_image_with_pad sobel_edges"
        ),
        "twofold.static.image.similarity": "ssim ssim_multiscale",
        "twofold.static.image.transformations": (
            "ResizeMethod resize_bilinear resize_bicubic resize_nearest_neighbor resize_images resize "
            "extract_image_patches flip_left_right flip_up_down transpose_image transpose rot90 "
            "random_flip_left_right random_flip_up_down crop_to_bounding_box pad_to_bounding_box "
            "resize_image_with_crop_or_pad resize_with_crop_or_pad central_crop random_crop "
            "convert_image_dtype per_image_standardization total_variation image_gradients psnr"
        ),
    },
    "twofold.static.keras.models": {
        "twofold.static.keras.configs": "clone_model model_from_config model_from_json",
        "twofold.static.keras.saving": "load_model save_model",
    },
    "twofold.static.metrics": {
        "twofold.static.metrics.at_k": (
            "average_precision_at_k precision_at_k precision_at_top_k recall_at_k recall_at_top_k "
            "sparse_average_precision_at_k sparse_precision_at_k"
        ),
        "twofold.static.metrics.at_thresholds": (
            "auc false_negatives_at_thresholds false_positives_at_thresholds precision_at_thresholds "
            "recall_at_thresholds sensitivity_at_specificity specificity_at_sensitivity "
            "true_negatives_at_thresholds true_positives_at_thresholds"
        ),
        "twofold.static.metrics.streaming": (
            "_streaming_confusion_matrix accuracy false_negatives false_positives mean mean_absolute_error "
            "mean_cosine_distance mean_iou mean_per_class_accuracy mean_relative_error mean_squared_error "
            "mean_tensor percentage_below precision recall root_mean_squared_error true_negatives "
            "true_positives"
        ),
    },
    "twofold.static.nn": {
        "twofold.static.arrays.creation": "top_k",
        "twofold.static.arrays.reordering": (
            "batch_to_space depth_to_space space_to_batch space_to_depth"
        ),
        "twofold.static.contrib": "seq2seq=legacy_seq2seq",
        "twofold.static.layers.normalization": "fused_batch_norm",
        "twofold.static.math": "log_sigmoid sigmoid softplus tanh",
        "twofold.static.nn.activations": (
            "silu=swish relu relu6 elu softsign swish selu zero_fraction quantized_relu_x leaky_relu crelu "
            "softmax log_softmax dropout"
        ),
        "twofold.static.nn.convolutions": (
            "conv1d conv2d conv3d atrous_conv2d conv1d_transpose conv2d_transpose conv3d_transpose "
            "conv2d_backprop_input atrous_conv2d_transpose depthwise_conv2d depthwise_conv2d_native "
            "separable_conv2d convolution conv_transpose"
        ),
        "twofold.static.nn.cross_entropy": (
            "softmax_cross_entropy_with_logits_v2 softmax_cross_entropy_with_logits "
            "sparse_softmax_cross_entropy_with_logits sigmoid_cross_entropy_with_logits "
            "weighted_cross_entropy_with_logits log_poisson_loss l2_loss in_top_k"
        ),
        "twofold.static.nn.ctc": "ctc_greedy_decoder ctc_loss",
        "twofold.static.nn.ctc_beam_search": "ctc_beam_search_decoder ctc_beam_search_decoder_v2",
        "twofold.static.nn.embeddings": (
            "embedding_lookup embedding_lookup_sparse safe_embedding_lookup_sparse"
        ),
        "twofold.static.nn.filter_gradients": (
            "conv2d_backprop_filter conv3d_backprop_filter conv3d_backprop_filter_v2 "
            "depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input "
            "depthwise_conv2d_native_backprop_filter depthwise_conv2d_native_backprop_input"
        ),
        "twofold.static.nn.linear": "bias_add xw_plus_b relu_layer",
        "twofold.static.nn.morphology": "dilation2d erosion2d",
        "twofold.static.nn.normalization": (
            "moments sufficient_statistics normalize_moments weighted_moments batch_normalization "
            "batch_norm_with_global_normalization l2_normalize"
        ),
        "twofold.static.nn.pooling": (
            "avg_pool avg_pool1d avg_pool2d avg_pool3d local_response_normalization lrn max_pool max_pool1d "
            "max_pool2d max_pool3d max_pool_with_argmax pool avg_pool_v2=avg_pool max_pool_v2=max_pool"
        ),
        "twofold.static.nn.sampled_losses": (
            "log_uniform_candidate_sampler nce_loss sampled_softmax_loss uniform_candidate_sampler"
        ),
        "twofold.static.nn.unigram_samplers": (
            "all_candidate_sampler compute_accidental_hits fixed_unigram_candidate_sampler "
            "learned_unigram_candidate_sampler"
        ),
        "twofold.static.random": "multinomial",
        "twofold.static.recurrent": "rnn_cell",
        "twofold.static.recurrent.raw_rnn": "raw_rnn",
        "twofold.static.recurrent.rnn": (
            "bidirectional_dynamic_rnn dynamic_rnn static_bidirectional_rnn static_rnn"
        ),
    },
    "twofold.static.sequence": {
        "twofold.static.recurrent.sequences": "Fold Recurrence",
        "twofold.static.sequence.axes": "Axis",
        "twofold.static.sequence.operations": (
            "placeholder input_variable lengths first last is_first is_last reduce_sum reduce_mean "
            "reduce_max reduce_min softmax broadcast_as delay past_value future_value reverse gather where "
            "scatter slice unpack to_sequence"
        ),
    },
    "twofold.static.strings": {
        "twofold.static.strings.hash_buckets": "to_hash_bucket_fast=string_to_hash_bucket_fast",
        "twofold.static.strings.serialized": "bytes_split split format=string_format",
        "twofold.static.strings.string_functions": (
            "as_string reduce_join regex_full_match regex_replace substr join=string_join "
            "length=string_length lower=string_lower strip=string_strip to_number=string_to_number "
            "upper=string_upper"
        ),
    },
    "twofold.static.train": {
        "twofold.static.contrib.checkpoints": "checkpoints_iterator",
        "twofold.static.data.coordinator": "Coordinator",
        "twofold.static.data.epochs": (
            "input_producer limit_epochs maybe_batch maybe_batch_join maybe_shuffle_batch "
            "maybe_shuffle_batch_join"
        ),
        "twofold.static.data.queues": (
            "QueueRunner add_queue_runner batch batch_join range_input_producer shuffle_batch "
            "shuffle_batch_join slice_input_producer start_queue_runners"
        ),
        "twofold.static.data.readers": "match_filenames_once string_input_producer",
        "twofold.static.graph_def.meta_graph": "SaverDef export_meta_graph",
        "twofold.static.graph_util": "write_graph",
        "twofold.static.optimizers.learning_rate_schedules": (
            "exponential_decay natural_exp_decay inverse_time_decay polynomial_decay piecewise_constant "
            "piecewise_constant_decay cosine_decay cosine_decay_restarts linear_cosine_decay "
            "noisy_linear_cosine_decay"
        ),
        "twofold.static.optimizers.moving_averages": "ExponentialMovingAverage",
        "twofold.static.optimizers.optimizer": "Optimizer",
        "twofold.static.optimizers.replicas": "SyncReplicasOptimizer",
        "twofold.static.optimizers.update_rules": (
            "GradientDescentOptimizer MomentumOptimizer AdamOptimizer AdagradOptimizer AdagradDAOptimizer "
            "RMSPropOptimizer AdadeltaOptimizer ProximalGradientDescentOptimizer ProximalAdagradOptimizer "
            "FtrlOptimizer"
        ),
        "twofold.static.protobuf.example": (
            "BytesList FloatList Int64List Feature Features FeatureList FeatureLists Example "
            "SequenceExample"
        ),
        "twofold.static.protobuf.summary": "summary_iterator",
        "twofold.static.saving.checkpoint_reader": (
            "NewCheckpointReader load_checkpoint list_variables load_variable"
        ),
        "twofold.static.saving.checkpoint_state": (
            "generate_checkpoint_state_proto get_checkpoint_mtimes remove_checkpoint "
            "update_checkpoint_state"
        ),
        "twofold.static.saving.saver": (
            "Saver checkpoint_exists get_checkpoint_state import_meta_graph latest_checkpoint"
        ),
        "twofold.static.saving.warm_start": "WarmStartSettings init_from_checkpoint warm_start",
        "twofold.static.summary": "SummaryWriter=FileWriter",
        "twofold.static.train.monitored_session": (
            "ChiefSessionCreator MonitoredSession MonitoredTrainingSession Scaffold SessionCreator "
            "SessionManager SingularMonitoredSession"
        ),
        "twofold.static.train.server": "ClusterSpec Server replica_device_setter",
        "twofold.static.train.session_hooks": (
            "NanLossDuringTrainingError LoggingTensorHook StopAtStepHook CheckpointSaverListener "
            "CheckpointSaverHook SummarySaverHook StepCounterHook NanTensorHook GlobalStepWaiterHook "
            "FinalOpsHook FeedFnHook"
        ),
        "twofold.static.train.session_run_hook": (
            "SecondOrStepTimer SessionRunArgs SessionRunContext SessionRunHook SessionRunValues"
        ),
        "twofold.static.train.step_counter": (
            "create_global_step get_global_step assert_global_step get_or_create_global_step global_step"
        ),
        "twofold.static.train.supervisor": "LooperThread Supervisor basic_train_loop",
    },
}
