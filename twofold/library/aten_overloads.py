"""Overloads of PyTorch's operators; written by tools/aten.py.

In parentheses stand the names of the arguments, where functions here are called by these.
"""

OVERLOADS = """
__and__: Scalar Tensor; __iand__: Scalar Tensor; __ilshift__: Scalar Tensor; __ior__: Scalar Tensor; __irshift__:
Scalar Tensor; __ixor__: Scalar Tensor; __lshift__: Scalar Scalar_out Tensor Tensor_out; __or__: Scalar Tensor;
__rshift__: Scalar Scalar_out Tensor Tensor_out; __xor__: Scalar Tensor; _assert_async: default msg; _chunk_cat:
default out; _foreach_abs: default out; _foreach_abs_: default; _foreach_acos: default out; _foreach_acos_: default;
_foreach_add: List List_out Scalar ScalarList ScalarList_out Scalar_out Tensor Tensor_out; _foreach_add_: List Scalar
ScalarList Tensor; _foreach_addcdiv: Scalar ScalarList ScalarList_out Scalar_out Tensor Tensor_out; _foreach_addcdiv_:
Scalar ScalarList Tensor; _foreach_addcmul: Scalar ScalarList ScalarList_out Scalar_out Tensor Tensor_out;
_foreach_addcmul_: Scalar ScalarList Tensor; _foreach_asin: default out; _foreach_asin_: default; _foreach_atan:
default out; _foreach_atan_: default; _foreach_ceil: default out; _foreach_ceil_: default; _foreach_clamp_max: List
List_out Scalar ScalarList ScalarList_out Scalar_out; _foreach_clamp_max_: List Scalar ScalarList; _foreach_clamp_min:
List List_out Scalar ScalarList ScalarList_out Scalar_out; _foreach_clamp_min_: List Scalar ScalarList;
_foreach_clone: default out; _foreach_copy_: default; _foreach_cos: default out; _foreach_cos_: default;
_foreach_cosh: default out; _foreach_cosh_: default; _foreach_div: List List_out Scalar ScalarList ScalarList_out
Scalar_out Tensor Tensor_out; _foreach_div_: List Scalar ScalarList Tensor; _foreach_erf: default out; _foreach_erf_:
default; _foreach_erfc: default out; _foreach_erfc_: default; _foreach_exp: default out; _foreach_exp_: default;
_foreach_expm1: default out; _foreach_expm1_: default; _foreach_floor: default out; _foreach_floor_: default;
_foreach_frac: default out; _foreach_frac_: default; _foreach_lerp: List List_out Scalar ScalarList ScalarList_out
Scalar_out; _foreach_lerp_: List Scalar ScalarList; _foreach_lgamma: default out; _foreach_lgamma_: default;
_foreach_log: default out; _foreach_log10: default out; _foreach_log10_: default; _foreach_log1p: default out;
_foreach_log1p_: default; _foreach_log2: default out; _foreach_log2_: default; _foreach_log_: default; _foreach_max:
default out; _foreach_maximum: List List_out Scalar ScalarList ScalarList_out Scalar_out; _foreach_maximum_: List
Scalar ScalarList; _foreach_minimum: List List_out Scalar ScalarList ScalarList_out Scalar_out; _foreach_minimum_:
List Scalar ScalarList; _foreach_mm: default; _foreach_mul: List List_out Scalar ScalarList ScalarList_out Scalar_out
Tensor Tensor_out; _foreach_mul_: List Scalar ScalarList Tensor; _foreach_neg: default out; _foreach_neg_: default;
_foreach_norm: Scalar Scalar_out; _foreach_pow: List List_out Scalar ScalarAndTensor ScalarList ScalarList_out
Scalar_out; _foreach_pow_: List Scalar ScalarList; _foreach_reciprocal: default out; _foreach_reciprocal_: default;
_foreach_round: default out; _foreach_round_: default; _foreach_rsqrt: default out; _foreach_rsqrt_: default;
_foreach_sigmoid: default out; _foreach_sigmoid_: default; _foreach_sign: default out; _foreach_sign_: default;
_foreach_sin: default out; _foreach_sin_: default; _foreach_sinh: default out; _foreach_sinh_: default; _foreach_sqrt:
default out; _foreach_sqrt_: default; _foreach_sub: List List_out Scalar ScalarList ScalarList_out Scalar_out;
_foreach_sub_: List Scalar ScalarList; _foreach_tan: default out; _foreach_tan_: default; _foreach_tanh: default out;
_foreach_tanh_: default; _foreach_trunc: default out; _foreach_trunc_: default; _foreach_zero_: default;
_native_batch_norm_legit: default no_stats no_stats_out out; _softmax_backward_data: default out;
_unsafe_masked_index: default; _unsafe_masked_index_put_accumulate: default; _values: default; _weight_norm: default;
abs: default out; abs_: default; absolute: default out; absolute_: default; acos: default out; acos_: default; acosh:
default out; acosh_: default; adaptive_avg_pool1d: default out; adaptive_avg_pool2d: default out (input output_size);
adaptive_avg_pool3d: default out (input output_size); adaptive_max_pool1d: default; add: Scalar Scalar_out Tensor out;
add_: Scalar Tensor; addbmm: default out; addbmm_: default; addcdiv: default out; addcdiv_: default; addcmul: default
out; addcmul_: default; addmm: default dtype dtype_out out; addmm_: default; addmv: default out; addmv_: default;
addr: default out; addr_: default; adjoint: default; affine_grid_generator: default out; alias: default (input);
alias_copy: default out; all: default all_out dim dims dims_out out; allclose: default; alpha_dropout: default; amax:
default out; amin: default out; aminmax: default out; angle: default out; any: default all_out dim dims dims_out out;
arange: default out start start_out start_step; arccos: default out; arccos_: default; arccosh: default out; arccosh_:
default; arcsin: default out; arcsin_: default; arcsinh: default out; arcsinh_: default; arctan: default out; arctan2:
default out; arctan2_: default; arctan_: default; arctanh: default out; arctanh_: default; argmax: default out;
argmin: default out; argsort: default stable stable_out; argwhere: default; as_strided: default; as_strided_: default;
as_strided_copy: default out; as_strided_scatter: default out; asin: default out; asin_: default; asinh: default out;
asinh_: default; atan: default out; atan2: default out; atan2_: default; atan_: default; atanh: default out; atanh_:
default; atleast_1d: default Sequence (*); atleast_2d: default Sequence (*); atleast_3d: default Sequence (*);
avg_pool1d: default out; avg_pool2d: default out; avg_pool3d: default out; baddbmm: default dtype dtype_out out;
baddbmm_: default; bartlett_window: default out periodic periodic_out; batch_norm: default; bernoulli: default Tensor
Tensor_out float_out out p; bernoulli_: Tensor float; bilinear: default; binary_cross_entropy: default out (input
target weight reduction); binary_cross_entropy_with_logits: default out (input target weight pos_weight reduction);
bincount: default out; binomial: default out; bitwise_and: Scalar Scalar_Tensor Scalar_Tensor_out Scalar_out Tensor
Tensor_out; bitwise_and_: Scalar Tensor; bitwise_left_shift: Scalar_Tensor Scalar_Tensor_out Tensor Tensor_Scalar
Tensor_Scalar_out Tensor_out; bitwise_left_shift_: Tensor Tensor_Scalar; bitwise_not: default out; bitwise_not_:
default; bitwise_or: Scalar Scalar_Tensor Scalar_Tensor_out Scalar_out Tensor Tensor_out; bitwise_or_: Scalar Tensor;
bitwise_right_shift: Scalar_Tensor Scalar_Tensor_out Tensor Tensor_Scalar Tensor_Scalar_out Tensor_out;
bitwise_right_shift_: Tensor Tensor_Scalar; bitwise_xor: Scalar Scalar_Tensor Scalar_Tensor_out Scalar_out Tensor
Tensor_out; bitwise_xor_: Scalar Tensor; blackman_window: default out periodic periodic_out; block_diag: default out
(*); bmm: default dtype dtype_out out; broadcast_tensors: default (*); broadcast_to: default; bucketize: Scalar
Scalar_out Tensor Tensor_out; can_cast: default; cartesian_prod: default (*); cat: default out; cauchy_: default;
cdist: default (x1 x2 p compute_mode); ceil: default out; ceil_: default; celu: default out; celu_: default;
chain_matmul: default out (*); channel_shuffle: default out; cholesky: default out; cholesky_inverse: default out;
cholesky_solve: default out; chunk: default; clamp: default Tensor Tensor_out out; clamp_: default Tensor; clamp_max:
default Tensor Tensor_out out; clamp_max_: default Tensor; clamp_min: default Tensor Tensor_out out; clamp_min_:
default Tensor; clip: default Tensor Tensor_out out; clip_: default Tensor; clone: default out; col2im: default out
(input output_size kernel_size dilation padding stride); column_stack: default out; combinations: default; complex:
default out; concat: default out; concatenate: default out; conj: default; conj_physical: default out; conj_physical_:
default; constant_pad_nd: default out; contiguous: default; conv1d: default padding; conv2d: default padding; conv3d:
default padding; conv_tbc: default out; conv_transpose1d: default; conv_transpose2d: input; conv_transpose3d: input;
copy_: default; copysign: Scalar Scalar_out Tensor out; copysign_: Scalar Tensor; corrcoef: default; cos: default out;
cos_: default; cosh: default out; cosh_: default; cosine_embedding_loss: default (input1 input2 target margin
reduction); cosine_similarity: default; count_nonzero: default dim_IntList dim_IntList_out out; cov: default; cross:
default out; ctc_loss: IntList Tensor (log_probs targets input_lengths target_lengths blank reduction zero_infinity);
cummax: default out; cummin: default out; cumprod: default out; cumprod_: default; cumsum: default out; cumsum_:
default; cumulative_trapezoid: dx x; deg2rad: default out; deg2rad_: default; det: default; detach: default; detach_:
default; diag: default out; diag_embed: default out; diagflat: default; diagonal: default; diagonal_copy: default out;
diagonal_scatter: default out; diff: default out; digamma: default out; digamma_: default; dim: default; dist: default
out; div: Scalar Scalar_mode Scalar_mode_out Scalar_out Tensor Tensor_mode out out_mode; div_: Scalar Scalar_mode
Tensor Tensor_mode; divide: Scalar Scalar_mode Tensor Tensor_mode out out_mode; divide_: Scalar Scalar_mode Tensor
Tensor_mode; dot: default out; dropout: default; dsplit: array int; dstack: default out; elu: default out (input alpha
scale input_scale); elu_: default; embedding: default out; embedding_bag: default padding_idx; empty: memory_format
out; empty_like: default out; empty_permuted: default out; empty_strided: default out; eq: Scalar Scalar_out Tensor
Tensor_out; eq_: Scalar Tensor; equal: default; erf: default out; erf_: default; erfc: default out; erfc_: default;
erfinv: default out; erfinv_: default; exp: default out; exp2: default out; exp2_: default; exp_: default; expand:
default; expand_as: default; expand_copy: default out; expm1: default out; expm1_: default; exponential_: default;
eye: default m m_out out; feature_alpha_dropout: default; fft_fft: default out; fft_fft2: default out; fft_fftfreq:
default out; fft_fftn: default out; fft_fftshift: default; fft_hfft: default out; fft_hfft2: default out; fft_hfftn:
default out; fft_ifft: default out; fft_ifft2: default out; fft_ifftn: default out; fft_ifftshift: default; fft_ihfft:
default out; fft_ihfft2: default out; fft_ihfftn: default out; fft_irfft: default out; fft_irfft2: default out;
fft_irfftn: default out; fft_rfft: default out; fft_rfft2: default out; fft_rfftfreq: default out; fft_rfftn: default
out; fill: Scalar Scalar_out Tensor Tensor_out; fill_: Scalar Tensor; fill_diagonal_: default; fix: default out; fix_:
default; flatten: using_ints; flip: default out; fliplr: default; flipud: default; float_power: Scalar Scalar_out
Tensor_Scalar Tensor_Scalar_out Tensor_Tensor Tensor_Tensor_out; float_power_: Scalar Tensor; floor: default out;
floor_: default; floor_divide: default Scalar Scalar_out out; floor_divide_: Scalar Tensor; fmax: default out; fmin:
default out; fmod: Scalar Scalar_out Tensor Tensor_out; fmod_: Scalar Tensor; frac: default out; frac_: default;
frexp: Tensor Tensor_out; full: default out; full_like: default out; gather: default out; gcd: default out; gcd_:
default; ge: Scalar Scalar_out Tensor Tensor_out; ge_: Scalar Tensor; gelu: default out; gelu_: default (input);
geometric_: default; geqrf: default a; ger: default out; get_device: default; glu: default out (input dim); gradient:
array scalararray scalarint scalarrayarray scalarrayint tensorarray tensorarrayint; greater: Scalar Scalar_out Tensor
Tensor_out; greater_: Scalar Tensor; greater_equal: Scalar Scalar_out Tensor Tensor_out; greater_equal_: Scalar
Tensor; grid_sampler: default; grid_sampler_2d: default out; grid_sampler_3d: default out; group_norm: default; gru:
data input; gru_cell: default; gt: Scalar Scalar_out Tensor Tensor_out; gt_: Scalar Tensor; hamming_window: default
out periodic periodic_alpha periodic_alpha_beta periodic_alpha_beta_out periodic_alpha_out periodic_out; hann_window:
default out periodic periodic_out; hardshrink: default out; hardsigmoid: default out (input); hardsigmoid_: default
(input); hardswish: default out (input); hardswish_: default (input); hardtanh: default out (input min_val max_val);
hardtanh_: default; hash_tensor: default out; heaviside: default out; heaviside_: default; hinge_embedding_loss:
default (input target margin reduction); histc: default out; histogram: bin_ct bin_ct_out bins_tensor bins_tensor_out;
histogramdd: default TensorList_bins int_bins; hsplit: array int; hstack: default out; huber_loss: default out (input
target reduction delta); hypot: default out; hypot_: default; i0: default out; i0_: default; igamma: default out;
igamma_: default; igammac: default out; igammac_: default; im2col: default out (input kernel_size dilation padding
stride); imag: default; index_add: default out; index_add_: default; index_copy: default out; index_copy_: default;
index_fill: int_Scalar int_Scalar_out int_Tensor int_Tensor_out; index_fill_: int_Scalar int_Tensor; index_put:
default out; index_put_: default; index_reduce: default out; index_reduce_: default; index_select: default out; inner:
default out; instance_norm: default; inverse: default out; is_complex: default; is_conj: default; is_contiguous:
default memory_format; is_distributed: default; is_floating_point: default; is_inference: default; is_neg: default;
is_nonzero: default; is_pinned: default; is_same_size: default; is_set_to: default; is_signed: default; isclose:
default; isfinite: default; isin: Scalar_Tensor Scalar_Tensor_out Tensor_Scalar Tensor_Scalar_out Tensor_Tensor
Tensor_Tensor_out; isinf: default out; isnan: default out; isneginf: default out; isposinf: default out; isreal:
default; istft: default; item: default; kaiser_window: default beta beta_out out periodic periodic_out; kl_div:
default (input target reduction); kron: default out; kthvalue: default values; l1_loss: default (input target
reduction); layer_norm: default; lcm: default out; lcm_: default; ldexp: Tensor out; ldexp_: default; le: Scalar
Scalar_out Tensor Tensor_out; le_: Scalar Tensor; leaky_relu: default out (input negative_slope); leaky_relu_:
default; lerp: Scalar Scalar_out Tensor Tensor_out; lerp_: Scalar Tensor; less: Scalar Scalar_out Tensor Tensor_out;
less_: Scalar Tensor; less_equal: Scalar Scalar_out Tensor Tensor_out; less_equal_: Scalar Tensor; lgamma: default
out; lgamma_: default; linalg_cholesky: default out; linalg_cholesky_ex: default L; linalg_cond: default out p_str
p_str_out; linalg_cross: default out; linalg_det: default out; linalg_diagonal: default; linalg_eig: default out;
linalg_eigh: default eigvals; linalg_eigvals: default out; linalg_eigvalsh: default out; linalg_householder_product:
default out; linalg_inv: default out; linalg_inv_ex: default inverse; linalg_ldl_factor: default out;
linalg_ldl_factor_ex: default out; linalg_ldl_solve: default out; linalg_lstsq: default out; linalg_lu: default out;
linalg_lu_factor: default out; linalg_lu_factor_ex: default out; linalg_lu_solve: default out; linalg_matmul: default
out; linalg_matrix_exp: default out; linalg_matrix_norm: default out str_ord str_ord_out; linalg_matrix_power: default
out; linalg_matrix_rank: default atol_rtol_float atol_rtol_float_out atol_rtol_tensor atol_rtol_tensor_out out
out_tol_tensor tol_tensor; linalg_multi_dot: default out; linalg_norm: default ord_str ord_str_out out; linalg_pinv:
default atol_rtol_float atol_rtol_float_out atol_rtol_tensor atol_rtol_tensor_out out out_rcond_tensor rcond_tensor;
linalg_qr: default out; linalg_slogdet: default out; linalg_solve: default out; linalg_solve_ex: default out;
linalg_solve_triangular: default out; linalg_svd: default U; linalg_svdvals: default out; linalg_tensorinv: default
out; linalg_tensorsolve: default out; linalg_vander: default; linalg_vecdot: default out; linalg_vector_norm: default
out; linear: default out; linspace: default Scalar_Tensor Scalar_Tensor_out Tensor_Scalar Tensor_Scalar_out
Tensor_Tensor Tensor_Tensor_out out; log: default out; log10: default out; log10_: default; log1p: default out;
log1p_: default; log2: default out; log2_: default; log_: default; log_normal_: default; log_sigmoid: default out
(input); log_softmax: int int_out; logaddexp: default out; logaddexp2: default out; logcumsumexp: default out; logdet:
default; logical_and: default out; logical_and_: default; logical_not: default out; logical_not_: default; logical_or:
default out; logical_or_: default; logical_xor: default out; logical_xor_: default; logit: default out; logit_:
default; logspace: default Scalar_Tensor Scalar_Tensor_out Tensor_Scalar Tensor_Scalar_out Tensor_Tensor
Tensor_Tensor_out out; logsumexp: default out; lstm: data input; lstm_cell: default; lt: Scalar Scalar_out Tensor
Tensor_out; lt_: Scalar Tensor; lu_solve: default out; lu_unpack: default out; margin_ranking_loss: default (input1
input2 target margin reduction); masked_fill: Scalar Scalar_out Tensor Tensor_out; masked_fill_: Scalar Tensor;
masked_scatter: default out; masked_scatter_: default; masked_select: default out; matmul: default out; matrix_exp:
default; matrix_power: default out; max: default dim dim_max other out unary_out; max_pool1d: default;
max_pool1d_with_indices: default; max_pool2d: default; max_pool2d_with_indices: default out (input kernel_size stride
padding dilation ceil_mode); max_pool2d_with_indices_backward: default grad_input (grad_output self kernel_size stride
padding dilation ceil_mode indices); max_pool3d: default; max_pool3d_with_indices: default out (input kernel_size
stride padding dilation ceil_mode); max_unpool2d: default out (input indices output_size); max_unpool3d: default out
(input indices output_size stride padding); maximum: default out; mean: default dim dtype_out out; median: default dim
dim_values out; meshgrid: default indexing (*); min: default dim dim_min other out unary_out; minimum: default out;
mish: default out (input); mish_: default (input); mm: default dtype dtype_out out; mode: default values; moveaxis:
int intlist; movedim: int intlist; mse_loss: default out (input target reduction); msort: default out; mul: Scalar
Scalar_out Tensor out; mul_: Scalar Tensor; multi_margin_loss: default out (input target p margin weight reduction);
multilabel_margin_loss: default out (input target reduction); multinomial: default out; multiply: Scalar Tensor out;
multiply_: Scalar Tensor; mv: default out; mvlgamma: default out; mvlgamma_: default; nan_to_num: default out;
nan_to_num_: default; nanmean: default out; nanmedian: default dim dim_values out; nanquantile: default out scalar
scalar_out; nansum: default out; narrow: default Tensor; narrow_copy: default out; native_batch_norm: default out;
native_channel_shuffle: default; native_group_norm: default out; native_layer_norm: default out; ne: Scalar Scalar_out
Tensor Tensor_out; ne_: Scalar Tensor; neg: default out; neg_: default; negative: default out; negative_: default;
new_empty: default out; new_empty_strided: default out; new_full: default out; new_ones: default out; new_zeros:
default out; nextafter: default out; nextafter_: default; nll_loss: default out (input target weight reduction
ignore_index); nonzero: default out; nonzero_static: default out; norm: Scalar ScalarOpt_dim ScalarOpt_dim_dtype
ScalarOpt_dtype ScalarOpt_dtype_out Scalar_out dtype_out out (input p dim keepdim); norm_except_dim: default; normal:
Tensor_Tensor Tensor_Tensor_out Tensor_float Tensor_float_out float_Tensor float_Tensor_out float_float
float_float_out out; normal_: default; not_equal: Scalar Scalar_out Tensor Tensor_out; not_equal_: Scalar Tensor;
numel: default; one_hot: default; ones: default out; ones_like: default out; orgqr: default out; ormqr: default out;
outer: default out; pad: default (input pad mode value); pairwise_distance: default; pdist: default; permute: default;
permute_copy: default out; pin_memory: default; pinverse: default; pixel_shuffle: default out; pixel_unshuffle:
default out; poisson: default out; poisson_nll_loss: default (input target log_input full eps reduction); polar:
default out; polygamma: default out; polygamma_: default; positive: default; pow: Scalar Scalar_out Tensor_Scalar
Tensor_Scalar_out Tensor_Tensor Tensor_Tensor_out; pow_: Scalar Tensor; prelu: default; prod: default dim_int int_out
out; promote_types: default; put: default out; put_: default; qr: default Q; quantile: default out scalar scalar_out;
rad2deg: default out; rad2deg_: default; rand: default generator generator_out out; rand_like: default generator
generator_out out; randint: default generator generator_out low low_generator low_generator_out low_out out;
randint_like: default Tensor Tensor_generator Tensor_generator_out Tensor_out generator generator_out low_dtype
low_dtype_out low_generator_dtype low_generator_dtype_out out; randn: default generator generator_out out; randn_like:
default generator generator_out out; random_: default from to; randperm: default generator generator_out out; range:
default out out_ step; ravel: default; real: default; reciprocal: default out; reciprocal_: default; relu: default
out; relu6: default (input); relu6_: default (input); relu_: default; remainder: Scalar Scalar_Tensor
Scalar_Tensor_out Scalar_out Tensor Tensor_out; remainder_: Scalar Tensor; renorm: default out; renorm_: default;
repeat: default out; repeat_interleave: Tensor Tensor_out self_Tensor self_int; requires_grad_: default; reshape:
default; reshape_as: default; resize_: default; resize_as_: default; resolve_conj: default; resolve_neg: default;
result_type: Scalar Scalar_Scalar Scalar_Tensor Tensor; retain_grad: default; rms_norm: default; rnn_relu: data input;
rnn_relu_cell: default; rnn_tanh: data input; rnn_tanh_cell: default; roll: default out; rot90: default out; round:
default decimals decimals_out out; round_: default decimals; row_stack: default out; rrelu: default; rrelu_: default;
rsqrt: default out; rsqrt_: default; rsub: Scalar Scalar_out Tensor Tensor_out; scalar_tensor: default out;
scaled_dot_product_attention: default; scatter: reduce reduce_out src src_out value value_out value_reduce
value_reduce_out; scatter_: reduce src value value_reduce; scatter_add: default out; scatter_add_: default;
scatter_reduce: two two_out; scatter_reduce_: two; searchsorted: Scalar Scalar_out Tensor Tensor_out; segment_reduce:
default out; select: int; select_copy: int int_out; select_scatter: default out; selu: default; selu_: default; set_:
default source_Storage source_Storage_storage_offset source_Tensor source_Tensor_storage_offset; sgn: default out;
sgn_: default; sigmoid: default out; sigmoid_: default; sign: default out; sign_: default; signbit: default out; silu:
default out (input); silu_: default (input); sin: default out; sin_: default; sinc: default out; sinc_: default; sinh:
default out; sinh_: default; slice_scatter: default out; slogdet: default out; smooth_l1_loss: default out (input
target reduction beta); soft_margin_loss: default out (input target reduction); softmax: int int_out; softplus:
default out; softshrink: default out; sort: default stable values values_stable; sparse_coo_tensor: indices
indices_size size size_out; sparse_mask: default out; special_airy_ai: default out; special_bessel_j0: default out;
special_bessel_j1: default out; special_bessel_y0: default out; special_bessel_y1: default out;
special_chebyshev_polynomial_t: default n_scalar n_scalar_out out x_scalar x_scalar_out;
special_chebyshev_polynomial_u: default n_scalar n_scalar_out out x_scalar x_scalar_out;
special_chebyshev_polynomial_v: default n_scalar n_scalar_out out x_scalar x_scalar_out;
special_chebyshev_polynomial_w: default n_scalar n_scalar_out out x_scalar x_scalar_out; special_digamma: default out;
special_entr: default out; special_erf: default out; special_erfc: default out; special_erfcx: default out;
special_erfinv: default out; special_exp2: default out; special_expit: default out; special_expm1: default out;
special_gammainc: default out; special_gammaincc: default out; special_gammaln: default out;
special_hermite_polynomial_h: default n_scalar n_scalar_out out x_scalar x_scalar_out; special_hermite_polynomial_he:
default n_scalar n_scalar_out out x_scalar x_scalar_out; special_i0: default out; special_i0e: default out;
special_i1: default out; special_i1e: default out; special_laguerre_polynomial_l: default n_scalar n_scalar_out out
x_scalar x_scalar_out; special_legendre_polynomial_p: default n_scalar n_scalar_out out x_scalar x_scalar_out;
special_log1p: default out; special_log_ndtr: default out; special_log_softmax: default; special_logit: default out;
special_logsumexp: default out; special_modified_bessel_i0: default out; special_modified_bessel_i1: default out;
special_modified_bessel_k0: default out; special_modified_bessel_k1: default out; special_multigammaln: default out;
special_ndtr: default out; special_ndtri: default out; special_polygamma: default out; special_psi: default out;
special_round: default out; special_scaled_modified_bessel_k0: default out; special_scaled_modified_bessel_k1: default
out; special_shifted_chebyshev_polynomial_t: default n_scalar n_scalar_out out x_scalar x_scalar_out;
special_shifted_chebyshev_polynomial_u: default n_scalar n_scalar_out out x_scalar x_scalar_out;
special_shifted_chebyshev_polynomial_v: default n_scalar n_scalar_out out x_scalar x_scalar_out;
special_shifted_chebyshev_polynomial_w: default n_scalar n_scalar_out out x_scalar x_scalar_out; special_sinc: default
out; special_softmax: default; special_spherical_bessel_j0: default out; special_xlog1py: default other_scalar
other_scalar_out out self_scalar self_scalar_out; special_xlogy: default other_scalar other_scalar_out out self_scalar
self_scalar_out; special_zeta: default other_scalar other_scalar_out out self_scalar self_scalar_out; split: Tensor
sizes (tensor split_size_or_sections dim); split_copy: Tensor Tensor_out; split_with_sizes: default;
split_with_sizes_copy: default out; sqrt: default out; sqrt_: default; square: default out; square_: default; squeeze:
default dim dims; squeeze_: default dim dims; squeeze_copy: default dim dim_out dims dims_out out; stack: default out;
std: default correction correction_out dim out; std_mean: default correction correction_out dim; storage_offset:
default; stride: int; sub: Scalar Scalar_out Tensor out; sub_: Scalar Tensor; subtract: Scalar Tensor out; subtract_:
Scalar Tensor; sum: default IntList_out dim_IntList out; sum_to_size: default; svd: default U; swapaxes: default;
swapaxes_: default; swapdims: default; swapdims_: default; t: default; t_: default; t_copy: default out; take: default
out; take_along_dim: default out; tan: default out; tan_: default; tanh: default out; tanh_: default; tensor_split:
indices sections tensor_indices_or_sections; threshold: default out; threshold_: default; tile: default; to: device
dtype dtype_layout other; to_dense: default; to_sparse: default sparse_dim; topk: default values; trace: default out;
transpose: int; transpose_: default; transpose_copy: int int_out; trapezoid: dx x; trapz: dx x; triangular_solve:
default X; tril: default out; tril_: default; tril_indices: default out; triplet_margin_loss: default (anchor positive
negative margin p eps swap reduction); triu: default out; triu_: default; triu_indices: default out; true_divide:
Scalar Tensor out; true_divide_: Scalar Tensor; trunc: default out; trunc_: default; type_as: default; unbind: int;
unbind_copy: int int_out; unflatten: int; unfold: default; unfold_copy: default out; uniform_: default; unsafe_chunk:
default; unsafe_split: Tensor Tensor_out; unsafe_split_with_sizes: default out; unsqueeze: default; unsqueeze_:
default; unsqueeze_copy: default out; vander: default; var: default correction correction_out dim out; var_mean:
default correction correction_out dim; vdot: default out; view: default dtype; view_as: default; view_as_complex:
default; view_as_real: default; view_copy: default dtype dtype_out out; vsplit: array int; vstack: default out; where:
default Scalar ScalarOther ScalarSelf self self_out; xlogy: OutScalar_Other OutScalar_Self OutTensor Scalar_Other
Scalar_Self Tensor; xlogy_: Scalar_Other Tensor; zero_: default; zeros: default out; zeros_like: default out
"""
