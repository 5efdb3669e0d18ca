"""Graphs and their operations."""

from twofold.static.python.framework import graph_util as graph_util
from twofold.static.python.framework import ops as ops
