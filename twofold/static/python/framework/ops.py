"""Graphs, tensors and operations, as in ``twofold.static``."""

from twofold.static import add_to_collection as add_to_collection
from twofold.static import add_to_collections as add_to_collections
from twofold.static import get_collection as get_collection
from twofold.static import get_collection_ref as get_collection_ref
from twofold.static.api.op_functions import convert_to_tensor as convert_to_tensor
from twofold.static.autodiff.indexed_slices import IndexedSlices as IndexedSlices
from twofold.static.functions.custom_gradients import NoGradient as NoGradient
from twofold.static.functions.custom_gradients import NotDifferentiable as NotDifferentiable
from twofold.static.functions.custom_gradients import RegisterGradient as RegisterGradient
from twofold.static.graph.collection_keys import GraphKeys as GraphKeys
from twofold.static.graph.graph import Graph as Graph
from twofold.static.graph.graph import Operation as Operation
from twofold.static.graph.graph import Tensor as Tensor
from twofold.static.graph.graph import get_default_graph as get_default_graph
from twofold.static.graph.graph import get_default_session as get_default_session
from twofold.static.graph.graph import reset_default_graph as reset_default_graph
from twofold.static.graph.scopes import colocate_with as colocate_with
from twofold.static.graph.scopes import control_dependencies as control_dependencies
from twofold.static.graph.scopes import device as device
from twofold.static.graph.scopes import init_scope as init_scope
from twofold.static.graph.scopes import name_scope as name_scope
from twofold.static.graph.scopes import op_scope as op_scope
from twofold.static.session.conversions import (
    register_tensor_conversion_function as register_tensor_conversion_function,
)
