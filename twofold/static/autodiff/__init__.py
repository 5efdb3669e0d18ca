"""Derivatives of declared graphs: gradients, those of the user, sparse rows, clipping."""
