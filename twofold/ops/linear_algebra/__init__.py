"""Factorisations, systems, eigenvalues and functions of matrices."""
