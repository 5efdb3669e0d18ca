"""Optimisers, learning rates, running averages."""
