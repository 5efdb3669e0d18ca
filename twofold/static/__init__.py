"""Define-then-run with TensorFlow 1's names: ``import twofold.static as tf``.

A program declares a graph of named operations, then runs parts of it in a session. The operations, their
gradients and the compiled code are those of define-by-run, so both ways return the same bits.

Where this differs from TensorFlow 1:

- A function that ``py_func`` calls cannot add to the graph that runs; other threads can, as in TensorFlow.
- The order of reads and updates of variables, which TensorFlow leaves open, is fixed: see ``Session.run``.
- ``tensor / tensor`` of integers is float32; ``tf.truediv`` gives float64 as in TensorFlow.
- Strings are elements of ``tf.string`` tensors, which Python computes with (see ``strings``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twofold.dtypes import (
    DType,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from twofold.dtypes import bool_ as bool
from twofold.errors import GraphError
from twofold.lazy import attach as _attach
from twofold.static.api.op_functions import as_dtype, constant, convert_to_tensor
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import example as _example
from twofold.static.graph.graph import (
    Graph,
    Operation,
    Tensor,
    get_default_graph,
    get_default_session,
    reset_default_graph,
)
from twofold.static.graph.tensor_shape import Dimension, TensorShape
from twofold.static.session import tensor_methods as _tensor_methods
from twofold.static.session.session import InteractiveSession, Session
from twofold.tracebacks import guard_namespace as _guard_namespace
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.static import (
        bitwise,
        compat,
        config,
        contrib,
        data,
        debugging,
        distributions,
        dtypes,
        errors,
        estimator,
        examples,
        feature_column,
        graph_util,
        image,
        initializers,
        io,
        keras,
        layers,
        linalg,
        lookup,
        losses,
        manip,
        math,
        metrics,
        nest,
        nn,
        python_io,
        quantization,
        queue,
        random,
        resource_loader,
        saved_model,
        sequence,
        sets,
        signal,
        sparse,
        spectral,
        strings,
        summary,
        train,
        version,
    )
    from twofold.static.api.op_functions import is_tensor_like as is_tensor
    from twofold.static.arrays.creation import *  # type: ignore[no-redef]  # noqa: F403
    from twofold.static.arrays.reordering import *  # noqa: F403
    from twofold.static.arrays.segments import *  # noqa: F403
    from twofold.static.arrays.selection import *  # noqa: F403
    from twofold.static.arrays.shape_ops import *  # type: ignore[no-redef]  # noqa: F403
    from twofold.static.arrays.shape_ops import concat as concat_v2
    from twofold.static.autodiff.clipping import *  # noqa: F403
    from twofold.static.autodiff.gradients import AggregationMethod, UnconnectedGradients, gradients, hessians
    from twofold.static.autodiff.indexed_slices import IndexedSlices, IndexedSlicesValue
    from twofold.static.contrib import tpu
    from twofold.static.control_flow.conditional import case, cond, switch_case
    from twofold.static.control_flow.dependencies import group, no_op
    from twofold.static.control_flow.dependencies import tuple_ as tuple
    from twofold.static.control_flow.map_scan import foldl, foldr, map_fn, scan
    from twofold.static.control_flow.tensor_array import TensorArray
    from twofold.static.control_flow.while_loop import while_loop
    from twofold.static.data.epochs import PriorityQueue, count_up_to
    from twofold.static.data.example_parsing import (
        FixedLenFeature,
        FixedLenSequenceFeature,
        VarLenFeature,
        parse_example,
        parse_single_example,
    )
    from twofold.static.data.queues import FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue
    from twofold.static.data.queues import FIFOQueue as QueueBase
    from twofold.static.data.readers import (
        FixedLengthRecordReader,
        IdentityReader,
        TextLineReader,
        TFRecordReader,
        WholeFileReader,
        decode_csv,
    )
    from twofold.static.data.readers import Reader as ReaderBase
    from twofold.static.data.sequence_parsing import parse_single_sequence_example
    from twofold.static.debugging import *  # noqa: F403
    from twofold.static.eager.gradient_tape import *  # noqa: F403
    from twofold.static.errors import OpError
    from twofold.static.functions.custom_gradients import (
        NoGradient,
        NotDifferentiable,
        RegisterGradient,
        custom_gradient,
        grad_pass_through,
        recompute_grad,
    )
    from twofold.static.functions.host_calls import Assert, Print, numpy_function, py_func, py_function
    from twofold.static.functions.printing import print_ as print
    from twofold.static.graph.collections import (
        add_to_collection,
        add_to_collections,
        get_collection,
        get_collection_ref,
    )
    from twofold.static.graph.devices import DeviceSpec
    from twofold.static.graph.scopes import *  # noqa: F403
    from twofold.static.graph.tensor_shape import dimension_at_index, dimension_value
    from twofold.static.graph_def.importer import import_graph_def
    from twofold.static.graph_def.meta_graph import MetaGraphDef
    from twofold.static.graph_util import make_ndarray, make_tensor_proto
    from twofold.static.image.transformations import extract_image_patches, random_crop
    from twofold.static.initializers import (
        constant_initializer,
        glorot_normal_initializer,
        glorot_uniform_initializer,
        identity_initializer,
        ones_initializer,
        orthogonal_initializer,
        random_normal_initializer,
        random_uniform_initializer,
        truncated_normal_initializer,
        uniform_unit_scaling_initializer,
        variance_scaling_initializer,
        zeros_initializer,
    )
    from twofold.static.linalg import *  # noqa: F403
    from twofold.static.lookup import initialize_all_tables, tables_initializer
    from twofold.static.math import *  # noqa: F403
    from twofold.static.math import divide_no_nan as div_no_nan
    from twofold.static.math import inv
    from twofold.static.nn.activations import softmax
    from twofold.static.platform import logs as logging
    from twofold.static.platform import testing as test
    from twofold.static.platform.file_io import gfile
    from twofold.static.platform.flags import app, flags
    from twofold.static.platform.logs import get_logger
    from twofold.static.protobuf.graph_def import AttrValue, GraphDef, NodeDef
    from twofold.static.protobuf.summary import Event, HistogramProto, Summary
    from twofold.static.python.tensor_util import constant_value as get_static_value
    from twofold.static.quantization import *  # noqa: F403
    from twofold.static.random import (
        get_seed,
        multinomial,
        random_gamma,
        random_normal,
        random_poisson,
        random_shuffle,
        random_uniform,
        set_random_seed,
        truncated_normal,
    )
    from twofold.static.recurrent import rnn_cell
    from twofold.static.session.config import (
        ConfigProto,
        GPUOptions,
        GraphOptions,
        OptimizerOptions,
        RunMetadata,
        RunOptions,
    )
    from twofold.static.session.conversions import register_tensor_conversion_function
    from twofold.static.sparse import *  # noqa: F403
    from twofold.static.sparse_rearranging import *  # noqa: F403
    from twofold.static.strings.hash_buckets import string_to_hash_bucket_fast
    from twofold.static.strings.serialized import decode_compressed, parse_tensor, serialize_tensor
    from twofold.static.strings.string_functions import (
        as_string,
        decode_base64,
        decode_raw,
        encode_base64,
        matching_files,
        read_file,
        reduce_join,
        regex_replace,
        string_join,
        string_strip,
        string_to_number,
        substr,
        write_file,
    )
    from twofold.static.summary import histogram as histogram_summary
    from twofold.static.summary import image as image_summary
    from twofold.static.summary import merge as merge_summary
    from twofold.static.summary import merge_all as merge_all_summaries
    from twofold.static.summary import scalar as scalar_summary
    from twofold.static.variables.initialization import *  # noqa: F403
    from twofold.static.variables.partitioned import (
        PartitionedVariable,
        fixed_size_partitioner,
        min_max_variable_partitioner,
        variable_axis_size_partitioner,
    )
    from twofold.static.variables.resources import (
        disable_resource_variables,
        enable_resource_variables,
        resource_variables_enabled,
    )
    from twofold.static.variables.scatter_updates import *  # noqa: F403
    from twofold.static.variables.synchronization import VariableAggregation, VariableSynchronization
    from twofold.static.variables.variable import (
        Variable,
        all_variables,
        assign,
        assign_add,
        assign_sub,
        global_variables,
        global_variables_initializer,
        initialize_all_variables,
        initialize_local_variables,
        initialize_variables,
        local_variables,
        local_variables_initializer,
        model_variables,
        moving_average_variables,
        trainable_variables,
        variables_initializer,
    )
    from twofold.static.variables.variable_scope import (
        AUTO_REUSE,
        VariableScope,
        get_local_variable,
        get_variable,
        get_variable_scope,
        make_template,
        no_regularizer,
        variable_creator_scope,
        variable_op_scope,
        variable_scope,
    )

_tensor_methods.install()

__getattr__, __dir__ = _attach(__name__, _prepared)

half, double = float16, float64
newaxis = None
VERSION = __version__ = "1.15.0"
GIT_VERSION = f"v{VERSION}"


def disable_v2_behavior() -> None:
    """Does nothing: this is TensorFlow 1's behaviour."""


def disable_v2_tensorshape() -> None:
    """Does nothing: this is TensorFlow 1's behaviour."""


_guard_namespace(globals())
