"""PyTorch's name of the module that traces, which generated code refers to."""

from twofold.fx.tracing import Tracer as Tracer
from twofold.fx.tracing import symbolic_trace as symbolic_trace
from twofold.fx.tracing import wrap as wrap
