"""DyNet's Python interface over the same tensors: ``import twofold.dynet as dy``.

Names, argument orders and defaults are DyNet 2.1's; ``docs/dynet.md`` says what differs.

>>> import twofold.dynet as dy
>>> m = dy.ParameterCollection()
>>> w, b = m.add_parameters((1, 2), init=0), m.add_parameters(1, init=0)
>>> trainer = dy.SimpleSGDTrainer(m, learning_rate=0.1)
>>> for _ in range(30):
...     graph = dy.renew_cg()
...     loss = dy.square(dy.logistic(w * dy.inputVector([1, -1]) + b) - 1)
...     loss.backward()
...     trainer.update()
>>> loss.value() < 0.1
True
"""

import sys as _sys

from twofold import dynet_config as _dynet_config
from twofold.dynet.convolution import (
    conv2d,
    conv2d_bias,
    filter1d_narrow,
    kmax_pooling,
    maxpooling2d,
)  # fmt: skip
from twofold.dynet.elementwise import (
    abs,
    acos,
    acosh,
    argmax,
    asin,
    asinh,
    atan,
    atanh,
    bmax,
    bmin,
    cdiv,
    ceil,
    cmult,
    colwise_add,
    cos,
    cosh,
    cube,
    cwise_multiply,
    elu,
    erf,
    exp,
    flip_gradient,
    floor,
    lgamma,
    log,
    log_sigmoid,
    logistic,
    nobackprop,
    pow,
    rectify,
    round,
    scale_gradient,
    selu,
    silu,
    sin,
    sinh,
    softsign,
    sqrt,
    square,
    tan,
    tanh,
    to_device,
)
from twofold.dynet.evaluation import (
    DeviceInfo,
    available_devices,
    forward,
    get_device_info,
    npvalues,
    values,
)  # fmt: skip
from twofold.dynet.expression import Expression
from twofold.dynet.expression import Values as Tensor
from twofold.dynet.gates import (
    vanilla_lstm_c,
    vanilla_lstm_gates,
    vanilla_lstm_gates_concat,
    vanilla_lstm_gates_dropout,
    vanilla_lstm_gates_dropout_concat,
    vanilla_lstm_h,
)
from twofold.dynet.graph import ComputationGraph, cg, cg_checkpoint, cg_revert, cg_version, renew_cg
from twofold.dynet.graph_dumps import dump_cg, print_graphviz, print_text_graphviz
from twofold.dynet.initializers import (
    ConstInitializer,
    FromFileInitializer,
    GlorotInitializer,
    IdentityInitializer,
    NormalInitializer,
    NumpyInitializer,
    PyInitializer,
    SaxeInitializer,
    UniformInitializer,
)
from twofold.dynet.inputs import (
    inputMatrix,
    inputTensor,
    inputTensorTranspose,
    inputVector,
    matInput,
    scalarInput,
    sparse_inputTensor,
    vecInput,
)
from twofold.dynet.lookups import LookupParameters, lookup, lookup_batch
from twofold.dynet.losses import (
    binary_log_loss,
    constrained_softmax,
    hinge,
    hinge_batch,
    hinge_dim,
    huber_distance,
    l1_distance,
    log_softmax,
    pairwise_rank_loss,
    pickneglogsoftmax,
    pickneglogsoftmax_batch,
    poisson_loss,
    softmax,
    sparsemax,
    squared_distance,
)
from twofold.dynet.lstm import (
    BiRNNBuilder,
    CompactVanillaLSTMBuilder,
    CoupledLSTMBuilder,
    FastLSTMBuilder,
    LSTMBuilder,
    SparseLSTMBuilder,
    VanillaLSTMBuilder,
)
from twofold.dynet.matrices import (
    affine_transform,
    circ_conv,
    circ_corr,
    contract3d_1d,
    contract3d_1d_1d,
    contract3d_1d_1d_bias,
    contract3d_1d_bias,
    dot_product,
    inverse,
    layer_norm,
    logdet,
    trace_of_product,
    weight_norm,
)
from twofold.dynet.noise import (
    block_dropout,
    constant,
    dropout,
    dropout_batch,
    dropout_dim,
    noise,
    one_hot,
    ones,
    random_bernoulli,
    random_gumbel,
    random_normal,
    random_uniform,
    zeroes,
    zeros,
)
from twofold.dynet.options import DynetParams, init, init_from_params, reset_random_seed
from twofold.dynet.options import from_arguments as _from_arguments
from twofold.dynet.parameter_collection import Model, ParameterCollection
from twofold.dynet.parameters import Parameters, const_parameter, parameter
from twofold.dynet.recurrent import GRUBuilder, RNNState, SimpleRNNBuilder, StackedRNNState, _RNNBuilder
from twofold.dynet.reductions import (
    average,
    cumsum,
    emax,
    esum,
    l2_norm,
    logsumexp,
    logsumexp_dim,
    max_dim,
    mean_batches,
    mean_dim,
    mean_elems,
    min_dim,
    moment_batches,
    moment_dim,
    moment_elems,
    squared_norm,
    std_batches,
    std_dim,
    std_elems,
    sum_batches,
    sum_cols,
    sum_dim,
    sum_elems,
)
from twofold.dynet.saving import load, load_generator, save
from twofold.dynet.shapes import (
    concatenate,
    concatenate_cols,
    concatenate_to_batch,
    fold_rows,
    kmh_ngram,
    pick,
    pick_batch,
    pick_batch_elem,
    pick_batch_elems,
    pick_range,
    pickrange,
    reshape,
    select_cols,
    select_rows,
    strided_select,
    transpose,
)
from twofold.dynet.softmax_builders import (
    ClassFactoredSoftmaxBuilder,
    HierarchicalSoftmaxBuilder,
    SoftmaxBuilder,
    StandardSoftmaxBuilder,
)
from twofold.dynet.trainers import (
    AdadeltaTrainer,
    AdagradTrainer,
    AdamTrainer,
    AmsgradTrainer,
    CyclicalSGDTrainer,
    EGTrainer,
    MomentumSGDTrainer,
    RMSPropTrainer,
    SimpleSGDTrainer,
    Trainer,
)
from twofold.dynet.tree_lstm import (
    BidirectionalTreeLSTMBuilder,
    NaryTreeLSTMBuilder,
    TreeLSTMBuilder,
    UnidirectionalTreeLSTMBuilder,
)
from twofold.tracebacks import guard_namespace as _guard_namespace

# ``import twofold.dynet.dynet_config`` and ``from twofold.dynet import dynet_config`` find the settings, too
dynet_config = _sys.modules[f"{__name__}.dynet_config"] = _dynet_config
HAVE_CUDA = False
__version__ = "2.1"

if _from_arguments(_sys.argv):
    init()

__all__ = [name for name in globals() if not name.startswith("_")]

_guard_namespace(globals())
