"""Which module enters what; written by tools/index.py from the operation entries.

``ENTRIES`` are operations by module, ``FUNCTIONS`` public functions: the names of one joined by commas, ``.x`` a method
and ``!x`` the in-place method ``x_``. ``MATH`` are functions that kernels compute with by module, ``LIBRARIES`` public
functions by what computes for them on the host.
"""

ENTRIES: dict[str, str] = {
    "twofold.ops.contraction.added_products": (
        "addmv addr baddbmm addbmm inner vecdot cross_product powers"
    ),
    "twofold.ops.contraction.attention": "scaled_dot_product_attention",
    "twofold.ops.contraction.distances": "cdist",
    "twofold.ops.contraction.matrix_products": "matmul outer linear addmm tensordot einsum",
    "twofold.ops.control_flow.bounded_loops": "sized",
    "twofold.ops.control_flow.calls": "call",
    "twofold.ops.control_flow.gradient_rule": "ruled",
    "twofold.ops.control_flow.loops": "loop",
    "twofold.ops.control_flow.observing": "observed",
    "twofold.ops.control_flow.program_results": "program_results result_block",
    "twofold.ops.control_flow.programs": "get_output branch",
    "twofold.ops.control_flow.user_gradient": "user_gradient user_link differentiated_once",
    "twofold.ops.convolution.convolutions": (
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
    ),
    "twofold.ops.convolution.depthwise_transposed": "depthwise_transposed",
    "twofold.ops.convolution.grids": "grid_sample affine_grid",
    "twofold.ops.convolution.interpolation": "count_up_to resize",
    "twofold.ops.convolution.patches": "windows_of_image image_of_windows im2col col2im",
    "twofold.ops.convolution.pooling": (
        "max_pool max_pool_indices avg_pool adaptive_avg_pool adaptive_max_pool_indices adaptive_max_pool"
    ),
    "twofold.ops.convolution.primitives": "convolution convolution_weight accumulate_convolution",
    "twofold.ops.convolution.resampling": "resample",
    "twofold.ops.convolution.taps": "tap_sum tap_products tap_scatter",
    "twofold.ops.convolution.transposed": "exchange_blocks convolution_transposed interleave",
    "twofold.ops.convolution.unpooling": (
        "fractional_max_pool_indices elements_at max_unpool max_pool_share"
    ),
    "twofold.ops.convolution.window_tables": "table_argmax",
    "twofold.ops.convolution.windows": "window_max window_argmax window_max_share window_sum",
    "twofold.ops.elementwise.activation": (
        "relu leaky_relu elu celu selu gelu silu mish logsigmoid hardtanh relu6 hardsigmoid hardswish "
        "softsign tanhshrink softshrink hardshrink threshold"
    ),
    "twofold.ops.elementwise.arithmetic": (
        "add subtract multiply divide floor_divide trunc_divide remainder fmod pow cube negative copied abs "
        "sign square sqrt rsqrt reciprocal hypot copysign"
    ),
    "twofold.ops.elementwise.checks": (
        "class_number number_below unwritten within nonzero_divisor fitting_values"
    ),
    "twofold.ops.elementwise.complex": "complex real imag conj polar view_as_real view_as_complex",
    "twofold.ops.elementwise.conversion": "cast bitcast",
    "twofold.ops.elementwise.extremes": (
        "maximum minimum first_maximum first_minimum fmax fmin clamp clamp_min clamp_max"
    ),
    "twofold.ops.elementwise.logic": (
        "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
        "logical_not bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift "
        "bitwise_right_shift isnan isinf isfinite signbit nextafter where"
    ),
    "twofold.ops.elementwise.number_parts": (
        "gcd lcm heaviside frexp_mantissa frexp_exponent float_power isposinf isneginf isreal angle "
        "nan_to_num isclose logaddexp2"
    ),
    "twofold.ops.elementwise.optimizers": (
        "decayed_gradient sgd_momentum nesterov_direction sgd_parameter adam_mean adam_square "
        "adam_parameter sparse_adam_mean sparse_adam_square sparse_adam_parameter decayed_parameter "
        "adam_parameter_late_epsilon rmsprop_parameter adagrad_parameter rmsprop_direction "
        "rmsprop_direction_inner_epsilon adagrad_square clipped_gradient nadam_parameter adamax_norm "
        "adamax_parameter rprop_step_size rprop_gradient rprop_parameter"
    ),
    "twofold.ops.elementwise.quantization": "fake_quantize",
    "twofold.ops.elementwise.rounding": "floor ceil trunc round frac",
    "twofold.ops.elementwise.scaled_sums": "add_scaled subtract_scaled lerp addcmul addcdiv",
    "twofold.ops.elementwise.transcendental": (
        "exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh "
        "atanh sigmoid softplus softplus_scaled logaddexp logit sinc deg2rad rad2deg"
    ),
    "twofold.ops.indexing.accumulation": "accumulate_product accumulate_at accumulate_rows",
    "twofold.ops.indexing.bags": "bag_sum bag_largest embedding_bags",
    "twofold.ops.indexing.embedding": "row_number embedding frequency_scaled embedding_renorm",
    "twofold.ops.indexing.gather": (
        "gather_block scatter_sum scatter_set gather take_along_axis index_select"
    ),
    "twofold.ops.indexing.keys": (
        "basic_index index index_write index_accumulate is_class one_hot select_scatter"
    ),
    "twofold.ops.indexing.leading": "first_of_rows",
    "twofold.ops.indexing.linear_index": "linear_index",
    "twofold.ops.indexing.masks": "masked_write masked_fill",
    "twofold.ops.indexing.row_products": "concatenate_rows product_over_rows rows_added_at sum_of_rows",
    "twofold.ops.indexing.rows": "first_positions changed_rows",
    "twofold.ops.indexing.scatter_combine": "scatter_combine",
    "twofold.ops.indexing.scattering": (
        "scatter_reduce index_reduce scatter scatter_add index_add index_copy index_fill put masked_scatter"
    ),
    "twofold.ops.indexing.searching": "searchsorted_indices searchsorted isin_mask bin_counts",
    "twofold.ops.indexing.sorting": "argsort ordered_values leading_indices",
    "twofold.ops.linear_algebra.cholesky": (
        "cholesky_packed cholesky_by_numpy cholesky_solve cholesky_inverse"
    ),
    "twofold.ops.linear_algebra.eigen": "eig_packed eigenvalues_alone",
    "twofold.ops.linear_algebra.elimination": "real_inverse real_solution",
    "twofold.ops.linear_algebra.ldl": "ldl_packed ldl_system",
    "twofold.ops.linear_algebra.least_squares": "least_squares_packed",
    "twofold.ops.linear_algebra.lu": "row_order permuted_rows lu_packed permutation_matrix lu_system",
    "twofold.ops.linear_algebra.matrices": "piece",
    "twofold.ops.linear_algebra.matrix_functions": (
        "matrix_exponential matrix_power rank_of pseudo_inverse pseudo_inverse_hermitian"
    ),
    "twofold.ops.linear_algebra.matrix_roots": "matrix_square_root",
    "twofold.ops.linear_algebra.norms": "p_norm",
    "twofold.ops.linear_algebra.orthogonal": "qr_packed geqrf_packed householder_product ormqr",
    "twofold.ops.linear_algebra.singular_values": (
        "svd_packed singular_values eigh_packed eigenvalues_symmetric"
    ),
    "twofold.ops.linear_algebra.solving": (
        "inverse_matrix solve_matrix inverse_by_numpy solution_by_numpy zero_pivot linear_solve determinant "
        "adjugate slogdet_packed"
    ),
    "twofold.ops.linear_algebra.triangular": (
        "triangular_system triangular_system_by_numpy solve_triangular"
    ),
    "twofold.ops.linear_algebra.tridiagonal": "tridiagonal_solution tridiagonal_product",
    "twofold.ops.loss.class_losses": (
        "cross_entropy soft_cross_entropy distribution_cross_entropy nll_loss class_loss"
    ),
    "twofold.ops.loss.ctc": "ctc_paths ctc_losses ctc_mean",
    "twofold.ops.loss.elementwise_losses": (
        "mse_loss l1_loss huber_loss smooth_l1_loss soft_margin_loss binary_cross_entropy "
        "binary_cross_entropy_with_logits kl_div"
    ),
    "twofold.ops.loss.margin_losses": "multi_margin_loss multilabel_margin_loss",
    "twofold.ops.random.distributions": (
        "random_exponential random_cauchy random_geometric random_log_normal random_truncated_normal "
        "random_poisson random_binomial checked_weights random_choice order_of_keys random_permutation"
    ),
    "twofold.ops.random.gamma_variates": "log_gamma_slope random_log_gamma_variate",
    "twofold.ops.random.rejection": (
        "random_log_gamma random_poisson_small random_poisson_large random_binomial_small "
        "random_binomial_large random_von_mises"
    ),
    "twofold.ops.random.sampling": (
        "random_bits random_uniform random_normal random_integers random_bernoulli random_dropout"
    ),
    "twofold.ops.reduction.extreme_scan": (
        "running_argmax running_argmin packed_running_argmax packed_running_argmin cumulative_logsumexp "
        "cummax_indices cummin_indices logcumsumexp"
    ),
    "twofold.ops.reduction.local_normalization": "local_response_norm renorm",
    "twofold.ops.reduction.normalization": (
        "layer_norm rms_norm batch_norm_train batch_norm_eval group_norm"
    ),
    "twofold.ops.reduction.order": "median_index whole_median mode_index quantiles",
    "twofold.ops.reduction.reductions": (
        "sum ordered_sum prod amax amin any all argmax argmin stop_gradient straight_through mean "
        "count_nonzero logsumexp select_extreme"
    ),
    "twofold.ops.reduction.scan": "cumulative_sum cumulative_product linear_scan cumsum cumprod",
    "twofold.ops.reduction.segments": "run_lengths bit_parity",
    "twofold.ops.reduction.softmax": "softmax log_softmax softmin glu cosine_similarity normalize",
    "twofold.ops.reduction.statistics": "grid_counts",
    "twofold.ops.reduction.variance": "var std",
    "twofold.ops.sequence.recurrent": (
        "lstm_states lstm_cotangents gru_states gru_cotangents rnn_tanh_states rnn_tanh_cotangents "
        "rnn_relu_states rnn_relu_cotangents recurrent_states recurrent_output"
    ),
    "twofold.ops.sequence.recurrent_cells": "recurrent_step lstm_first_memory lstm_memory lstm_output",
    "twofold.ops.shape.assembling": "block_diag chosen_indices combinations",
    "twofold.ops.shape.block_sums": "sum_of_blocks",
    "twofold.ops.shape.contiguity": "clone",
    "twofold.ops.shape.diagonals": "diag_embed triangle_indices tril_indices triu_indices",
    "twofold.ops.shape.joining": "clamp_index pad_block slice_update concatenate stack",
    "twofold.ops.shape.movement": "reshape permute broadcast_to flip slice write_view diagonal",
    "twofold.ops.shape.padding": "pad_with_own",
    "twofold.ops.shape.reinterpreting": "smaller_elements larger_elements",
    "twofold.ops.shape.reshaping": "squeeze unsqueeze",
    "twofold.ops.shape.rolling": "roll",
    "twofold.ops.shape.strided": "as_strided unfold",
    "twofold.ops.shape.triangle": "triu tril",
    "twofold.ops.source": (
        "constant input iota full zeros ones zeros_like ones_like full_like arange linspace logspace eye"
    ),
    "twofold.ops.special.bessel": (
        "i0 i0e i1 i1e k0 k1 k0e k1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 airy_ai spherical_bessel_j0"
    ),
    "twofold.ops.special.error": (
        "erf erfc erfcx erfinv ndtr normal_density log_ndtr ndtri entr xlogy xlog1py"
    ),
    "twofold.ops.special.gamma": "lgamma digamma zeta polygamma multigammaln igamma igammac",
    "twofold.ops.special.polynomials": (
        "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
        "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p "
        "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
        "shifted_chebyshev_polynomial_w"
    ),
    "twofold.ops.spectral.fourier": "complex_transform half_transform real_transform",
    "twofold.ops.spectral.fourier_functions": "frequencies half_frequencies",
    "twofold.ops.spectral.short_time": "frames overlap_add covering",
    "twofold.ops.spectral.signal_windows": (
        "general_cosine_window general_hamming_window hamming_window hann_window blackman_window "
        "nuttall_window bartlett_window cosine_window exponential_window gaussian_window kaiser_window"
    ),
    "twofold.transforms.batched_operations": "batched_view batched_kernel batched_host",
    "twofold.transforms.derived": "pullback pullback_rows pullback_blocks pullback_chain vmap",
}
FUNCTIONS: dict[str, str] = {
    "twofold.frontend.counting": (
        "unique,.unique unique_consecutive,.unique_consecutive bincount,.bincount "
        "nonzero_static,.nonzero_static unravel_index"
    ),
    "twofold.frontend.selection": "nonzero,.nonzero argwhere,.argwhere masked_select,.masked_select",
    "twofold.ops.contraction.added_products": (
        "addmv,.addmv,!addmv addr,.addr,!addr baddbmm,.baddbmm,!baddbmm addbmm,.addbmm,!addbmm inner,.inner "
        "vecdot,linalg.vecdot linalg.matmul linalg.diagonal linalg.cross cross,.cross chain_matmul "
        "linalg.multi_dot linalg.vander vander linalg.tensorinv linalg.tensorsolve"
    ),
    "twofold.ops.contraction.attention": "scaled_dot_product_attention",
    "twofold.ops.contraction.distances": "cdist pdist dist,.dist",
    "twofold.ops.contraction.matrix_products": (
        "matmul,.matmul,.__matmul__ mm,.mm bmm,.bmm mv,.mv dot,.dot vdot,.vdot outer,ger,.outer,.ger linear "
        "addmm,.addmm,!addmm tensordot einsum kron,.kron trace,.trace .__rmatmul__"
    ),
    "twofold.ops.convolution.convolutions": (
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc"
    ),
    "twofold.ops.convolution.grids": (
        "grid_sample grid_sampler grid_sampler_2d grid_sampler_3d affine_grid,affine_grid_generator"
    ),
    "twofold.ops.convolution.interpolation": (
        "interpolate upsample upsample_nearest upsample_bilinear _upsample_bilinear2d_aa "
        "_upsample_bicubic2d_aa"
    ),
    "twofold.ops.convolution.patches": "im2col col2im",
    "twofold.ops.convolution.pooling": (
        "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d "
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
        "adaptive_max_pool2d adaptive_max_pool3d"
    ),
    "twofold.ops.convolution.unpooling": (
        "max_unpool1d max_unpool2d max_unpool3d max_pool2d_with_indices_backward"
    ),
    "twofold.ops.elementwise.activation": (
        "relu,.relu,!relu leaky_relu,.leaky_relu,!leaky_relu elu,.elu,!elu celu,.celu selu,.selu gelu,.gelu "
        "silu,swish,.silu,.swish mish,.mish logsigmoid,log_sigmoid,.logsigmoid,.log_sigmoid "
        "hardtanh,.hardtanh,!hardtanh relu6,.relu6 hardsigmoid,.hardsigmoid hardswish,.hardswish "
        "softsign,.softsign tanhshrink,.tanhshrink softshrink,.softshrink hardshrink,.hardshrink "
        "threshold,.threshold prelu,.prelu"
    ),
    "twofold.ops.elementwise.arithmetic": (
        "add,.add,.__add__,!add subtract,sub,.subtract,.sub,.__sub__,!subtract,!sub "
        "multiply,mul,.multiply,.mul,.__mul__,!multiply,!mul "
        "divide,div,true_divide,.divide,.div,.true_divide,.__truediv__,!divide,!div,!true_divide "
        "floor_divide,.floor_divide,.__floordiv__,!floor_divide remainder,.remainder,.__mod__,!remainder "
        "fmod,.fmod,!fmod pow,power,.pow,.power,.__pow__,!pow,!power "
        "negative,neg,.negative,.neg,.__neg__,!negative,!neg positive,.positive "
        "abs,absolute,.abs,.absolute,.__abs__,!abs,!absolute sign,sgn,.sign,.sgn,!sign,!sgn "
        "square,.square,!square sqrt,.sqrt,!sqrt rsqrt,.rsqrt,!rsqrt reciprocal,.reciprocal,!reciprocal "
        "hypot,.hypot,!hypot copysign,.copysign,!copysign .__radd__ .__rsub__ .__rmul__ .__rtruediv__ "
        ".__rfloordiv__ .__rmod__ .__rpow__"
    ),
    "twofold.ops.elementwise.complex": (
        "complex real,.real,!real imag,.imag,!imag "
        "conj,conj_physical,.conj,.conj_physical,!conj,!conj_physical "
        "resolve_conj,resolve_neg,.resolve_conj,.resolve_neg polar view_as_real,.view_as_real "
        "view_as_complex"
    ),
    "twofold.ops.elementwise.conversion": "cast bitcast",
    "twofold.ops.elementwise.extremes": (
        "maximum,.maximum,!maximum minimum,.minimum,!minimum fmax,.fmax fmin,.fmin "
        "clamp,clip,.clamp,.clip,!clamp,!clip clamp_min,.clamp_min,!clamp_min "
        "clamp_max,.clamp_max,!clamp_max"
    ),
    "twofold.ops.elementwise.logic": (
        "equal,eq,.equal,.eq,.__eq__,!equal,!eq not_equal,ne,.not_equal,.ne,.__ne__,!not_equal,!ne "
        "less,lt,.less,.lt,.__lt__,!less,!lt less_equal,le,.less_equal,.le,.__le__,!less_equal,!le "
        "greater,gt,.greater,.gt,.__gt__,!greater,!gt "
        "greater_equal,ge,.greater_equal,.ge,.__ge__,!greater_equal,!ge "
        "logical_and,.logical_and,!logical_and logical_or,.logical_or,!logical_or "
        "logical_xor,.logical_xor,!logical_xor logical_not,.logical_not,!logical_not "
        "bitwise_and,.bitwise_and,.__and__,!bitwise_and bitwise_or,.bitwise_or,.__or__,!bitwise_or "
        "bitwise_xor,.bitwise_xor,.__xor__,!bitwise_xor "
        "bitwise_invert,bitwise_not,.bitwise_invert,.bitwise_not,.__invert__,!bitwise_invert,!bitwise_not "
        "bitwise_left_shift,.bitwise_left_shift,.__lshift__,!bitwise_left_shift "
        "bitwise_right_shift,.bitwise_right_shift,.__rshift__,!bitwise_right_shift isnan,.isnan "
        "isinf,.isinf isfinite,.isfinite signbit,.signbit nextafter,.nextafter,!nextafter where .__rand__ "
        ".__ror__ .__rxor__ .__rlshift__ .__rrshift__ .where"
    ),
    "twofold.ops.elementwise.number_parts": (
        "gcd,.gcd,!gcd lcm,.lcm,!lcm heaviside,.heaviside,!heaviside frexp,.frexp ldexp,.ldexp,!ldexp "
        "float_power,.float_power,!float_power isposinf,.isposinf isneginf,.isneginf isreal,.isreal "
        "angle,.angle nan_to_num,.nan_to_num,!nan_to_num isclose,.isclose "
        "logaddexp2,.logaddexp2,!logaddexp2 rsub,.rsub fill"
    ),
    "twofold.ops.elementwise.rounding": (
        "floor,.floor,!floor ceil,.ceil,!ceil trunc,fix,.trunc,.fix,!trunc,!fix "
        "round,special.round,.round,!round frac,.frac,!frac"
    ),
    "twofold.ops.elementwise.scaled_sums": (
        "lerp,.lerp,!lerp addcmul,.addcmul,!addcmul addcdiv,.addcdiv,!addcdiv"
    ),
    "twofold.ops.elementwise.transcendental": (
        "exp,.exp,!exp exp2,special.exp2,.exp2,!exp2 expm1,special.expm1,.expm1,!expm1 log,.log,!log "
        "log1p,special.log1p,.log1p,!log1p log2,.log2,!log2 log10,.log10,!log10 sin,.sin,!sin cos,.cos,!cos "
        "tan,.tan,!tan asin,arcsin,.asin,.arcsin,!asin,!arcsin acos,arccos,.acos,.arccos,!acos,!arccos "
        "atan,arctan,.atan,.arctan,!atan,!arctan atan2,arctan2,.atan2,.arctan2,!atan2,!arctan2 "
        "sinh,.sinh,!sinh cosh,.cosh,!cosh tanh,.tanh,!tanh asinh,arcsinh,.asinh,.arcsinh,!asinh,!arcsinh "
        "acosh,arccosh,.acosh,.arccosh,!acosh,!arccosh atanh,arctanh,.atanh,.arctanh,!atanh,!arctanh "
        "sigmoid,special.expit,.sigmoid,!sigmoid softplus,.softplus,!softplus "
        "logaddexp,.logaddexp,!logaddexp logit,special.logit,.logit,!logit sinc,special.sinc,.sinc,!sinc "
        "deg2rad,.deg2rad,!deg2rad rad2deg,.rad2deg,!rad2deg"
    ),
    "twofold.ops.indexing.embedding": "embedding",
    "twofold.ops.indexing.gather": (
        "gather,.gather take_along_axis take_along_dim,.take_along_dim index_select,.index_select "
        "take,.take"
    ),
    "twofold.ops.indexing.keys": (
        "index_put,.index_put,!index_put one_hot select_scatter,.select_scatter"
    ),
    "twofold.ops.indexing.masks": "masked_fill,.masked_fill,!masked_fill",
    "twofold.ops.indexing.scattering": (
        "scatter_reduce,.scatter_reduce,!scatter_reduce index_reduce,.index_reduce,!index_reduce "
        "scatter,.scatter,!scatter scatter_add,.scatter_add,!scatter_add index_add,.index_add,!index_add "
        "index_copy,.index_copy,!index_copy index_fill,.index_fill,!index_fill put,.put,!put "
        "masked_scatter,.masked_scatter,!masked_scatter"
    ),
    "twofold.ops.indexing.searching": "searchsorted bucketize isin histc,.histc",
    "twofold.ops.indexing.sorting": "argsort,.argsort sort,.sort topk,.topk msort,.msort",
    "twofold.ops.linear_algebra.cholesky": (
        "linalg.cholesky_ex linalg.cholesky cholesky,.cholesky cholesky_solve,.cholesky_solve "
        "cholesky_inverse,.cholesky_inverse"
    ),
    "twofold.ops.linear_algebra.eigen": "linalg.eig linalg.eigvals",
    "twofold.ops.linear_algebra.ldl": "linalg.ldl_factor_ex linalg.ldl_factor linalg.ldl_solve",
    "twofold.ops.linear_algebra.least_squares": "linalg.lstsq",
    "twofold.ops.linear_algebra.lu": (
        "linalg.lu_factor_ex linalg.lu_factor lu,.lu linalg.lu lu_unpack,.lu_unpack linalg.lu_solve "
        "lu_solve,.lu_solve"
    ),
    "twofold.ops.linear_algebra.matrix_functions": (
        "linalg.matrix_exp,matrix_exp,.matrix_exp matrix_power,linalg.matrix_power,.matrix_power "
        "linalg.matrix_rank linalg.pinv pinverse,.pinverse linalg.cond"
    ),
    "twofold.ops.linear_algebra.norms": "linalg.vector_norm linalg.matrix_norm linalg.norm norm,.norm",
    "twofold.ops.linear_algebra.orthogonal": (
        "linalg.qr qr,.qr geqrf,.geqrf linalg.householder_product,orgqr,.orgqr ormqr,.ormqr"
    ),
    "twofold.ops.linear_algebra.singular_values": (
        "linalg.svd linalg.svdvals svd,.svd linalg.eigh linalg.eigvalsh"
    ),
    "twofold.ops.linear_algebra.solving": (
        "linalg.inv,inverse,.inverse linalg.inv_ex linalg.solve linalg.solve_ex linalg.det,det,.det "
        "linalg.slogdet,slogdet,.slogdet logdet,.logdet"
    ),
    "twofold.ops.linear_algebra.triangular": (
        "linalg.solve_triangular triangular_solve,.triangular_solve"
    ),
    "twofold.ops.loss.class_losses": (
        "cross_entropy nll_loss sparse_softmax_cross_entropy_with_logits softmax_cross_entropy_with_logits"
    ),
    "twofold.ops.loss.elementwise_losses": (
        "mse_loss l1_loss huber_loss smooth_l1_loss soft_margin_loss binary_cross_entropy "
        "binary_cross_entropy_with_logits kl_div"
    ),
    "twofold.ops.loss.margin_losses": "multi_margin_loss multilabel_margin_loss",
    "twofold.ops.private_functions": (
        "_softmax_backward_data norm_except_dim _weight_norm _chunk_cat _unsafe_masked_index "
        "_unsafe_masked_index_put_accumulate"
    ),
    "twofold.ops.reduction.differences": "diff,.diff trapezoid,trapz cumulative_trapezoid gradient",
    "twofold.ops.reduction.extreme_scan": "cummax,.cummax cummin,.cummin logcumsumexp,.logcumsumexp",
    "twofold.ops.reduction.local_normalization": "local_response_norm renorm,.renorm,!renorm",
    "twofold.ops.reduction.masking": (
        "masked.sum masked.prod masked.cumsum masked.cumprod masked.amax masked.amin masked.argmax "
        "masked.argmin masked.mean masked.median masked.var masked.std masked.norm masked.normalize "
        "masked.softmax masked.log_softmax masked.softmin masked.logsumexp masked.logaddexp"
    ),
    "twofold.ops.reduction.normalization": "layer_norm rms_norm batch_norm group_norm instance_norm",
    "twofold.ops.reduction.order": (
        "kthvalue,.kthvalue median,.median nanmedian,.nanmedian mode,.mode quantile,.quantile "
        "nanquantile,.nanquantile"
    ),
    "twofold.ops.reduction.reductions": (
        "sum,.sum prod,.prod amax,.amax amin,.amin any,.any all,.all argmax,.argmax argmin,.argmin "
        "stop_gradient,.stop_gradient straight_through,.straight_through mean,.mean "
        "count_nonzero,.count_nonzero logsumexp,special.logsumexp,.logsumexp max,.max min,.min "
        "aminmax,.aminmax"
    ),
    "twofold.ops.reduction.scan": "cumsum,.cumsum,!cumsum cumprod,.cumprod,!cumprod",
    "twofold.ops.reduction.segments": "segment_reduce,_segment_reduce hash_tensor,.hash_tensor",
    "twofold.ops.reduction.softmax": (
        "softmax,special.softmax,.softmax log_softmax,special.log_softmax,.log_softmax softmin glu "
        "cosine_similarity normalize pairwise_distance"
    ),
    "twofold.ops.reduction.statistics": (
        "nansum,.nansum nanmean,.nanmean cov,.cov corrcoef,.corrcoef histogram,.histogram histogramdd"
    ),
    "twofold.ops.reduction.variance": "var,.var std,.std var_mean,.var_mean std_mean,.std_mean",
    "twofold.ops.sequence.recurrent_cells": "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell",
    "twofold.ops.shape.assembling": (
        "atleast_1d atleast_2d atleast_3d vstack,row_stack hstack dstack column_stack block_diag meshgrid "
        "cartesian_prod combinations broadcast_shapes "
        "split_with_sizes,unsafe_split_with_sizes,.split_with_sizes,.unsafe_split_with_sizes "
        "unsafe_split,.unsafe_split unsafe_chunk,.unsafe_chunk tensor_split,.tensor_split hsplit,.hsplit "
        "vsplit,.vsplit dsplit,.dsplit"
    ),
    "twofold.ops.shape.contiguity": "ravel,.ravel .contiguous .view .view_as",
    "twofold.ops.shape.diagonals": (
        "diag_embed,.diag_embed diag,.diag diagflat,.diagflat diagonal_scatter,.diagonal_scatter "
        "tril_indices triu_indices"
    ),
    "twofold.ops.shape.joining": "concatenate,cat,concat stack",
    "twofold.ops.shape.movement": (
        "reshape,.reshape permute,permute_dims,.permute broadcast_to,.broadcast_to flip,.flip "
        "diagonal,.diagonal"
    ),
    "twofold.ops.shape.padding": "pad,.pad constant_pad_nd",
    "twofold.ops.shape.repetition": "tile,.tile repeat_interleave,.repeat_interleave .repeat",
    "twofold.ops.shape.reshaping": (
        "flatten,.flatten unflatten,.unflatten squeeze,.squeeze,!squeeze unsqueeze,.unsqueeze,!unsqueeze "
        "expand_dims reshape_as,.reshape_as transpose,swapdims,.transpose,.swapdims,!transpose,!swapdims "
        "swapaxes,.swapaxes,!swapaxes t,.t,!t adjoint,.adjoint matrix_transpose "
        "movedim,moveaxis,.movedim,.moveaxis expand,.expand expand_as,.expand_as broadcast_tensors "
        "fliplr,.fliplr flipud,.flipud narrow,.narrow select,.select split,.split chunk,.chunk "
        "unbind,.unbind"
    ),
    "twofold.ops.shape.rolling": "roll,.roll",
    "twofold.ops.shape.shuffling": (
        "pixel_shuffle pixel_unshuffle channel_shuffle,native_channel_shuffle"
    ),
    "twofold.ops.shape.strided": (
        "as_strided,.as_strided,!as_strided as_strided_scatter,.as_strided_scatter rot90,.rot90 "
        "narrow_copy,.narrow_copy slice_scatter,.slice_scatter sum_to_size,.sum_to_size alias .unfold"
    ),
    "twofold.ops.shape.triangle": "triu,.triu,!triu tril,.tril,!tril",
    "twofold.ops.shape.view_copies": (
        "alias_copy as_strided_copy diagonal_copy expand_copy permute_copy select_copy split_copy "
        "split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy "
        "view_copy"
    ),
    "twofold.ops.source": (
        "full,.full zeros ones zeros_like,empty_like,.zeros_like,.empty_like ones_like,.ones_like "
        "full_like,.full_like arange linspace,.linspace logspace,.logspace eye"
    ),
    "twofold.ops.special.bessel": (
        "i0,special.i0,special.modified_bessel_i0,.i0,!i0 special.i0e special.i1,special.modified_bessel_i1 "
        "special.i1e special.modified_bessel_k0 special.modified_bessel_k1 "
        "special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1 special.bessel_j0 "
        "special.bessel_j1 special.bessel_y0 special.bessel_y1 special.airy_ai special.spherical_bessel_j0"
    ),
    "twofold.ops.special.error": (
        "erf,special.erf,.erf,!erf erfc,special.erfc,.erfc,!erfc special.erfcx "
        "erfinv,special.erfinv,.erfinv,!erfinv special.ndtr special.log_ndtr special.ndtri special.entr "
        "xlogy,special.xlogy,.xlogy,!xlogy special.xlog1py"
    ),
    "twofold.ops.special.gamma": (
        "lgamma,special.gammaln,.lgamma,!lgamma digamma,special.digamma,special.psi,.digamma,!digamma "
        "special.zeta polygamma,special.polygamma mvlgamma,special.multigammaln,.mvlgamma,!mvlgamma "
        "igamma,special.gammainc,.igamma,!igamma igammac,special.gammaincc,.igammac,!igammac "
        ".polygamma,!polygamma"
    ),
    "twofold.ops.special.polynomials": (
        "special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v "
        "special.chebyshev_polynomial_w special.hermite_polynomial_h special.hermite_polynomial_he "
        "special.laguerre_polynomial_l special.legendre_polynomial_p special.shifted_chebyshev_polynomial_t "
        "special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v "
        "special.shifted_chebyshev_polynomial_w"
    ),
    "twofold.ops.spectral.fourier_functions": (
        "fft.fft fft.fft2 fft.fftn fft.ifft fft.ifft2 fft.ifftn fft.rfft fft.rfft2 fft.rfftn fft.irfft "
        "fft.irfft2 fft.irfftn fft.hfft fft.hfft2 fft.hfftn fft.ihfft fft.ihfft2 fft.ihfftn fft.fftfreq "
        "fft.rfftfreq fft.fftshift fft.ifftshift"
    ),
    "twofold.ops.spectral.short_time": "stft,.stft istft,.istft",
    "twofold.ops.spectral.signal_windows": (
        "signal.windows.general_cosine signal.windows.general_hamming signal.windows.hamming "
        "signal.windows.hann signal.windows.blackman signal.windows.nuttall signal.windows.bartlett "
        "signal.windows.cosine signal.windows.exponential signal.windows.gaussian signal.windows.kaiser"
    ),
}
LIBRARIES: dict[str, str] = {
    "NumPy's library of linear algebra, with one thread for each matrix": (
        "linalg.tensorinv linalg.tensorsolve linalg.solve_triangular triangular_solve linalg.cholesky_ex "
        "linalg.cholesky cholesky cholesky_solve cholesky_inverse linalg.svd linalg.svdvals svd linalg.eigh "
        "linalg.eigvalsh linalg.eig linalg.eigvals linalg.ldl_factor_ex linalg.ldl_factor linalg.ldl_solve "
        "linalg.matrix_norm linalg.norm norm linalg.matrix_exp matrix_power linalg.matrix_rank linalg.pinv "
        "pinverse linalg.cond linalg.lstsq linalg.lu_factor_ex linalg.lu_factor lu linalg.lu "
        "linalg.lu_solve lu_solve linalg.qr qr geqrf linalg.householder_product ormqr linalg.inv "
        "linalg.inv_ex linalg.solve linalg.solve_ex linalg.det linalg.slogdet logdet"
    ),
    "numpy.fft": (
        "fft.fft fft.fft2 fft.fftn fft.ifft fft.ifft2 fft.ifftn fft.rfft fft.rfft2 fft.rfftn fft.irfft "
        "fft.irfft2 fft.irfftn fft.hfft fft.hfft2 fft.hfftn fft.ihfft fft.ihfft2 fft.ihfftn stft istft"
    ),
}
MATH: dict[str, str] = {
    "twofold.compiler.lower.math.bessel": (
        "bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_j0 "
        "bessel_j1 bessel_y0 bessel_y1 airy_ai"
    ),
    "twofold.compiler.lower.math.error": "erf erfc erfcx ndtr normal_density log_ndtr ndtri erfinv",
    "twofold.compiler.lower.math.exponential": "exp expm1 sigmoid tanh exp2 sinh cosh",
    "twofold.compiler.lower.math.gamma": "lgamma digamma zeta",
    "twofold.compiler.lower.math.incomplete_gamma": "igamma igammac",
    "twofold.compiler.lower.math.inverse_trigonometric": "atan atan2 asin acos",
    "twofold.compiler.lower.math.logarithm": (
        "log log1p log2 log10 softplus logaddexp logaddexp2 asinh acosh atanh hypot pow"
    ),
    "twofold.compiler.lower.math.polynomials": (
        "chebyshev_t chebyshev_u chebyshev_v chebyshev_w hermite_h hermite_he laguerre_l legendre_p"
    ),
    "twofold.compiler.lower.math.trigonometric": "sin cos tan",
}
OPERATORS = (
    "matmul add subtract multiply divide floor_divide remainder pow negative abs equal not_equal less "
    "less_equal greater greater_equal bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift "
    "bitwise_right_shift"
)
CREATES = (
    "full zeros ones zeros_like empty_like ones_like full_like arange linspace logspace eye tril_indices "
    "triu_indices fft.fftfreq fft.rfftfreq signal.windows.general_cosine signal.windows.general_hamming "
    "signal.windows.hamming signal.windows.hann signal.windows.blackman signal.windows.nuttall "
    "signal.windows.bartlett signal.windows.cosine signal.windows.exponential signal.windows.gaussian "
    "signal.windows.kaiser"
)
