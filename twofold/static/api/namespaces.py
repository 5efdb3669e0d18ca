"""Names that TensorFlow has in several modules: a table of them, and modules that look them up when they are used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from twofold.lazy import by_name

NAMESPACES = {
    "debugging": "assert_all_finite=verify_tensor_all_finite is_finite is_inf is_nan",
    "dtypes": """DType as_dtype as_string bfloat16 bool cast complex complex64 complex128 double float16 float32 float64
        half int16 int32 int64 int8 saturate_cast string uint16 uint32 uint64 uint8""",
    "graph_util": "import_graph_def",
    "initializers": """global_variables=global_variables_initializer local_variables=local_variables_initializer
        tables_initializer variables=variables_initializer""",
    "io": """FIFOQueue FixedLenFeature FixedLenSequenceFeature PaddingFIFOQueue PriorityQueue RandomShuffleQueue
        VarLenFeature QueueBase=FIFOQueue decode_base64 decode_bmp=image.decode_bmp decode_compressed decode_csv
        decode_gif=image.decode_gif decode_image=image.decode_image decode_jpeg=image.decode_jpeg
        decode_png=image.decode_png decode_raw encode_base64 encode_jpeg=image.encode_jpeg encode_png=image.encode_png
        gfile is_jpeg=image.is_jpeg match_filenames_once=train.match_filenames_once matching_files parse_example
        parse_single_example parse_single_sequence_example parse_tensor read_file serialize_tensor write_file
        TFRecordCompressionType=python_io.TFRecordCompressionType TFRecordOptions=python_io.TFRecordOptions
        TFRecordWriter=python_io.TFRecordWriter tf_record_iterator=python_io.tf_record_iterator
        write_graph=graph_util.write_graph""",
    "linalg": """band_part=matrix_band_part cross diag=matrix_diag diag_part=matrix_diag_part einsum eye global_norm
        l2_normalize=nn.l2_normalize tensor_diag=diag tensor_diag_part=diag_part tensordot
        transpose=matrix_transpose matrix_transpose lu=decompositions.lu
        lu_matrix_inverse=decompositions.lu_matrix_inverse lu_reconstruct=decompositions.lu_reconstruct
        lu_solve=decompositions.lu_solve matrix_rank=decompositions.matrix_rank
        normalize=decompositions.normalize tridiagonal_matmul=tridiagonal.tridiagonal_matmul
        tridiagonal_solve=tridiagonal.tridiagonal_solve pinv=decompositions.pinv
        LinearOperator=linear_operators.LinearOperator
        LinearOperatorAdjoint=composed_operators.LinearOperatorAdjoint
        LinearOperatorComposition=composed_operators.LinearOperatorComposition
        LinearOperatorDiag=linear_operators.LinearOperatorDiag
        LinearOperatorFullMatrix=linear_operators.LinearOperatorFullMatrix
        LinearOperatorIdentity=linear_operators.LinearOperatorIdentity
        LinearOperatorLowerTriangular=linear_operators.LinearOperatorLowerTriangular
        LinearOperatorScaledIdentity=linear_operators.LinearOperatorScaledIdentity""",
    "manip": "batch_to_space_nd gather_nd reshape reverse roll scatter_nd space_to_batch_nd tile",
    "math": """bincount confusion_matrix count_nonzero in_top_k=nn.in_top_k invert_permutation
        l2_normalize=nn.l2_normalize log_softmax=nn.log_softmax segment_max segment_mean segment_min segment_prod
        segment_sum softmax=nn.softmax softsign=nn.softsign top_k=nn.top_k unsorted_segment_max
        unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n
        unsorted_segment_sum zero_fraction=nn.zero_fraction
        bessel_i0=special.bessel_i0 bessel_i0e=special.bessel_i0e bessel_i1=special.bessel_i1
        bessel_i1e=special.bessel_i1e erfinv=special.erfinv is_non_decreasing=debugging.is_non_decreasing
        is_strictly_increasing=debugging.is_strictly_increasing multiply_no_nan=special.multiply_no_nan
        ndtri=special.ndtri nextafter=special.nextafter polyval=special.polyval
        reciprocal_no_nan=special.reciprocal_no_nan reduce_euclidean_norm=special.reduce_euclidean_norm
        xdivy=special.xdivy xlog1py=special.xlog1py xlogy=special.xlogy""",
    "queue": "FIFOQueue PaddingFIFOQueue PriorityQueue RandomShuffleQueue QueueBase=FIFOQueue",
    "random": """all_candidate_sampler=nn.all_candidate_sampler
        fixed_unigram_candidate_sampler=nn.fixed_unigram_candidate_sampler
        learned_unigram_candidate_sampler=nn.learned_unigram_candidate_sampler
        log_uniform_candidate_sampler=nn.log_uniform_candidate_sampler
        uniform_candidate_sampler=nn.uniform_candidate_sampler""",
    "sparse": """matmul=sparse_tensor_dense_matmul sparse_dense_matmul=sparse_tensor_dense_matmul
        placeholder=sparse_placeholder reduce_sum=sparse_reduce_sum reorder=sparse_reorder
        reshape=sparse_reshape retain=sparse_retain segment_mean=sparse_segment_mean
        segment_sqrt_n=sparse_segment_sqrt_n segment_sum=sparse_segment_sum
        concat=sparse_concat fill_empty_rows=sparse_fill_empty_rows maximum=sparse_maximum
        merge=sparse_merge minimum=sparse_minimum reduce_max=sparse_reduce_max reset_shape=sparse_reset_shape
        slice=sparse_slice split=sparse_split to_indicator=sparse_to_indicator
        softmax=sparse_softmax add=sparse_add to_dense=sparse_tensor_to_dense transpose=sparse_transpose""",
    "spectral": "fft fft2d fft3d ifft ifft2d ifft3d irfft rfft dct=signal.dct idct=signal.idct",
    "signal": """fft fft2d fft3d ifft ifft2d ifft3d irfft rfft rfft2d=spectral.rfft2d rfft3d=spectral.rfft3d
        irfft2d=spectral.irfft2d irfft3d=spectral.irfft3d""",
}
"""By module the names in it: each that of a function of ``tf``, or followed by what it is there."""


def look_up(
    module: str, rows: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module, which finds its row of the table, or has ``rows`` of its own.

    These are the names that it has from other modules, by their paths inside of ``twofold.static``; that of
    ``twofold.static`` itself is empty.

    >>> import twofold.static as tf
    >>> tf.manip.tile is tf.tile and tf.linalg.diag is tf.matrix_diag
    True
    """
    if rows is None:
        row = (entry.partition("=") for entry in NAMESPACES[module.rpartition(".")[2]].split())
        names = {name: there or name for name, _, there in row}
    else:
        names = {name: f"{path}.{name}".lstrip(".") for name, path in by_name(rows).items()}

    def find(name: str) -> Any:
        if name == "__all__":  # what ``from module import *`` takes
            return [one for one in dir(sys.modules[module]) if not one.startswith("_")]
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        found: Any = sys.modules["twofold.static"]
        for part in names[name].split("."):
            inner = f"{getattr(found, '__name__', '')}.{part}"
            found = getattr(found, part) if hasattr(found, part) else import_module(inner)
        return found

    return find, lambda: sorted({*vars(sys.modules[module]), *names})
