"""Graph-to-graph passes that run before scheduling."""
