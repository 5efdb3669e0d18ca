"""Scheduling: fusion, loop nests and memory plan of a graph."""
