"""Graphs, tensors and operations, as in ``twofold.static``."""

from twofold.static.control import control_dependencies as control_dependencies
from twofold.static.control import device as device
from twofold.static.control import name_scope as name_scope
from twofold.static.custom_gradients import NoGradient as NoGradient
from twofold.static.custom_gradients import NotDifferentiable as NotDifferentiable
from twofold.static.custom_gradients import RegisterGradient as RegisterGradient
from twofold.static.define import convert_to_tensor as convert_to_tensor
from twofold.static.graph import Graph as Graph
from twofold.static.graph import Operation as Operation
from twofold.static.graph import Tensor as Tensor
from twofold.static.graph import get_default_graph as get_default_graph
from twofold.static.graph import get_default_session as get_default_session
from twofold.static.graph import reset_default_graph as reset_default_graph
from twofold.static.keys import GraphKeys as GraphKeys
