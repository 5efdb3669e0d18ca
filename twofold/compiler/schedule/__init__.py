"""Scheduling: which kernels compute a graph, over which loops, and where every value lies in memory."""
