"""Choices, loops, dependencies, and calls of Python from a declared graph."""
