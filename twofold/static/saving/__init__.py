"""Checkpoints: written, read, and variables that begin with their values."""
