"""Recurrent networks: cells, and what applies them along sequences."""
