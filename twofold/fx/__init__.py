"""Graphs of Python functions and modules that programs read, change and run, with PyTorch's names.

A function is called once with proxies, and what it does with them is noted. These graphs are Python: they say which
functions, methods and modules are called. Those that the compiler works on are of ``twofold.ir``.
"""

from twofold.fx import _symbolic_trace as _symbolic_trace
from twofold.fx import node as node
from twofold.fx import proxy as proxy
from twofold.fx import subgraph_rewriter as subgraph_rewriter
from twofold.fx.graph import Graph as Graph
from twofold.fx.graph_module import GraphModule as GraphModule
from twofold.fx.interpreter import Interpreter as Interpreter
from twofold.fx.interpreter import Transformer as Transformer
from twofold.fx.node import Node as Node
from twofold.fx.proxy import Proxy as Proxy
from twofold.fx.subgraph_rewriter import replace_pattern as replace_pattern
from twofold.fx.tracing import Tracer as Tracer
from twofold.fx.tracing import symbolic_trace as symbolic_trace
from twofold.fx.tracing import wrap as wrap
