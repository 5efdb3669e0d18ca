"""Differentiation: graph to graph."""
