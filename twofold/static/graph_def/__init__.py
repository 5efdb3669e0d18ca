"""Graphs to messages and back."""
