"""Reductions, statistics, running sums, and normalisation."""
