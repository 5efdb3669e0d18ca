"""Graph to graph: differentiation, batching, outlining, simplification."""
