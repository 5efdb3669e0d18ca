"""Runs of a graph: what a set of fetches needs, declared to the core once, and called."""
