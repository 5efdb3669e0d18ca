"""Switches of the code generator of PyTorch's compiler, which is not used: they change nothing."""

from __future__ import annotations

from twofold._dynamo import Switches

config = Switches(
    f"{__name__}.config",
    allow_buffer_reuse=True,
    benchmark_kernel=False,
    conv_1x1_as_mm=False,
    coordinate_descent_check_all_directions=False,
    coordinate_descent_tuning=False,
    cpp_wrapper=False,
    debug=False,
    epilogue_fusion=True,
    force_fuse_int_mm_with_mul=False,
    freezing=False,
    fx_graph_cache=True,
    max_autotune=False,
    max_autotune_gemm=False,
    pattern_matcher=True,
    reorder_for_compute_comm_overlap=False,
    shape_padding=True,
    use_mixed_mm=False,
)
