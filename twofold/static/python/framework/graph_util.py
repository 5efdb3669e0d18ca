"""Graphs as messages made smaller, as in ``twofold.static.graph_util``."""

from twofold.static.graph_util import convert_variables_to_constants as convert_variables_to_constants
from twofold.static.graph_util import extract_sub_graph as extract_sub_graph
from twofold.static.graph_util import remove_training_nodes as remove_training_nodes
